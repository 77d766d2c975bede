//! The few things in the dotted dialect, as JSON or as protobuf.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message as Packet;

use super::{Extra, Heard, Said, To, extra, protobuf};

fn packet(cmd: &str, call: &str, payload: &Value, binary: bool) -> Packet {
    if binary {
        return Packet::binary(protobuf::write_client(cmd, call, payload));
    }
    let frame = json!({ "cmd": cmd, "request_id": call, "payload": payload });
    Packet::text(frame.to_string())
}

fn with(to: &To) -> (&str, i64) {
    match to {
        To::User(user) => (user, 1),
        To::Group(group) => (group, 2),
    }
}

pub(super) fn validate(token: &str, binary: bool) -> Packet {
    packet("auth.validate_token", "hello", &json!({ "token": token }), binary)
}

pub(super) fn say(
    call: &str,
    to: &To,
    name: &str,
    text: &str,
    extra: &Extra,
    binary: bool,
) -> Packet {
    let (to_id, chat_type) = with(to);
    let payload = json!({
        "to_id": to_id, "chat_type": chat_type, "content": text, "client_msg_id": name,
        "extra": extra });
    packet("chat.send_message", call, &payload, binary)
}

pub(super) fn recall(call: &str, id: &str, binary: bool) -> Packet {
    packet("chat.recall_message", call, &json!({ "msg_id": id }), binary)
}

pub(super) fn read(call: &str, said: &Said, to: &To, binary: bool) -> Packet {
    let (chat_id, chat_type) = with(to);
    let payload = json!({ "chat_id": chat_id, "chat_type": chat_type, "last_msg_id": said.id });
    packet("chat.mark_read", call, &payload, binary)
}

pub(super) fn history(call: &str, to: &To, binary: bool) -> Packet {
    let (chat_id, chat_type) = with(to);
    let payload = json!({ "chat_id": chat_id, "chat_type": chat_type });
    packet("chat.get_history", call, &payload, binary)
}

pub(super) fn offline(call: &str, binary: bool) -> Packet {
    packet("chat.pull_offline", call, &json!({ "limit": 100 }), binary)
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn said(message: &Value) -> Said {
    Said {
        id: text(message, "msg_id"),
        seq: message["seq"].as_u64().unwrap_or_default(),
        from: text(message, "from_user_id"),
        conversation: text(message, "conversation_id"),
        text: text(message, "content"),
        extra: extra(message),
    }
}

pub(super) fn hear(frame: &Value) -> Heard {
    let payload = &frame["payload"];
    let (cmd, call) = (text(frame, "cmd"), text(frame, "request_id"));
    match cmd.as_str() {
        "system.kicked" => return Heard::Kicked(text(payload, "reason")),
        _ if frame["code"] != 0 => return Heard::Refused(call, text(payload, "reason")),
        _ => {}
    }
    match cmd.as_str() {
        "chat.message" => Heard::Said(said(payload)),
        "chat.send_message" => Heard::Saved(text(payload, "client_msg_id"), said(payload)),
        "chat.recall" => Heard::Recalled(text(payload, "msg_id")),
        "chat.read_receipt" => {
            Heard::Read(text(payload, "user_id"), text(payload, "last_read_msg_id"))
        }
        "chat.get_history" | "chat.pull_offline" => {
            let list = payload["messages"].as_array().cloned().unwrap_or_default();
            Heard::Messages(list.iter().map(said).collect())
        }
        "user.updated" => {
            let [user, nickname, avatar] = ["user_id", "nickname", "avatar_url"];
            Heard::Person(text(payload, user), text(payload, nickname), text(payload, avatar))
        }
        "auth.validate_token" | "chat.recall_message" | "chat.mark_read" => Heard::Done,
        other => match other.strip_prefix("group.") {
            Some(event) if call.is_empty() => Heard::Changed(event.to_owned()),
            _ => Heard::Other,
        },
    }
}
