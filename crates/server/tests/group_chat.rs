//! Group messages: who receives them, who may send, what each member may see, and mentions.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use nexo_sim::process::Setup;
use nexo_sim::socket::seq;
use nexo_sim::{Person, Socket, TestGroup};
use serde_json::{Value, json};

const TEXT: &str = "xyzzy-what-was-said";

fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo"))
}

fn bodies(messages: &[Value]) -> Vec<&str> {
    let body = |message: &'_ Value| if message["body"].is_string() { "body" } else { "content" };
    messages.iter().map(|message| message[body(message)].as_str().unwrap()).collect()
}

/// Sends and expects it to be saved.
async fn say(group: &TestGroup, socket: &mut Socket, id: &str) -> Value {
    let answer = group.say(socket, id, id).await;
    assert_eq!(answer["ackType"], "saved", "{answer}");
    answer
}

#[tokio::test]
async fn everybody_online_hears_and_everybody_else_catches_up() {
    let server = setup().start();
    let [olga, max, mia, zoe] = server.people(["olga", "max", "mia", "zoe"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&max, &mia]).await;
    let (mut a, _) = server.connect(&olga).await;
    let (mut a2, _) = server.connect(&olga).await;
    let (mut b, _) = server.connect(&max).await;
    let (mut z, _) = server.connect(&zoe).await;
    let saved = say(&group, &mut a, "m1").await;
    assert_eq!((&saved["groupId"], &saved["msgSeq"]), (&json!(group.id), &json!("1")));
    for socket in [&mut a2, &mut b] {
        let heard = socket.expect("GROUP_CHAT").await;
        assert_eq!((&heard["from"], &heard["body"]), (&json!("olga"), &json!("m1")));
        assert_eq!(heard["groupId"], json!(group.id));
        assert!(heard.get("important").is_none());
    }
    a.expect_silence().await;
    z.expect_silence().await;
    say(&group, &mut b, "m2").await;
    let (_, missed) = server.connect(&mia).await;
    assert_eq!(bodies(&missed), ["m1", "m2"]);
    let info = group.info(&mia).await;
    assert_eq!((&info["unread_count"], &info["conversation_type"]), (&json!(2), &json!(2)));
    assert_eq!(group.info(&max).await["unread_count"], 0, "sending reads what came before");
}

#[tokio::test]
async fn each_sees_their_own_window() {
    let mut server = setup().start();
    let [olga, max, mia] = server.people(["olga", "max", "mia"]).await;
    let mut group = TestGroup::new(&server.http, &olga, &[]).await;
    let (mut a, _) = server.connect(&olga).await;
    let (mut b, _) = server.connect(&max).await;
    say(&group, &mut a, "before").await;
    group.ask(&max, "join", json!({})).await.data();
    say(&group, &mut a, "during").await;
    assert_eq!(b.expect("GROUP_CHAT").await["body"], "during");
    group.ask(&olga, "kick", json!({ "user_id": "max" })).await.data();
    say(&group, &mut a, "after").await;
    b.expect("GROUP_CHANGED").await;
    assert_eq!(b.expect("GROUP_CHANGED").await["event"], "kicked");
    b.expect_silence().await;
    assert_eq!(group.say(&mut b, "x", "x").await["reason"], "member_not_active");
    let check = async |group: &TestGroup, who: &Person, expect: &[&str]| {
        assert_eq!(bodies(&group.read_all(who).await), expect);
        let path = format!("/msg/pull?conversation_id={}", group.conversation());
        let pulled = group.http.get(&path, &who.token).await.data().clone();
        let messages = pulled["messages"].as_array().unwrap();
        let text = |message: &Value| message["content"]["text"].as_str().unwrap().to_owned();
        assert_eq!(messages.iter().map(text).collect::<Vec<_>>(), expect);
        let last = expect.last().map_or(Value::Null, |last| json!(last));
        assert_eq!(group.info(who).await["last_message"]["content"]["text"], last);
    };
    check(&group, &max, &["during"]).await;
    // Whatever a former member asks for, what came later stays out of reach.
    let id = group.conversation();
    b.say(json!({ "type": "RESEND", "cursors": { id: 0 } })).await;
    assert_eq!(bodies(&b.until("RESEND_DONE").await), ["during"]);
    group.ask(&max, "join", json!({})).await.data();
    say(&group, &mut a, "again").await;
    assert_eq!(b.expect("GROUP_CHAT").await["body"], "again");
    check(&group, &max, &["again"]).await;
    check(&group, &olga, &["before", "during", "after", "again"]).await;
    server.kill();
    server.start_again(|setup| setup);
    group.http = server.http.clone();
    check(&group, &max, &["again"]).await;
    let path = format!("/group/message/since?groupId={}", group.id);
    assert_eq!(server.http.get(&path, &mia.token).await.reason(), "not_group_member");
}

