//! Group frames of the typed dialect, field by field.

use std::sync::Arc;

use nexo_chat::command::{Saved, Target};
use nexo_chat::event::{Event, Receipt, ReceiptTo};
use nexo_chat::ids::{ClientMsgId, GroupId, MessageId, Millis, Seq, UserId};
use nexo_chat::membership::{
    GroupChange, HistoryPolicy, JoinPolicy, JoinRequest, MemberProfileChange, Role,
};
use nexo_chat::model::{
    Change, ChangeKind, Content, CursorKind, HiddenMark, Message, Recall, Receive, ReplyTo,
    Settings,
};
use nexo_wire::changes::ChangeEntity;
use nexo_wire::dialect::{Echo, View};
use nexo_wire::typed;
use serde_json::{Value, json};

fn user(id: &str) -> UserId {
    UserId::parse(id).expect("a user id")
}

fn group() -> GroupId {
    GroupId::parse("g1").expect("a group id")
}

fn message() -> Message {
    let client_id = ClientMsgId::parse("c-1").expect("an id");
    let reply_to = Some(ReplyTo { message: MessageId([7; 16]), sender: user("bob") });
    Message {
        id: MessageId([1; 16]),
        conversation: group().conversation(),
        seq: Seq(3),
        sender: user("alice"),
        client_id,
        sent_at: Millis(5),
        content: Content {
            mentions: vec![user("bob")],
            mentions_all: true,
            reply_to,
            ..Content::text("hi")
        },
        recalled: None,
    }
}

fn read(frame: &str) -> Value {
    serde_json::from_str(frame).expect("a frame is JSON")
}

fn heard(event: &Event) -> Value {
    read(
        &typed::event(event, View { is_important: false, ..View::default() }).expect("it is heard"),
    )
}

#[test]
fn a_message_names_its_group_and_whom_it_speaks_of() {
    let expect = json!({
        "type": "GROUP_CHAT", "from": "alice", "groupId": "g1", "conversationId": "sg_g1",
        "clientMsgId": "c-1", "serverMsgId": MessageId([1; 16]).to_string(), "msgSeq": "3",
        "msgType": "TEXT", "body": "hi", "mentions": ["bob", "@all"],
        "replyToServerMsgId": MessageId([7; 16]).to_string(), "ts": 5,
    });
    assert_eq!(read(&typed::message(&message(), false)), expect);
    let mut important = expect;
    important["important"] = json!(true);
    assert_eq!(read(&typed::message(&message(), true)), important);
}

#[test]
fn a_recalled_message_speaks_of_nobody() {
    let recalled = message().recalled(Recall { by: user("bob"), at: Millis(9) });
    let frame = read(&typed::message(&recalled, false));
    assert_eq!(frame["revoked"], true);
    assert_eq!(frame["body"], "");
    assert_eq!((frame.get("mentions"), frame.get("replyToServerMsgId")), (None, None));
    let ack = read(&typed::recalled(&recalled, &Echo::default()));
    assert_eq!((&ack["groupId"], &ack["ts"]), (&json!("g1"), &json!(9)));
}

#[test]
fn a_notice_has_no_body() {
    let expect = json!({
        "type": "GROUP_NOTIFY", "from": "alice", "groupId": "g1", "conversationId": "sg_g1",
        "serverMsgId": MessageId([1; 16]).to_string(), "msgSeq": "3", "important": true, "ts": 5,
    });
    assert_eq!(read(&typed::group_notify(&message(), true)), expect);
    assert_eq!(read(&typed::group_notify(&message(), false)).get("important"), None);
}

#[test]
fn answers_and_receipts_name_the_group() {
    let saved = Saved { message: Arc::new(message()), duplicate: false, cleaned: false };
    let ack = read(&typed::saved(&saved));
    assert_eq!((&ack["groupId"], ack.get("to")), (&json!("g1"), None));
    let receipt = heard(&Event::Receipt(Receipt {
        kind: CursorKind::Read,
        conversation: group().conversation(),
        by: user("bob"),
        sender: user("alice"),
        message: MessageId([1; 16]),
        seq: Seq(3),
        at: Millis(8),
        origin: None,
        to: ReceiptTo::Group,
    }));
    let expect = json!({
        "type": "ACK", "ackType": "read", "from": "bob", "to": "alice", "groupId": "g1",
        "conversationId": "sg_g1", "serverMsgId": MessageId([1; 16]).to_string(), "msgSeq": "3",
        "ts": 8,
    });
    assert_eq!(receipt, expect);
    let typing = Event::Typing { from: user("bob"), to: Target::Group(group()), at: Millis(8) };
    let expect = json!({ "type": "TYPING", "from": "bob", "groupId": "g1", "ts": 8 });
    assert_eq!(heard(&typing), expect);
}

/// Takes the fields away that all changes have.
fn strip(mut told: Value, common: &[(&str, Value)]) -> Value {
    let fields = told.as_object_mut().expect("an object");
    for (name, value) in common {
        assert_eq!(fields.remove(*name).as_ref(), Some(value), "{name}");
    }
    told
}

