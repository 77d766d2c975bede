//! Every push has the same fields in both forms, and the chat id that its receiver uses.

use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::command::Target;
use nexo_chat::event::{Event, Logins, Receipt, ReceiptTo};
use nexo_chat::ids::{ConversationId, MessageId, Millis, Seq};
use nexo_chat::membership::{
    GroupChange, HistoryPolicy, JoinPolicy, JoinRequest, MemberProfileChange, Role,
};
use nexo_chat::model::{Change, ChangeKind, Content, CursorKind, Message, ReplyTo, Settings};
use nexo_wire::dialect::View;
use nexo_wire::dotted::payload::{
    GroupPush, JoinDecisionPush, JoinRequestPush, MessagePush, NotifyPush, ReadReceiptPush,
    RecallPush, TypingPush,
};
use nexo_wire::dotted::{event, message};
use serde_json::{Value, json};

use crate::{Payload, group, heard, msg_id, said, user};

const PLAIN: View = View { is_important: false, is_own: false, is_notice: false };
const OWN: View = View { is_own: true, ..PLAIN };

fn private() -> ConversationId {
    ConversationId::private(&user("alice"), &user("bob"))
}

/// A push in both forms: its payload.
fn pushed<P: Payload>(cmd: &str, given: &Event, view: View) -> Value {
    let mut push = heard::<P>(|binary| event(given, view, binary));
    let payload = push["payload"].take();
    let expect = json!({ "cmd": cmd, "request_id": "", "code": 0, "message": "", "payload": null });
    assert_eq!(push, expect);
    payload
}

fn told(message: Message) -> Event {
    Event::Message { message: Arc::new(message), origin: None, members: 3, change_seq: Seq(1) }
}

#[test]
fn messages() {
    let reply_to = Some(ReplyTo { message: MessageId([1; 16]), sender: user("bob") });
    let mentions = vec![user("bob")];
    let content = Content { mentions, mentions_all: true, reply_to, ..Content::text("hi") };
    let in_group = said(content);
    let to_bob = Message { conversation: private(), ..in_group.clone() };
    let mut expect = json!({ "msg_id": msg_id(), "from_user_id": "alice", "to_id": "g1",
        "chat_type": 2, "content": "hi", "media_url": "", "media_type": "text", "timestamp": 5,
        "mentions": ["bob", "@all"], "reply_to_msg_id": msg_id(), "seq": 3,
        "conversation_id": "sg_g1", "client_msg_id": "c-1", "is_recalled": false,
        "is_important": true, "file_size": 0, "status": 0, "recall_at": 0 });
    let important = View { is_important: true, ..PLAIN };
    assert_eq!(pushed::<MessagePush>("chat.message", &told(in_group.clone()), important), expect);
    expect["is_important"] = json!(false);
    assert_eq!(pushed::<MessagePush>("chat.message", &told(in_group.clone()), PLAIN), expect);
    let again = heard::<MessagePush>(|binary| Some(message(&in_group, binary)));
    assert_eq!((&again["cmd"], &again["payload"]), (&json!("chat.message"), &expect));
    (expect["to_id"], expect["chat_type"]) = (json!("bob"), json!(1));
    expect["conversation_id"] = json!("si_alice_bob");
    for view in [PLAIN, OWN] {
        assert_eq!(pushed::<MessagePush>("chat.message", &told(to_bob.clone()), view), expect);
    }
    let notice = View { is_notice: true, is_important: true, ..PLAIN };
    let expect = json!({ "chat_id": "g1", "msg_id": msg_id(), "from_user_id": "alice", "seq": 3,
        "timestamp": 5, "is_important": true });
    assert_eq!(pushed::<NotifyPush>("chat.notify", &told(in_group), notice), expect);
}

fn changed(conversation: ConversationId, kind: ChangeKind) -> Event {
    let change = Change { conversation, seq: Seq(4), by: user("alice"), at: Millis(6), kind };
    Event::Change { change: Arc::new(change), origin: None, members: 3 }
}

#[test]
fn a_recall_names_the_chat_as_the_listener_does() {
    let recalled = |conversation| {
        let (message, seq, sender) = (MessageId([1; 16]), Seq(3), user("alice"));
        changed(conversation, ChangeKind::Recalled { message, seq, sender })
    };
    let mut expect = json!({ "msg_id": msg_id(), "chat_id": "g1", "chat_type": 2,
        "operator_id": "alice", "timestamp": 6, "seq": 3, "change_seq": 4,
        "conversation_id": "sg_g1" });
    let conversation = group().conversation();
    assert_eq!(pushed::<RecallPush>("chat.recall", &recalled(conversation), PLAIN), expect);
    (expect["chat_type"], expect["conversation_id"]) = (json!(1), json!("si_alice_bob"));
    for (view, chat_id) in [(PLAIN, "alice"), (OWN, "bob")] {
        expect["chat_id"] = json!(chat_id);
        assert_eq!(pushed::<RecallPush>("chat.recall", &recalled(private()), view), expect);
    }
}

