//! The numbered dialect: what it reads, what it refuses, and that no input makes it panic.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use data_encoding::BASE64;
use nexo_chat::Reason;
use nexo_chat::command::{Command, Target};
use nexo_chat::ids::Seq;
use nexo_chat::query::Query;
use nexo_wire::dialect::{Call, ClaimedSender, Dialect, Frame, Inbound, Packet};
use nexo_wire::numbered::{decode, refusal};
use proptest::prelude::*;
use serde_json::{Value, json};

fn frame(number: i64, data: &Value, nested: bool) -> String {
    let data =
        if nested { data.clone() } else { json!(BASE64.encode(data.to_string().as_bytes())) };
    json!({ "req_identifier": number, "msg_incr": "7", "operation_id": "op", "token": "x",
        "send_id": "mallory", "data": data })
    .to_string()
}

fn read(text: &str) -> Result<Command, Reason> {
    match decode(Packet::Text(text)) {
        Ok(decoded) => match decoded.inbound {
            Inbound::Command(command) => Ok(command),
            other => panic!("{other:?}"),
        },
        Err(refused) => Err(refused.reason),
    }
}

fn send(change: &Value) -> Value {
    let mut data = json!({ "client_msg_id": "c1", "recv_id": "bob", "session_type": 1,
        "msg_type": 1, "content": { "text": "hi" } });
    for (field, value) in change.as_object().unwrap() {
        data[field] = value.clone();
    }
    data
}

#[test]
fn every_operation_is_read_in_both_forms() {
    for nested in [true, false] {
        let ask = |number, data: Value| match read(&frame(number, &data, nested)) {
            Ok(Command::Query(query)) => query,
            other => panic!("{number}: {other:?}"),
        };
        let id = "si_alice_bob";
        let Query::Newest(ids) = ask(1001, json!({ "conversation_ids": [id] })) else { panic!() };
        assert_eq!(ids[0].as_str(), id);
        let list = ask(1002, json!({ "conversation_id": id, "seq_list": [3, 1] }));
        assert!(matches!(list, Query::Fetch(_, seqs) if seqs == [Seq(3), Seq(1)]));
        let range = ask(1005, json!({ "conversation_id": id, "begin_seq": 2 }));
        assert!(matches!(range, Query::Pull(_, range, 100) if range == (Seq(2)..=Seq(u64::MAX))));
        assert!(matches!(ask(1006, json!({ "conversation_id": id })), Query::State(_)));
        let Ok(Command::Send(sent)) = read(&frame(1003, &send(&json!({})), nested)) else {
            panic!()
        };
        assert!(matches!(sent.to, Target::User(user) if user.as_str() == "bob"));
        assert_eq!((&sent.content.body[..], sent.marks_read), (&b"hi"[..], true));
    }
}

