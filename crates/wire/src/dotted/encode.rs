//! Puts payloads into the envelope of a response or a push.

use prost::Message;
use serde::Serialize;

use super::payload::ServerMessage;
use crate::dialect::{Call, Echo, Frame};

/// The `cmd` of the answer to a frame that could not be read.
const UNREADABLE: &str = "system.error";

/// The envelope of every JSON frame of the server.
#[derive(Serialize)]
struct JsonResponse<'a, P> {
    cmd: &'a str,
    request_id: &'a str,
    code: i32,
    message: &'a str,
    payload: &'a P,
}

pub(super) struct ResponseStatus<'a> {
    pub(super) code: i32,
    pub(super) message: &'a str,
}

/// `cmd` and `request_id` of the request.
pub(super) fn echoed_call(echo: &Echo) -> (&str, &str) {
    match &echo.call {
        Call::Dotted { cmd, request_id } if !cmd.is_empty() => (cmd, request_id),
        Call::Dotted { request_id, .. } => (UNREADABLE, request_id),
        Call::None | Call::Numbered { .. } => (UNREADABLE, ""),
    }
}

pub(super) fn respond<P: Message + Serialize>(
    echo: &Echo,
    status: &ResponseStatus<'_>,
    payload: &P,
    binary: bool,
) -> Frame {
    frame(echoed_call(echo), status, payload, binary)
}

pub(super) fn success<P: Message + Serialize>(echo: &Echo, payload: &P, binary: bool) -> Frame {
    respond(echo, &ResponseStatus { code: 0, message: "ok" }, payload, binary)
}

/// A frame that answers no request.
pub(super) fn push<P: Message + Serialize>(cmd: &str, payload: &P, binary: bool) -> Frame {
    frame((cmd, ""), &ResponseStatus { code: 0, message: "" }, payload, binary)
}

fn frame<P: Message + Serialize>(
    (cmd, request_id): (&str, &str),
    status: &ResponseStatus<'_>,
    payload: &P,
    binary: bool,
) -> Frame {
    let ResponseStatus { code, message } = *status;
    if binary {
        let response = ServerMessage {
            cmd: cmd.to_owned(),
            payload: payload.encode_to_vec(),
            request_id: request_id.to_owned(),
            code,
            message: message.to_owned(),
        };
        return Frame::Binary(response.encode_to_vec());
    }
    let response = JsonResponse { cmd, request_id, code, message, payload };
    let text = serde_json::to_string(&response);
    Frame::Text(text.expect("strings, numbers and lists of them always serialize"))
}
