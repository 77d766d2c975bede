//! 7: the close handshake.

use super::case::{Case, case};
use super::frames::{
    Answer, CONTINUATION, TEXT, close, close_raw, echo, heartbeat, part, ping, text, whole,
};

const NORMAL: Answer = Answer::Close(Some(1000));
const PROTOCOL_ERROR: Answer = Answer::Close(Some(1002));

/// What follows a close frame has no answer, and a fragment that it interrupts has no end.
pub(crate) fn after_close() -> Vec<Case> {
    let bye = || close(1000, "");
    let message = heartbeat("fragments");
    let (one, two) = message.split_at(20);
    vec![
        case("7.1.1", [text(heartbeat("hello"))], [echo("hello")]).then([bye()], [NORMAL]),
        case("7.1.2", [bye(), bye()], [NORMAL]),
        case("7.1.3", [bye(), ping("")], [NORMAL]),
        case("7.1.4", [bye(), text(heartbeat("late"))], [NORMAL]),
        case("7.1.5", [part(TEXT, one), bye(), whole(CONTINUATION, two)], [NORMAL]),
        case("7.1 (violation after it)", [bye(), vec![0xff; 10]], [NORMAL]),
    ]
}

/// The payload of a close frame: nothing, or a code and a reason.
pub(crate) fn payloads() -> Vec<Case> {
    let not_utf8 = b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited";
    vec![
        case("7.3.1", [close_raw(b"")], [Answer::Close(None)]),
        case("7.3.2", [close_raw(b"a")], [PROTOCOL_ERROR]),
        case("7.3.3", [close(1000, "")], [NORMAL]),
        case("7.3.4", [close(1000, "Hello, world!")], [NORMAL]),
        case("7.3.5", [close(1000, [b'*'; 123])], [NORMAL]),
        case("7.3.6", [close(1000, [b'*'; 124])], [PROTOCOL_ERROR]),
        case("7.5.1", [close(1000, not_utf8)], [Answer::Close(Some(1007))]),
    ]
}

/// Valid codes are repeated, all others are a protocol error.
pub(crate) fn codes() -> Vec<Case> {
    let valid = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999];
    let invalid = [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999];
    let beyond = [5000, 65_535];
    let group = |group: &'static str, codes: Vec<u16>, is_valid: bool| {
        codes.into_iter().enumerate().map(move |(i, code)| {
            let expect = if is_valid { Answer::Close(Some(code)) } else { PROTOCOL_ERROR };
            case(format!("{group}.{} ({code})", i + 1), [close(code, "")], [expect])
        })
    };
    let valid = group("7.7", valid.into(), true);
    valid
        .chain(group("7.9", invalid.into(), false))
        .chain(group("7.13", beyond.into(), false))
        .collect()
}