#[tokio::test]
async fn a_newcomer_may_be_shown_everything() {
    let server = setup().start();
    let [olga, max] = server.people(["olga", "max"]).await;
    let group = TestGroup::with(&server.http, &olga, &[], json!({ "history": "all" })).await;
    let (mut a, _) = server.connect(&olga).await;
    say(&group, &mut a, "old").await;
    group.ask(&max, "join", json!({})).await.data();
    say(&group, &mut a, "new").await;
    assert_eq!(bodies(&group.read_all(&max).await), ["old", "new"]);
    assert_eq!(group.info(&max).await["unread_count"], 1, "the past is not unread");
    let (_, missed) = server.connect(&max).await;
    assert_eq!(bodies(&missed), ["new"], "nor is it brought");
}

#[tokio::test]
async fn who_is_muted_does_not_speak() {
    let server = setup().start();
    let [olga, ada, max] = server.people(["olga", "ada", "max"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&ada, &max]).await;
    group.ask(&olga, "set_role", json!({ "user_id": "ada", "role": "admin" })).await.data();
    let (mut b, _) = server.connect(&max).await;
    let (mut d, _) = server.connect(&ada).await;
    let mute = |seconds: i64| json!({ "user_id": "max", "seconds": seconds });
    group.ask(&ada, "mute", mute(-1)).await.data();
    assert_eq!(group.say(&mut b, "1", "x").await["reason"], "group_speak_muted");
    group.ask(&ada, "mute", mute(0)).await.data();
    assert_eq!(group.say(&mut b, "2", "x").await["msgSeq"], "1", "a refused send takes no place");
    group.ask(&ada, "mute", mute(1)).await.data();
    assert_eq!(group.say(&mut b, "3", "x").await["reason"], "group_speak_muted");
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(group.say(&mut b, "3", "x").await["ackType"], "saved", "it ends by itself");
    group.ask(&ada, "mute_all", json!({ "on": true })).await.data();
    assert_eq!(group.say(&mut b, "4", "x").await["reason"], "group_muted");
    assert_eq!(group.say(&mut d, "a", "x").await["ackType"], "saved");
    group.ask(&ada, "mute_all", json!({ "on": false })).await.data();
    assert_eq!(group.say(&mut b, "4", "x").await["ackType"], "saved");
    assert_eq!(
        group.ask(&ada, "mute", json!({ "user_id": "olga", "seconds": 9 })).await.reason(),
        "cannot_touch_owner"
    );
}

#[tokio::test]
async fn a_retry_after_a_kick_is_answered_as_before() {
    let server = setup().start();
    let [olga, max] = server.people(["olga", "max"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&max]).await;
    let (mut b, _) = server.connect(&max).await;
    let first = say(&group, &mut b, "m1").await;
    let mut reply = group.chat("m2", "reply");
    reply["replyToServerMsgId"] = first["serverMsgId"].clone();
    b.say(reply.clone()).await;
    let second = b.answer("m2").await;
    group.ask(&olga, "kick", json!({ "user_id": "max" })).await.data();
    assert_eq!(group.say(&mut b, "m1", "m1").await, first);
    b.say(reply).await;
    assert_eq!(b.answer("m2").await, second);
    assert_eq!(group.say(&mut b, "m1", "other").await["reason"], "client_msg_id_conflict");
}

