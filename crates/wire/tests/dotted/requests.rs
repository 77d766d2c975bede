//! Every command decodes to the same request in both forms.

use std::collections::BTreeMap;

use nexo_chat::Reason;
use nexo_chat::command::{Command, NewMessage, Target};
use nexo_chat::ids::{ClientMsgId, MessageId, Platform};
use nexo_chat::model::{Content, ContentKind};
use nexo_chat::query::{ConversationRef, Query};
use nexo_wire::dialect::{Call, DecodeError, Decoded, Inbound, NewAccount, Packet};
use nexo_wire::dotted::decode;
use nexo_wire::dotted::payload::{
    ChatRequest, Empty, HeartbeatRequest, HistoryRequest, LoginRequest, MarkReadRequest,
    PullOfflineRequest, RecallRequest, RegisterRequest, SendRequest, ValidateTokenRequest,
};
use serde_json::{Value, json};

use crate::{Payload, binary, group, msg_id, text, user};

/// Reads a request in both forms, which must agree.
fn read<T: Payload>(cmd: &str, payload: &Value) -> Result<Inbound, Reason> {
    let as_text = decode(Packet::Text(&text(cmd, payload)), false);
    let bytes = serde_json::from_value::<T>(payload.clone()).expect("a payload").encode_to_vec();
    let as_bytes = decode(Packet::Binary(&binary(cmd, bytes)), true);
    assert_eq!(as_text, as_bytes, "{cmd} {payload}");
    let call = Call::Dotted { cmd: cmd.to_owned(), request_id: "r1".to_owned() };
    match as_text {
        Ok(Decoded { inbound, echo, .. }) => {
            assert_eq!(echo.call, call);
            Ok(inbound)
        }
        Err(DecodeError { reason, echo }) => {
            assert_eq!(echo.call, call);
            Err(reason)
        }
    }
}

pub(crate) fn asks<T: Payload>(cmd: &str, payload: &Value, query: Query) {
    let expect = Ok(Inbound::Command(Command::Query(query)));
    assert_eq!(read::<T>(cmd, payload), expect, "{cmd} {payload}");
}

pub(crate) fn refused<T: Payload>(cmd: &str, payload: &Value, reason: Reason) {
    assert_eq!(read::<T>(cmd, payload), Err(reason), "{cmd} {payload}");
}

#[test]
fn who_somebody_is() {
    let account = json!({ "username": "alice", "password": "secret-1", "nickname": "A", "email": 5,
        "avatar_url": "a.png" });
    let made = Inbound::Register(NewAccount {
        user_id: "alice".into(),
        password: "secret-1".into(),
        nickname: "A".into(),
        avatar: "a.png".into(),
    });
    assert_eq!(read::<RegisterRequest>("auth.register", &account), Ok(made));
    for (device, platform) in [
        (json!("ios"), 1),
        (json!("Android"), 2),
        (json!("WINDOWS"), 3),
        (json!("macos"), 4),
        (json!("web"), 5),
        (json!("3"), 3),
        (json!(4), 4),
        (json!("6"), 5),
        (json!(-1), 5),
        (json!("fridge"), 5),
        (json!(""), 5),
    ] {
        let payload = json!({ "username": "alice", "password": "p", "device_id": "d", "device_type": device });
        let platform = Platform(platform);
        let login = Inbound::Login { user_id: "alice".into(), password: "p".into(), platform };
        assert_eq!(read::<LoginRequest>("auth.login", &payload), Ok(login));
    }
    let auth = Inbound::Auth { token: "t".into(), renews: true };
    assert_eq!(
        read::<ValidateTokenRequest>("auth.validate_token", &json!({"token": "t"})),
        Ok(auth)
    );
    refused::<ValidateTokenRequest>("auth.validate_token", &json!({}), Reason::MissingToken);
    asks::<Empty>("auth.logout", &json!({ "user_id": "x", "token": "t" }), Query::Logout);
    let ping = Ok(Inbound::Command(Command::Ping));
    assert_eq!(read::<HeartbeatRequest>("heartbeat", &json!({ "client_time": 1_i64 << 50 })), ping);
}

