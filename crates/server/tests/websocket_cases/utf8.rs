//! 6: texts are UTF-8, whole and in fragments. The sequences are those of Markus Kuhn's decoder test.

use super::case::{Case, PACES, Pace, case};
use super::frames::{
    Answer, CONTINUATION, TEXT, echo, fragments, heartbeat, part, refused, text, whole,
};

const NOT_UTF8: Answer = Answer::Close(Some(1007));
/// κόσμε, whose second letter takes three bytes.
const KOSME: &str = "κ\u{1f79}σμε";

/// A case with this sequence in a text.
fn sequence(name: &str, bytes: &[u8], is_valid: bool) -> Case {
    let expect = match str::from_utf8(bytes) {
        // A text, though not JSON: a string has no control characters.
        Ok("\0") if is_valid => refused("bad_json"),
        Ok(id) if is_valid => echo(id),
        _ => NOT_UTF8,
    };
    case(format!("{name} ({bytes:02x?})"), [text(heartbeat(bytes))], [expect])
}

/// 6.1 to 6.4: texts in fragments.
pub(crate) fn fragmented() -> Vec<Case> {
    let id = "Hello-µ@ßöäüàá-UTF-8!!";
    let message = heartbeat(id);
    let kosme = heartbeat(KOSME);
    // The code point after the last one.
    let invalid = heartbeat([KOSME.as_bytes(), b"\xf4\x90\x80\x80edited"].concat());
    // Behind its first byte, and behind the byte that makes it invalid.
    let at = invalid.iter().position(|byte| *byte == 0xf4).unwrap() + 1;
    let three = |first: &[u8], second: &[u8], third: &[u8]| {
        [part(TEXT, first), part(CONTINUATION, second), whole(CONTINUATION, third)]
    };
    let split =
        |one: usize, two: usize| three(&invalid[..one], &invalid[one..two], &invalid[two..]);
    let in_the_middle = id.find('ß').unwrap() + heartbeat("").len() - 2 + 1;
    vec![
        case("6.1.1", [text("")], [refused("bad_json")]),
        case("6.1.2", three(b"", b"", b""), [refused("bad_json")]),
        case("6.1.3", three(b"", &message, b""), [echo(id)]),
        case("6.2.1", [text(&message)], [echo(id)]),
        case("6.2.2", fragments(TEXT, &message, in_the_middle - 1), [echo(id)]),
        case("6.2.3", fragments(TEXT, &message, 1), [echo(id)]),
        case("6.2.4", fragments(TEXT, &kosme, 1), [echo(KOSME)]),
        case("6.2 (inside a code point)", fragments(TEXT, &message, in_the_middle), [echo(id)]),
        case("6.2 (a byte at a time)", [text(&kosme)], [echo(KOSME)]).pace(Pace::Pieces(1)),
        case("6.3.1", [text(&invalid)], [NOT_UTF8]),
        case("6.3.2", fragments(TEXT, &invalid, 1), [NOT_UTF8]),
        case("6.4.1", split(at - 1, at + 3), [NOT_UTF8]).pace(Pace::PerFrame),
        case("6.4.2", split(at, at + 1), [NOT_UTF8]).pace(Pace::PerFrame),
        case("6.4.3", [text(&invalid)], [NOT_UTF8]).pace(Pace::Pieces(at + 5)),
        case("6.4.4", [text(&invalid)], [NOT_UTF8]).pace(Pace::Pieces(at + 6)),
        case("6.4 (every pace)", [text(&invalid)], [NOT_UTF8]).pace(PACES[2]),
    ]
}

