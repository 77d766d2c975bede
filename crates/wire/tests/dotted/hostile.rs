//! Any input decodes to a command or a refusal.

use std::fmt::Write;

use nexo_chat::Reason;
use nexo_wire::dialect::{Call, DecodeError, Packet};
use nexo_wire::dotted::{decode, is_dotted};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::proto::{Field, messages};
use crate::{binary, text};

/// Every command and what it brings.
const COMMANDS: [(&str, &str); 28] = [
    ("auth.register", "RegisterRequest"),
    ("auth.login", "LoginRequest"),
    ("auth.validate_token", "ValidateTokenRequest"),
    ("auth.logout", "Empty"),
    ("heartbeat", "HeartbeatRequest"),
    ("chat.send_message", "SendRequest"),
    ("chat.recall_message", "RecallRequest"),
    ("chat.mark_read", "MarkReadRequest"),
    ("chat.pull_offline", "PullOfflineRequest"),
    ("chat.get_history", "HistoryRequest"),
    ("chat.sync_conversations", "Empty"),
    ("chat.delete_conversation", "ChatRequest"),
    ("chat.hide_conversation", "ChatRequest"),
    ("chat.typing", "ChatRequest"),
    ("friend.block", "BlockRequest"),
    ("friend.unblock", "BlockRequest"),
    ("group.create", "CreateGroupRequest"),
    ("group.dismiss", "GroupRequest"),
    ("group.invite_members", "InviteRequest"),
    ("group.remove_member", "RemoveMemberRequest"),
    ("group.leave", "GroupRequest"),
    ("group.get_info", "GroupRequest"),
    ("group.get_members", "MembersRequest"),
    ("group.get_user_groups", "Empty"),
    ("group.update", "UpdateGroupRequest"),
    ("group.transfer_owner", "TransferOwnerRequest"),
    ("group.set_member_role", "SetMemberRoleRequest"),
    ("chat.dance", "Empty"),
];

fn fields(cmd: &str) -> Vec<Field> {
    let (_, name) = COMMANDS.iter().find(|(known, _)| *known == cmd).expect("it is known");
    messages()[*name].clone()
}

fn reason(packet: Packet<'_>, binary: bool) -> Result<(), Reason> {
    decode(packet, binary).map(|_| ()).map_err(|refused| refused.reason)
}

/// Reads it in every way there is.
fn survives(bytes: &[u8]) {
    for binary in [true, false] {
        drop(decode(Packet::Binary(bytes), binary));
        let text = String::from_utf8_lossy(bytes);
        drop(decode(Packet::Text(&text), binary));
        let _ = is_dotted(&text);
    }
}

#[test]
fn a_field_of_a_wrong_type_refuses_only_its_request() {
    let wrong = [
        "[]",
        "{}",
        "true",
        "1.5",
        "-0.0",
        "1e400",
        "18446744073709551616",
        "\"x\"",
        "[1]",
        "[[\"x\"]]",
        "[null]",
        "9223372036854775807",
    ];
    for (cmd, _) in COMMANDS {
        for Field { name, kind, .. } in fields(cmd) {
            for value in wrong {
                let frame = format!(
                    r#"{{"cmd":"{cmd}","request_id":"r1","payload":{{"{name}":{value}}}}}"#
                );
                let is_right = match kind.as_str() {
                    "string" => value == "\"x\"" || value == "[]" && is_list(&name),
                    "int64" => value == "9223372036854775807",
                    "map" => value == "{}",
                    _ => false,
                };
                let is_number = name == "device_type" && value == "9223372036854775807";
                let refused = match decode(Packet::Text(&frame), false) {
                    Err(DecodeError { reason, echo }) => {
                        let call = Call::Dotted { cmd: cmd.into(), request_id: "r1".into() };
                        assert_eq!(echo.call, call);
                        Some(reason)
                    }
                    Ok(_) => None,
                };
                if !is_right && !is_number {
                    assert_eq!(refused, Some(Reason::InvalidParam), "{frame}");
                }
            }
            let absent = text(cmd, &json!({}));
            let null = text(cmd, &json!({ name: null }));
            assert_eq!(decode(Packet::Text(&null), false), decode(Packet::Text(&absent), false));
        }
    }
}

fn is_list(name: &str) -> bool {
    ["mentions", "member_ids"].contains(&name)
}

/// A payload with something in every field, as protobuf.
fn encoded(cmd: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for Field { number, kind, .. } in fields(cmd) {
        let number = u8::try_from(number).expect("a low number");
        let wire = if kind == "string" { 2 } else { 0 };
        if number > 15 {
            bytes.extend([(number & 0x0f) << 3 | 0x80 | wire, number >> 4]);
        } else {
            bytes.push(number << 3 | wire);
        }
        bytes.extend(if wire == 2 { &b"\x03bob"[..] } else { &[1] });
    }
    bytes
}

#[test]
fn truncated_frames_are_refused_or_mean_less() {
    for (cmd, _) in COMMANDS {
        let payload = encoded(cmd);
        let whole = binary(cmd, payload.clone());
        let good = reason(Packet::Binary(&whole), true);
        assert!(!matches!(good, Err(Reason::BadJson)), "{cmd}");
        for end in 0..=whole.len() {
            survives(&whole[..end]);
        }
        for end in 0..=payload.len() {
            survives(&binary(cmd, payload[..end].to_vec()));
        }
        let frame = text(cmd, &json!({ "to_id": "bob", "chat_type": 1 }));
        for end in 0..frame.len() {
            assert_eq!(reason(Packet::Text(&frame[..end]), false), Err(Reason::BadJson));
            survives(&frame.as_bytes()[..end]);
        }
    }
}