#[tokio::test]
async fn who_is_meant_is_told_and_counts() {
    let server = setup().start();
    let [olga, max, mia, zoe] = server.people(["olga", "max", "mia", "zoe"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&max, &mia]).await;
    let (mut a, _) = server.connect(&olga).await;
    let (mut b, _) = server.connect(&max).await;
    let (mut c, _) = server.connect(&mia).await;
    let send = async |socket: &mut Socket, id: &str, fields: Value| {
        let mut frame = group.chat(id, id);
        for (field, value) in fields.as_object().unwrap() {
            frame[field] = value.clone();
        }
        socket.say(frame).await;
        socket.answer(id).await
    };
    let said = send(&mut b, "1", json!({})).await;
    send(&mut a, "2", json!({ "mentions": ["max"] })).await;
    send(&mut a, "3", json!({ "mentions": ["@all"] })).await;
    send(&mut c, "4", json!({ "replyToServerMsgId": said["serverMsgId"] })).await;
    let mut heard = Vec::new();
    for _ in 0..3 {
        heard.push(b.expect("GROUP_CHAT").await);
    }
    assert!(heard.iter().all(|frame| frame["important"] == true), "{heard:?}");
    assert_eq!((&heard[0]["mentions"], &heard[1]["mentions"]), (&json!(["max"]), &json!(["@all"])));
    assert_eq!(heard[2]["replyToServerMsgId"], said["serverMsgId"]);
    let of_mia: Vec<Value> =
        [c.expect("GROUP_CHAT").await, c.expect("GROUP_CHAT").await, c.expect("GROUP_CHAT").await]
            .into();
    let important: Vec<bool> = of_mia.iter().map(|frame| frame["important"] == true).collect();
    assert_eq!(important, [false, false, true], "only what speaks to everybody");
    assert_eq!(group.info(&max).await["mention_unread_count"], 3);
    assert_eq!(group.info(&olga).await["mention_unread_count"], 0);
    let (_, again) = server.connect(&max).await;
    assert!(again.iter().all(|frame| frame["important"] == true), "also when brought later");
    b.ack("read", "mia", &heard[2]).await;
    b.expect_silence().await;
    assert_eq!(group.info(&max).await["mention_unread_count"], 0);

    for (id, fields, reason) in [
        ("e1", json!({ "mentions": ["@all"] }), "not_group_admin"),
        ("e2", json!({ "mentions": ["zoe"] }), "mention_not_member"),
        ("e3", json!({ "mentions": vec!["max"; 2000] }), "too_many_mentions"),
        ("e4", json!({ "replyToServerMsgId": "A".repeat(26) }), "message_not_found"),
    ] {
        assert_eq!(send(&mut b, id, fields).await["reason"], reason, "{id}");
    }
    // A message of another conversation cannot be answered here.
    let elsewhere = a.send("zoe", "p1", "private").await;
    let fields = json!({ "replyToServerMsgId": elsewhere["serverMsgId"] });
    assert_eq!(send(&mut a, "e5", fields).await["reason"], "message_not_found");
    let (mut z, _) = server.connect(&zoe).await;
    assert_eq!(
        send(&mut z, "e6", json!({ "mentions": ["max"] })).await["reason"],
        "not_group_member"
    );
}

#[tokio::test]
async fn those_who_keep_order_recall_what_members_said() {
    let server = setup().with("NEXO_MESSAGES__RECALL_SECONDS", "0").start();
    let [olga, ada, max, mia] = server.people(["olga", "ada", "max", "mia"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&ada, &max, &mia]).await;
    group.ask(&olga, "set_role", json!({ "user_id": "ada", "role": 1 })).await.data();
    let (mut a, _) = server.connect(&olga).await;
    let (mut b, _) = server.connect(&max).await;
    let of_max = group.say(&mut b, "m1", TEXT).await;
    let of_olga = say(&group, &mut a, "owner").await;
    let mut quote = group.chat("q", "see above");
    quote["replyToServerMsgId"] = of_max["serverMsgId"].clone();
    a.say(quote).await;
    a.answer("q").await;
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let recall = async |by: &Person, message: &Value| {
        let body = json!({ "server_msg_id": message["serverMsgId"] });
        server.http.post("/msg/recall", &by.token, body).await
    };
    assert_eq!(recall(&mia, &of_max).await.reason(), "not_message_sender");
    assert_eq!(recall(&max, &of_max).await.reason(), "revoke_timeout");
    assert_eq!(recall(&ada, &of_olga).await.reason(), "not_message_sender");
    let (mut c, missed) = server.connect(&mia).await; // has the text, then goes away
    assert!(bodies(&missed).contains(&TEXT));
    drop(c);
    recall(&ada, &of_max).await.data();
    let told = b.expect("MESSAGE_REVOKED").await;
    assert_eq!((&told["from"], &told["groupId"]), (&json!("ada"), &json!(group.id)));
    // Served nowhere: not in history, pull, resend, the list, nor beside the answer to it.
    let mut shown = String::new();
    for path in [
        format!("/group/message/cursor?groupId={}", group.id),
        format!("/group/message/since?groupId={}", group.id),
        format!("/msg/pull?conversation_id={}", group.conversation()),
        "/conversation/list?with_last_message=true".to_owned(),
        "/group/conversation/cursor".to_owned(),
        format!("/conversation/changes?conversation_id={}", group.conversation()),
    ] {
        shown += &server.http.get(&path, &mia.token).await.text;
    }
    (c, _) = server.connect(&mia).await;
    c.say(json!({ "type": "RESEND", "cursors": { group.conversation(): 0 } })).await;
    for frame in c.until("RESEND_DONE").await {
        shown += &frame.to_string();
    }
    assert!(!shown.contains(TEXT), "{shown}");
    let path = format!("/conversation/changes?conversation_id={}&since=1", group.conversation());
    let changes = server.http.get(&path, &mia.token).await;
    assert_eq!(changes.data()[1]["kind"], "recalled");
    assert_eq!(changes.data()[1]["server_msg_id"], of_max["serverMsgId"]);
}

