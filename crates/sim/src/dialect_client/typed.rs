//! Frames of the typed dialect.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message as Packet;

use super::{ClientEvent, Extra, ReceivedMessage, Recipient, extra};
use crate::http::Http;
use crate::person::Person;

fn packet(frame: &Value) -> Packet {
    Packet::text(frame.to_string())
}

pub(super) fn auth(token: &str) -> Packet {
    packet(&json!({ "type": "AUTH", "token": token }))
}

pub(super) fn say(to: &Recipient, name: &str, text: &str, extra: &Extra) -> Packet {
    let mut frame = match to {
        Recipient::User(to) => {
            json!({ "type": "SINGLE_CHAT", "clientMsgId": name, "to": to, "body": text })
        }
        Recipient::Group(group) => {
            json!({ "type": "GROUP_CHAT", "clientMsgId": name, "groupId": group, "body": text })
        }
    };
    if !extra.is_empty() {
        frame["extra"] = json!(extra);
    }
    packet(&frame)
}

pub(super) fn recall(id: &str) -> Packet {
    packet(&json!({ "type": "MESSAGE_REVOKE", "serverMsgId": id }))
}

pub(super) fn read(message: &ReceivedMessage) -> Packet {
    packet(&json!({ "type": "ACK", "ackType": "read", "serverMsgId": message.id }))
}

pub(super) async fn history(
    http: &Http,
    person: &Person,
    with: &Recipient,
) -> Vec<ReceivedMessage> {
    let path = match with {
        Recipient::User(peer) => format!("/single-chat/message/since?peerUserId={peer}"),
        Recipient::Group(group) => format!("/group/message/since?groupId={group}"),
    };
    let answer = http.get(&path, &person.token).await;
    let messages = answer.data().as_array().expect("a list").clone();
    let from_history = |it: &Value| ReceivedMessage {
        id: text(it, "serverMsgId"),
        seq: text(it, "msgSeq").parse().expect("a seq"),
        from: text(it, "fromUserId"),
        conversation: match with {
            Recipient::User(_) => text(it, "singleChatId"),
            Recipient::Group(group) => format!("sg_{group}"),
        },
        text: text(it, "content"),
        extra: extra(it),
    };
    messages.iter().map(from_history).collect()
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn message(frame: &Value) -> ReceivedMessage {
    ReceivedMessage {
        id: text(frame, "serverMsgId"),
        seq: text(frame, "msgSeq").parse().unwrap_or_default(),
        from: text(frame, "from"),
        conversation: text(frame, "conversationId"),
        text: text(frame, "body"),
        extra: extra(frame),
    }
}

pub(super) fn decode(frame: &Value) -> ClientEvent {
    match (text(frame, "type").as_str(), text(frame, "ackType").as_str()) {
        ("SINGLE_CHAT" | "GROUP_CHAT", _) => ClientEvent::Message(message(frame)),
        ("ACK", "saved") => ClientEvent::Saved(text(frame, "clientMsgId"), message(frame)),
        ("ACK", "revoked") | ("RESEND_DONE", _) => ClientEvent::Done,
        ("ACK", "read") => ClientEvent::Read(text(frame, "from"), text(frame, "serverMsgId")),
        ("MESSAGE_REVOKED", _) => ClientEvent::Recalled(text(frame, "serverMsgId")),
        ("GROUP_CHANGED", _) => ClientEvent::GroupChanged(text(frame, "event")),
        ("USER_UPDATED", _) => ClientEvent::ProfileUpdated(
            text(frame, "userId"),
            text(frame, "nickname"),
            text(frame, "avatar"),
        ),
        ("ERROR", _) if frame["reason"] == "kicked" => ClientEvent::Kicked("kicked".into()),
        ("ERROR" | "AUTH_FAIL", _) => {
            let of = frame["clientMsgId"].as_str().or(frame["serverMsgId"].as_str());
            ClientEvent::Refused(of.unwrap_or_default().to_owned(), text(frame, "reason"))
        }
        _ => ClientEvent::Other,
    }
}
