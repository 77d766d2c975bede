//! Framing, pings and pongs, reserved bits and opcodes, and fragmentation.

use super::case::{Case, PACES, Pace, case};
use super::frames::{Answer, BINARY, CONTINUATION, TEXT, echo, padded, part, refused, reserved};
use super::frames::{close, fragments, heartbeat, ping, ping_part, pong, pong_part, text, whole};

const PROTOCOL_ERROR: Answer = Answer::Close(Some(1002));

/// 1: messages of every form of length.
pub(crate) fn lengths() -> Vec<Case> {
    let mut cases = Vec::new();
    for (group, opcode) in [("1.1", TEXT), ("1.2", BINARY)] {
        for (i, bytes) in [125, 126, 127, 128, 65_535, 65_536].into_iter().enumerate() {
            let frame = || [whole(opcode, padded(opcode, bytes, "length"))];
            let name = format!("{group}.{} ({bytes} bytes)", i + 2);
            cases.push(case(&*name, frame(), [echo("length")]).opcode(opcode));
            let pace = Pace::Pieces(if bytes > 128 { 997 } else { 1 });
            let chopped = case(name + " in pieces", frame(), [echo("length")]);
            cases.push(chopped.opcode(opcode).pace(pace));
        }
    }
    // No message of these dialects is empty.
    cases.push(case("1.1.1 (empty)", [text("")], [refused("bad_json")]));
    let empty = case("1.2.1 (empty)", [whole(BINARY, "")], [refused("missing_type")]);
    cases.push(empty.opcode(BINARY));
    cases
}

/// 2: pings are answered with their payload, pongs with nothing.
pub(crate) fn pings() -> Vec<Case> {
    let longest = [0xfe; 125];
    let pong_of = |payload: &[u8]| Answer::Pong(payload.to_vec());
    let ten: Vec<String> = (0..10).map(|i| format!("payload-{i}")).collect();
    let many = || ten.iter().map(ping).collect::<Vec<_>>();
    let answers: Vec<Answer> = ten.iter().map(|it| pong_of(it.as_bytes())).collect();
    let binary = b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff";
    vec![
        case("2.1", [ping("")], [pong_of(b"")]),
        case("2.2", [ping("Hello, world!")], [pong_of(b"Hello, world!")]),
        case("2.3", [ping(binary)], [pong_of(binary)]),
        case("2.4", [ping(longest)], [pong_of(&longest)]),
        case("2.5", [ping([0xfe; 126])], [PROTOCOL_ERROR]),
        case("2.6", [ping(longest)], [pong_of(&longest)]).pace(Pace::Pieces(1)),
        case("2.7", [pong("")], []),
        case("2.8", [pong("unsolicited")], []),
        case("2.9", [pong("unsolicited"), ping("asked")], [pong_of(b"asked")]),
        case("2.10", many(), answers.clone()),
        case("2.11", many(), answers).pace(Pace::Pieces(1)),
    ]
}

/// 3: reserved bits.
pub(crate) fn reserved_bits() -> Vec<Case> {
    let (hello, answers) = (|| text(heartbeat("hello")), [echo("hello"), PROTOCOL_ERROR]);
    let after = |bits, opcode| [hello(), reserved(bits, opcode, heartbeat("no")), ping("")];
    vec![
        case("3.1", [reserved(1, TEXT, heartbeat("no"))], [PROTOCOL_ERROR]),
        case("3.2", after(2, TEXT), answers.clone()),
        case("3.3", after(3, TEXT), answers.clone()).pace(Pace::PerFrame),
        case("3.4", after(4, TEXT), answers).pace(Pace::Pieces(1)),
        case("3.5", [reserved(5, BINARY, [0xff; 8])], [PROTOCOL_ERROR]),
        case("3.6", [reserved(6, 9, "ping")], [PROTOCOL_ERROR]),
        case("3.7", [reserved(7, 8, "")], [PROTOCOL_ERROR]),
    ]
}

/// 4: reserved opcodes.
pub(crate) fn reserved_opcodes() -> Vec<Case> {
    let mut cases = Vec::new();
    for (group, first) in [("4.1", 3), ("4.2", 11)] {
        let hello = || text(heartbeat("hello"));
        let after = |opcode, payload| [hello(), whole(opcode, payload), ping("")];
        let answers = [echo("hello"), PROTOCOL_ERROR];
        cases.extend([
            case(format!("{group}.1"), [whole(first, "")], [PROTOCOL_ERROR]),
            case(format!("{group}.2"), [whole(first + 1, "payload")], [PROTOCOL_ERROR]),
            case(format!("{group}.3"), after(first + 2, ""), answers.clone()),
            case(format!("{group}.4"), after(first + 3, "payload"), answers.clone()),
            case(format!("{group}.5"), after(first + 4, "payload"), answers).pace(PACES[2]),
        ]);
    }
    cases
}

/// 5: fragmentation.
pub(crate) fn fragmentation() -> Vec<Case> {
    let message = heartbeat("fragments");
    let (one, two) = message.split_at(20);
    let (whole_text, end) =
        (|| text(heartbeat("whole")), |payload: &[u8]| whole(CONTINUATION, payload));
    let (start, more) = (|payload| part(TEXT, payload), |payload| part(CONTINUATION, payload));
    let pong_of = |payload: &str| Answer::Pong(payload.into());
    let mut cases = vec![
        case("5.1", [ping_part("one"), end(b"two")], [PROTOCOL_ERROR]),
        case("5.2", [pong_part("one"), end(b"two")], [PROTOCOL_ERROR]),
        case(
            "5.15",
            [start(one), end(two), more(one), whole_text()],
            [echo("fragments"), PROTOCOL_ERROR],
        ),
        case("5.16", vec![[more(one), start(one), end(two)].concat(); 2], [PROTOCOL_ERROR]),
        case("5.17", vec![[end(one), start(one), end(two)].concat(); 2], [PROTOCOL_ERROR]),
        case("5.18", [start(one), text(two)], [PROTOCOL_ERROR]),
        case("5 (begun twice)", [start(one), part(BINARY, two)], [PROTOCOL_ERROR]),
        case(
            "5 (close in between)",
            [start(one), close(1000, ""), end(two)],
            [Answer::Close(Some(1000))],
        ),
        case("5 (binary)", fragments(BINARY, &padded(BINARY, 128, "five"), 50), [echo("five")])
            .opcode(BINARY),
    ];
    for (i, pace) in PACES.into_iter().enumerate() {
        let name = |number: usize| format!("5.{}", number + i);
        let pinged = [start(one), ping("ping"), end(two)];
        cases.extend([
            case(name(3), [start(one), end(two)], [echo("fragments")]).pace(pace),
            case(name(6), pinged, [pong_of("ping"), echo("fragments")]).pace(pace),
            case(name(9), [end(one), whole_text()], [PROTOCOL_ERROR]).pace(pace),
            case(name(12), [more(one), whole_text()], [PROTOCOL_ERROR]).pace(pace),
        ]);
    }
    let five: Vec<&[u8]> = message.chunks(message.len().div_ceil(5)).collect();
    for (name, pace) in [("5.19", PACES[0]), ("5.20", PACES[1])] {
        // The first ping is answered before the message ends.
        let first = [start(five[0]), more(five[1]), ping("1")];
        let rest = [more(five[2]), more(five[3]), ping("2"), end(five[4])];
        let answers = [pong_of("2"), echo("fragments")];
        cases.push(case(name, first, [pong_of("1")]).then(rest, answers).pace(pace));
    }
    cases
}
