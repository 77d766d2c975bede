//! Frames are made by another implementation of the protocol.

use proptest::prelude::*;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::*;

const BYTES_MAX: usize = 1000;

/// A frame as a client sends it.
fn frame(opcode: OpCode, is_final: bool, payload: &[u8]) -> Vec<u8> {
    let mut frame = match opcode {
        OpCode::Control(Control::Ping) => Frame::ping(payload.to_vec()),
        opcode => Frame::message(payload.to_vec(), opcode, is_final),
    };
    frame.header_mut().mask = Some([9, 8, 7, 6]);
    let mut bytes = Vec::new();
    frame.format(&mut bytes).unwrap();
    bytes
}

fn data(opcode: Data, is_final: bool, payload: &str) -> Vec<u8> {
    frame(OpCode::Data(opcode), is_final, payload.as_bytes())
}

fn ping(payload: &str) -> Vec<u8> {
    frame(OpCode::Control(Control::Ping), true, payload.as_bytes())
}

/// Everything that a reader finds in bytes that arrive in parts of this many.
fn read(bytes: &[u8], part: usize) -> Result<Vec<(Found, Vec<u8>)>, Violation> {
    let mut reader = MessageReader::new(Bytes::new(), BYTES_MAX);
    let mut all = Vec::new();
    let mut parts = bytes.chunks(part);
    loop {
        if let Some(found) = reader.find()? {
            all.push((found, reader.payload().to_vec()));
            continue;
        }
        let Some(mut part) = parts.next() else { return Ok(all) };
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(matches!(reader.poll_fill(&mut part, &mut cx), Poll::Ready(Ok(true))));
    }
}

fn check(bytes: &[Vec<u8>], expect: Result<&[(Found, &str)], Violation>) {
    let expect = expect.map(|all| {
        all.iter().map(|(found, text)| (*found, text.as_bytes().to_vec())).collect::<Vec<_>>()
    });
    for part in [1, 2, 7, 4096] {
        assert_eq!(read(&bytes.concat(), part), expect, "parts of {part}");
    }
}

#[test]
fn messages_come_whole_in_any_parts() {
    let long = "x".repeat(300);
    check(
        &[
            data(Data::Text, true, "one"),
            data(Data::Binary, true, ""),
            data(Data::Text, true, &long),
        ],
        Ok(&[(Found::Text, "one"), (Found::Binary, ""), (Found::Text, &long)]),
    );
}

#[test]
fn a_ping_may_come_between_the_frames_of_a_message() {
    check(
        &[
            data(Data::Text, false, "a"),
            ping("p"),
            data(Data::Continue, false, ""),
            data(Data::Continue, true, "b"),
            data(Data::Text, true, "c"),
        ],
        Ok(&[(Found::Ping, "p"), (Found::Text, "ab"), (Found::Text, "c")]),
    );
}

#[test]
fn messages_that_do_not_fit_each_other_are_violations() {
    check(&[data(Data::Continue, true, "a")], Err(Violation::Other));
    check(&[data(Data::Text, false, "a"), data(Data::Text, true, "b")], Err(Violation::Other));
    // The end of one message does not begin another.
    check(
        &[
            data(Data::Text, false, "a"),
            data(Data::Continue, true, "b"),
            data(Data::Continue, true, "c"),
        ],
        Err(Violation::Other),
    );
}

#[test]
fn a_message_in_parts_is_no_longer_than_one_in_one() {
    let half = "x".repeat(BYTES_MAX / 2);
    let parts = |last: &str| {
        [
            data(Data::Text, false, &half),
            data(Data::Continue, false, &half),
            data(Data::Continue, true, last),
        ]
    };
    let whole = [&half[..], &half].concat();
    check(&parts(""), Ok(&[(Found::Text, &whole)]));
    check(&parts("y"), Err(Violation::TooLarge));
}

#[test]
fn a_ping_does_not_count_as_a_part_of_the_message_around_it() {
    let (longest, pinged) = ("x".repeat(BYTES_MAX), "p".repeat(125));
    check(
        &[data(Data::Text, false, &longest), ping(&pinged), data(Data::Continue, true, "")],
        Ok(&[(Found::Ping, &pinged), (Found::Text, &longest)]),
    );
}

#[test]
fn a_message_of_endless_empty_frames_ends() {
    let mut bytes = data(Data::Text, false, "");
    for _ in 0..FRAMES_MAX {
        bytes.extend(data(Data::Continue, false, ""));
    }
    assert_eq!(read(&bytes, 4096), Err(Violation::Other));
}

#[test]
fn nothing_is_allocated_for_a_length_that_is_only_announced() {
    let mut reader = MessageReader::new(Bytes::new(), 1 << 20);
    let announced = frame(OpCode::Data(Data::Binary), true, &vec![0; 1 << 20]);
    let mut cx = Context::from_waker(std::task::Waker::noop());
    assert!(reader.poll_fill(&mut &announced[..20], &mut cx).is_ready());
    assert_eq!(reader.find(), Ok(None));
    assert!(reader.buffer.capacity() <= 2 * READ_BYTES, "{}", reader.buffer.capacity());
}

proptest! {
    /// Any bytes are messages or a violation, whatever parts they come in, and never a panic.
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200), part in 1_usize..9) {
        prop_assert_eq!(read(&bytes, part), read(&bytes, 4096));
    }

    /// What another implementation writes is read as it was meant.
    #[test]
    fn what_a_client_writes_is_read(
        texts in proptest::collection::vec(("[a-zé]{0,150}", any::<bool>()), 0..6),
        part in 1_usize..50,
    ) {
        let kind = |is_text| if is_text { (Data::Text, Found::Text) } else { (Data::Binary, Found::Binary) };
        let bytes = texts.iter().flat_map(|(text, is_text)| data(kind(*is_text).0, true, text));
        let expect = texts.iter().map(|(text, is_text)| (kind(*is_text).1, text.clone().into_bytes()));
        prop_assert_eq!(read(&bytes.collect::<Vec<u8>>(), part), Ok(expect.collect()));
    }
}
