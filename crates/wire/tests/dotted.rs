//! The dotted dialect: JSON and protobuf carry the same fields.

#[path = "dotted/answers.rs"]
mod answers;
#[path = "dotted/envelope.rs"]
mod envelope;
#[path = "dotted/events.rs"]
mod events;
#[path = "dotted/groups.rs"]
mod groups;
#[path = "dotted/hostile.rs"]
mod hostile;
#[path = "dotted/proto.rs"]
mod proto;
#[path = "dotted/refusals.rs"]
mod refusals;
#[path = "dotted/requests.rs"]
mod requests;

use std::fmt::Debug;

use nexo_chat::ids::{ClientMsgId, GroupId, MessageId, Millis, Seq, UserId};
use nexo_chat::model::{Content, Message};
use nexo_wire::dialect::{Call, Echo, Frame};
use nexo_wire::dotted::payload::{ClientMessage, ServerMessage};
use prost::Message as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A payload in either form.
trait Payload: prost::Message + Default + PartialEq + Debug + Serialize + DeserializeOwned {}

impl<P: prost::Message + Default + PartialEq + Debug + Serialize + DeserializeOwned> Payload for P {}

fn user(id: &str) -> UserId {
    UserId::parse(id).expect("a user id")
}

fn group() -> GroupId {
    GroupId::parse("g1").expect("a group id")
}

fn msg_id() -> String {
    MessageId([1; 16]).to_string()
}

/// A message of alice to the group.
fn said(content: Content) -> Message {
    Message {
        id: MessageId([1; 16]),
        conversation: group().conversation(),
        seq: Seq(3),
        sender: user("alice"),
        client_id: ClientMsgId::parse("c-1").expect("an id"),
        sent_at: Millis(5),
        content,
        recalled: None,
    }
}

fn echo(cmd: &str) -> Echo {
    let call = Call::Dotted { cmd: cmd.to_owned(), request_id: "r1".to_owned() };
    Echo { call, ..Echo::default() }
}

/// A request as text.
fn text(cmd: &str, payload: &Value) -> String {
    json!({ "cmd": cmd, "request_id": "r1", "payload": payload }).to_string()
}

/// A request as bytes.
fn binary(cmd: &str, payload: Vec<u8>) -> Vec<u8> {
    ClientMessage { cmd: cmd.to_owned(), payload, request_id: "r1".to_owned() }.encode_to_vec()
}

/// Encodes a server frame in both forms, checks that their fields are equal, and returns them as JSON.
fn heard<P: Payload>(make: impl Fn(bool) -> Option<Frame>) -> Value {
    let Some(Frame::Text(text)) = make(false) else { panic!("no text") };
    let Some(Frame::Binary(bytes)) = make(true) else { panic!("no bytes") };
    let text: Value = serde_json::from_str(&text).expect("JSON");
    let bytes = ServerMessage::decode(bytes.as_slice()).expect("protobuf");
    let payload: P = serde_json::from_value(text["payload"].clone()).expect("the payload");
    assert_eq!(P::decode(bytes.payload.as_slice()).expect("the payload"), payload);
    let again = json!({
        "cmd": bytes.cmd, "request_id": bytes.request_id, "code": bytes.code,
        "message": bytes.message, "payload": payload,
    });
    assert_eq!(text, again);
    text
}
