//! Messages that are accepted before they are on disk, and messages that arrive out of order.
use std::sync::Arc;

use nexo_sdk::{Client, Event, MemoryStore, MessageState, Reason, Target};
use serde_json::{Value, json};

use crate::fake::{Fake, ID};
use crate::server::{picked, record, until};

fn push(seq: u64) -> Value {
    json!({ "type": "SINGLE_CHAT", "from": "you", "to": "me", "conversationId": ID,
            "clientMsgId": format!("c{seq}"), "serverMsgId": format!("s{seq}"),
            "msgSeq": seq.to_string(), "msgType": "TEXT", "body": format!("text {seq}"), "ts": seq })
}

/// The same without a seq.
fn preview(seq: u64) -> Value {
    let mut preview = push(seq);
    preview["preview"] = json!(true);
    preview.as_object_mut().unwrap().remove("msgSeq");
    preview
}

fn info(seq: u64) -> Value {
    json!({ "server_msg_id": format!("s{seq}"), "client_msg_id": format!("c{seq}"),
            "conversation_id": ID, "seq": seq, "sender_id": "you", "msg_type": 1,
            "content": { "text": format!("text {seq}") }, "send_at": seq })
}

fn ack(kind: &str, client_msg_id: &str, seq: u64) -> Value {
    json!({ "type": "ACK", "ackType": kind, "conversationId": ID, "clientMsgId": client_msg_id,
            "serverMsgId": format!("s{seq}"), "msgSeq": seq.to_string(), "ts": seq })
}

/// The list of the server: one conversation, which the peer has read up to this seq.
fn serve_list(fake: &Fake, max: u64, peer_read: u64) {
    let line = json!({ "conversation_id": ID, "peer_nickname": "You", "peer_avatar": "",
        "peer_delivered_seq": peer_read, "peer_read_seq": peer_read, "mention_unread_count": 0,
        "max_seq": max, "read_seq": max });
    fake.answer("/conversation/all", move |_| (200, json!({ "list": [line], "has_more": false })));
}

/// Makes the server have this many messages.
fn serve(fake: &Fake, max: u64) {
    fake.answer("/msg/pull", move |path| {
        let number = |name: &str| {
            let value = path.split(['?', '&']).find_map(|part| part.strip_prefix(name));
            value.unwrap().parse::<u64>().unwrap()
        };
        let places = number("begin_seq=")..=number("end_seq=").min(max);
        let messages: Vec<Value> = places.map(info).collect();
        (200, json!({ "messages": messages, "max_seq": max, "has_more": false }))
    });
}

/// Heads report this many messages, all delivered to some device.
fn serve_head(fake: &Fake, max: u64, read: u64, unread: u64) {
    let head = json!({ "conversation_id": ID, "min_seq": 1, "max_seq": max, "delivered_seq": max,
        "read_seq": read, "min_change_seq": 1, "change_seq": 0, "unread_count": unread,
        "is_active": true, "is_pinned": false, "recv_msg_opt": 0, "updated_at": 1 });
    fake.answer("/conversation/heads", move |_| {
        (200, json!({ "heads": [head], "has_more": false }))
    });
    serve(fake, max);
}

async fn bodies(client: &Client) -> Vec<String> {
    client.messages(ID).await.unwrap().iter().map(|one| one.body.clone()).collect()
}

/// The last message of the conversation in the list.
async fn last_body(client: &Client) -> Option<String> {
    let line = client.conversation(ID).await.unwrap()?;
    line.last_message.map(|message| message.body.clone())
}

async fn seqs(client: &Client) -> Vec<u64> {
    client.messages(ID).await.unwrap().iter().map(|one| one.seq).collect()
}

/// The message events the app receives.
fn describe(event: &Event) -> Option<String> {
    match event {
        Event::Message(one) => Some(format!("{} {:?}", one.body, one.state)),
        Event::Update(one) => Some(format!("{} {:?} {}", one.body, one.state, one.seq)),
        Event::Removed { server_msg_id, .. } => Some(format!("{server_msg_id} gone")),
        _ => None,
    }
}

