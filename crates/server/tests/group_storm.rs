//! Fifty users in one group, all at once: they join, leave, are removed, rejoin and send. Whatever
//! the order, each sees exactly their windows, and nothing acknowledged is lost.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod storm;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nexo_sim::group_timeline::{GroupTimeline, change_seq};
use nexo_sim::process::Setup;
use nexo_sim::socket::seq;
use nexo_sim::{Person, Server, Socket, TestGroup};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use storm::{Diary, Dice, Live, connect};

/// In addition to the owner, and one member who only listens.
const PEOPLE: u64 = 48;
const STEPS: u64 = 150;

/// How far the storm is.
struct Weather {
    /// Members who are still busy.
    busy: AtomicU64,
    is_over: AtomicBool,
}

async fn storm_through(mut live: Live, n: u64, weather: Arc<Weather>) -> Diary {
    let mut dice = Dice(0x9E37_79B9 * (n + 1));
    live.ask("join", json!({}), &[]).await;
    for step in 0..STEPS {
        live.step(&mut dice, format!("{n}-{step}")).await;
    }
    weather.busy.fetch_sub(1, Ordering::SeqCst);
    live.listen_until(|| weather.is_over.load(Ordering::SeqCst)).await;
    live.diary
}

/// The owner puts people out, and has the last word.
async fn rule(mut live: Live, weather: Arc<Weather>) -> Diary {
    let mut dice = Dice(7);
    for step in 0..STEPS * 6 {
        let whom = format!("u{}", dice.below(PEOPLE));
        live.ask("kick", json!({ "user_id": whom }), &["target_not_member"]).await;
        if step % 8 == 0 {
            live.say(format!("owner-{step}")).await;
        }
    }
    live.listen_until(|| weather.busy.load(Ordering::SeqCst) == 0).await;
    live.say("the end".to_owned()).await;
    weather.is_over.store(true, Ordering::SeqCst);
    live.diary
}

/// A member who is online the whole time, and only listens.
async fn witness(mut socket: Socket) -> Vec<Value> {
    let mut heard = Vec::new();
    while heard.last().is_none_or(|frame: &Value| frame["body"] != "the end") {
        heard.push(socket.next().await);
    }
    heard
}

async fn pass_over(server: &Server) -> (TestGroup, GroupTimeline, Vec<Diary>) {
    let [olga, wil] = server.people(["olga", "wil"]).await;
    let mut people = Vec::new();
    for n in 0..PEOPLE {
        people.push(server.person(&format!("u{n}")).await);
    }
    let (socket, _) = server.connect(&wil).await;
    let listening = tokio::spawn(witness(socket));
    let group = TestGroup::new(&server.http, &olga, &[&wil]).await;
    let weather = Weather { busy: AtomicU64::new(PEOPLE), is_over: AtomicBool::new(false) };
    let weather = Arc::new(weather);
    let owner = Live::new(group.clone(), olga).await;
    let mut tasks = JoinSet::new();
    tasks.spawn(rule(owner, Arc::clone(&weather)));
    for (n, person) in (0..).zip(people) {
        let live = Live::new(group.clone(), person).await;
        tasks.spawn(storm_through(live, n, Arc::clone(&weather)));
    }
    let mut diaries = Vec::new();
    while let Some(diary) = tasks.join_next().await {
        diaries.push(diary.unwrap()); // the first that fails ends it all
    }
    diaries.sort_by_key(|diary| diary.me.id != "olga"); // hers is the first
    (group, GroupTimeline::from_frames(&listening.await.unwrap()), diaries)
}

/// Exactly what was acknowledged is there, at its place, and nothing that was refused.
async fn check_promises(group: &TestGroup, story: &GroupTimeline, diaries: &[Diary]) {
    let stored = group.read_all(&diaries[0].me).await;
    let mut places = BTreeMap::new();
    for (message, told) in stored.iter().zip(&story.messages) {
        for (field, frame_field) in
            [("msgSeq", "msgSeq"), ("serverMsgId", "serverMsgId"), ("fromUserId", "from")]
        {
            assert_eq!(message[field], told[frame_field], "{message} {told}");
        }
        let client_id = message["clientMsgId"].as_str().unwrap().to_owned();
        assert_eq!(message["content"], client_id.as_str());
        assert!(places.insert(client_id, seq(message)).is_none(), "twice: {message}");
    }
    assert_eq!(stored.len(), story.messages.len());
    let saved: BTreeMap<String, u64> =
        diaries.iter().flat_map(|diary| diary.saved.clone()).collect();
    assert_eq!(places, saved);
    for refused in diaries.iter().flat_map(|diary| &diary.refused) {
        assert!(!places.contains_key(refused), "{refused} was refused");
    }
}

/// The log of changes, pulled in small pages, equals the pushed changes.
async fn check_changes(group: &TestGroup, story: &GroupTimeline, owner: &Person) {
    let mut pulled: Vec<Value> = Vec::new();
    loop {
        let (id, since) = (group.conversation(), pulled.len());
        let path = format!("/conversation/changes?conversation_id={id}&since={since}&limit=50");
        let page = group.http.get(&path, &owner.token).await;
        pulled.extend(page.data().as_array().unwrap().iter().cloned());
        if page.body["has_more"] != true {
            break;
        }
    }
    assert_eq!(pulled.len(), story.changes.len());
    for (change, told) in pulled.iter().zip(&story.changes) {
        assert_eq!(change["change_seq"], change_seq(told), "{change} {told}");
        assert_eq!(change["kind"], told["event"], "{change} {told}");
        let people = (&change["user_ids"], &change["user_id"]);
        assert_eq!(people, (&told["userIds"], &told["userId"]), "{change} {told}");
        let from = told["msgSeq"].as_str().map(|from| from.parse::<u64>().unwrap());
        assert_eq!(change["from_seq"].as_u64(), from, "{change} {told}");
    }
}

