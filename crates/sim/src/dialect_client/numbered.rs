//! Frames of the numbered dialect.

use data_encoding::BASE64;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message as Packet;

use super::{ClientEvent, Extra, ReceivedMessage, Recipient, extra};
use crate::person::Person;

pub(super) fn query(person: &Person, sdk: &str) -> String {
    let Person { id, token, .. } = person;
    format!("?token={token}&send_id={id}&platform_id=5&operation_id=open&sdk_type={sdk}")
}

fn packet(number: u32, request_id: &str, data: &Value, nested: bool) -> Packet {
    let data =
        if nested { data.clone() } else { json!(BASE64.encode(data.to_string().as_bytes())) };
    let frame = json!({
        "req_identifier": number, "msg_incr": request_id, "operation_id": request_id, "data": data });
    Packet::text(frame.to_string())
}

pub(super) fn say(
    request_id: &str,
    to: &Recipient,
    name: &str,
    text: &str,
    extra: &Extra,
    nested: bool,
) -> Packet {
    let mut data = json!({ "client_msg_id": name, "msg_type": 1, "content": { "text": text } });
    match to {
        Recipient::User(to) => (data["session_type"], data["recv_id"]) = (json!(1), json!(to)),
        Recipient::Group(group) => {
            (data["session_type"], data["group_id"]) = (json!(2), json!(group));
        }
    }
    if !extra.is_empty() {
        data["extra"] = json!(extra);
    }
    packet(1003, request_id, &data, nested)
}

pub(super) fn newest(request_id: &str, nested: bool) -> Packet {
    packet(1001, request_id, &json!({ "conversation_ids": [] }), nested)
}

pub(super) fn pull(request_id: &str, conversation: &str, nested: bool) -> Packet {
    packet(1005, request_id, &json!({ "conversation_id": conversation }), nested)
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn message(message: &Value) -> ReceivedMessage {
    ReceivedMessage {
        id: text(message, "server_msg_id"),
        seq: message["seq"].as_u64().unwrap_or_default(),
        from: text(message, "sender_id"),
        conversation: text(message, "conversation_id"),
        text: text(&message["content"], "text"),
        extra: extra(message),
    }
}

fn messages(list: &Value) -> Vec<ReceivedMessage> {
    list.as_array().into_iter().flatten().map(message).collect()
}

pub(super) fn decode(frame: &Value) -> ClientEvent {
    let data = match &frame["data"] {
        Value::String(text) => {
            let bytes = BASE64.decode(text.as_bytes()).expect("base64");
            serde_json::from_slice(&bytes).expect("JSON in base64")
        }
        data => data.clone(),
    };
    let request_id = text(frame, "operation_id");
    assert_eq!(frame["msg_incr"], frame["operation_id"], "both are repeated: {frame}");
    let number = frame["req_identifier"].as_u64().unwrap_or_default();
    match number {
        2002 => return ClientEvent::Kicked(text(&data, "reason")),
        _ if frame["err_code"] != 0 => {
            return ClientEvent::Refused(request_id, text(&data, "reason"));
        }
        _ => {}
    }
    match number {
        1001 => ClientEvent::Done,
        1003 => ClientEvent::Saved(text(&data, "client_msg_id"), message(&data)),
        1002 | 1005 => ClientEvent::Messages(messages(&data["messages"])),
        2001 => {
            let by_conversation = data["msgs"].as_object().expect("by conversation");
            let (_, list) = by_conversation.iter().next().expect("at least one");
            ClientEvent::Message(messages(list).pop().expect("at least one"))
        }
        2003 if data["kind"] == "recalled" => ClientEvent::Recalled(text(&data, "server_msg_id")),
        2003 => ClientEvent::GroupChanged(text(&data, "kind")),
        2004 => ClientEvent::Read(text(&data, "user_id"), text(&data, "server_msg_id")),
        2006 => ClientEvent::ProfileUpdated(
            text(&data, "user_id"),
            text(&data, "nickname"),
            text(&data, "avatar"),
        ),
        _ => ClientEvent::Other,
    }
}
