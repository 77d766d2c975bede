//! The few things in the typed dialect.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message as Packet;

use super::{Extra, Heard, Said, To, extra};
use crate::http::Http;
use crate::person::Person;

fn packet(frame: &Value) -> Packet {
    Packet::text(frame.to_string())
}

pub(super) fn auth(token: &str) -> Packet {
    packet(&json!({ "type": "AUTH", "token": token }))
}

pub(super) fn say(to: &To, name: &str, text: &str, extra: &Extra) -> Packet {
    let mut frame = match to {
        To::User(to) => {
            json!({ "type": "SINGLE_CHAT", "clientMsgId": name, "to": to, "body": text })
        }
        To::Group(group) => {
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

pub(super) fn read(said: &Said) -> Packet {
    packet(&json!({ "type": "ACK", "ackType": "read", "serverMsgId": said.id }))
}

pub(super) async fn history(http: &Http, person: &Person, with: &To) -> Vec<Said> {
    let path = match with {
        To::User(peer) => format!("/single-chat/message/since?peerUserId={peer}"),
        To::Group(group) => format!("/group/message/since?groupId={group}"),
    };
    let answer = http.get(&path, &person.token).await;
    let messages = answer.data().as_array().expect("a list").clone();
    let said = |it: &Value| Said {
        id: text(it, "serverMsgId"),
        seq: text(it, "msgSeq").parse().expect("a seq"),
        from: text(it, "fromUserId"),
        conversation: match with {
            To::User(_) => text(it, "singleChatId"),
            To::Group(group) => format!("sg_{group}"),
        },
        text: text(it, "content"),
        extra: extra(it),
    };
    messages.iter().map(said).collect()
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn said(frame: &Value) -> Said {
    Said {
        id: text(frame, "serverMsgId"),
        seq: text(frame, "msgSeq").parse().unwrap_or_default(),
        from: text(frame, "from"),
        conversation: text(frame, "conversationId"),
        text: text(frame, "body"),
        extra: extra(frame),
    }
}

pub(super) fn hear(frame: &Value) -> Heard {
    match (text(frame, "type").as_str(), text(frame, "ackType").as_str()) {
        ("SINGLE_CHAT" | "GROUP_CHAT", _) => Heard::Said(said(frame)),
        ("ACK", "saved") => Heard::Saved(text(frame, "clientMsgId"), said(frame)),
        ("ACK", "revoked") | ("RESEND_DONE", _) => Heard::Done,
        ("ACK", "read") => Heard::Read(text(frame, "from"), text(frame, "serverMsgId")),
        ("MESSAGE_REVOKED", _) => Heard::Recalled(text(frame, "serverMsgId")),
        ("GROUP_CHANGED", _) => Heard::Changed(text(frame, "event")),
        ("USER_UPDATED", _) => {
            Heard::Person(text(frame, "userId"), text(frame, "nickname"), text(frame, "avatar"))
        }
        ("ERROR", _) if frame["reason"] == "kicked" => Heard::Kicked("kicked".into()),
        ("ERROR" | "AUTH_FAIL", _) => {
            let of = frame["clientMsgId"].as_str().or(frame["serverMsgId"].as_str());
            Heard::Refused(of.unwrap_or_default().to_owned(), text(frame, "reason"))
        }
        _ => Heard::Other,
    }
}
