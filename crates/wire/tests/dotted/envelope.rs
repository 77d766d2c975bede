//! The envelope: how it selects dialect and form, and what a refusal echoes.

use nexo_chat::Reason;
use nexo_wire::dialect::{Call, DecodeError, Dialect, Echo, Packet};
use nexo_wire::dotted::payload::{ClientMessage, SendRequest};
use nexo_wire::dotted::{decode, is_dotted};
use prost::Message as _;
use serde_json::json;

use crate::{binary, text};

#[test]
fn what_document_004_sends_beside_is_skipped() {
    let sent = SendRequest {
        to_id: "bob".into(),
        chat_type: 1,
        content: "hi".into(),
        client_msg_id: "c-1".into(),
        ..SendRequest::default()
    };
    let mut bytes = vec![0x0a, 7]; // field 1, from_user_id
    bytes.extend(b"mallory");
    bytes.extend(sent.encode_to_vec());
    bytes.extend([0xf8, 0x07, 0x01]); // field 127, from the future
    let read = decode(Packet::Binary(&binary("chat.send_message", bytes)), true);
    let plain = decode(Packet::Binary(&binary("chat.send_message", sent.encode_to_vec())), true);
    assert!(plain.is_ok());
    assert_eq!(read, plain);
}

#[test]
fn a_first_frame_tells_the_dialect() {
    for yes in [
        r#"{"cmd":"auth.login"}"#,
        " \n{ \"payload\" : {\"type\":1}, \"cmd\" : \"\" }",
        r#"{"type":"AUTH","cmd":"heartbeat"}"#,
        r#"{"\u0063md":"heartbeat"}"#,
    ] {
        assert!(is_dotted(yes), "{yes}");
        assert_eq!(Dialect::of(Packet::Text(yes)), Dialect::Dotted { binary: false });
    }
    for no in [
        "",
        "{",
        "cmd",
        r#""cmd""#,
        r#"["auth.login"]"#,
        r#"{"cmd":5}"#,
        r#"{"cmd":null}"#,
        r#"{"cmd":{"cmd":"x"}}"#,
        r#"{"payload":{"cmd":"x"}}"#,
        r#"{"body":"{\"cmd\":\"x\"}"}"#,
        r#"{"CMD":"x"}"#,
        r#"{"cmd":"x"} {}"#,
        r#"{"type":"AUTH","token":"t"}"#,
    ] {
        assert!(!is_dotted(no), "{no}");
        assert_eq!(Dialect::of(Packet::Text(no)), Dialect::Typed);
    }
    assert_eq!(Dialect::of(Packet::Binary(b"{")), Dialect::Dotted { binary: true });
}

#[test]
fn the_envelope_may_be_wrong() {
    let nothing = Echo::default();
    let check = |text: &str, reason: Reason, cmd: &str, request_id: &str| {
        let call = Call::Dotted { cmd: cmd.into(), request_id: request_id.into() };
        let echo = Echo { call, ..Echo::default() };
        assert_eq!(decode(Packet::Text(text), false), Err(DecodeError { reason, echo }), "{text}");
    };
    check(r#"{"request_id":"r"}"#, Reason::MissingType, "", "r");
    check(r#"{"cmd":"","request_id":5}"#, Reason::MissingType, "", "5");
    check(r#"{"cmd":"chat.dance","request_id":null}"#, Reason::NotImplemented, "chat.dance", "");
    check(r#"{"cmd":"friend.add","request_id":"r"}"#, Reason::NotImplemented, "friend.add", "r");
    let long = "x".repeat(200);
    let text = json!({ "cmd": long, "request_id": "é".repeat(200) }).to_string();
    check(&text, Reason::NotImplemented, &long[..128], &"é".repeat(128));
    for payload in ["[]", "5", "\"x\"", "true", r#"["alice","p"]"#] {
        let text = format!(r#"{{"cmd":"auth.login","request_id":"r","payload":{payload}}}"#);
        check(&text, Reason::InvalidParam, "auth.login", "r");
    }
    for bad in ["", "{", "[]", "5", r#"["heartbeat"]"#, r#"{"cmd":[]}"#, r#"{"cmd":"heartbeat"}x"#]
    {
        let refused = DecodeError { reason: Reason::BadJson, echo: nothing.clone() };
        assert_eq!(decode(Packet::Text(bad), false), Err(refused), "{bad}");
    }
    let empty = decode(Packet::Binary(&[]), true);
    assert_eq!(empty.map_err(|refused| refused.reason), Err(Reason::MissingType));
    let missing = ClientMessage { request_id: "r".into(), ..ClientMessage::default() };
    let refused = decode(Packet::Binary(&missing.encode_to_vec()), true).unwrap_err();
    let call = Call::Dotted { cmd: String::new(), request_id: "r".into() };
    assert_eq!((refused.reason, refused.echo.call), (Reason::MissingType, call));
}

#[test]
fn a_connection_keeps_its_form() {
    let (text, bytes) = (text("heartbeat", &json!({})), binary("heartbeat", Vec::new()));
    for (packet, binary) in [
        (Packet::Text(&text), true),
        (Packet::Binary(&bytes), false),
        (Packet::Binary(text.as_bytes()), false),
    ] {
        let refused = DecodeError { reason: Reason::BadJson, echo: Echo::default() };
        assert_eq!(decode(packet, binary), Err(refused));
    }
    for form in [r#"{"cmd":"heartbeat"}"#, r#"{"cmd":"heartbeat","payload":null}"#] {
        assert!(decode(Packet::Text(form), false).is_ok(), "{form}");
    }
}

#[test]
fn a_refusal_can_name_what_it_speaks_of() {
    let sent = text("chat.send_message", &json!({ "client_msg_id": "c-1", "chat_type": 9 }));
    let refused = decode(Packet::Text(&sent), false).unwrap_err();
    assert_eq!(refused.echo.client_msg_id.as_deref(), Some("c-1"));
    let recall = text("chat.recall_message", &json!({ "msg_id": "nonsense" }));
    let refused = decode(Packet::Text(&recall), false).unwrap_err();
    assert_eq!(refused.echo.server_msg_id.as_deref(), Some("nonsense"));
}
