//! Makes the frames that a client sends, and reads those of the server.

use serde_json::Value;

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
const FINAL: u8 = 0x80;
pub(crate) const CONTINUATION: u8 = 0;
pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// A frame with any first byte.
pub(crate) fn raw(first: u8, mask: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let mut frame = match payload.len() {
        length @ 0..=125 => vec![first, 0x80 | u8::try_from(length).unwrap()],
        length @ 126..=0xffff => {
            [&[first, 0xfe][..], &u16::try_from(length).unwrap().to_be_bytes()].concat()
        }
        length => [&[first, 0xff][..], &(length as u64).to_be_bytes()].concat(),
    };
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// A frame that is its whole message, or the last one of it.
pub(crate) fn whole(opcode: u8, payload: impl AsRef<[u8]>) -> Vec<u8> {
    raw(FINAL | opcode, MASK, payload.as_ref())
}

/// A frame that others of the same message follow.
pub(crate) fn part(opcode: u8, payload: impl AsRef<[u8]>) -> Vec<u8> {
    raw(opcode, MASK, payload.as_ref())
}

/// A frame with reserved bits.
pub(crate) fn reserved(bits: u8, opcode: u8, payload: impl AsRef<[u8]>) -> Vec<u8> {
    raw(FINAL | bits << 4 | opcode, MASK, payload.as_ref())
}

pub(crate) fn text(payload: impl AsRef<[u8]>) -> Vec<u8> {
    whole(TEXT, payload)
}

pub(crate) fn ping(payload: impl AsRef<[u8]>) -> Vec<u8> {
    whole(PING, payload)
}

pub(crate) fn ping_part(payload: &str) -> Vec<u8> {
    part(PING, payload)
}

pub(crate) fn pong(payload: impl AsRef<[u8]>) -> Vec<u8> {
    whole(PONG, payload)
}

pub(crate) fn pong_part(payload: &str) -> Vec<u8> {
    part(PONG, payload)
}

pub(crate) fn close_raw(payload: &[u8]) -> Vec<u8> {
    whole(CLOSE, payload)
}

pub(crate) fn close(code: u16, reason: impl AsRef<[u8]>) -> Vec<u8> {
    close_raw(&[&code.to_be_bytes(), reason.as_ref()].concat())
}

/// A message in fragments of this many bytes.
pub(crate) fn fragments(opcode: u8, payload: &[u8], bytes: usize) -> Vec<Vec<u8>> {
    let count = payload.len().div_ceil(bytes);
    let frame = |(at, payload): (usize, &[u8])| {
        let opcode = if at == 0 { opcode } else { CONTINUATION };
        if at + 1 == count { whole(opcode, payload) } else { part(opcode, payload) }
    };
    payload.chunks(bytes).enumerate().map(frame).collect()
}

/// A request of the dotted dialect that is answered with its id.
pub(crate) fn heartbeat(id: impl AsRef<[u8]>) -> Vec<u8> {
    [br#"{"cmd":"heartbeat","request_id":""#, id.as_ref(), br#""}"#].concat()
}

/// The payload of a message with exactly this many bytes that is answered with `id`: padded with
/// spaces or, in protobuf, with a field that the server does not know.
pub(crate) fn padded(opcode: u8, bytes: usize, id: &str) -> Vec<u8> {
    if opcode == TEXT {
        let mut json = heartbeat(id);
        json.splice(1..1, vec![b' '; bytes - json.len()]);
        return json;
    }
    let cmd = b"\x0a\x09heartbeat".to_vec();
    let id = [&[0x1a, u8::try_from(id.len()).unwrap()], id.as_bytes()].concat();
    // The unknown field: a byte of tag, three of length.
    let padding = bytes - cmd.len() - id.len() - 4;
    let seven_bits = |shift: usize| u8::try_from(padding >> shift & 0x7f).unwrap();
    let head = [0x7a, 0x80 | seven_bits(0), 0x80 | seven_bits(7), seven_bits(14)];
    [cmd, head.to_vec(), vec![0xff; padding], id].concat()
}

/// What came from the server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// The answer to a heartbeat with this id.
    Echo(String),
    /// A refusal with this reason.
    Refused(String),
    Pong(Vec<u8>),
    Close(Option<u16>),
    /// The server has closed the connection.
    End,
    /// The connection was reset: what the server sent last may be lost.
    Reset,
    /// Nothing came in time.
    Nothing,
}

pub(crate) fn echo(id: &str) -> Answer {
    Answer::Echo(id.to_owned())
}

pub(crate) fn refused(reason: &str) -> Answer {
    Answer::Refused(reason.to_owned())
}

impl Answer {
    /// Takes a frame from the beginning of `bytes`; `None` if it is not whole.
    pub(crate) fn take(bytes: &mut Vec<u8>) -> Option<Self> {
        let (first, length) = (*bytes.first()?, *bytes.get(1)?);
        assert!(length <= 126, "a masked frame of the server, or a very long one: {bytes:x?}");
        let (start, length) = match length {
            126 => (4, usize::from(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?))),
            short => (2, usize::from(short)),
        };
        let payload = bytes.get(start..start + length)?.to_vec();
        bytes.drain(..start + length);
        assert_eq!(first & 0xf0, FINAL, "the server sends whole frames");
        Some(match first & 0x0f {
            TEXT => Self::of_json(&serde_json::from_slice(&payload).unwrap()),
            BINARY => Self::of_protobuf(&payload),
            CLOSE => Self::Close(payload.first_chunk().copied().map(u16::from_be_bytes)),
            PONG => Self::Pong(payload),
            opcode => panic!("a frame with opcode {opcode}"),
        })
    }

    fn of_json(answer: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match text(&answer["payload"]["reason"]) {
            none if none.is_empty() => Self::Echo(text(&answer["request_id"])),
            reason => Self::Refused(reason),
        }
    }

    fn of_protobuf(answer: &[u8]) -> Self {
        let text = |bytes: &[u8]| str::from_utf8(bytes).unwrap().to_owned();
        let is_kicked = field(answer, 1) == Some(b"system.kicked");
        let payload = field(answer, 2).unwrap_or_default();
        match field(payload, if is_kicked { 1 } else { 100 }) {
            Some(reason) => Self::Refused(text(reason)),
            None => Self::Echo(text(field(answer, 3).unwrap_or_default())),
        }
    }
}

/// A field of a protobuf message that is a string, bytes or a message.
fn field(mut rest: &[u8], number: u64) -> Option<&[u8]> {
    while !rest.is_empty() {
        let key = take_number(&mut rest);
        let value = take_number(&mut rest);
        if key & 7 == 2 {
            let (value, after) = rest.split_at(usize::try_from(value).unwrap());
            rest = after;
            if key >> 3 == number {
                return Some(value);
            }
        }
    }
    None
}

fn take_number(rest: &mut &[u8]) -> u64 {
    let length = rest.iter().position(|byte| *byte < 0x80).unwrap() + 1;
    let (bytes, after) = rest.split_at(length);
    *rest = after;
    bytes.iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f))
}
