//! A group of a hundred thousand, a thousand of them online: it works like a small one.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::time::{Duration, Instant};

use nexo_sim::large_group::{self, LargeGroup, LargeGroupSize};
use nexo_sim::process::Setup;
use nexo_sim::{Http, HttpResponse, Person, Server, Socket, TestGroup};
use serde_json::{Value, json};

const MEMBERS: usize = 100_000;
const ONLINE: usize = 1_000;
/// Sends whose time is taken.
const SENDS: u32 = 100;

/// What takes no longer in a large group than in a small one takes less than this.
const SOON: Duration = Duration::from_secs(1);

async fn connect(http: Http, people: Vec<Person>) -> Vec<Socket> {
    let mut sockets = Vec::with_capacity(people.len());
    for person in people {
        let mut socket = Socket::open(&http.authority).await;
        socket.auth(&person.token).await;
        socket.until("RESEND_DONE").await;
        sockets.push(socket);
    }
    sockets
}

/// A socket for each, some at a time.
async fn connect_all(server: &Server, people: &[Person]) -> Vec<Socket> {
    let parts = people.chunks(people.len().div_ceil(16));
    let tasks: Vec<_> =
        parts.map(|part| tokio::spawn(connect(server.http.clone(), part.to_vec()))).collect();
    let mut sockets = Vec::with_capacity(people.len());
    for task in tasks {
        sockets.extend(task.await.unwrap());
    }
    sockets
}

/// The average time from a send to its ACK.
async fn time_sends(group: &TestGroup, by: &mut Socket, name: &str) -> Duration {
    let since = Instant::now();
    for n in 0..SENDS {
        let answer = group.say(by, &format!("{name}{n}"), "timed").await;
        assert_eq!(answer["ackType"], "saved", "{answer}");
    }
    since.elapsed() / SENDS
}

/// Every socket receives this as its next frame of that type.
async fn all_hear(sockets: &mut [Socket], kind: &str, field: &str, value: &Value) {
    for (n, socket) in sockets.iter_mut().enumerate() {
        let heard = socket.expect(kind).await;
        assert_eq!(heard[field], *value, "{n}: {heard}");
    }
}

async fn timed(what: &str, asked: impl Future<Output = HttpResponse>) -> HttpResponse {
    let since = Instant::now();
    let answer = asked.await;
    let took = since.elapsed();
    eprintln!("{what}: {took:?}");
    answer.data();
    assert!(took < SOON, "{what} took {took:?}");
    answer
}

/// The member list, by pages, has every member once, in order.
async fn check_members(group: &TestGroup, by: &Person) {
    let since = Instant::now();
    let (mut ids, mut slowest) = (Vec::with_capacity(MEMBERS), Duration::ZERO);
    let mut cursor = String::new();
    loop {
        let asked = Instant::now();
        let page = group.get(by, &format!("members?limit=1000{cursor}")).await;
        slowest = slowest.max(asked.elapsed());
        let data = page.data();
        assert_eq!(data["total"], MEMBERS);
        let list = data["list"].as_array().unwrap();
        ids.extend(list.iter().map(|member| member["user_id"].as_str().unwrap().to_owned()));
        if data["has_more"] != true {
            break;
        }
        cursor = format!("&cursor={}", data["next_cursor"].as_str().unwrap());
    }
    let took = since.elapsed();
    eprintln!("{} members by pages of 1000 in {took:?}, the slowest in {slowest:?}", ids.len());
    let expect: Vec<String> = (0..MEMBERS).map(large_group::user_id).collect();
    assert!(ids == expect, "{} ids, not everybody once and in order", ids.len());
    assert!(slowest < SOON, "a page took {slowest:?}");
}

/// One send reaches every member who is online.
async fn check_reach(group: &TestGroup, sockets: &mut [Socket]) {
    let (sender, others) = sockets.split_first_mut().unwrap();
    let mut slowest = Duration::ZERO;
    for n in 0..5 {
        let body = format!("to everybody {n}");
        let since = Instant::now();
        group.say(sender, &format!("all{n}"), &body).await;
        let saved = since.elapsed();
        all_hear(others, "GROUP_CHAT", "body", &json!(body)).await;
        slowest = slowest.max(since.elapsed());
        eprintln!("send {n}: saved in {saved:?}, heard by all in {:?}", since.elapsed());
    }
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
}

