//! Compares the .proto file with the structs: every field of the file is filled, encoded and found under its number,
//! and the structs have no others.

use std::collections::BTreeMap;

use nexo_wire::dotted::payload::{self, ClientMessage, ServerMessage};
use prost::Message as _;
use serde_json::{Map, Value, json};

use crate::Payload;

const PROTO: &str = include_str!("../../proto/dotted.proto");
const SOURCES: [&str; 5] = [
    include_str!("../../src/dotted/payload/mod.rs"),
    include_str!("../../src/dotted/payload/auth.rs"),
    include_str!("../../src/dotted/payload/chat.rs"),
    include_str!("../../src/dotted/payload/friend.rs"),
    include_str!("../../src/dotted/payload/group.rs"),
];

/// A map of strings, as one word. On the wire it is a message with a key and a value, repeated.
const MAP: &str = "map";

/// A field of a message.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) number: u64,
    pub(crate) kind: String,
    is_repeated: bool,
    is_optional: bool,
}

/// The messages of the file with their fields.
pub(crate) fn messages() -> BTreeMap<String, Vec<Field>> {
    let mut messages = BTreeMap::<String, Vec<Field>>::new();
    let mut open: Option<String> = None;
    for line in PROTO.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        if let Some(rest) = line.strip_prefix("message ") {
            let (name, rest) = rest.split_once(" {").expect("a message opens on its line");
            assert!(messages.insert(name.to_owned(), Vec::new()).is_none(), "{name} twice");
            open = (rest != "}").then(|| name.to_owned());
        } else if line == "}" {
            assert!(open.take().is_some(), "nothing is open");
        } else if let Some(name) = open.as_ref().filter(|_| !line.is_empty()) {
            let fields = messages.get_mut(name).expect("it is open");
            fields.extend(field(line));
        }
    }
    messages
}

fn field(line: &str) -> Option<Field> {
    let line = line.strip_suffix(';').expect("a field is a line");
    if line.starts_with("reserved ") {
        return None;
    }
    let line = line.replace("map<string, string>", MAP);
    let (declared, number) = line.split_once(" = ").expect("a number");
    let words: Vec<&str> = declared.split_whitespace().collect();
    let (label, kind, name) = match words[..] {
        [kind, name] => ("", kind, name),
        [label, kind, name] => (label, kind, name),
        _ => panic!("{line}"),
    };
    assert!(["", "repeated", "optional"].contains(&label), "{line}");
    Some(Field {
        name: name.to_owned(),
        number: number.parse().expect("a number"),
        kind: kind.to_owned(),
        is_repeated: label == "repeated",
        is_optional: label == "optional",
    })
}

/// A value that tells its field, and whose type tells the field's.
fn sample(field: &Field) -> Value {
    let value = match field.kind.as_str() {
        "string" => json!(format!("s{}", field.number)),
        "int32" => json!(1000 + field.number),
        "int64" => json!((1 << 40) + field.number),
        "bool" => json!(true),
        MAP => json!({ "s1": "s2" }),
        message => filled(&messages()[message]),
    };
    if field.is_repeated { json!([value]) } else { value }
}

fn filled(fields: &[Field]) -> Value {
    Value::Object(fields.iter().map(|field| (field.name.clone(), sample(field))).collect())
}

/// A varint, and what follows it.
fn varint(bytes: &[u8]) -> (u64, &[u8]) {
    let end = bytes.iter().position(|byte| byte & 0x80 == 0).expect("an end");
    let value =
        bytes[..=end].iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f));
    (value, &bytes[end + 1..])
}

