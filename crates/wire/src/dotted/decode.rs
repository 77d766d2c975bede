//! A frame becomes a command, or a refusal that can be answered.

use std::borrow::Cow;

use nexo_chat::Reason;
use prost::Message;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::payload::ClientMessage;
use super::requests::understand;
use crate::dialect::{Call, Decoded, Echo, Packet, Refused};
use crate::typed::Text;

/// Characters of what is repeated.
const ECHO_CHARS_MAX: usize = 128;

/// Whether a text is of this dialect: a JSON object whose own `cmd` is a string.
pub fn is_dotted(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Probe<'a> {
        #[serde(borrow)]
        cmd: Option<Cow<'a, str>>,
    }
    let probe = object(text).and_then(|text| serde_json::from_str::<Probe<'_>>(text).ok());
    probe.is_some_and(|probe| probe.cmd.is_some())
}

/// A text that may be an object. A list would be read as one, by position.
fn object(text: &str) -> Option<&str> {
    text.trim_ascii_start().starts_with('{').then_some(text)
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    cmd: Option<Text<'a>>,
    #[serde(borrow)]
    request_id: Option<Text<'a>>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

/// What a request brings, in one of the two forms.
pub(super) enum Payload<'a> {
    Json(Option<&'a RawValue>),
    Protobuf(Vec<u8>),
}

impl Payload<'_> {
    /// Reads it as what the command asks for. What is absent or null has its default, as in
    /// protobuf.
    pub(super) fn read<T: Message + Default + DeserializeOwned>(&self) -> Result<T, Reason> {
        match self {
            Self::Json(None) => Ok(T::default()),
            Self::Json(Some(raw)) => json(raw.get()).ok_or(Reason::InvalidParam),
            Self::Protobuf(bytes) => T::decode(bytes.as_slice()).map_err(|_| Reason::InvalidParam),
        }
    }
}

fn json<T: DeserializeOwned>(text: &str) -> Option<T> {
    let mut fields: Map<String, Value> = serde_json::from_str(text).ok()?;
    fields.retain(|_, value| !value.is_null());
    T::deserialize(Value::Object(fields)).ok()
}

/// Reads a frame of the form that the connection began with. Never panics; whatever cannot be read
/// is a refusal.
pub fn decode(packet: Packet<'_>, binary: bool) -> Result<Decoded, Refused> {
    let opened = match packet {
        Packet::Text(text) if !binary => open_text(text),
        Packet::Binary(bytes) if binary => open_binary(bytes),
        Packet::Text(_) | Packet::Binary(_) => None,
    };
    let bad = || Refused { reason: Reason::BadJson, echo: Echo::default() };
    let (cmd, request_id, payload) = opened.ok_or_else(bad)?;
    let call = Call::Dotted { cmd: short(&cmd), request_id: short(&request_id) };
    let mut echo = Echo { call, ..Echo::default() };
    match understand(&cmd, &payload, &mut echo) {
        Ok(inbound) => Ok(Decoded { inbound, echo, claimed: None }),
        Err(reason) => Err(Refused { reason, echo }),
    }
}

/// Command, request id and what they bring.
type Opened<'a> = (String, String, Payload<'a>);

fn open_text(text: &str) -> Option<Opened<'_>> {
    let envelope: Envelope<'_> = serde_json::from_str(object(text)?).ok()?;
    let said = |text: Option<Text<'_>>| text.map(|text| text.0.into_owned()).unwrap_or_default();
    let (cmd, request_id) = (said(envelope.cmd), said(envelope.request_id));
    Some((cmd, request_id, Payload::Json(envelope.payload)))
}

fn open_binary(bytes: &[u8]) -> Option<Opened<'_>> {
    let ClientMessage { cmd, payload, request_id } = ClientMessage::decode(bytes).ok()?;
    Some((cmd, request_id, Payload::Protobuf(payload)))
}

/// Names are repeated even when they are wrong, but not at any length.
pub(super) fn short(name: &str) -> String {
    name.chars().take(ECHO_CHARS_MAX).collect()
}