#[tokio::test]
async fn reading_is_told_in_small_groups_only() {
    let server = setup().with("NEXO_RECEIPTS__GROUP_MEMBERS_MAX", "3").start();
    let [olga, max, mia, zoe] = server.people(["olga", "max", "mia", "zoe"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&max, &mia]).await;
    let (mut a, _) = server.connect(&olga).await;
    let (mut b, _) = server.connect(&max).await;
    let (mut b2, _) = server.connect(&max).await;
    let (mut c, _) = server.connect(&mia).await;
    let first = say(&group, &mut a, "1").await;
    let heard = b.expect("GROUP_CHAT").await;
    b.ack("delivered", "olga", &heard).await;
    b.ack("read", "olga", &heard).await;
    for socket in [&mut a, &mut c, &mut b2] {
        let receipt = socket.expect("ACK").await;
        assert_eq!((&receipt["ackType"], &receipt["from"]), (&json!("read"), &json!("max")));
        assert_eq!(receipt["groupId"], json!(group.id));
    }
    a.expect_silence().await; // nobody hears of deliveries in a group
    let readers = async |by: &Person, message: &Value| {
        let id = message["serverMsgId"].as_str().unwrap();
        server.http.get(&format!("/msg/readers?server_msg_id={id}"), &by.token).await
    };
    c.expect("GROUP_CHAT").await;
    let list = readers(&mia, &first).await.data()["readers"].clone();
    assert_eq!(
        list,
        json!([{ "user_id": "max", "has_read": true }, { "user_id": "mia", "has_read": false }])
    );
    assert_eq!(readers(&zoe, &first).await.reason(), "message_not_found");
    a.say(json!({ "type": "TYPING", "groupId": group.id })).await;
    assert_eq!(c.expect("TYPING").await["from"], "olga");
    // With a fourth member it is large.
    group.ask(&zoe, "join", json!({})).await.data();
    let second = say(&group, &mut a, "2").await;
    let heard = c.find(|frame| frame["body"] == "2", "the second").await;
    c.ack("read", "olga", &heard).await;
    a.say(json!({ "type": "TYPING", "groupId": group.id })).await;
    for socket in [&mut a, &mut c] {
        socket.expect("GROUP_CHANGED").await;
        socket.expect_silence().await;
    }
    let list = readers(&olga, &second).await.data()["readers"].clone();
    assert_eq!(list[1], json!({ "user_id": "mia", "has_read": true }), "stored all the same");
    assert_eq!(
        readers(&olga, &first).await.data()["readers"].as_array().unwrap().len(),
        2,
        "zoe cannot see it"
    );
}

#[tokio::test]
async fn how_far_everybody_has_come_is_there_after_a_reload() {
    let server = setup().with("NEXO_RECEIPTS__GROUP_MEMBERS_MAX", "3").start();
    let [olga, max, mia, zoe] = server.people(["olga", "max", "mia", "zoe"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&max]).await;
    let (mut a, _) = server.connect(&olga).await;
    let (mut b, _) = server.connect(&max).await;
    say(&group, &mut a, "1").await;
    say(&group, &mut a, "2").await;
    let first = b.expect("GROUP_CHAT").await;
    let second = b.expect("GROUP_CHAT").await;
    b.ack("read", "olga", &first).await;
    b.ack("delivered", "olga", &second).await;
    a.expect("ACK").await;
    let path = format!("/group/read_state?group_id={}", group.id);
    let state = async |by: &Person| server.http.get(&path, &by.token).await;
    assert_eq!(state(&mia).await.reason(), "not_group_member");
    group.ask(&mia, "join", json!({})).await.data();
    say(&group, &mut a, "3").await;
    let line = |user: &str, from: u64, delivered: u64, read: u64| json!({ "user_id": user, "from_seq": from, "delivered_seq": delivered, "read_seq": read });
    // What mia was not there for, she has not read, although her cursors begin behind it.
    let all = json!([line("max", 1, 2, 1), line("mia", 3, 2, 2), line("olga", 1, 3, 3)]);
    assert_eq!(*state(&olga).await.data(), json!({ "too_large": false, "members": all }));
    // Mia learns nothing of before she came: max has read none of what she sees.
    let all = json!([line("max", 3, 2, 2), line("mia", 3, 2, 2), line("olga", 3, 3, 3)]);
    assert_eq!(*state(&mia).await.data(), json!({ "too_large": false, "members": all }));
    group.ask(&zoe, "join", json!({})).await.data();
    assert_eq!(*state(&olga).await.data(), json!({ "too_large": true, "members": [] }));
}

