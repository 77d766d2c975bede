//! One frame: its header, its mask, the payload of a close frame.

/// How a client violated the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// A frame or a message is longer than the server takes.
    TooLarge,
    /// A text that is not UTF-8.
    NotUtf8,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opcode {
    Continuation,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

impl Opcode {
    fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Continuation,
            1 => Self::Text,
            2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }

    fn number(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

/// The longest payload of a control frame.
const CONTROL_BYTES_MAX: usize = 125;

/// The header of a client's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHead {
    pub(super) opcode: Opcode,
    /// Whether it is the last frame of its message.
    pub(super) is_final: bool,
    pub(super) mask: [u8; 4],
    /// Bytes of the header.
    pub(super) bytes: usize,
    pub(super) payload_bytes: usize,
}

impl FrameHead {
    /// Reads the header at the beginning of `bytes`; `None` if there are too few. A payload of more
    /// than `payload_bytes_max` is refused before any of it has arrived, unless it is that of a control
    /// frame: those have a limit of their own, and come also when a message has used up all of its.
    pub(super) fn parse(bytes: &[u8], payload_bytes_max: usize) -> Result<Option<Self>, Violation> {
        let Some(&[first, second]) = bytes.first_chunk() else { return Ok(None) };
        let opcode = Opcode::from_number(first & 0x0f).ok_or(Violation::Other)?;
        let is_final = first & 0x80 != 0;
        let has_reserved_bits = first & 0x70 != 0;
        let is_masked = second & 0x80 != 0;
        let short = usize::from(second & 0x7f);
        let is_bad_control = opcode.is_control() && (!is_final || short > CONTROL_BYTES_MAX);
        if has_reserved_bits || !is_masked || is_bad_control {
            return Err(Violation::Other);
        }
        let rest = &bytes[2..];
        let (length_bytes, length) = match short {
            126 => {
                let Some(length) = rest.first_chunk() else { return Ok(None) };
                (2, usize::from(u16::from_be_bytes(*length)))
            }
            127 => {
                let Some(length) = rest.first_chunk() else { return Ok(None) };
                let length = u64::from_be_bytes(*length);
                (8, usize::try_from(length).map_err(|_| Violation::TooLarge)?)
            }
            short => (0, short),
        };
        if length > payload_bytes_max && !opcode.is_control() {
            return Err(Violation::TooLarge);
        }
        let Some(mask) = rest[length_bytes..].first_chunk() else { return Ok(None) };
        let bytes = 2 + length_bytes + 4;
        Ok(Some(Self { opcode, is_final, mask: *mask, bytes, payload_bytes: length }))
    }
}

/// Applies or removes a mask.
pub(super) fn unmask(payload: &mut [u8], mask: [u8; 4]) {
    let [a, b, c, d] = mask;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (chunks, rest) = payload.as_chunks_mut();
    for chunk in chunks {
        *chunk = (u64::from_ne_bytes(*chunk) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
}

/// Appends a frame of the server: whole and without a mask.
pub(super) fn write(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8]) {
    let first = 0x80 | opcode.number();
    let length = payload.len();
    out.reserve(length + 10);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short @ 0..=125), _) => out.extend_from_slice(&[first, short]),
        (_, Ok(medium)) => {
            let [high, low] = medium.to_be_bytes();
            out.extend_from_slice(&[first, 126, high, low]);
        }
        _ => {
            out.extend_from_slice(&[first, 127]);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
}

/// The payload of a close frame; a reason that is too long is cut.
pub(super) fn close_payload(code: u16, reason: &str) -> Vec<u8> {
    let reason = &reason[..reason.floor_char_boundary(CONTROL_BYTES_MAX - 2)];
    [&code.to_be_bytes(), reason.as_bytes()].concat()
}

/// Checks a client's close frame, and returns the code to reply with.
pub(super) fn check_close(payload: &[u8]) -> Result<Option<u16>, Violation> {
    if payload.is_empty() {
        return Ok(None);
    }
    let Some((code, reason)) = payload.split_first_chunk() else { return Err(Violation::Other) };
    let code = u16::from_be_bytes(*code);
    // 1004 to 1006 and 1015 are never sent; below 3000 only those that are registered are.
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(Violation::Other);
    }
    match str::from_utf8(reason) {
        Ok(_) => Ok(Some(code)),
        Err(_) => Err(Violation::NotUtf8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_once_it_is_whole() {
        for (length, bytes) in [(0, 6), (125, 6), (126, 8), (65_535, 8), (65_536, 14)] {
            let mut frame = Vec::new();
            write(&mut frame, Opcode::Binary, &vec![0; length]);
            let head_bytes = frame.len() - length;
            frame[1] |= 0x80;
            frame.splice(head_bytes..head_bytes, [1, 2, 3, 4]);
            for end in 0..bytes {
                assert_eq!(FrameHead::parse(&frame[..end], length), Ok(None), "{length} {end}");
            }
            let head = FrameHead::parse(&frame, length).unwrap().unwrap();
            let mask = [1, 2, 3, 4];
            let expect = FrameHead {
                opcode: Opcode::Binary,
                is_final: true,
                mask,
                bytes,
                payload_bytes: length,
            };
            assert_eq!(head, expect);
            if length > 0 {
                assert_eq!(FrameHead::parse(&frame, length - 1), Err(Violation::TooLarge));
            }
        }
    }

    #[test]
    fn what_no_client_may_send_is_a_violation() {
        for bytes in [
            [0x81, 0x00], // no mask
            [0xc1, 0x80], // reserved bits
            [0xa1, 0x80],
            [0x91, 0x80],
            [0x83, 0x80], // reserved opcodes
            [0x8b, 0x80],
            [0x09, 0x80], // a ping in parts
            [0x89, 0xfe], // a long ping
        ] {
            assert_eq!(FrameHead::parse(&bytes, 1000), Err(Violation::Other), "{bytes:x?}");
        }
        let longest = [&[0x82, 0xff][..], &[0xff; 8]].concat();
        assert_eq!(FrameHead::parse(&longest, 1000), Err(Violation::TooLarge));
    }

    #[test]
    fn a_mask_is_undone_at_every_length() {
        for length in 0..40 {
            let plain: Vec<u8> = (0..length).collect();
            let mask = [7, 0, 255, 13];
            let masked: Vec<u8> =
                plain.iter().zip(mask.iter().cycle()).map(|(a, b)| a ^ b).collect();
            let mut bytes = masked.clone();
            unmask(&mut bytes, mask);
            assert_eq!(bytes, plain);
        }
    }

    #[test]
    fn a_close_frame_has_a_registered_code_and_a_text() {
        assert_eq!(check_close(b""), Ok(None));
        assert_eq!(check_close(&close_payload(1000, "bye")), Ok(Some(1000)));
        assert_eq!(check_close(&close_payload(4999, "")), Ok(Some(4999)));
        for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535] {
            assert_eq!(check_close(&close_payload(code, "")), Err(Violation::Other), "{code}");
        }
        assert_eq!(check_close(&[3]), Err(Violation::Other));
        assert_eq!(check_close(&[3, 232, 255]), Err(Violation::NotUtf8));
        assert_eq!(close_payload(1000, &"é".repeat(100)).len(), 124);
    }
}
