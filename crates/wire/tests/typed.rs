//! The typed dialect under arbitrary input: it may refuse, never panic, and changes no content.

use nexo_chat::Reason;
use nexo_chat::command::{Command, NewMessage, Saved, Target};
use nexo_chat::ids::{ClientMsgId, GroupId, MessageId, Millis, Seq, UserId};
use nexo_chat::model::{Content, ContentKind, Message};
use nexo_wire::dialect::Inbound;
use nexo_wire::typed;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Frames that are almost right: known types and fields with any values.
fn almost_a_frame() -> impl Strategy<Value = Value> {
    let kind = prop_oneof![
        Just("AUTH"),
        Just("REAUTH"),
        Just("PING"),
        Just("PONG"),
        Just("SINGLE_CHAT"),
        Just("ACK"),
        Just("RESEND"),
        Just("MESSAGE_REVOKE"),
        Just("GROUP_CHAT"),
        Just("TYPING"),
        Just(""),
    ];
    let field = prop_oneof![
        Just("token"),
        Just("clientMsgId"),
        Just("serverMsgId"),
        Just("msgSeq"),
        Just("to"),
        Just("groupId"),
        Just("mentions"),
        Just("replyToServerMsgId"),
        Just("ackType"),
        Just("msgType"),
        Just("body"),
        Just("extra"),
        Just("cursors"),
        Just("from"),
    ];
    (kind, prop::collection::btree_map(field, any_json(), 0..8)).prop_map(|(kind, fields)| {
        let mut frame = json!({ "type": kind });
        for (name, value) in fields {
            frame[name] = value;
        }
        frame
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_is_read_or_refused(text in ".*") {
        let read = typed::decode(&text);
        // Only an object that names its type is read.
        prop_assert!(read.is_err() || text.contains("type"));
    }

    #[test]
    fn any_frame_is_read_or_refused(frame in almost_a_frame()) {
        let text = frame.to_string();
        if let Err(refused) = typed::decode(&text) {
            // The refusal can be said, and echoes only what was given.
            let said = typed::refusal(refused.reason, &refused.echo, Millis(1));
            let said: Value = serde_json::from_str(&said).unwrap();
            prop_assert_eq!(&said["type"], "ERROR");
            prop_assert!(said["clientMsgId"].as_str().is_none_or(|id| id.chars().count() <= 128));
        }
    }

    #[test]
    fn a_cut_frame_is_refused(at in 0_usize..60) {
        let whole = r#"{"type":"SINGLE_CHAT","clientMsgId":"c","to":"b","body":"x"}"#;
        prop_assume!(at < whole.len());
        prop_assert!(typed::decode(&whole[..at]).is_err());
    }

    #[test]
    fn any_mentions_are_people_or_refused(names in prop::collection::vec(".{0,20}", 0..5)) {
        let frame = json!({
            "type": "GROUP_CHAT", "clientMsgId": "c", "groupId": "g", "body": "x", "mentions": names,
        });
        let are_people = names.iter().all(|name| name == "@all" || UserId::parse(name).is_ok());
        match typed::decode(&frame.to_string()) {
            Ok(_) => prop_assert!(are_people),
            Err(refused) => {
                prop_assert!(!are_people);
                prop_assert_eq!(refused.reason, Reason::MentionNotMember);
            }
        }
    }

    #[test]
    fn text_and_ids_survive_both_ways(body in "\\PC{1,200}", client_id in "[ -~]{1,64}", seq: u64) {
        let frame = json!({ "type": "SINGLE_CHAT", "clientMsgId": client_id, "to": "bob", "body": body });
        let decoded = typed::decode(&frame.to_string()).unwrap();
        prop_assert_eq!(decoded.echo.client_msg_id.as_deref(), Some(client_id.as_str()));
        let Inbound::Command(Command::Send(outgoing)) = decoded.inbound else { panic!() };
        prop_assert_eq!(&outgoing.content.body[..], body.as_bytes());

        let alice = UserId::parse("alice").unwrap();
        let message = Arc::new(Message {
            id: MessageId::of(&alice, &outgoing.client_id),
            conversation: outgoing.to.conversation(&alice),
            seq: Seq(seq),
            sender: alice,
            client_id: outgoing.client_id,
            sent_at: Millis(5),
            content: outgoing.content,
            recalled: None,
        });
        let push: Value = serde_json::from_str(&typed::message(&message, false)).unwrap();
        prop_assert_eq!(&push["body"], &Value::from(body));
        prop_assert_eq!(&push["clientMsgId"], &Value::from(client_id));
        prop_assert_eq!(&push["msgSeq"], &Value::from(seq.to_string()));
        let ack: Value =
            serde_json::from_str(&typed::saved(&Saved { message, duplicate: false, cleaned: false })).unwrap();
        prop_assert_eq!(&ack["serverMsgId"], &push["serverMsgId"]);
    }
}

fn sent(frame: &Value) -> NewMessage {
    match typed::decode(&frame.to_string()).expect("a good frame").inbound {
        Inbound::Command(Command::Send(outgoing)) => outgoing,
        other => panic!("{other:?}"),
    }
}

fn user(id: &str) -> UserId {
    UserId::parse(id).expect("a user id")
}

fn refused(frame: &Value) -> Reason {
    typed::decode(&frame.to_string()).expect_err("a bad frame").reason
}

/// A good frame with some fields replaced; `null` takes one away.
fn with(frame: &Value, fields: &Value) -> Value {
    let mut frame = frame.clone();
    for (name, value) in fields.as_object().expect("an object") {
        frame[name] = value.clone();
    }
    frame
}

#[test]
fn ids_may_be_numbers_and_types_names_or_numbers() {
    let mut frame = json!({ "type": "SINGLE_CHAT", "clientMsgId": 17, "to": 42, "body": "x" });
    assert_eq!(sent(&frame).client_id, ClientMsgId::parse("17").unwrap());
    assert_eq!(sent(&frame).to, Target::User(user("42")));
    for (kind, expect) in [
        (json!("TEXT"), ContentKind::TEXT),
        (json!("image"), ContentKind::IMAGE),
        (json!(100), ContentKind::CUSTOM),
        (json!("5"), ContentKind::FILE),
    ] {
        frame["msgType"] = kind;
        assert_eq!(sent(&frame).content.kind, expect);
    }
    let plain = Content::text("x");
    frame.as_object_mut().unwrap().remove("msgType");
    assert_eq!(sent(&frame).content, plain);
}

#[test]
fn a_message_to_a_group_names_it() {
    let frame = json!({ "type": "GROUP_CHAT", "clientMsgId": "c", "groupId": "g1", "body": "x" });
    let outgoing = sent(&frame);
    assert_eq!(outgoing.to, Target::Group(GroupId::parse("g1").unwrap()));
    assert!(outgoing.marks_read);
    assert_eq!(outgoing.content, Content::text("x"));
    for (fields, expect) in [
        (json!({ "groupId": null }), Reason::MissingGroupId),
        (json!({ "groupId": "" }), Reason::MissingGroupId),
        (json!({ "groupId": null, "to": "bob" }), Reason::MissingGroupId),
        (json!({ "groupId": "a b" }), Reason::GroupNotFound),
        (json!({ "clientMsgId": null, "groupId": null }), Reason::MissingMsgId),
        (json!({ "body": null }), Reason::MissingBody),
        (json!({ "mentions": "bob" }), Reason::InvalidParam),
    ] {
        assert_eq!(refused(&with(&frame, &fields)), expect, "{fields}");
    }
}

#[test]
fn a_message_may_mention_and_answer() {
    let id = MessageId([7; 16]);
    let single = json!({ "type": "SINGLE_CHAT", "clientMsgId": "c", "to": "bob", "body": "x" });
    let group = json!({ "type": "GROUP_CHAT", "clientMsgId": "c", "groupId": "g", "body": "x" });
    for frame in [single, group] {
        let spoken =
            json!({ "mentions": ["bob", 42, "@all"], "replyToServerMsgId": id.to_string() });
        let outgoing = sent(&with(&frame, &spoken));
        assert_eq!(outgoing.content.mentions, [user("bob"), user("42")]);
        assert!(outgoing.content.mentions_all);
        assert_eq!(outgoing.reply_to, Some(id));
        assert_eq!(outgoing.content.reply_to, None, "who had said it is not the sender's to say");
        for (fields, expect) in [
            (json!({ "mentions": ["not a user"] }), Reason::MentionNotMember),
            (json!({ "mentions": vec!["bob"; 1001] }), Reason::TooManyMentions),
            (json!({ "replyToServerMsgId": "nonsense" }), Reason::MessageNotFound),
        ] {
            assert_eq!(refused(&with(&frame, &fields)), expect);
        }
        let nothing = json!({ "mentions": null, "replyToServerMsgId": "" });
        assert_eq!(sent(&with(&frame, &nothing)).content, Content::text("x"));
    }
}

#[test]
fn typing_is_to_one_person_or_one_group() {
    let target = |fields: Value| match typed::decode(&fields.to_string()).map(|it| it.inbound) {
        Ok(Inbound::Command(Command::Typing { to })) => Ok(to),
        Ok(other) => panic!("{other:?}"),
        Err(refused) => Err(refused.reason),
    };
    let group = Target::Group(GroupId::parse("g").unwrap());
    assert_eq!(target(json!({ "type": "TYPING", "to": "bob" })), Ok(Target::User(user("bob"))));
    assert_eq!(target(json!({ "type": "TYPING", "groupId": "g" })), Ok(group));
    let both = json!({ "type": "TYPING", "groupId": "g", "to": "bob" });
    assert_eq!(target(both), Err(Reason::InvalidParam));
    assert_eq!(target(json!({ "type": "TYPING" })), Err(Reason::MissingTo));
}

#[test]
fn an_acknowledgement_may_name_the_group() {
    let id = MessageId([7; 16]).to_string();
    let frame = json!({ "type": "ACK", "ackType": "read", "serverMsgId": id, "groupId": "g" });
    for (fields, expect) in [(json!({}), None), (json!({ "to": "bob" }), Some(user("bob")))] {
        match typed::decode(&with(&frame, &fields).to_string()).expect("a good frame").inbound {
            Inbound::Command(Command::Acknowledge(ack)) => assert_eq!(ack.from, expect),
            other => panic!("{other:?}"),
        }
    }
}