#[tokio::test]
async fn messages_that_the_server_cannot_read_any_more_leave_places() {
    let fake = Fake::start().await;
    let me = fake.person(|_| {}).await;
    let heard = record(&me);
    fake.answer("/msg/pull", |_| {
        let damaged = json!([{ "from": 3, "to": 4 }]);
        let messages = [info(2), info(5)];
        (200, json!({ "messages": messages, "max_seq": 6, "has_more": false, "damaged": damaged }))
    });
    for seq in [1, 6] {
        fake.say(&push(seq));
    }
    until("all", async || seqs(&me).await == [1, 2, 3, 4, 5, 6]).await;
    let messages = me.messages(ID).await.unwrap();
    let damaged = messages.iter().filter(|one| one.is_damaged).map(|one| one.seq);
    assert_eq!(damaged.collect::<Vec<_>>(), [3, 4]);
    let said = picked(&heard, |event| match event {
        Event::Message(one) => Some(one.seq.to_string()),
        _ => None,
    });
    assert_eq!(said, ["1", "2", "5", "6"]);
    assert_eq!(fake.asked("/msg/pull"), 1);
    // A range of nothing but damage is refused, and ends the asking too.
    fake.answer("/msg/pull", |_| (500, json!({ "reason": "damaged" })));
    fake.say(&push(9));
    until("all", async || seqs(&me).await == (1..=9).collect::<Vec<u64>>()).await;
    assert_eq!(fake.asked("/msg/pull"), 2);
}

#[tokio::test]
async fn a_hole_holds_everything_back_until_it_is_pulled() {
    let fake = Fake::start().await;
    let me = fake.person(|_| {}).await;
    let heard = record(&me);
    serve(&fake, 4);
    for seq in [1, 3, 4, 3] {
        fake.say(&push(seq));
    }
    until("all", async || seqs(&me).await == [1, 2, 3, 4]).await;
    let wanted = [1, 2, 3, 4].map(|seq| format!("text {seq} Received"));
    assert_eq!(picked(&heard, describe), wanted);
    assert_eq!(fake.asked("/msg/pull"), 1);
    until("acknowledged", async || {
        fake.heard("ACK").last().is_some_and(|ack| ack["msgSeq"] == "4")
    })
    .await;
    fake.answer("/msg/pull", |_| (503, json!({ "reason": "server_busy" })));
    fake.say(&push(6));
    until("a pull fails", async || fake.asked("/msg/pull") >= 3).await;
    serve(&fake, 6);
    until("and is tried again", async || seqs(&me).await.len() == 6).await;
}

#[tokio::test]
async fn accepted_comes_before_saved_and_means_nothing_after_it() {
    let fake = Fake::start().await;
    let me = fake.person(|_| {}).await;
    let heard = record(&me);
    let sent = me.send(Target::to("you"), "hi").await.unwrap();
    let name = sent.client_msg_id.as_str();
    let said = fake.until_heard("SINGLE_CHAT", 1).await;
    assert_eq!((&said[0]["to"], &said[0]["body"]), (&json!("you"), &json!("hi")));
    fake.say(&ack("accepted", name, 1));
    fake.say(&ack("saved", name, 1));
    fake.say(&ack("accepted", name, 1));
    assert_eq!(me.saved(&sent).await.unwrap().seq, 1);
    until("all events came", async || picked(&heard, describe).len() == 3).await;
    assert_eq!(picked(&heard, describe), ["hi Sending", "hi Accepted 0", "hi Saved 1"]);
}

#[tokio::test]
async fn words_that_were_replaced_are_shown_as_soon_as_they_are_accepted() {
    let fake = Fake::start().await;
    let me = fake.person(|_| {}).await;
    let heard = record(&me);
    let sent = me.send(Target::to("you"), "darn").await.unwrap();
    fake.until_heard("SINGLE_CHAT", 1).await;
    let mut accepted = ack("accepted", &sent.client_msg_id, 1);
    accepted["body"] = json!("****");
    fake.say(&accepted);
    fake.say(&ack("saved", &sent.client_msg_id, 1));
    assert_eq!(me.saved(&sent).await.unwrap().body, "****");
    until("all events came", async || picked(&heard, describe).len() == 3).await;
    assert_eq!(picked(&heard, describe), ["darn Sending", "**** Accepted 0", "**** Saved 1"]);
}

