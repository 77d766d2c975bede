//! A minimal protobuf codec, written independently of the server's, so that the tests compare two
//! implementations of one `.proto` file.

use serde_json::{Map, Value, json};

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
    Messages,
    /// A map entry: the key is field 1, the value field 2.
    Entries,
}
use Kind::{Entries, Messages, Number, Text};

type Fields = &'static [(u64, &'static str, Kind)];

const MESSAGE: Fields = &[
    (1, "msg_id", Text),
    (2, "from_user_id", Text),
    (3, "to_id", Text),
    (4, "chat_type", Number),
    (5, "content", Text),
    (20, "seq", Number),
    (21, "conversation_id", Text),
    (22, "client_msg_id", Text),
    (26, "extra", Entries),
    (27, "status", Number),
    (28, "recall_at", Number),
];

/// The fields of a request.
fn request_fields(cmd: &str) -> Fields {
    match cmd {
        "auth.validate_token" => &[(1, "token", Text)],
        "chat.send_message" => &[
            (2, "to_id", Text),
            (3, "chat_type", Number),
            (4, "content", Text),
            (7, "client_msg_id", Text),
            (20, "extra", Entries),
        ],
        "chat.recall_message" => &[(1, "msg_id", Text)],
        "chat.mark_read" => {
            &[(1, "chat_id", Text), (2, "chat_type", Number), (3, "last_msg_id", Text)]
        }
        "chat.get_history" => &[(1, "chat_id", Text), (2, "chat_type", Number)],
        "chat.pull_offline" => &[(1, "limit", Number)],
        other => panic!("no scenario asks {other}"),
    }
}

/// The fields of a response or a push.
fn response_fields(cmd: &str) -> Fields {
    match cmd {
        "chat.message" => MESSAGE,
        "chat.send_message" => &[
            (2, "msg_id", Text),
            (20, "seq", Number),
            (21, "conversation_id", Text),
            (22, "client_msg_id", Text),
            (100, "reason", Text),
        ],
        "chat.recall" => &[(1, "msg_id", Text)],
        "chat.read_receipt" => &[(2, "user_id", Text), (3, "last_read_msg_id", Text)],
        "chat.get_history" | "chat.pull_offline" => &[(1, "messages", Messages)],
        "user.updated" => &[(1, "user_id", Text), (2, "nickname", Text), (3, "avatar_url", Text)],
        "system.kicked" => &[(1, "reason", Text)],
        _ => &[(100, "reason", Text)],
    }
}

fn varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(u8::try_from(number & 0x7f).expect("seven bits") | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).expect("seven bits"));
}

fn put(bytes: &mut Vec<u8>, number: u64, content: &[u8]) {
    varint(bytes, number << 3 | 2);
    varint(bytes, content.len() as u64);
    bytes.extend_from_slice(content);
}

fn write(fields: Fields, value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, name, _) in fields {
        match &value[*name] {
            Value::String(text) => put(&mut bytes, *number, text.as_bytes()),
            Value::Number(value) => {
                varint(&mut bytes, number << 3);
                varint(&mut bytes, value.as_u64().expect("a whole number"));
            }
            Value::Object(entries) => {
                for (name, text) in entries {
                    let mut entry = Vec::new();
                    put(&mut entry, 1, name.as_bytes());
                    put(&mut entry, 2, text.as_str().expect("a text").as_bytes());
                    put(&mut bytes, *number, &entry);
                }
            }
            _ => {}
        }
    }
    bytes
}

/// A `ClientMessage`.
pub(super) fn write_client(cmd: &str, request_id: &str, payload: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, 1, cmd.as_bytes());
    put(&mut bytes, 2, &write(request_fields(cmd), payload));
    put(&mut bytes, 3, request_id.as_bytes());
    bytes
}

fn read_varint(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first().expect("a whole number");
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        shift += 7;
        if first & 0x80 == 0 {
            return number;
        }
    }
}

/// Every field of a message: its number, its integer value, its bytes.
fn read(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = read_varint(&mut bytes);
        match key & 7 {
            0 => fields.push((key >> 3, read_varint(&mut bytes), &[][..])),
            2 => {
                let length = usize::try_from(read_varint(&mut bytes)).expect("a length");
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                fields.push((key >> 3, 0, content));
            }
            other => panic!("a wire type that is not in the file: {other}"),
        }
    }
    fields
}

fn text(content: &[u8]) -> String {
    String::from_utf8(content.to_vec()).expect("text")
}

fn read_fields(fields: Fields, bytes: &[u8]) -> Value {
    let mut named = Map::new();
    for (number, value, content) in read(bytes) {
        let Some((_, name, kind)) = fields.iter().find(|(known, ..)| *known == number) else {
            continue;
        };
        match kind {
            Text => drop(named.insert((*name).into(), json!(text(content)))),
            Number => drop(named.insert((*name).into(), json!(value))),
            Entries => {
                let (mut key, mut it) = (String::new(), String::new());
                for (number, _, content) in read(content) {
                    if number == 1 { key = text(content) } else { it = text(content) }
                }
                named.entry(*name).or_insert_with(|| json!({}))[key] = json!(it);
            }
            Messages => {
                let list = named.entry(*name).or_insert_with(|| json!([]));
                list.as_array_mut().expect("a list").push(read_fields(MESSAGE, content));
            }
        }
    }
    named.into()
}

/// A `ServerMessage`, in the shape of its JSON form.
pub(super) fn read_server(bytes: &[u8]) -> Value {
    let mut frame = json!({ "cmd": "", "request_id": "", "code": 0 });
    let mut payload: &[u8] = &[];
    for (number, value, content) in read(bytes) {
        match number {
            1 => frame["cmd"] = json!(text(content)),
            2 => payload = content,
            3 => frame["request_id"] = json!(text(content)),
            4 => frame["code"] = json!(value),
            _ => {}
        }
    }
    frame["payload"] =
        read_fields(response_fields(frame["cmd"].as_str().unwrap_or_default()), payload);
    frame
}