fn sends(payload: &Value) -> Result<NewMessage, Reason> {
    match read::<SendRequest>("chat.send_message", payload)? {
        Inbound::Command(Command::Send(outgoing)) => Ok(outgoing),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_with_all_it_can_have() {
    let sent = sends(&json!({
        "from_user_id": "mallory", "to_id": "g1", "chat_type": 2, "content": "look",
        "media_url": "http://u", "media_type": "image", "client_msg_id": "c-1", "file_size": 77,
        "mentions": ["bob", "@all"], "reply_to_msg_id": msg_id(),
    }));
    let extra = [("caption", "look"), ("file_size", "77")];
    let extra = extra.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let content = Content {
        kind: ContentKind::IMAGE,
        extra: BTreeMap::from(extra),
        mentions: vec![user("bob")],
        mentions_all: true,
        ..Content::text("http://u")
    };
    let expect = NewMessage {
        to: Target::Group(group()),
        client_id: ClientMsgId::parse("c-1").unwrap(),
        content,
        reply_to: Some(MessageId([1; 16])),
        marks_read: true,
    };
    assert_eq!(sent, Ok(expect));
}

#[test]
fn a_text_needs_little() {
    let base = json!({ "to_id": "bob", "chat_type": 1, "content": "hi", "client_msg_id": "c-1" });
    let expect = NewMessage {
        to: Target::User(user("bob")),
        client_id: ClientMsgId::parse("c-1").unwrap(),
        content: Content::text("hi"),
        reply_to: None,
        marks_read: true,
    };
    assert_eq!(sends(&base), Ok(expect));
    for (field, value, reason) in [
        ("client_msg_id", json!(""), Reason::MissingMsgId),
        ("client_msg_id", json!("\u{7}"), Reason::BadMsgId),
        ("client_msg_id", json!("x".repeat(129)), Reason::BadMsgId),
        ("to_id", json!(""), Reason::MissingTo),
        ("to_id", json!("a_b"), Reason::UserNotFound),
        ("chat_type", json!(0), Reason::InvalidParam),
        ("chat_type", json!(3), Reason::InvalidParam),
        ("file_size", json!(-1), Reason::InvalidParam),
        ("media_type", json!("image"), Reason::MissingBody),
        ("mentions", json!(["a_b"]), Reason::MentionNotMember),
        ("mentions", json!(vec!["bob"; 1001]), Reason::TooManyMentions),
        ("reply_to_msg_id", json!("x"), Reason::MessageNotFound),
    ] {
        let mut payload = base.clone();
        payload[field] = value;
        assert_eq!(sends(&payload), Err(reason), "{field}");
    }
    let mut nobody = base;
    (nobody["chat_type"], nobody["to_id"]) = (json!(2), json!(""));
    assert_eq!(sends(&nobody), Err(Reason::MissingGroupId));
}

#[test]
fn what_is_said_of_messages() {
    let bob = || ConversationRef::With(Target::User(user("bob")));
    let here = || ConversationRef::With(Target::Group(group()));
    let id = MessageId([1; 16]);
    let recall = Ok(Inbound::Command(Command::Recall { message: id }));
    let payload = json!({ "msg_id": msg_id(), "user_id": "mallory" });
    assert_eq!(read::<RecallRequest>("chat.recall_message", &payload), recall);
    refused::<RecallRequest>("chat.recall_message", &json!({}), Reason::MissingServerMsgId);
    let bad = json!({ "msg_id": "x" });
    refused::<RecallRequest>("chat.recall_message", &bad, Reason::BadServerMsgId);

    let cmd = "chat.mark_read";
    let payload = json!({ "chat_id": "bob", "chat_type": 1, "last_msg_id": msg_id() });
    asks::<MarkReadRequest>(cmd, &payload, Query::MarkRead(bob(), Some(id)));
    let payload = json!({ "chat_id": "g1", "chat_type": 2 });
    asks::<MarkReadRequest>(cmd, &payload, Query::MarkRead(here(), None));
    let nowhere = json!({ "chat_id": "a_b", "chat_type": 1 });
    refused::<MarkReadRequest>(cmd, &nowhere, Reason::ConversationNotFound);
    refused::<MarkReadRequest>(cmd, &json!({ "chat_id": "bob" }), Reason::InvalidParam);

    let cmd = "chat.pull_offline";
    asks::<PullOfflineRequest>(cmd, &json!({}), Query::Offline { continues: false, limit: 100 });
    let payload = json!({ "limit": 200, "cursor": "next" });
    asks::<PullOfflineRequest>(cmd, &payload, Query::Offline { continues: true, limit: 200 });
    for (limit, expect) in [(0, 100), (201, 200), (i32::MAX, 200)] {
        let query = Query::Offline { continues: false, limit: expect };
        asks::<PullOfflineRequest>(cmd, &json!({ "limit": limit }), query);
    }
    for limit in [-1, i32::MIN] {
        refused::<PullOfflineRequest>(cmd, &json!({ "limit": limit }), Reason::InvalidParam);
    }

    let cmd = "chat.get_history";
    let payload = json!({ "chat_id": "g1", "chat_type": 2 });
    asks::<HistoryRequest>(cmd, &payload, Query::History(here(), None, 50));
    let payload =
        json!({ "chat_id": "bob", "chat_type": 1, "before_msg_id": msg_id(), "limit": 100 });
    asks::<HistoryRequest>(cmd, &payload, Query::History(bob(), Some(id), 100));
    let payload = json!({ "chat_id": "bob", "chat_type": 1, "limit": 101 });
    asks::<HistoryRequest>(cmd, &payload, Query::History(bob(), None, 100));

    let payload = json!({ "last_sync_time": "whenever" });
    asks::<Empty>("chat.sync_conversations", &payload, Query::Conversations(None, 1000));
    let payload = json!({ "chat_id": "g1", "chat_type": 2 });
    asks::<ChatRequest>("chat.delete_conversation", &payload, Query::DeleteConversation(here()));
    asks::<ChatRequest>("chat.hide_conversation", &payload, Query::Hide(here()));
    let typing = Ok(Inbound::Command(Command::Typing { to: Target::Group(group()) }));
    assert_eq!(read::<ChatRequest>("chat.typing", &payload), typing);
}