#[tokio::test]
async fn an_accepted_message_that_fails_in_the_end_is_refused() {
    let fake = Fake::start().await;
    let me = fake.person(|_| {}).await;
    let sent = me.send(Target::to("you"), "hi").await.unwrap();
    let name = sent.client_msg_id.as_str();
    fake.until_heard("SINGLE_CHAT", 1).await;
    fake.say(&ack("accepted", name, 1));
    let error = json!({ "type": "ERROR", "reason": "internal_error", "clientMsgId": name });
    fake.say(&error);
    let refusal = me.saved(&sent).await.unwrap_err();
    assert_eq!(refusal.reason(), Some(Reason::InternalError));
}

#[tokio::test]
async fn a_refused_message_stays_where_it_was_and_what_comes_later_is_seen_after_it() {
    let fake = Fake::start().await;
    let store = Arc::new(MemoryStore::default());
    let me = fake.person(|options| options.store = store.clone()).await;
    fake.say(&push(1));
    until("it is here", async || bodies(&me).await == ["text 1"]).await;
    let sent = me.send(ID, "mine").await.unwrap();
    fake.until_heard("SINGLE_CHAT", 1).await;
    // A message that arrives right after the refusal is listed after it, too.
    let refusal = json!({ "type": "ERROR", "reason": "not_group_member", "message": "",
        "clientMsgId": sent.client_msg_id });
    fake.say(&refusal);
    fake.say(&push(2));
    until("both", async || bodies(&me).await == ["text 1", "mine", "text 2"]).await;
    assert_eq!(last_body(&me).await.as_deref(), Some("text 2"));
    assert_eq!(me.saved(&sent).await.unwrap_err().reason(), Some(Reason::NotGroupMember));
    // The same after a restart, once the messages before it are loaded.
    me.close();
    serve_head(&fake, 3, 3, 0);
    let me = fake.person(|options| options.store = store.clone()).await;
    until("the last", async || bodies(&me).await == ["text 3"]).await;
    assert_eq!(me.saved(&sent).await.unwrap_err().reason(), Some(Reason::NotGroupMember));
    assert_eq!(me.load_older(ID, 50).await.unwrap().len(), 2);
    assert_eq!(bodies(&me).await, ["text 1", "mine", "text 2", "text 3"]);
    me.retry(&sent.client_msg_id).await.unwrap();
    assert_eq!(bodies(&me).await, ["text 1", "text 2", "text 3", "mine"]);
    assert_eq!(last_body(&me).await.as_deref(), Some("mine"));
    fake.until_heard("SINGLE_CHAT", 1).await;
    fake.say(&refusal);
    let is_refused = async || {
        let messages = me.messages(ID).await.unwrap();
        messages.last().is_some_and(|last| last.state == MessageState::Refused)
    };
    until("refused again", is_refused).await;
    assert_eq!(bodies(&me).await, ["text 1", "text 2", "text 3", "mine"]);
    assert_eq!(last_body(&me).await.as_deref(), Some("mine"), "until something comes after it");
}

#[tokio::test]
async fn a_preview_is_shown_at_the_end_moves_nothing_and_is_settled_or_dropped() {
    let fake = Fake::start().await;
    let me = fake.person(|_| {}).await;
    let heard = record(&me);
    for frame in [push(1), preview(2), preview(2), preview(3)] {
        fake.say(&frame);
    }
    until("shown", async || seqs(&me).await == [1, 0, 0]).await;
    let line = me.conversation(ID).await.unwrap().unwrap();
    assert_eq!((line.last_seq, line.unread), (1, 1));
    fake.say(&ack("saved", "c2", 2));
    fake.say(&ack("dropped", "c3", 3));
    until("settled", async || seqs(&me).await == [1, 2]).await;
    let wanted =
        ["text 1 Received", "text 2 Preview", "text 3 Preview", "text 2 Received 2", "s3 gone"];
    until("all events came", async || picked(&heard, describe).len() == wanted.len()).await;
    assert_eq!(picked(&heard, describe), wanted);
}

