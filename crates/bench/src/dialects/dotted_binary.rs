//! The frames of the dotted dialect as protobuf, encoded by hand: a load generator needs six
//! fields and no copies. The field numbers are those of `crates/wire/proto/dotted.proto`.

use tokio_tungstenite::tungstenite::Message;

use crate::codec::{Codec, Incoming};
use crate::dialects::Recipient;
use crate::dialects::dotted::{DottedPayload, parse};

/// The frames of one sender and its receivers.
#[derive(Debug)]
pub(crate) struct DottedBinary {
    /// The fields of a message that never change.
    message: Vec<u8>,
    /// The fields of a read receipt that never change; `None` in a group.
    reading: Option<Vec<u8>>,
}

impl DottedBinary {
    /// Texts have `size` bytes.
    pub(crate) fn new(to: Recipient<'_>, size: usize) -> Self {
        let (kind, id, from) = match to {
            Recipient::Person { from, to } => (1, to, Some(from)),
            Recipient::Group(group) => (2, group, None),
        };
        let mut message = Vec::new();
        put_bytes(&mut message, 2, id.as_bytes());
        put_number(&mut message, 3, kind);
        put_bytes(&mut message, 4, &vec![b'x'; size]);
        let reading = from.map(|from| {
            let mut reading = Vec::new();
            put_bytes(&mut reading, 1, from.as_bytes());
            put_number(&mut reading, 2, 1);
            reading
        });
        Self { message, reading }
    }
}

/// The first frame of a connection.
pub(super) fn validate_token(token: &str) -> Message {
    let mut payload = Vec::new();
    put_bytes(&mut payload, 1, token.as_bytes());
    frame("auth.validate_token", &payload)
}

impl Codec for DottedBinary {
    fn message(&self, index: u64) -> Message {
        let mut payload = Vec::with_capacity(self.message.len() + 32);
        payload.extend_from_slice(&self.message);
        put_bytes(&mut payload, 7, index.to_string().as_bytes());
        frame("chat.send_message", &payload)
    }

    fn delivered(&self, id: &str) -> Option<Message> {
        let mut payload = self.reading.clone()?;
        put_bytes(&mut payload, 3, id.as_bytes());
        Some(frame("chat.mark_read", &payload))
    }

    fn pong(&self) -> Message {
        Message::Pong(Vec::new().into())
    }

    fn read(&self, frame: &Message, on_incoming: &mut dyn FnMut(Incoming<'_>)) {
        if let Message::Binary(bytes) = frame {
            on_incoming(read_frame(bytes).unwrap_or(Incoming::Unreadable));
        }
    }
}

fn read_frame(bytes: &[u8]) -> Option<Incoming<'_>> {
    let (mut cmd, mut code, mut payload) = ("", 0, &[][..]);
    let mut fields = FieldReader(bytes);
    while !fields.is_empty() {
        match fields.next()? {
            (1, FieldValue::Bytes(bytes)) => cmd = str::from_utf8(bytes).ok()?,
            (2, FieldValue::Bytes(bytes)) => payload = bytes,
            (4, FieldValue::Number(number)) => code = i32::try_from(number).ok()?,
            _ => {}
        }
    }
    // Answer and push have the message's id in different fields.
    let id_field = if cmd == "chat.message" { 1 } else { 2 };
    let mut known = DottedPayload::default();
    let mut fields = FieldReader(payload);
    while !fields.is_empty() {
        match fields.next()? {
            (20, FieldValue::Number(seq)) => known.seq = Some(seq),
            (22, FieldValue::Bytes(bytes)) => {
                known.client_msg_id = Some(str::from_utf8(bytes).ok()?);
            }
            (100, FieldValue::Bytes(bytes)) => known.reason = Some(str::from_utf8(bytes).ok()?),
            (number, FieldValue::Bytes(bytes)) if number == id_field => {
                known.msg_id = str::from_utf8(bytes).ok();
            }
            _ => {}
        }
    }
    parse(cmd, code, &known)
}

fn frame(cmd: &str, payload: &[u8]) -> Message {
    let mut bytes = Vec::with_capacity(cmd.len() + payload.len() + 16);
    put_bytes(&mut bytes, 1, cmd.as_bytes());
    put_bytes(&mut bytes, 2, payload);
    put_bytes(&mut bytes, 3, b"1");
    Message::binary(bytes)
}

fn put_bytes(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    put_varint(out, number << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_number(out: &mut Vec<u8>, number: u64, value: u64) {
    put_varint(out, number << 3);
    put_varint(out, value);
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// A field's value; fixed-length types do not occur.
enum FieldValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Reads the fields of a protobuf message one by one.
struct FieldReader<'a>(&'a [u8]);

impl<'a> FieldReader<'a> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next field; `None` if the bytes are not valid protobuf.
    fn next(&mut self) -> Option<(u64, FieldValue<'a>)> {
        let key = self.varint()?;
        let field = match key & 7 {
            0 => FieldValue::Number(self.varint()?),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                FieldValue::Bytes(bytes)
            }
            _ => return None,
        };
        Some((key >> 3, field))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::parsed;

    fn check(cmd: &str, code: u64, payload: &[u8], wanted: Incoming<'_>) {
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, 1, cmd.as_bytes());
        put_bytes(&mut bytes, 2, payload);
        put_number(&mut bytes, 4, code);
        let codec = DottedBinary::new(Recipient::Group("g"), 1);
        assert_eq!(parsed(&codec, &Message::binary(bytes)), [format!("{wanted:?}")], "{cmd}");
    }

    #[test]
    fn hears_what_counts() {
        let mut payload = Vec::new();
        put_bytes(&mut payload, 1, b"9");
        put_number(&mut payload, 20, 300);
        put_bytes(&mut payload, 22, b"7");
        check("chat.message", 0, &payload, Incoming::Pushed { index: 7, seq: 300, id: "9" });
        check("chat.send_message", 0, &payload, Incoming::Saved { index: 7, seq: 300, id: "" });
        check("chat.read_receipt", 0, &payload, Incoming::Delivered { seq: 300 });
        put_bytes(&mut payload, 100, b"muted");
        let refused = Incoming::Refused { index: Some(7), reason: "muted" };
        check("chat.send_message", 503, &payload, refused);
        check("chat.message", 0, b"\x0a\xff", Incoming::Unreadable);
    }

    #[test]
    fn speaks_protobuf() {
        let pair = DottedBinary::new(Recipient::Person { from: "a", to: "b" }, 2);
        let Message::Binary(bytes) = pair.message(7) else { panic!("not binary") };
        let payload = b"\x12\x01b\x18\x01\x22\x02xx\x3a\x017";
        let wanted = [&b"\x0a\x11chat.send_message\x12\x0c"[..], payload, b"\x1a\x011"].concat();
        assert_eq!(bytes, wanted);
    }
}