#[test]
fn a_wrong_payload_in_a_good_envelope_refuses_only_its_request() {
    for bytes in [&[0x08][..], &[0x0a, 0xff], &[0xff; 20], &[0x0a, 2, 0xc3, 0x28], &[0x0d, 1]] {
        let frame = binary("auth.login", bytes.to_vec());
        let refused = decode(Packet::Binary(&frame), true).unwrap_err();
        let call = Call::Dotted { cmd: "auth.login".into(), request_id: "r1".into() };
        assert_eq!((refused.reason, refused.echo.call), (Reason::InvalidParam, call));
    }
}

#[test]
fn deep_nesting_does_not_end_the_server() {
    const DEPTH: usize = 50_000;
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let deep = format!("{}1{}", open.repeat(DEPTH), close.repeat(DEPTH));
        survives(deep.as_bytes());
        for place in ["payload", "other", "cmd", "request_id"] {
            survives(format!(r#"{{"{place}":{deep}}}"#).as_bytes());
            survives(format!(r#"{{"cmd":"heartbeat","{place}":{deep}}}"#).as_bytes());
        }
        let inside = format!(r#"{{"cmd":"heartbeat","payload":{{"x":{deep}}}}}"#);
        assert_eq!(reason(Packet::Text(&inside), false), Err(Reason::InvalidParam));
        survives(&open.repeat(DEPTH).into_bytes());
    }
    for group in [0x0b, 0x23, 0x7b] {
        let deep = vec![group; DEPTH];
        survives(&deep);
        assert_eq!(reason(Packet::Binary(&deep), true), Err(Reason::BadJson));
        let frame = binary("heartbeat", deep);
        assert_eq!(reason(Packet::Binary(&frame), true), Err(Reason::InvalidParam));
    }
}

#[test]
fn huge_numbers_and_lists_are_only_refused() {
    for number in ["1e999", "-1e999", "99999999999999999999", "-9223372036854775809", "0.1e-999"] {
        let payload = format!(r#"{{"client_time":{number}}}"#);
        let frame = format!(r#"{{"cmd":"heartbeat","payload":{payload}}}"#);
        assert_eq!(reason(Packet::Text(&frame), false), Err(Reason::InvalidParam), "{number}");
        survives(format!(r#"{{"cmd":"heartbeat","request_id":{number}}}"#).as_bytes());
    }
    let mut many = String::from(r#"{"cmd":"chat.send_message","payload":{"client_msg_id":"c","#);
    let names = vec!["\"b\""; 100_000].join(",");
    write!(many, r#""to_id":"bob","chat_type":1,"content":"x","mentions":[{names}]}}}}"#).unwrap();
    assert_eq!(reason(Packet::Text(&many), false), Err(Reason::TooManyMentions));
    let length = [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert_eq!(reason(Packet::Binary(&length), true), Err(Reason::BadJson));
}

#[test]
fn the_page_names_every_command() {
    let page = include_str!("../../../../docs/protocol/dotted.md");
    for (cmd, _) in COMMANDS.iter().filter(|(cmd, _)| *cmd != "chat.dance") {
        assert!(page.contains(&format!("`{cmd}`")), "docs/protocol/dotted.md does not name {cmd}");
        let refused = reason(Packet::Text(&text(cmd, &json!({}))), false);
        assert_ne!(refused, Err(Reason::NotImplemented), "{cmd}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!("cmd")),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let key = prop_oneof![Just("cmd".to_owned()), Just("payload".to_owned()), ".{0,4}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A command with some of its fields, each of them anything.
fn any_request() -> impl Strategy<Value = (String, Value)> {
    prop::sample::select(COMMANDS.to_vec()).prop_flat_map(|(cmd, _)| {
        let names: Vec<String> = fields(cmd).into_iter().map(|field| field.name).collect();
        let value =
            prop_oneof![any_json(), ".{0,8}".prop_map(Value::from), (0..4).prop_map(Value::from)];
        let values = prop::collection::vec(value, names.len());
        let payload =
            values.prop_map(move |values| names.clone().into_iter().zip(values).collect());
        (Just(cmd.to_owned()), payload)
    })
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&bytes);
    }

    #[test]
    fn any_payload(
        cmd in prop::sample::select(COMMANDS.to_vec()),
        bytes in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        survives(&binary(cmd.0, bytes));
    }

    #[test]
    fn bytes_changed_on_the_way(
        cmd in prop::sample::select(COMMANDS.to_vec()),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut frame = binary(cmd.0, encoded(cmd.0));
        let at = at.index(frame.len());
        frame[at] = byte;
        survives(&frame);
    }

    #[test]
    fn any_json_frame(value in any_json()) {
        let text = value.to_string();
        survives(text.as_bytes());
        let expect = value.as_object().and_then(|it| it.get("cmd")).is_some_and(Value::is_string);
        prop_assert_eq!(is_dotted(&text), expect);
    }

    #[test]
    fn any_known_command((cmd, payload) in any_request()) {
        let frame = text(&cmd, &payload);
        survives(frame.as_bytes());
        let call = Call::Dotted { cmd, request_id: "r1".to_owned() };
        let echo = match decode(Packet::Text(&frame), false) {
            Ok(decoded) => decoded.echo,
            Err(refused) => refused.echo,
        };
        prop_assert_eq!(echo.call, call);
    }
}
