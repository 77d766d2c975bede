//! Payloads become frames.

use prost::Message;
use serde::Serialize;

use super::payload::ServerMessage;
use crate::dialect::{Call, Echo, Frame};

/// What the answer to something that could not be read is called.
const UNREAD: &str = "system.error";

/// The envelope of every frame of the server, as text.
#[derive(Serialize)]
struct Envelope<'a, P> {
    cmd: &'a str,
    request_id: &'a str,
    code: i32,
    message: &'a str,
    payload: &'a P,
}

/// How a request went.
pub(super) struct Outcome<'a> {
    pub(super) code: i32,
    pub(super) message: &'a str,
}

/// What an answer repeats: the command and the client's name for the request.
pub(super) fn called(echo: &Echo) -> (&str, &str) {
    match &echo.call {
        Call::Dotted { cmd, request_id } if !cmd.is_empty() => (cmd, request_id),
        Call::Dotted { request_id, .. } => (UNREAD, request_id),
        Call::None | Call::Numbered { .. } => (UNREAD, ""),
    }
}

/// The answer to a request.
pub(super) fn answer<P: Message + Serialize>(
    echo: &Echo,
    outcome: &Outcome<'_>,
    payload: &P,
    binary: bool,
) -> Frame {
    frame(called(echo), outcome, payload, binary)
}

/// It went well.
pub(super) fn done<P: Message + Serialize>(echo: &Echo, payload: &P, binary: bool) -> Frame {
    answer(echo, &Outcome { code: 0, message: "ok" }, payload, binary)
}

/// What nobody asked for.
pub(super) fn push<P: Message + Serialize>(cmd: &str, payload: &P, binary: bool) -> Frame {
    frame((cmd, ""), &Outcome { code: 0, message: "" }, payload, binary)
}

fn frame<P: Message + Serialize>(
    (cmd, request_id): (&str, &str),
    outcome: &Outcome<'_>,
    payload: &P,
    binary: bool,
) -> Frame {
    let Outcome { code, message } = *outcome;
    if binary {
        let envelope = ServerMessage {
            cmd: cmd.to_owned(),
            payload: payload.encode_to_vec(),
            request_id: request_id.to_owned(),
            code,
            message: message.to_owned(),
        };
        return Frame::Binary(envelope.encode_to_vec());
    }
    let envelope = Envelope { cmd, request_id, code, message, payload };
    let text = serde_json::to_string(&envelope);
    Frame::Text(text.expect("strings, numbers and lists of them always serialize"))
}