/// Members join and leave, and all who are online get the changes.
async fn check_coming_and_going(
    group: &TestGroup,
    members: &[Person],
    outsiders: &[Person],
    sockets: &mut [Socket],
) {
    let (owner, newcomer, rest) = (&members[0], &outsiders[0], &outsiders[1..]);
    timed("join", group.ask(newcomer, "join", json!({}))).await;
    all_hear(sockets, "GROUP_CHANGED", "userIds", &json!([newcomer.id])).await;
    let kick = json!({ "user_id": newcomer.id });
    timed("kick", group.ask(owner, "kick", kick)).await;
    all_hear(sockets, "GROUP_CHANGED", "event", &json!("kicked")).await;
    let ids: Vec<&str> = rest.iter().map(|person| person.id.as_str()).collect();
    let invite = json!({ "user_ids": ids });
    timed(&format!("invite {}", ids.len()), group.ask(owner, "invite", invite)).await;
    all_hear(sockets, "GROUP_CHANGED", "userIds", &json!(ids)).await;
    let members: Vec<String> = (1..=500).map(large_group::user_id).collect();
    let new = json!({ "name": "Another", "member_ids": members });
    timed("create with 500", group.http.post("/group/create", &owner.token, new)).await;
    timed("leave", group.ask(&rest[0], "quit", json!({}))).await;
}

/// Dissolving the group writes one record, and all members are out.
async fn check_end(group: &TestGroup, members: &[Person], sockets: &mut [Socket]) {
    timed("dissolve", group.ask(&members[0], "dissolve", json!({}))).await;
    for socket in sockets.iter_mut() {
        socket.find(|frame| frame["event"] == "dissolved", "the end").await;
    }
    let refused = group.say(&mut sockets[5], "late", "late").await;
    assert_eq!(refused["reason"], "group_dissolved");
    assert_eq!(group.info(&members[7]).await["is_active"], false);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_of_a_hundred_thousand_works_like_a_small_one() {
    let size = LargeGroupSize { members: MEMBERS, signed_in: ONLINE, outsiders: 501 };
    let crowd = LargeGroup::new(size).await;
    eprintln!(
        "{MEMBERS} accounts in {:?}, the group in {:?}",
        crowd.accounts_took, crowd.group_took
    );
    let id = crowd.group.clone();
    let setup = Setup::new(env!("CARGO_BIN_EXE_nexo"))
        .with("NEXO_GROUPS__STRATEGY", "push")
        .with("NEXO_GROUPS__MEMBERS_MAX", "200000");
    let since = Instant::now();
    let (server, members, outsiders) = crowd.start(setup);
    eprintln!("started in {:?}, {} MiB", since.elapsed(), server.memory_bytes() >> 20);
    let large = TestGroup { http: server.http.clone(), id };
    check_members(&large, &members[17]).await;

    // As many online as a group of ten has: a send takes the same.
    let ten: Vec<&Person> = members[1..10].iter().collect();
    let small = TestGroup::new(&server.http, &members[0], &ten).await;
    let mut sockets = connect_all(&server, &members[..10]).await;
    let in_small = time_sends(&small, &mut sockets[1], "s").await;
    let in_large = time_sends(&large, &mut sockets[1], "l").await;
    eprintln!("a send with ten online: {in_small:?} among 10, {in_large:?} among {MEMBERS}");
    assert!(in_large < in_small * 3 + Duration::from_millis(5), "{in_small:?} {in_large:?}");
    drop(sockets);

    let since = Instant::now();
    let mut sockets = connect_all(&server, &members).await;
    let memory = server.memory_bytes() >> 20;
    eprintln!("{} sockets in {:?}, {memory} MiB", sockets.len(), since.elapsed());
    check_reach(&large, &mut sockets).await;
    check_coming_and_going(&large, &members, &outsiders, &mut sockets).await;
    check_end(&large, &members, &mut sockets).await;
    eprintln!("in the end {} MiB", server.memory_bytes() >> 20);
}