#[test]
fn what_is_wrong_has_its_reason() {
    let check = |text: &str, expect: Reason| assert_eq!(read(text), Err(expect), "{text}");
    check("", Reason::BadJson);
    check("[]", Reason::BadJson);
    check("{}", Reason::MissingType);
    check(r#"{"req_identifier":"1003"}"#, Reason::BadJson);
    check(r#"{"req_identifier":1003}"#, Reason::InvalidParam);
    check(r#"{"req_identifier":1003,"data":"%%%"}"#, Reason::BadJson);
    check(r#"{"req_identifier":1003,"data":"eyJ4"}"#, Reason::BadJson);
    check(r#"{"req_identifier":99999999999999999999,"data":{}}"#, Reason::BadJson);
    check(&frame(4242, &json!({}), true), Reason::NotImplemented);
    check(&frame(2001, &json!({}), true), Reason::NotImplemented);
    for (change, expect) in [
        (json!({ "client_msg_id": "" }), Reason::MissingMsgId),
        (json!({ "client_msg_id": 5 }), Reason::InvalidParam),
        (json!({ "recv_id": "" }), Reason::MissingTo),
        (json!({ "recv_id": "a_b" }), Reason::UserNotFound),
        (json!({ "session_type": 2 }), Reason::MissingGroupId),
        (json!({ "session_type": 3 }), Reason::InvalidParam),
        (json!({ "session_type": "1" }), Reason::InvalidParam),
        (json!({ "msg_type": 6 }), Reason::UnknownMsgType),
        (json!({ "content": { "image": "x" } }), Reason::InvalidParam),
        (json!({ "content": {} }), Reason::MissingBody),
        (json!({ "content": "x" }), Reason::InvalidParam),
        (json!({ "extra": "x" }), Reason::InvalidParam),
        (json!({ "extra": { "a": 1 } }), Reason::InvalidParam),
        (json!({ "mentions": ["a b"] }), Reason::MentionNotMember),
        (json!({ "reply_to_server_msg_id": "x" }), Reason::MessageNotFound),
    ] {
        check(&frame(1003, &send(&change), false), expect);
    }
    for (number, data) in [
        (1001, json!({ "conversation_ids": vec!["si_a_b"; 1001] })),
        (1001, json!({ "conversation_ids": "si_a_b" })),
        (1002, json!({ "conversation_id": "si_a_b", "seq_list": [-1] })),
        (1005, json!({ "conversation_id": "si_a_b", "limit": -1 })),
        (1005, json!({ "conversation_id": "si_a_b", "begin_seq": 1e300 })),
    ] {
        check(&frame(number, &data, true), Reason::InvalidParam);
    }
    check(
        &frame(1006, &json!({ "conversation_id": "si_b_a" }), true),
        Reason::ConversationNotFound,
    );
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    check(&deep, Reason::BadJson);
}

#[test]
fn a_refusal_names_the_field_that_is_wrong() {
    let check = |change: &Value, field: &str| {
        let refused = decode(Packet::Text(&frame(1003, &send(change), true))).unwrap_err();
        let Frame::Text(answer) = refusal(refused.reason, &refused.echo, true) else {
            panic!("a text frame")
        };
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["data"]["reason"], "invalid_param");
        let message = answer["err_msg"].as_str().unwrap();
        assert!(message.contains(&format!("`{field}`")), "{message}");
        assert!(message.len() < 300, "{message}");
    };
    check(&json!({ "extra": { "a": 1 } }), "extra.a");
    check(&json!({ "content": { "text": "hi", "bar": "x" } }), "content.bar");
    check(&json!({ "content": { "text": { "deep": "x".repeat(999) } } }), "content.text");
    check(&json!({ "session_type": 7 }), "session_type");
}

#[test]
fn limits_are_cut_and_zero_is_the_default() {
    for (limit, expect) in [(0, 100), (7, 7), (100, 100), (101, 100), (u64::MAX, 100)] {
        let data = json!({ "conversation_id": "si_a_b", "limit": limit });
        let decoded = decode(Packet::Text(&frame(1005, &data, true))).unwrap();
        let Inbound::Command(Command::Query(Query::Pull(.., found))) = decoded.inbound else {
            panic!("{:?}", decoded.inbound)
        };
        assert_eq!(found, expect, "{limit}");
    }
}

#[test]
fn a_frame_may_say_who_it_is_from() {
    let said = |more: Value| {
        let data = json!({ "conversation_id": "si_a_b" });
        let mut frame = json!({ "req_identifier": 1006, "data": data });
        for (name, value) in more.as_object().unwrap() {
            frame[name] = value.clone();
        }
        decode(Packet::Text(&frame.to_string())).unwrap().claimed.map(|claimed| *claimed)
    };
    let claimed = |user: Option<&str>, token: Option<&str>| {
        Some(ClaimedSender { user: user.map(str::to_owned), token: token.map(str::to_owned) })
    };
    assert_eq!(said(json!({})), None);
    assert_eq!(said(json!({ "send_id": "", "token": null })), None);
    assert_eq!(said(json!({ "send_id": "a" })), claimed(Some("a"), None));
    assert_eq!(said(json!({ "send_id": "a", "token": "t" })), claimed(Some("a"), Some("t")));
}

#[test]
fn the_call_is_repeated_even_if_it_is_refused() {
    let refused = decode(Packet::Binary(frame(4242, &json!({}), true).as_bytes())).unwrap_err();
    let Call::Numbered { req_identifier, msg_incr, operation_id } = refused.echo.call else {
        panic!()
    };
    assert_eq!((req_identifier, &*msg_incr, &*operation_id), (4242, "7", "op"));
    assert!(decode(Packet::Binary(&[0xff, 0xfe])).is_err());
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for dialect in [
            Dialect::Typed,
            Dialect::Numbered { nested: true },
            Dialect::Dotted { binary: false },
            Dialect::Dotted { binary: true },
        ] {
            let _outcome = dialect.decode(Packet::Binary(&bytes)).is_ok();
            if let Ok(text) = std::str::from_utf8(&bytes) {
                let _outcome = dialect.decode(Packet::Text(text)).is_ok();
                let _dialect = Dialect::of(Packet::Text(text));
            }
        }
    }

    #[test]
    fn truncated_and_changed_frames_are_refused_or_read(cut in 0..200_usize, flip in 0..200_usize) {
        let whole = frame(1003, &send(&json!({})), false);
        let mut bytes = whole.into_bytes();
        bytes.truncate(bytes.len().saturating_sub(cut));
        if let Some(byte) = bytes.get_mut(flip) {
            *byte ^= 1;
        }
        let _outcome = decode(Packet::Binary(&bytes)).is_ok();
    }
}