#[tokio::test]
async fn the_strategy_changes_with_the_group() {
    let server = setup()
        .with("NEXO_GROUPS__NOTIFY_MEMBERS", "3")
        .with("NEXO_GROUPS__NOTIFY_ONLINE", "9")
        .with("NEXO_GROUPS__NONE_MEMBERS", "4")
        .with("NEXO_GROUPS__NONE_ONLINE", "9")
        .start();
    let [olga, max, mia, zoe] = server.people(["olga", "max", "mia", "zoe"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&max]).await;
    let (mut a, _) = server.connect(&olga).await;
    let (mut b, _) = server.connect(&max).await;
    let first = say(&group, &mut a, "1").await;
    assert_eq!(b.expect("GROUP_CHAT").await["serverMsgId"], first["serverMsgId"]);
    group.ask(&mia, "join", json!({})).await.data();
    let mut frame = group.chat("2", "2");
    frame["mentions"] = json!(["max"]);
    a.say(frame).await;
    let second = a.answer("2").await;
    let word = b.expect("GROUP_NOTIFY").await;
    assert_eq!((&word["serverMsgId"], &word["msgSeq"]), (&second["serverMsgId"], &json!("2")));
    assert_eq!((&word["important"], word.get("body")), (&json!(true), None));
    group.ask(&zoe, "join", json!({})).await.data();
    say(&group, &mut a, "3").await;
    b.expect_silence().await; // nor of who comes and goes
    // Whoever was only notified, or not at all, pulls and has the same.
    assert_eq!(bodies(&group.read_all(&max).await), ["1", "2", "3"]);
    assert_eq!(group.info(&max).await["unread_count"], 3);
    let (_, missed) = server.connect(&max).await;
    assert_eq!(bodies(&missed), ["1", "2", "3"]);
}