/// 6.5 to 6.23: sequences in one frame.
pub(crate) fn sequences() -> Vec<Case> {
    let incomplete: [&[u8]; 10] = [
        b"\xc0",
        b"\xe0\x80",
        b"\xf0\x80\x80",
        b"\xf8\x80\x80\x80",
        b"\xfc\x80\x80\x80\x80",
        b"\xdf",
        b"\xef\xbf",
        b"\xf7\xbf\xbf",
        b"\xfb\xbf\xbf\xbf",
        b"\xfd\xbf\xbf\xbf\xbf",
    ];
    let continuations: Vec<u8> = (0x80..=0xbf).collect();
    let lonely =
        |first: u8, last: u8| (first..=last).flat_map(|it| [it, b' ']).collect::<Vec<u8>>();
    let lonely = [(0xc0, 0xdf), (0xe0, 0xef), (0xf0, 0xf7), (0xf8, 0xfb), (0xfc, 0xfd)]
        .map(|(a, b)| lonely(a, b));
    // The last two code points of every plane.
    let noncharacters: Vec<String> = (0..=16_u32)
        .flat_map(|plane| [plane << 16 | 0xfffe, plane << 16 | 0xffff])
        .map(|point| char::from_u32(point).unwrap().to_string())
        .collect();
    let joined = incomplete.concat();
    let lists: [(&str, bool, Vec<&[u8]>); 21] = [
        (
            "6.5",
            true,
            vec![
                b"hello$world",
                "hello¢world".as_bytes(),
                "hello€world".as_bytes(),
                "hello\u{24b62}world".as_bytes(),
                KOSME.as_bytes(),
            ],
        ),
        ("6.6 (whole code points)", true, [2, 5, 7, 9, 11].map(|n| &KOSME.as_bytes()[..n]).into()),
        ("6.6 (cut)", false, [1, 3, 4, 6, 8, 10].map(|n| &KOSME.as_bytes()[..n]).into()),
        ("6.7", true, vec![b"\0", b"\xc2\x80", b"\xe0\xa0\x80", b"\xf0\x90\x80\x80"]),
        ("6.8", false, vec![b"\xf8\x88\x80\x80\x80", b"\xfc\x84\x80\x80\x80\x80"]),
        ("6.9", true, vec![b"\x7f", b"\xdf\xbf", b"\xef\xbf\xbf", b"\xf4\x8f\xbf\xbf"]),
        (
            "6.10",
            false,
            vec![b"\xf7\xbf\xbf\xbf", b"\xfb\xbf\xbf\xbf\xbf", b"\xfd\xbf\xbf\xbf\xbf\xbf"],
        ),
        (
            "6.11 (valid)",
            true,
            vec![b"\xed\x9f\xbf", b"\xee\x80\x80", b"\xef\xbf\xbd", b"\xf4\x8f\xbf\xbf"],
        ),
        ("6.11 (invalid)", false, vec![b"\xf4\x90\x80\x80"]),
        (
            "6.12",
            false,
            vec![
                b"\x80",
                b"\xbf",
                b"\x80\xbf",
                b"\x80\xbf\x80",
                b"\x80\xbf\x80\xbf",
                b"\x80\xbf\x80\xbf\x80",
                b"\x80\xbf\x80\xbf\x80\xbf",
                &continuations,
            ],
        ),
        ("6.13", false, lonely.iter().map(Vec::as_slice).collect()),
        ("6.14", false, incomplete.to_vec()),
        ("6.15", false, vec![&joined]),
        ("6.16", false, vec![b"\xfe", b"\xff", b"\xfe\xfe\xff\xff"]),
        (
            "6.17",
            false,
            vec![
                b"\xc0\xaf",
                b"\xe0\x80\xaf",
                b"\xf0\x80\x80\xaf",
                b"\xf8\x80\x80\x80\xaf",
                b"\xfc\x80\x80\x80\x80\xaf",
            ],
        ),
        (
            "6.18",
            false,
            vec![
                b"\xc1\xbf",
                b"\xe0\x9f\xbf",
                b"\xf0\x8f\xbf\xbf",
                b"\xf8\x87\xbf\xbf\xbf",
                b"\xfc\x83\xbf\xbf\xbf\xbf",
            ],
        ),
        (
            "6.19",
            false,
            vec![
                b"\xc0\x80",
                b"\xe0\x80\x80",
                b"\xf0\x80\x80\x80",
                b"\xf8\x80\x80\x80\x80",
                b"\xfc\x80\x80\x80\x80\x80",
            ],
        ),
        (
            "6.20",
            false,
            vec![
                b"\xed\xa0\x80",
                b"\xed\xad\xbf",
                b"\xed\xae\x80",
                b"\xed\xaf\xbf",
                b"\xed\xb0\x80",
                b"\xed\xbe\x80",
                b"\xed\xbf\xbf",
            ],
        ),
        (
            "6.21",
            false,
            vec![
                b"\xed\xa0\x80\xed\xb0\x80",
                b"\xed\xa0\x80\xed\xbf\xbf",
                b"\xed\xad\xbf\xed\xb0\x80",
                b"\xed\xad\xbf\xed\xbf\xbf",
                b"\xed\xae\x80\xed\xb0\x80",
                b"\xed\xae\x80\xed\xbf\xbf",
                b"\xed\xaf\xbf\xed\xb0\x80",
                b"\xed\xaf\xbf\xed\xbf\xbf",
            ],
        ),
        ("6.22", true, noncharacters.iter().map(String::as_bytes).collect()),
        (
            "6.23",
            true,
            vec![
                b"\xef\xbf\xb9",
                b"\xef\xbf\xba",
                b"\xef\xbf\xbb",
                b"\xef\xbf\xbc",
                b"\xef\xbf\xbd",
                b"\xef\xbf\xbe",
                b"\xef\xbf\xbf",
            ],
        ),
    ];
    let mut cases = Vec::new();
    for (group, is_valid, list) in &lists {
        let all = list.iter().enumerate();
        cases.extend(all.map(|(i, it)| sequence(&format!("{group}.{}", i + 1), it, *is_valid)));
    }
    cases
}
