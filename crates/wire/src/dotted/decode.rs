//! Decodes the envelope of a request, as JSON or protobuf.

use std::borrow::Cow;

use nexo_chat::Reason;
use prost::Message;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::payload::ClientMessage;
use super::requests::inbound;
use crate::dialect::{Call, DecodeError, Decoded, Echo, Packet};
use crate::text_or_number::TextOrNumber;

/// Characters of each id that an answer repeats.
const ECHO_CHARS_MAX: usize = 128;

/// Whether a text is of this dialect: a JSON object whose own `cmd` is a string.
pub fn is_dotted(text: &str) -> bool {
    #[derive(Deserialize)]
    struct CmdProbe<'a> {
        #[serde(borrow)]
        cmd: Option<Cow<'a, str>>,
    }
    let probe = object(text).and_then(|text| serde_json::from_str::<CmdProbe<'_>>(text).ok());
    probe.is_some_and(|probe| probe.cmd.is_some())
}

/// `None` unless the text is an object: serde would also read a list, by position.
fn object(text: &str) -> Option<&str> {
    text.trim_ascii_start().starts_with('{').then_some(text)
}

#[derive(Deserialize)]
struct JsonRequest<'a> {
    #[serde(borrow)]
    cmd: Option<TextOrNumber<'a>>,
    #[serde(borrow)]
    request_id: Option<TextOrNumber<'a>>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

pub(super) enum RequestPayload<'a> {
    Json(Option<&'a RawValue>),
    Protobuf(Vec<u8>),
}

impl RequestPayload<'_> {
    /// Reads the payload of a command. Absent and null fields have their default, as in protobuf.
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

/// Reads a frame in the form that the connection began with. Never panics; a frame that cannot be read is a refusal.
pub fn decode(packet: Packet<'_>, binary: bool) -> Result<Decoded, DecodeError> {
    let request = match packet {
        Packet::Text(text) if !binary => read_json(text),
        Packet::Binary(bytes) if binary => read_protobuf(bytes),
        Packet::Text(_) | Packet::Binary(_) => None,
    };
    let bad = || DecodeError { reason: Reason::BadJson, echo: Echo::default() };
    let DottedRequest { cmd, request_id, payload } = request.ok_or_else(bad)?;
    let call = Call::Dotted { cmd: shorten(&cmd), request_id: shorten(&request_id) };
    let mut echo = Echo { call, ..Echo::default() };
    match inbound(&cmd, &payload, &mut echo) {
        Ok(inbound) => Ok(Decoded { inbound, echo, claimed: None }),
        Err(reason) => Err(DecodeError { reason, echo }),
    }
}

struct DottedRequest<'a> {
    cmd: String,
    request_id: String,
    payload: RequestPayload<'a>,
}

fn read_json(text: &str) -> Option<DottedRequest<'_>> {
    let request: JsonRequest<'_> = serde_json::from_str(object(text)?).ok()?;
    let owned =
        |text: Option<TextOrNumber<'_>>| text.map(|text| text.0.into_owned()).unwrap_or_default();
    let (cmd, request_id) = (owned(request.cmd), owned(request.request_id));
    Some(DottedRequest { cmd, request_id, payload: RequestPayload::Json(request.payload) })
}

fn read_protobuf(bytes: &[u8]) -> Option<DottedRequest<'_>> {
    let ClientMessage { cmd, payload, request_id } = ClientMessage::decode(bytes).ok()?;
    Some(DottedRequest { cmd, request_id, payload: RequestPayload::Protobuf(payload) })
}

/// Wrong ids are echoed too, but cut.
pub(super) fn shorten(name: &str) -> String {
    name.chars().take(ECHO_CHARS_MAX).collect()
}
