//! Three nodes on one database and one Redis behave like one server, whichever node a client uses.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use nexo_sim::history::read_all;
use nexo_sim::person::PASSWORD;
use nexo_sim::process::Setup;
use nexo_sim::socket::{chat, seq};
use nexo_sim::{Http, Person, RetryingClient, Socket, TestGroup};
use serde_json::{Value, json};

const NODE_TTL: Duration = Duration::from_secs(2);

fn setup() -> Setup {
    let ttl = NODE_TTL.as_millis().to_string();
    Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(3).with("NEXO_CLUSTER__NODE_TTL_MS", &ttl)
}

async fn connect(node: &Http, person: &Person) -> Socket {
    let mut socket = Socket::open(&node.authority).await;
    socket.auth(&person.token).await;
    socket.until("RESEND_DONE").await;
    socket
}

/// What came until now.
async fn so_far(socket: &mut Socket) -> Vec<Value> {
    socket.say(json!({ "type": "PING" })).await;
    socket.until("PONG").await
}

async fn is_online(node: &Http, who: &Person, of: &str) -> bool {
    let body = json!({ "user_ids": [of] });
    let answer = node.post("/user/get_users_online_status", &who.token, body).await;
    answer.data()[0]["status"] == 1
}

async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) -> Duration {
    let since = Instant::now();
    while !is_so().await {
        assert!(since.elapsed() < Duration::from_secs(20), "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    since.elapsed()
}

/// A group's delivery mode depends on how many users are online on all nodes together, each counted once.
#[tokio::test(flavor = "multi_thread")]
async fn the_strategy_counts_those_online_on_every_node() {
    let server = setup()
        .with("NEXO_GROUPS__NOTIFY_ONLINE", "4")
        .with("NEXO_GROUPS__NONE_ONLINE", "100")
        .start();
    let people = server.people(["olga", "max", "mia", "zoe"]).await;
    let [olga, max, mia, zoe] = &people;
    let group = TestGroup::new(server.node(0), olga, &[max, mia, zoe]).await;
    let mut a = connect(server.node(0), olga).await;
    // Three people, one of them on all nodes.
    let mut b = connect(server.node(1), max).await;
    let mut rest = vec![
        connect(server.node(1), olga).await,
        connect(server.node(2), olga).await,
        connect(server.node(2), mia).await,
    ];
    tokio::time::sleep(Duration::from_millis(300)).await;
    group.say(&mut a, "1", "1").await;
    let is_told =
        |frame: &Value| matches!(frame["type"].as_str(), Some("GROUP_CHAT" | "GROUP_NOTIFY"));
    assert_eq!(b.find(is_told, "the message").await["type"], "GROUP_CHAT");
    for socket in &mut rest {
        assert_eq!(socket.find(is_told, "the message").await["type"], "GROUP_CHAT");
    }
    // The fourth: no node has more than two of them.
    let mut z = connect(server.node(0), zoe).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    group.say(&mut a, "2", "2").await;
    for socket in rest.iter_mut().chain([&mut b, &mut z]) {
        assert_eq!(socket.find(is_told, "the message").await["type"], "GROUP_NOTIFY");
    }
    // A node that is gone does not count for ever, and one that ends says so.
    drop((z, rest));
    let mut number = 2;
    eventually("it comes back", async || {
        number += 1;
        group.say(&mut a, &number.to_string(), "more").await;
        b.find(is_told, "the message").await["type"] == "GROUP_CHAT"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_on_three_nodes_hears_everything_on_each() {
    let server = setup().start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let mut a = connect(server.node(0), &alice).await;
    let mut ears = Vec::new();
    for node in 0..3 {
        ears.push(connect(server.node(node), &bob).await);
    }
    for i in 0..50 {
        let saved = a.send("bob", &format!("c{i}"), &format!("text {i}")).await;
        assert_eq!(seq(&saved), i + 1);
    }
    for ear in &mut ears {
        let mut heard = Vec::new();
        while heard.len() < 50 {
            heard.push(seq(&ear.expect("SINGLE_CHAT").await));
        }
        heard.sort_unstable(); // nodes tell of it in no certain order, but once
        assert_eq!(heard, (1..=50).collect::<Vec<_>>());
        let more = so_far(ear).await;
        assert!(more.iter().all(|frame| frame["type"] != "SINGLE_CHAT"), "{more:?}");
    }
    // What is read on one is known on the others, and the sender hears of it wherever they are.
    let last = read_all(server.node(1), &bob, "alice").await.pop().unwrap();
    ears[1].ack("read", "alice", &last).await;
    let receipt = a.expect_ack("read").await;
    assert_eq!(receipt["msgSeq"], "50");
    for node in 0..3 {
        let heads = server.node(node).get("/conversation/heads", &bob.token).await;
        assert_eq!(heads.data()["heads"][0]["unread_count"], 0, "on node {node}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn presence_follows_and_a_dead_node_is_forgotten() {
    let mut server = setup().start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let mut a = connect(server.node(0), &alice).await;
    a.send("bob", "c1", "hi").await;
    assert!(!is_online(server.node(0), &alice, "bob").await);
    let phone = connect(server.node(1), &bob).await;
    assert!(is_online(server.node(0), &alice, "bob").await, "at once, also elsewhere");
    assert!(is_online(server.node(2), &alice, "bob").await);
    drop(phone);
    eventually("he has gone", async || !is_online(server.node(2), &alice, "bob").await).await;
    let mut again = connect(server.node(1), &bob).await;
    server.kill_node(1);
    let took =
        eventually("its people are gone", async || !is_online(server.node(0), &alice, "bob").await);
    let took = took.await;
    assert!(took < NODE_TTL * 3, "it took {took:?}");
    drop(again.expect_end().await);
    // He goes on elsewhere, and lacks nothing that was said meanwhile.
    a.send("bob", "c2", "are you there?").await;
    let mut socket = Socket::open(&server.node(2).authority).await;
    socket.auth(&bob.token).await;
    let resent = socket.until("RESEND_DONE").await;
    let missed: Vec<u64> = resent.iter().map(seq).collect();
    assert_eq!(missed, [1, 2]);
    a.send("bob", "c3", "good").await;
    assert_eq!(seq(&socket.expect("SINGLE_CHAT").await), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_sign_in_ends_the_older_on_another_node() {
    let server = setup().with("NEXO_SESSION__POLICY", "single").start();
    let first = server.person("alice").await;
    let mut one = connect(server.node(0), &first).await;
    let second = Person::sign_in(server.node(1), "alice", 1).await;
    let mut two = connect(server.node(1), &second).await;
    let (frames, code) = one.expect_end().await;
    assert_eq!(frames.last().unwrap()["reason"], "kicked");
    assert_eq!(code, Some(4403));
    let mut refused = Socket::open(&server.node(2).authority).await;
    refused.say(json!({ "type": "AUTH", "token": first.token })).await;
    let (frames, _) = refused.expect_end().await;
    assert_eq!(frames[0]["reason"], "session_invalid", "it cannot come back and kick the newcomer");
    // A password changed on a third node ends what is left at once.
    let change = json!({ "old_password": PASSWORD, "new_password": "another one" });
    let changed = server.node(2).post("/user/change_password", &second.token, change).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    let (frames, _) = two.expect_end().await;
    assert_eq!(frames.last().unwrap()["reason"], "session_invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_sends_of_one_id_through_three_nodes_store_one_message() {
    let server = setup().start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let tasks: Vec<_> = (0..9)
        .map(|i| {
            let (node, alice) = (server.node(i % 3).clone(), alice.clone());
            tokio::spawn(async move {
                let mut socket = connect(&node, &alice).await;
                socket.burst((0..112).map(|_| chat("bob", "the-one", "only once"))).await;
                let mut acks = Vec::new();
                while acks.len() < 112 {
                    acks.push(socket.expect_ack("saved").await);
                }
                acks
            })
        })
        .collect();
    let mut acks = Vec::new();
    for task in tasks {
        acks.extend(task.await.unwrap());
    }
    assert_eq!(acks.len(), 1008);
    assert!(acks.iter().all(|ack| *ack == acks[0]), "all ACKs are equal");
    assert_eq!(read_all(&server.http, &bob, "alice").await.len(), 1);
}

/// The removal of a member and the next message come from different nodes: whichever arrives first,
/// no member receives a message from outside their window.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_hears_what_came_after_they_were_put_out() {
    let server = setup().start();
    let [olga, carol, bob] = server.people(["olga", "carol", "bob"]).await;
    let group = TestGroup::new(server.node(0), &olga, &[&carol]).await;
    let mut b = connect(server.node(2), &bob).await;
    let speaking = {
        let (node, group, carol) = (server.node(1).clone(), group.clone(), carol.clone());
        tokio::spawn(async move {
            let mut socket = connect(&node, &carol).await;
            for i in 0..600 {
                group.say(&mut socket, &format!("c{i}"), "words").await;
            }
        })
    };
    let mut stays = Vec::new();
    while !speaking.is_finished() {
        let joined =
            server.node(2).post("/group/join", &bob.token, json!({ "group_id": group.id }));
        assert_eq!(joined.await.status, 200);
        tokio::time::sleep(Duration::from_millis(15)).await;
        assert_eq!(group.ask(&olga, "kick", json!({ "user_id": "bob" })).await.status, 200);
        let heads = server.node(1).get("/conversation/heads", &bob.token).await;
        let head = heads.data()["heads"][0].clone();
        stays.push((head["min_seq"].as_u64().unwrap(), head["max_seq"].as_u64().unwrap()));
    }
    speaking.await.unwrap();
    assert!(stays.len() > 5, "{stays:?}");
    b.say(json!({ "type": "PING" })).await;
    let heard = b.until("PONG").await;
    let heard: Vec<u64> =
        heard.iter().filter(|frame| frame["type"] == "GROUP_CHAT").map(seq).collect();
    assert!(heard.len() > 20, "{heard:?} in {stays:?}");
    for seq in heard {
        let is_theirs = stays.iter().any(|(min, max)| (*min..=*max).contains(&seq));
        assert!(is_theirs, "heard {seq} outside of {stays:?}");
    }
}

/// A node that has just subscribed to a group also delivers what was sent before.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_of_a_node_who_joins_hears_everything() {
    let server = setup().start();
    let [olga, bob] = server.people(["olga", "bob"]).await;
    let mut a = connect(server.node(0), &olga).await;
    let mut b = connect(server.node(2), &bob).await;
    for round in 0..20 {
        let group = TestGroup::new(server.node(0), &olga, &[]).await;
        group.ask(&bob, "join", json!({})).await.data();
        for i in 0..3 {
            group.say(&mut a, &format!("{round}-{i}"), &format!("{round}-{i}")).await;
        }
        for i in 0..3 {
            let id = format!("{round}-{i}");
            b.find(|frame| frame["body"] == *id, &id).await;
        }
        b.expect("GROUP_CHANGED").await;
    }
}

/// Groups with members on all nodes: every member receives everything, whichever node they joined on.
#[tokio::test(flavor = "multi_thread")]
async fn a_group_over_three_nodes_is_one() {
    let server = setup().start();
    let [olga, anna, ben, carl] = server.people(["olga", "anna", "ben", "carl"]).await;
    let mut sockets = Vec::new();
    for (node, person) in [&olga, &anna, &ben, &carl].into_iter().enumerate() {
        sockets.push(connect(server.node(node % 3), person).await);
    }
    let group = TestGroup::new(server.node(1), &olga, &[&anna, &ben]).await;
    for i in 0..60 {
        let speaker = i % 3;
        let saved = group.say(&mut sockets[speaker], &format!("c{i}"), "words").await;
        assert_eq!(saved["ackType"], "saved", "{saved}");
        if i == 30 {
            let invited = json!({ "user_ids": ["carl"] });
            assert_eq!(group.ask(&olga, "invite", invited).await.status, 200);
        }
    }
    let own = |who: usize, i: u64| who < 3 && i % 3 == who as u64;
    for (who, socket) in sockets.iter_mut().enumerate() {
        let mut expect: BTreeSet<u64> = (0..60).filter(|i| !own(who, *i)).map(|i| i + 1).collect();
        if who == 3 {
            expect.retain(|seq| *seq > 31);
        }
        let mut heard = BTreeSet::new();
        while heard.len() < expect.len() {
            heard.insert(seq(&socket.expect("GROUP_CHAT").await));
        }
        assert_eq!(heard, expect, "person {who}");
    }
    // Once every node has heard the group for a while, everything comes once.
    tokio::time::sleep(Duration::from_secs(1)).await;
    for socket in &mut sockets {
        so_far(socket).await;
    }
    for i in 60..72 {
        group.say(&mut sockets[i % 4], &format!("c{i}"), "words").await;
    }
    for (who, socket) in sockets.iter_mut().enumerate() {
        let mut heard = Vec::new();
        while heard.len() < 9 {
            heard.push(seq(&socket.expect("GROUP_CHAT").await));
        }
        heard.sort_unstable();
        let expect: Vec<u64> = (60..72).filter(|i| i % 4 != who as u64).map(|i| i + 1).collect();
        assert_eq!(heard, expect, "person {who}");
        let more = so_far(socket).await;
        assert!(more.iter().all(|frame| frame["type"] != "GROUP_CHAT"), "{more:?}");
    }
}

/// A node that goes down tells its people to come back, and they lose nothing.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_come_and_go_under_load() {
    let mut server = setup().start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let mut sender = RetryingClient::new(&server.http.authority, &alice);
    let sending = tokio::spawn(async move {
        let (mut acks, since) = (Vec::new(), Instant::now());
        while since.elapsed() < Duration::from_secs(6) {
            acks.push(sender.send("bob", &format!("c{}", acks.len()), "words").await);
        }
        (acks, sender.reconnects)
    });
    for round in 0..3 {
        tokio::time::sleep(Duration::from_millis(800)).await;
        server.kill_node(round % 3);
        tokio::time::sleep(Duration::from_millis(800)).await;
        server.start_node(round % 3);
    }
    let (acks, reconnects) = sending.await.unwrap();
    assert!(acks.len() > 50 && reconnects > 1, "{} sends, {reconnects} sockets", acks.len());
    let stored = read_all(&server.http, &bob, "alice").await;
    assert_eq!(stored.len(), acks.len(), "once each");
    for (number, (message, ack)) in stored.iter().zip(&acks).enumerate() {
        assert_eq!(message["clientMsgId"], format!("c{number}"), "in the order of sending");
        assert_eq!((&message["serverMsgId"], seq(message)), (&ack["serverMsgId"], seq(ack)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_name_is_heard_on_every_node() {
    let server = setup().start();
    let [alice, bob, carol] = server.people(["alice", "bob", "carol"]).await;
    let mut own = connect(server.node(0), &alice).await;
    own.send("bob", "c1", "hello").await;
    let _group = TestGroup::new(server.node(0), &alice, &[&carol]).await;
    let mut others =
        [connect(server.node(1), &bob).await, connect(server.node(2), &carol).await, own];
    let body = json!({ "nickname": "Alice L.", "avatar": "a.png" });
    server.node(2).put("/user/update", &alice.token, body).await.data();
    for socket in &mut others {
        let heard = socket.expect("USER_UPDATED").await;
        assert_eq!((&heard["userId"], &heard["nickname"]), (&json!("alice"), &json!("Alice L.")));
        assert_eq!(heard["avatar"], "a.png");
    }
}
