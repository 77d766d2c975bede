//! Frames of the dotted dialect, as JSON or as protobuf.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message as Packet;

use super::{ClientEvent, Extra, ReceivedMessage, Recipient, extra, protobuf};

fn packet(cmd: &str, request_id: &str, payload: &Value, binary: bool) -> Packet {
    if binary {
        return Packet::binary(protobuf::write_client(cmd, request_id, payload));
    }
    let frame = json!({ "cmd": cmd, "request_id": request_id, "payload": payload });
    Packet::text(frame.to_string())
}

fn with(to: &Recipient) -> (&str, i64) {
    match to {
        Recipient::User(user) => (user, 1),
        Recipient::Group(group) => (group, 2),
    }
}

pub(super) fn validate(token: &str, binary: bool) -> Packet {
    packet("auth.validate_token", "hello", &json!({ "token": token }), binary)
}

pub(super) fn say(
    request_id: &str,
    to: &Recipient,
    name: &str,
    text: &str,
    extra: &Extra,
    binary: bool,
) -> Packet {
    let (to_id, chat_type) = with(to);
    let payload = json!({
        "to_id": to_id, "chat_type": chat_type, "content": text, "client_msg_id": name,
        "extra": extra });
    packet("chat.send_message", request_id, &payload, binary)
}

pub(super) fn recall(request_id: &str, id: &str, binary: bool) -> Packet {
    packet("chat.recall_message", request_id, &json!({ "msg_id": id }), binary)
}

pub(super) fn read(
    request_id: &str,
    message: &ReceivedMessage,
    to: &Recipient,
    binary: bool,
) -> Packet {
    let (chat_id, chat_type) = with(to);
    let payload = json!({ "chat_id": chat_id, "chat_type": chat_type, "last_msg_id": message.id });
    packet("chat.mark_read", request_id, &payload, binary)
}

pub(super) fn history(request_id: &str, to: &Recipient, binary: bool) -> Packet {
    let (chat_id, chat_type) = with(to);
    let payload = json!({ "chat_id": chat_id, "chat_type": chat_type });
    packet("chat.get_history", request_id, &payload, binary)
}

pub(super) fn offline(request_id: &str, binary: bool) -> Packet {
    packet("chat.pull_offline", request_id, &json!({ "limit": 100 }), binary)
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn message(message: &Value) -> ReceivedMessage {
    ReceivedMessage {
        id: text(message, "msg_id"),
        seq: message["seq"].as_u64().unwrap_or_default(),
        from: text(message, "from_user_id"),
        conversation: text(message, "conversation_id"),
        text: text(message, "content"),
        extra: extra(message),
    }
}

pub(super) fn decode(frame: &Value) -> ClientEvent {
    let payload = &frame["payload"];
    let (cmd, request_id) = (text(frame, "cmd"), text(frame, "request_id"));
    match cmd.as_str() {
        "system.kicked" => return ClientEvent::Kicked(text(payload, "reason")),
        _ if frame["code"] != 0 => {
            return ClientEvent::Refused(request_id, text(payload, "reason"));
        }
        _ => {}
    }
    match cmd.as_str() {
        "chat.message" => ClientEvent::Message(message(payload)),
        "chat.send_message" => ClientEvent::Saved(text(payload, "client_msg_id"), message(payload)),
        "chat.recall" => ClientEvent::Recalled(text(payload, "msg_id")),
        "chat.read_receipt" => {
            ClientEvent::Read(text(payload, "user_id"), text(payload, "last_read_msg_id"))
        }
        "chat.get_history" | "chat.pull_offline" => {
            let list = payload["messages"].as_array().cloned().unwrap_or_default();
            ClientEvent::Messages(list.iter().map(message).collect())
        }
        "user.updated" => {
            let [user, nickname, avatar] = ["user_id", "nickname", "avatar_url"];
            ClientEvent::ProfileUpdated(
                text(payload, user),
                text(payload, nickname),
                text(payload, avatar),
            )
        }
        "auth.validate_token" | "chat.recall_message" | "chat.mark_read" => ClientEvent::Done,
        other => match other.strip_prefix("group.") {
            Some(event) if request_id.is_empty() => ClientEvent::GroupChanged(event.to_owned()),
            _ => ClientEvent::Other,
        },
    }
}