/// Checks that exactly these fields are encoded, each by its number, with its sample in it.
fn verify(name: &str, fields: &[Field], mut bytes: &[u8]) {
    let mut expect: BTreeMap<u64, &Field> = fields.iter().map(|it| (it.number, it)).collect();
    assert_eq!(expect.len(), fields.len(), "{name} has a number twice");
    while !bytes.is_empty() {
        let (key, rest) = varint(bytes);
        let (value, rest) = varint(rest);
        let field = expect.remove(&(key >> 3));
        let field = field.unwrap_or_else(|| panic!("{name} has no {}", key >> 3));
        let wire = if field.kind.starts_with("int") || field.kind == "bool" { 0 } else { 2 };
        assert_eq!(key & 7, wire, "{name}.{}", field.name);
        let length = if wire == 2 { usize::try_from(value).expect("a length") } else { 0 };
        let inside = &rest[..length];
        match field.kind.as_str() {
            "string" | "bytes" => assert_eq!(inside, format!("s{}", field.number).as_bytes()),
            "int32" => assert_eq!(value, 1000 + field.number, "{name}.{}", field.name),
            "int64" => assert_eq!(value, (1 << 40) + field.number, "{name}.{}", field.name),
            "bool" => assert_eq!(value, 1, "{name}.{}", field.name),
            MAP => assert_eq!(inside, b"\x0a\x02s1\x12\x02s2", "{name}.{}", field.name),
            message => verify(message, &messages()[message], inside),
        }
        bytes = &rest[length..];
    }
    assert!(expect.is_empty(), "{name} did not encode {expect:?}");
}

/// Compares a message with a struct.
fn check<T: Payload>(name: &str) {
    let fields = messages()[name].clone();
    let full = filled(&fields);
    let read: T = serde_json::from_value(full.clone()).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(serde_json::to_value(&read).expect("JSON"), full, "{name} has other fields");
    verify(name, &fields, &read.encode_to_vec());
    for field in fields {
        let only = |value: Value| {
            let object = Map::from_iter([(field.name.clone(), value)]);
            serde_json::from_value::<T>(Value::Object(object))
        };
        if field.kind == "int32" {
            assert!(only(json!(1_i64 << 40)).is_err(), "{name}.{} is wider", field.name);
        }
        let zero = match field.kind.as_str() {
            "string" => json!(""),
            "bool" => json!(false),
            "int32" | "int64" => json!(0),
            MAP => json!({}),
            _ => continue,
        };
        let zero = if field.is_repeated { json!([]) } else { zero };
        let is_told = !only(zero).expect("its type").encode_to_vec().is_empty();
        assert_eq!(is_told, field.is_optional, "{name}.{} is optional", field.name);
    }
}

#[test]
fn every_message_is_what_its_struct_encodes() {
    let mut checked = vec!["ClientMessage", "ServerMessage"];
    macro_rules! check {
        ($($name:ident)*) => {$(
            check::<payload::$name>(stringify!($name));
            checked.push(stringify!($name));
        )*};
    }
    check!(Empty Refusal RegisterRequest RegisterResponse LoginRequest LoginResponse);
    check!(ValidateTokenRequest ValidateTokenResponse HeartbeatRequest HeartbeatResponse);
    check!(KickedPush UserUpdatedPush SendRequest SendResponse MessagePush RecallRequest MarkReadRequest);
    check!(PullOfflineRequest PullOfflineResponse HistoryRequest HistoryResponse DamagedSeqs);
    check!(SyncConversationsResponse Conversation ChatRequest NotifyPush RecallPush);
    check!(BlockRequest BlockListResponse);
    check!(ReadReceiptPush TypingPush CreateGroupRequest CreateGroupResponse GroupRequest);
    check!(InviteRequest RemoveMemberRequest UpdateGroupRequest TransferOwnerRequest);
    check!(SetMemberRoleRequest GroupInfo GroupInfoResponse GroupsResponse MembersRequest);
    check!(Member MembersResponse GroupPush JoinRequestPush JoinDecisionPush);
    let messages = messages();
    let mut names: Vec<&str> = messages.keys().map(String::as_str).collect();
    checked.sort_unstable();
    names.sort_unstable();
    assert_eq!(checked, names);
    let count =
        |what: &str| SOURCES.iter().map(|source| source.matches(what).count()).sum::<usize>();
    assert_eq!(names.len(), count("#[derive(Clone, PartialEq, Message"), "structs");
    assert_eq!(messages.values().map(Vec::len).sum::<usize>(), count("#[prost("), "fields");
}

#[test]
fn the_envelopes_are_those_of_document_004() {
    let client = ClientMessage { cmd: "s1".into(), payload: "s2".into(), request_id: "s3".into() };
    verify("ClientMessage", &messages()["ClientMessage"], &client.encode_to_vec());
    let server = ServerMessage {
        cmd: "s1".into(),
        payload: "s2".into(),
        request_id: "s3".into(),
        code: 1004,
        message: "s5".into(),
    };
    verify("ServerMessage", &messages()["ServerMessage"], &server.encode_to_vec());
}