/// A change as a frame and as an entity, without what all changes have.
fn told(kind: ChangeKind) -> (Value, Value) {
    let conversation = group().conversation();
    let change = Change { conversation, seq: Seq(4), by: user("al"), at: Millis(6), kind };
    let change = Arc::new(change);
    let entity = serde_json::to_value(ChangeEntity::from(&change)).expect("an entity");
    let frame = heard(&Event::Change { change, origin: None, members: 0 });
    let frame = strip(
        frame,
        &[
            ("from", json!("al")),
            ("groupId", json!("g1")),
            ("conversationId", json!("sg_g1")),
            ("changeSeq", json!("4")),
            ("ts", json!(6)),
        ],
    );
    let entity = strip(
        entity,
        &[
            ("operator_id", json!("al")),
            ("conversation_id", json!("sg_g1")),
            ("change_seq", json!(4)),
            ("at", json!(6)),
        ],
    );
    (frame, entity)
}

#[test]
fn every_change_is_told_in_the_same_words_both_ways() {
    let check = |kind, word: &str, camel: Value, snake: Value| {
        let (frame, entity) = told(kind);
        let (mut expect, mut otherwise) = (camel, snake);
        expect["type"] = json!("GROUP_CHANGED");
        expect["event"] = json!(word);
        otherwise["kind"] = json!(word);
        assert_eq!((frame, entity), (expect, otherwise), "{word}");
    };
    let bob = || user("bob");
    check(
        ChangeKind::Joined { users: vec![bob(), user("carol")], from: Seq(9) },
        "joined",
        json!({ "userIds": ["bob", "carol"], "msgSeq": "9" }),
        json!({ "user_ids": ["bob", "carol"], "from_seq": 9 }),
    );
    check(ChangeKind::Left, "left", json!({ "userId": "al" }), json!({ "user_id": "al" }));
    let (camel, snake) = (json!({ "userId": "bob" }), json!({ "user_id": "bob" }));
    check(ChangeKind::Kicked { user: bob() }, "kicked", camel.clone(), snake.clone());
    check(ChangeKind::Owner { user: bob() }, "owner", camel, snake);
    check(
        ChangeKind::Role { user: bob(), role: Role::Admin },
        "role",
        json!({ "userId": "bob", "role": "admin" }),
        json!({ "user_id": "bob", "role": "admin" }),
    );
    check(
        ChangeKind::Muted { user: bob(), until: Millis(0) },
        "muted",
        json!({ "userId": "bob", "mutedUntil": 0 }),
        json!({ "user_id": "bob", "muted_until": 0 }),
    );
    let on = json!({ "on": false });
    check(ChangeKind::AllMuted { on: false }, "all_muted", on.clone(), on);
    let change = GroupChange {
        name: Some("Chess".into()),
        joining: Some(JoinPolicy::Approval),
        history: Some(HistoryPolicy::All),
        ..GroupChange::default()
    };
    let fields = json!({ "group": { "name": "Chess", "join_type": "approval", "history": "all" } });
    check(ChangeKind::Updated(change), "updated", fields.clone(), fields);
    let change =
        MemberProfileChange { nickname: Some("Al".into()), ..MemberProfileChange::default() };
    let member = json!({ "group_nickname": "Al" });
    check(
        ChangeKind::MemberUpdated(change),
        "member_updated",
        json!({ "userId": "al", "member": member }),
        json!({ "user_id": "al", "member": member }),
    );
    check(ChangeKind::Dissolved, "dissolved", json!({}), json!({}));
    check(ChangeKind::Dismissed, "dismissed", json!({}), json!({}));
}

#[test]
fn a_recall_keeps_its_own_frame() {
    let id = MessageId([1; 16]);
    let (frame, entity) =
        told(ChangeKind::Recalled { message: id, seq: Seq(3), sender: user("bob") });
    let id = id.to_string();
    assert_eq!(frame, json!({ "type": "MESSAGE_REVOKED", "serverMsgId": id, "msgSeq": "3" }));
    assert_eq!(entity, json!({ "kind": "recalled", "server_msg_id": id, "seq": 3 }));
}

#[test]
fn wishes_to_join_and_their_answers() {
    let request =
        JoinRequest { group: group(), user: user("bob"), message: "me too".into(), at: Millis(5) };
    let asked = Event::JoinRequested { request: request.clone(), to: vec![user("al")] };
    let expect = json!({
        "type": "GROUP_JOIN_REQUEST", "from": "bob", "groupId": "g1", "serverMsgId": "g1_bob",
        "body": "me too", "ts": 5,
    });
    assert_eq!(heard(&asked), expect);
    for (accepted, body) in [(true, "ACCEPTED"), (false, "REJECTED")] {
        let (request, by) = (request.clone(), user("al"));
        let answered = Event::JoinAnswered { request, accepted, by, at: Millis(7) };
        let expect = json!({
            "type": "GROUP_JOIN_DECISION", "from": "al", "to": "bob", "groupId": "g1",
            "serverMsgId": "g1_bob", "body": body, "ts": 7,
        });
        assert_eq!(heard(&answered), expect);
    }
}

#[test]
fn choices_follow_to_the_other_devices() {
    let conversation = group().conversation();
    let hidden = Some(HiddenMark { seq: Seq(7), since: Millis(1) });
    let settings = Settings { receive: Receive::Silent, hidden, ..Settings::default() };
    let chosen = Event::Settings { user: user("bob"), conversation, settings };
    let expect = json!({ "type": "CONVERSATION_SETTINGS", "conversationId": "sg_g1",
        "receive": "silent", "pinned": false, "hiddenSeq": "7" });
    assert_eq!(heard(&chosen), expect);
}
