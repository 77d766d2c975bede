//! 9 and 10: long messages and many of them.

use super::case::{Case, Pace, case};
use super::frames::{
    Answer, BINARY, CONTINUATION, TEXT, echo, fragments, padded, part, ping, refused, whole,
};

/// The longest message of a server with default settings.
pub(crate) const BYTES_MAX: usize = 128 * 1024;

fn kinds(text: &'static str, binary: &'static str) -> [(&'static str, u8); 2] {
    [(text, TEXT), (binary, BINARY)]
}

/// 9.1 to 9.6: a long message in one frame, in fragments and in pieces. Beyond the limit the
/// connection ends, and the client learns why.
pub(crate) fn long_messages() -> Vec<Case> {
    let mut cases = Vec::new();
    let too_large = || [refused("frame_too_large"), Answer::Close(Some(1009))];
    for (group, opcode) in kinds("9.1", "9.2") {
        for bytes in [64 * 1024, BYTES_MAX - 1, BYTES_MAX] {
            let frame = [whole(opcode, padded(opcode, bytes, "long"))];
            cases.push(
                case(format!("{group} ({bytes} bytes)"), frame, [echo("long")]).opcode(opcode),
            );
        }
        for bytes in [BYTES_MAX + 1, 4 * 1024 * 1024] {
            let frame = [whole(opcode, vec![b' '; bytes])];
            cases.push(case(format!("{group} ({bytes} bytes)"), frame, too_large()).opcode(opcode));
        }
    }
    for (group, opcode) in kinds("9.3", "9.4") {
        for bytes in [64, 256, 1024, 4096, 16 * 1024, 64 * 1024] {
            let name = format!("{group} (fragments of {bytes} bytes)");
            let frames = |all| fragments(opcode, &padded(opcode, all, "long"), bytes);
            cases.push(case(&*name, frames(BYTES_MAX), [echo("long")]).opcode(opcode));
            cases
                .push(case(name + ", too long", frames(BYTES_MAX + 1), too_large()).opcode(opcode));
        }
    }
    for (group, opcode) in kinds("9.5", "9.6") {
        for bytes in [64, 128, 256, 512, 1024, 2048] {
            let frame = [whole(opcode, padded(opcode, BYTES_MAX, "long"))];
            let one = case(format!("{group} (pieces of {bytes} bytes)"), frame, [echo("long")]);
            cases.push(one.opcode(opcode).pace(Pace::Pieces(bytes)));
        }
    }
    let message = padded(TEXT, BYTES_MAX, "long");
    let pinged = [part(TEXT, message), ping([7; 125]), whole(CONTINUATION, "")];
    cases.push(case("9 (a ping beside it)", pinged, [Answer::Pong(vec![7; 125]), echo("long")]));
    cases
}

/// 9.7 and 9.8: many messages.
pub(crate) fn many_messages() -> Vec<Case> {
    let mut cases = Vec::new();
    for (group, opcode) in kinds("9.7", "9.8") {
        for bytes in [64, 256, 1024, 4096] {
            let ids: Vec<String> = (0..1000).map(|i| format!("message-{i}")).collect();
            let frames = ids.iter().map(|id| whole(opcode, padded(opcode, bytes, id)));
            let answers: Vec<Answer> = ids.iter().map(|id| echo(id)).collect();
            let name = format!("{group} (1000 of {bytes} bytes)");
            cases.push(case(name, frames.collect::<Vec<_>>(), answers).opcode(opcode));
        }
    }
    cases
}

/// 10: a client that fragments by itself.
pub(crate) fn auto_fragmentation() -> Vec<Case> {
    let frames = fragments(TEXT, &padded(TEXT, 65_536, "fragments"), 1300);
    vec![case("10.1.1", frames, [echo("fragments")]).pace(Pace::PerFrame)]
}