/// Nobody heard anything from outside their windows, and whoever kept their socket heard all that
/// was in them, once and in order, except what came through that socket itself.
fn check_hearing(story: &GroupTimeline, diary: &Diary) {
    let (who, stays) = (&diary.me.id, story.periods(&diary.me.id));
    let (mut messages, mut changes) = (Vec::new(), Vec::new());
    for frame in diary.heard.iter().flatten() {
        if frame["type"] == "GROUP_CHAT" {
            let place = seq(frame);
            let is_theirs = stays.iter().any(|stay| stay.shows(place));
            assert!(is_theirs, "{who} heard {frame} outside of {stays:?}");
            let told = &story.messages[usize::try_from(place).unwrap() - 1];
            assert_eq!((&frame["body"], &frame["from"]), (&told["body"], &told["from"]));
            messages.push(place);
        } else if frame["type"] == "GROUP_CHANGED" {
            let place = change_seq(frame);
            let is_theirs = stays.iter().any(|stay| stay.shows_change(place));
            assert!(is_theirs, "{who} heard {frame} outside of {stays:?}");
            changes.push(place);
        }
    }
    for place in &diary.read {
        assert!(stays.iter().any(|stay| stay.shows(*place)), "{who} read {place}: {stays:?}");
    }
    if diary.heard.len() > 1 {
        return; // what came while there was no socket was brought once there was one, or pulled
    }
    let mut expect: Vec<u64> = (1..=story.head()).collect();
    expect.retain(|it| stays.iter().any(|stay| stay.shows(*it)) && !diary.own.contains(it));
    assert_eq!(messages, expect, "{who} in {stays:?}");
    let mut expect: Vec<u64> = (1..=story.changes.len() as u64).collect();
    expect.retain(|it| stays.iter().any(|stay| stay.shows_change(*it)));
    expect.retain(|it| *it > 1 || who != "olga"); // she was connected when it was made
    assert_eq!(changes, expect, "{who} in {stays:?}");
}

/// What somebody reads in the end, by pages and by a resend, is the slice of their window, and what
/// they are told of it is so.
async fn check_view(group: &TestGroup, story: &GroupTimeline, me: &Person) {
    let stay = story.periods(&me.id).last().unwrap();
    let heads = group.http.get("/conversation/heads", &me.token).await.data()["heads"].clone();
    let head = &heads[0];
    let number = |field: &str| head[field].as_u64().unwrap();
    let end = stay.end.unwrap_or(story.head());
    assert_eq!((number("min_seq"), number("max_seq")), (stay.min, end), "{}: {head}", me.id);
    let change_end = stay.change_end.unwrap_or(story.changes.len() as u64);
    let changes = (number("min_change_seq"), number("change_seq"));
    assert_eq!(changes, (stay.change_min, change_end), "{}: {head}", me.id);
    assert_eq!(head["is_active"], stay.end.is_none(), "{}: {head}", me.id);
    let inside = stay.min - 1..=end;
    for cursor in ["delivered_seq", "read_seq"] {
        assert!(inside.contains(&number(cursor)), "{}: {head}", me.id);
    }
    let unread = story.unread(&me.id, stay, number("read_seq"));
    assert_eq!(number("unread_count"), unread, "{}: {head}", me.id);
    assert_eq!(group.info(me).await["unread_count"], unread, "{}", me.id);

    let slice: Vec<u64> = (stay.min..=end).collect();
    let read: Vec<u64> = group.read_all(me).await.iter().map(seq).collect();
    assert_eq!(read, slice, "{} in {stay:?}", me.id);
    let (mut socket, _) = connect(&group.http, me).await;
    let mut brought = Vec::new();
    let mut ask = json!({ "type": "RESEND", "cursors": { group.conversation(): 0 } });
    loop {
        socket.say(ask).await;
        let done = socket.expect("RESEND_DONE").await;
        if done["hasMore"] != true {
            break;
        }
        ask = json!({ "type": "RESEND" });
    }
    socket.say(json!({ "type": "PING" })).await;
    brought.extend(socket.until("PONG").await.iter().map(seq));
    assert_eq!(brought, slice, "{} in {stay:?}", me.id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_order_it_takes_everybody_sees_their_windows() {
    let mut server = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    let since = std::time::Instant::now();
    let (mut group, story, diaries) = pass_over(&server).await;
    let (messages, changes) = (story.messages.len(), story.changes.len());
    let refused: usize = diaries.iter().map(|diary| diary.refused.len()).sum();
    let took = since.elapsed();
    eprintln!("{messages} messages, {changes} changes, {refused} refused sends in {took:?}");
    check_changes(&group, &story, &diaries[0].me).await;
    for diary in &diaries {
        check_hearing(&story, diary);
    }
    for again in [false, true] {
        if again {
            server.kill();
            server.start_again(|setup| setup);
            group.http = server.http.clone();
        }
        check_promises(&group, &story, &diaries).await;
        for diary in &diaries {
            check_view(&group, &story, &diary.me).await;
        }
    }
}