#[test]
fn changes_of_a_group() {
    let check = |kind: ChangeKind, cmd: &str, more: Value| {
        let mut expect = json!({ "group_id": "g1", "operator_id": "alice", "user_ids": [],
            "change_seq": 4, "timestamp": 6 });
        expect.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let event = changed(group().conversation(), kind);
        assert_eq!(pushed::<GroupPush>(cmd, &event, PLAIN), expect, "{cmd}");
    };
    let bob = || user("bob");
    let users = vec![bob(), user("carol")];
    let came = json!({ "user_ids": ["bob", "carol"], "from_seq": 9 });
    check(ChangeKind::Joined { users, from: Seq(9) }, "group.joined", came);
    check(ChangeKind::Left, "group.left", json!({ "user_ids": ["alice"] }));
    check(ChangeKind::Kicked { user: bob() }, "group.kicked", json!({ "user_ids": ["bob"] }));
    for (role, number) in [(Role::Member, 1), (Role::Admin, 2)] {
        let more = json!({ "user_ids": ["bob"], "role": number });
        check(ChangeKind::Role { user: bob(), role }, "group.role", more);
    }
    check(ChangeKind::Owner { user: bob() }, "group.owner", json!({ "user_ids": ["bob"] }));
    for until in [0, 99] {
        let more = json!({ "user_ids": ["bob"], "muted_until": until });
        check(ChangeKind::Muted { user: bob(), until: Millis(until) }, "group.muted", more);
    }
    for on in [true, false] {
        check(ChangeKind::AllMuted { on }, "group.all_muted", json!({ "on": on }));
    }
    let change = MemberProfileChange {
        nickname: Some("Al".into()),
        extra: Some("{}".into()),
        ..MemberProfileChange::default()
    };
    let seen = json!({ "user_ids": ["alice"], "group_nickname": "Al", "member_extra": "{}" });
    check(ChangeKind::MemberUpdated(change), "group.member_updated", seen);
    check(ChangeKind::Dissolved, "group.dissolved", json!({}));
    check(ChangeKind::Dismissed, "group.dismissed", json!({}));
    let all = GroupChange {
        name: Some("n".into()),
        introduction: Some(String::new()),
        announcement: Some("a".into()),
        avatar: Some("p".into()),
        extra: Some("x".into()),
        joining: Some(JoinPolicy::Invite),
        history: Some(HistoryPolicy::All),
    };
    let more = json!({ "group_name": "n", "introduction": "", "announcement": "a",
        "avatar_url": "p", "join_type": "invite", "history": "all" });
    check(ChangeKind::Updated(all), "group.updated", more);
    check(ChangeKind::Updated(GroupChange::default()), "group.updated", json!({}));
}

#[test]
fn receipts_are_for_what_was_read() {
    let receipt = |kind, conversation| {
        Event::Receipt(Receipt {
            kind,
            conversation,
            by: user("bob"),
            sender: user("alice"),
            message: MessageId([1; 16]),
            seq: Seq(3),
            at: Millis(8),
            origin: None,
            to: ReceiptTo::Sender,
        })
    };
    let mut expect = json!({ "chat_id": "g1", "user_id": "bob", "last_read_msg_id": msg_id(),
        "seq": 3, "chat_type": 2, "conversation_id": "sg_g1", "timestamp": 8 });
    let read = receipt(CursorKind::Read, group().conversation());
    assert_eq!(pushed::<ReadReceiptPush>("chat.read_receipt", &read, OWN), expect);
    (expect["chat_type"], expect["conversation_id"]) = (json!(1), json!("si_alice_bob"));
    let read = receipt(CursorKind::Read, private());
    for (view, chat_id) in [(PLAIN, "bob"), (OWN, "alice")] {
        expect["chat_id"] = json!(chat_id);
        assert_eq!(pushed::<ReadReceiptPush>("chat.read_receipt", &read, view), expect);
    }
    assert!(event(&receipt(CursorKind::Delivered, private()), PLAIN, true).is_none());
}

#[test]
fn somebody_is_writing() {
    for (to, view, chat_id, chat_type) in [
        (Target::User(user("bob")), PLAIN, "alice", 1),
        (Target::User(user("bob")), OWN, "bob", 1),
        (Target::Group(group()), PLAIN, "g1", 2),
    ] {
        let typing = Event::Typing { from: user("alice"), to, at: Millis(5) };
        let expect = json!({ "chat_id": chat_id, "chat_type": chat_type, "user_id": "alice",
            "timestamp": 5 });
        assert_eq!(pushed::<TypingPush>("chat.typing", &typing, view), expect);
    }
}

#[test]
fn somebody_wants_in() {
    let request =
        JoinRequest { group: group(), user: user("bob"), message: "please".into(), at: Millis(5) };
    let expect = json!({ "request_id": "g1_bob", "group_id": "g1", "user_id": "bob",
        "message": "please", "timestamp": 5 });
    let asked = Event::JoinRequested { request: request.clone(), to: Vec::new() };
    assert_eq!(pushed::<JoinRequestPush>("group.join_request", &asked, PLAIN), expect);
    for accepted in [true, false] {
        let (by, at) = (user("alice"), Millis(6));
        let answered = Event::JoinAnswered { request: request.clone(), accepted, by, at };
        let expect = json!({ "request_id": "g1_bob", "group_id": "g1", "user_id": "bob",
            "operator_id": "alice", "accepted": accepted, "timestamp": 6 });
        assert_eq!(pushed::<JoinDecisionPush>("group.join_decision", &answered, PLAIN), expect);
    }
}

#[test]
fn some_things_are_not_told() {
    let (conversation, settings) = (private(), Settings::default());
    for untold in [
        Event::Settings { user: user("bob"), conversation, settings },
        Event::Ended { user: user("bob"), logins: Logins::All, reason: Reason::Kicked },
        Event::Closed { user: user("bob"), connections: Vec::new(), reason: Reason::Kicked },
    ] {
        assert!(event(&untold, PLAIN, false).is_none() && event(&untold, PLAIN, true).is_none());
    }
}