#[tokio::test]
async fn a_recall_is_applied_at_once_even_before_the_message() {
    let fake = Fake::start().await;
    let me = fake.person(|_| {}).await;
    fake.say(&push(1));
    fake.say(&json!({ "type": "MESSAGE_REVOKED", "from": "you", "conversationId": ID,
                      "serverMsgId": "s2", "msgSeq": "2", "changeSeq": "1", "ts": 3 }));
    fake.say(&push(2));
    until("here", async || seqs(&me).await == [1, 2]).await;
    let messages = me.messages(ID).await.unwrap();
    assert!(messages[1].is_recalled && messages[1].body.is_empty());
}

#[tokio::test]
async fn unread_on_a_fresh_device_is_the_count_of_the_server_though_only_the_end_is_here() {
    let fake = Fake::start().await;
    serve_head(&fake, 100, 50, 40);
    let me = fake.person(|_| {}).await;
    until("the last", async || seqs(&me).await == [100]).await;
    assert_eq!(me.conversation(ID).await.unwrap().unwrap().unread, 40);
    assert_eq!(me.load_older(ID, 150).await.unwrap().len(), 99);
    assert_eq!(seqs(&me).await, (1..=100).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_conversation_that_began_while_we_were_away_is_told_from_its_beginning() {
    let fake = Fake::start().await;
    let me = fake.person(|_| {}).await;
    let heard = record(&me);
    // Another device of ours has received everything; on this one it is new.
    serve_head(&fake, 3, 0, 3);
    fake.end(None);
    until("all", async || seqs(&me).await == [1, 2, 3]).await;
    let wanted = [1, 2, 3].map(|seq| format!("text {seq} Received"));
    until("all events came", async || picked(&heard, describe) == wanted).await;
    assert_eq!(me.conversation(ID).await.unwrap().unwrap().unread, 3);
}

#[tokio::test]
async fn receipts_that_came_while_we_were_away_are_learned_though_names_are_young() {
    let fake = Fake::start().await;
    let me = fake.person(|_| {}).await;
    let sent = me.send(Target::to("you"), "hi").await.unwrap();
    fake.until_heard("SINGLE_CHAT", 1).await;
    fake.say(&ack("saved", &sent.client_msg_id, 1));
    assert_eq!(me.saved(&sent).await.unwrap().state, MessageState::Saved);
    serve_list(&fake, 1, 1);
    fake.end(None);
    let is_read = async || me.messages(ID).await.unwrap()[0].state == MessageState::Read;
    until("read", is_read).await;
    let asked = fake.asked("/conversation/all");
    me.refresh();
    until("a look", async || fake.asked("/conversation/heads") > 4).await;
    assert_eq!(fake.asked("/conversation/all"), asked);
}

#[tokio::test]
async fn a_preview_goes_with_its_connection_and_comes_as_a_message_if_it_was_saved() {
    let fake = Fake::start().await;
    let me = fake.person(|_| {}).await;
    let heard = record(&me);
    for frame in [push(1), preview(2), preview(3)] {
        fake.say(&frame);
    }
    until("shown", async || seqs(&me).await == [1, 0, 0]).await;
    serve_head(&fake, 2, 0, 2);
    fake.end(None);
    until("settled", async || seqs(&me).await == [1, 2]).await;
    let wanted = [
        "text 1 Received",
        "text 2 Preview",
        "text 3 Preview",
        "s2 gone",
        "s3 gone",
        "text 2 Received",
    ];
    until("all events came", async || picked(&heard, describe).len() == wanted.len()).await;
    assert_eq!(picked(&heard, describe), wanted);
}
