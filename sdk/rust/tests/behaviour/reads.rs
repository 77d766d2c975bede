//! Who has read messages in a group.
use nexo_sdk::{ChangeKind, Client, Event, GroupProfile, MessageState, Target};
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::server::{PASSWORD, Server, picked, record, until};

/// The state of my first message.
async fn progress(client: &Client, group: &Target) -> Option<(MessageState, Option<u64>)> {
    let messages = client.messages(group.clone()).await.unwrap();
    messages.iter().find(|one| one.is_mine).map(|one| (one.state, one.read_by))
}

#[tokio::test]
async fn in_a_group_read_means_by_everybody_also_on_a_device_that_comes_later() {
    let server = Server::start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let carol = server.person("carol").await;
    let members = ["bob", "carol"];
    let made = alice.groups().create(&GroupProfile::named("Chess"), &members).await.unwrap();
    let group = Target::group(&made.group_id);
    let is = async |client: &Client, state, many| {
        let now = progress(client, &group).await;
        until(&format!("{state:?} {many}, not {now:?}"), async || {
            progress(client, &group).await == Some((state, Some(many)))
        })
        .await;
    };
    let read = async |client: &Client| {
        until("here", async || !client.messages(group.clone()).await.unwrap().is_empty()).await;
        client.mark_read(group.clone(), None).await.unwrap();
    };
    let sent = alice.send(group.clone(), "hello").await.unwrap();
    assert_eq!(sent.read_by, None);
    alice.saved(&sent).await.unwrap();
    let news = record(&alice);
    read(&bob).await;
    is(&alice, MessageState::Delivered, 1).await;
    alice.load_reads(group.clone()).await.unwrap();
    is(&alice, MessageState::Delivered, 1).await;
    read(&carol).await;
    is(&alice, MessageState::Read, 2).await;
    let update = |event: &Event| match event {
        Event::Update(message) => Some((message.state, message.read_by)),
        _ => None,
    };
    assert_eq!(picked(&news, update).last(), Some(&(MessageState::Read, Some(2))));
    // Earlier receipts are not pushed to a new device: it loads them.
    let tablet = server.client();
    tablet.login("alice", PASSWORD).await.unwrap();
    tablet.ready().await.unwrap();
    is(&tablet, MessageState::Saved, 0).await;
    tablet.load_reads(group.clone()).await.unwrap();
    is(&tablet, MessageState::Read, 2).await;
    tablet.load_reads(Target::to("bob")).await.unwrap();
    // Members who left are not counted.
    alice.groups().kick(&made.group_id, "bob").await.unwrap();
    is(&alice, MessageState::Read, 1).await;
    is(&tablet, MessageState::Read, 1).await;
    // Members who joined later are not counted.
    alice.groups().invite(&made.group_id, &["bob"]).await.unwrap();
    let joined = |event: &Event| match event {
        Event::Change(change) if change.kind == ChangeKind::Joined => Some(change.user_ids.clone()),
        _ => None,
    };
    until("back", async || picked(&news, joined).last() == Some(&vec!["bob".to_owned()])).await;
    is(&alice, MessageState::Read, 1).await;
}

#[tokio::test]
async fn receipts_that_come_while_everybody_is_asked_for_are_not_lost() {
    let fake = Fake::start().await;
    let me = fake.person(|_| {}).await;
    let group = Target::group("g");
    let sent = me.send(group.clone(), "hello").await.unwrap();
    fake.until_heard("GROUP_CHAT", 1).await;
    let ack = |kind: &str| -> Value {
        json!({ "type": "ACK", "ackType": kind, "conversationId": "sg_g", "serverMsgId": "m",
                "msgSeq": "1", "ts": 1 })
    };
    let mut saved = ack("saved");
    saved["clientMsgId"] = json!(sent.client_msg_id);
    fake.say(&saved);
    me.saved(&sent).await.unwrap();
    let is = async |state, many| {
        until("as far as that", async || progress(&me, &group).await == Some((state, Some(many))))
            .await;
    };
    is(MessageState::Saved, 0).await;
    let read = |who: &str| {
        let mut read = ack("read");
        read["from"] = json!(who);
        fake.say(&read);
    };
    read("ann");
    is(MessageState::Delivered, 1).await; // the number of members is not loaded yet
    let member = |user_id: &str, from: u64| {
        json!({ "user_id": user_id, "from_seq": from, "delivered_seq": from - 1,
                "read_seq": from - 1 })
    };
    let members = json!([member("me", 1), member("ann", 1), member("ben", 1), member("zoe", 2)]);
    fake.answer("/group/read_state", move |_| {
        (200, json!({ "too_large": false, "members": members }))
    });
    me.load_reads(group.clone()).await.unwrap();
    is(MessageState::Delivered, 1).await;
    read("ben");
    is(MessageState::Read, 2).await; // zoe joined later
}