#[tokio::test]
async fn online_members_count_for_the_strategy() {
    let server = setup()
        .with("NEXO_GROUPS__NOTIFY_ONLINE", "3")
        .with("NEXO_GROUPS__NONE_ONLINE", "4")
        .start();
    let [olga, max, mia, zoe] = server.people(["olga", "max", "mia", "zoe"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&max, &mia, &zoe]).await;
    let (mut a, _) = server.connect(&olga).await;
    let (mut a2, _) = server.connect(&olga).await;
    let (mut b, _) = server.connect(&max).await;
    say(&group, &mut a, "1").await;
    b.expect("GROUP_CHAT").await; // two people on three devices
    a2.expect("GROUP_CHAT").await;
    let (c, _) = server.connect(&mia).await;
    say(&group, &mut a, "2").await;
    b.expect("GROUP_NOTIFY").await;
    let (_z, _) = server.connect(&zoe).await;
    say(&group, &mut a, "3").await;
    b.expect_silence().await;
    drop(c);
    // As people go, it comes back.
    for id in ["4", "5", "6", "7", "8", "9"] {
        say(&group, &mut a, id).await;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(b.expect("GROUP_NOTIFY").await["type"], "GROUP_NOTIFY");
}

#[tokio::test]
async fn what_is_blocked_is_not_pushed_but_there() {
    let server = setup().start();
    let [olga, max] = server.people(["olga", "max"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&max]).await;
    let (mut a, _) = server.connect(&olga).await;
    let (mut b, _) = server.connect(&max).await;
    a.send("max", "p0", "p0").await;
    b.expect("SINGLE_CHAT").await;
    let choose = async |conversation: &str, body: Value| {
        let path = format!("/conversation/update?conversation_id={conversation}");
        server.http.put(&path, &max.token, body).await
    };
    for conversation in [group.conversation(), "si_max_olga".to_owned()] {
        choose(&conversation, json!({ "recv_msg_opt": 2 })).await.data();
        b.expect("CONVERSATION_SETTINGS").await;
    }
    say(&group, &mut a, "1").await;
    a.send("max", "p1", "p1").await;
    b.expect_silence().await;
    let (mut again, missed) = server.connect(&max).await;
    assert_eq!(bodies(&missed), [] as [&str; 0], "nor brought later");
    assert_eq!(group.info(&max).await["unread_count"], 1);
    choose("si_max_olga", json!({ "recv_msg_opt": 0 })).await.data();
    a.send("max", "p2", "p2").await;
    for socket in [&mut b, &mut again] {
        assert_eq!(socket.expect("SINGLE_CHAT").await["body"], "p2");
    }
    let unknown = choose("sg_nowhere", json!({ "is_pinned": true })).await;
    assert_eq!(unknown.reason(), "conversation_not_found");
    let bad = choose("si_max_olga", json!({ "recv_msg_opt": 3 })).await;
    assert_eq!(bad.status, 400);
}

#[tokio::test]
async fn private_messages_and_groups_do_not_crowd_each_other_out() {
    let server = setup().with("NEXO_RESEND__PAGE", "5").start();
    let [olga, max] = server.people(["olga", "max"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&max]).await;
    let (mut a, _) = server.connect(&olga).await;
    for i in 0..12 {
        say(&group, &mut a, &format!("g{i}")).await;
    }
    for i in 0..7 {
        a.send("max", &format!("p{i}"), &format!("p{i}")).await;
    }
    let mut b = server.socket().await;
    b.auth(&max.token).await;
    let mut pages = Vec::new();
    for _ in 0..3 {
        let page = b.until("RESEND_DONE").await;
        let groups = page.iter().filter(|frame| frame["type"] == "GROUP_CHAT").count();
        pages.push((groups, page.len() - groups));
        b.say(json!({ "type": "RESEND" })).await;
    }
    assert_eq!(pages, [(5, 5), (5, 2), (2, 0)]);
    assert_eq!(seq(&group.read_all(&max).await[11]), 12);
}

#[tokio::test]
async fn receipts_keep_to_the_window() {
    let server = setup().start();
    let [olga, max, mia] = server.people(["olga", "max", "mia"]).await;
    let group = TestGroup::with(&server.http, &olga, &[&max], json!({ "history": "all" })).await;
    let (mut a, _) = server.connect(&olga).await;
    let (mut b, _) = server.connect(&max).await;
    let first = say(&group, &mut a, "1").await;
    let heard = b.expect("GROUP_CHAT").await;
    group.ask(&mia, "join", json!({})).await.data();
    let readers = async |by: &Person| {
        let id = first["serverMsgId"].as_str().unwrap();
        server.http.get(&format!("/msg/readers?server_msg_id={id}"), &by.token).await
    };
    let list = readers(&olga).await.data()["readers"].clone();
    assert_eq!(list, json!([{ "user_id": "max", "has_read": false }]), "mia came later");
    group.ask(&olga, "kick", json!({ "user_id": "max" })).await.data();
    assert_eq!(readers(&max).await.reason(), "member_not_active");
    // A former member's reading is nobody's business, but their own devices follow.
    let (mut b2, _) = server.connect(&max).await;
    b.ack("read", "olga", &heard).await;
    assert_eq!(b2.expect_ack("read").await["from"], "max");
    a.expect("GROUP_CHANGED").await;
    a.expect("GROUP_CHANGED").await;
    a.expect_silence().await;
}

#[tokio::test]
async fn reading_an_own_quiet_message_is_told_too() {
    let server = setup().start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let (mut b, _) = server.connect(&bob).await;
    let (mut a, _) = server.connect(&alice).await;
    let (mut a2, _) = server.connect(&alice).await;
    b.send("alice", "1", "hi").await;
    let body = json!({ "client_msg_id": "q", "session_type": 1, "recv_id": "bob", "msg_type": 1,
        "content": { "text": "quiet" } });
    server.http.post("/msg/send_without_mark_read", &alice.token, body).await.data();
    let quiet = a.find(|frame| frame["body"] == "quiet", "the quiet one").await;
    a.ack("read", "bob", &quiet).await;
    for socket in [&mut b, &mut a2] {
        let receipt = socket.expect_ack("read").await;
        assert_eq!((&receipt["from"], &receipt["msgSeq"]), (&json!("alice"), &json!("2")));
    }
}
