//! The frames as JSON Schema. The schema of a field comes from the structs that are read and written; which frame has
//! which fields is in this table, and a test compares it with real frames.

use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{decode, encode, frame, group};
use crate::field_schemas;

/// Type, description, and fields: `name` is required, `name?` optional, `name=a|b` one of these words.
type FrameRow = (&'static str, &'static str, &'static str);

const CLIENT: [FrameRow; 10] = [
    ("AUTH", "Who you are; the first frame.", "token"),
    ("REAUTH", "Carry on with a newer token of the same sign-in.", "token"),
    ("PING", "Are you there?", ""),
    ("PONG", "Here I am.", ""),
    (
        "SINGLE_CHAT",
        "Say something to one person.",
        "clientMsgId to body msgType? extra? mentions? replyToServerMsgId?",
    ),
    (
        "GROUP_CHAT",
        "Say something in a group. `mentions` are user ids, or `@all`.",
        "clientMsgId groupId body msgType? extra? mentions? replyToServerMsgId?",
    ),
    (
        "ACK",
        "Everything up to this message arrived, or was read.",
        "ackType=delivered|read|ack_read serverMsgId to? groupId? msgSeq?",
    ),
    ("MESSAGE_REVOKE", "Recall (unsend) a message.", "serverMsgId clientMsgId?"),
    ("TYPING", "You are writing, to one person or in a group.", "to? groupId?"),
    ("RESEND", "The next page of what this device has not seen.", "cursors?"),
];

const SERVER: [FrameRow; 21] = [
    ("AUTH_OK", "Welcome, also after REAUTH.", "from tokenExpiresAt limits ts"),
    ("AUTH_FAIL", "The token is not good; the connection ends.", "reason message ts"),
    ("ERROR", "Something was refused.", "reason message clientMsgId? serverMsgId? ts"),
    ("PING", "Are you there?", "ts"),
    ("PONG", "Here I am.", "ts"),
    (
        "SINGLE_CHAT",
        "Somebody said something to one person. A `preview` is not saved yet and has no `msgSeq`; an \
         ACK `saved` or `dropped` follows.",
        "from to conversationId clientMsgId serverMsgId msgSeq? preview? msgType body extra? mentions? \
         replyToServerMsgId? revoked? important? ts",
    ),
    (
        "GROUP_CHAT",
        "Somebody said something in a group.",
        "from groupId conversationId clientMsgId serverMsgId msgSeq msgType body extra? mentions? \
         replyToServerMsgId? revoked? important? ts",
    ),
    (
        "GROUP_NOTIFY",
        "There is a message in a large group: pull it.",
        "from groupId conversationId serverMsgId msgSeq important? ts",
    ),
    (
        "ACK",
        "Your message is on disk. `body` if words of it were replaced.",
        "ackType=saved from to? groupId? conversationId clientMsgId serverMsgId msgSeq body? ts",
    ),
    (
        "ACK",
        "Your message is taken in and will be saved. `body` if words of it were replaced.",
        "ackType=accepted from to? groupId? conversationId clientMsgId serverMsgId body? ts",
    ),
    (
        "ACK",
        "What you were shown was not saved: forget it.",
        "ackType=dropped from to conversationId clientMsgId serverMsgId reason ts",
    ),
    (
        "ACK",
        "Your message is taken back.",
        "ackType=revoked groupId? conversationId clientMsgId? serverMsgId msgSeq ts",
    ),
    (
        "ACK",
        "Somebody received or read everything up to this message.",
        "ackType=delivered|read from to groupId? conversationId serverMsgId msgSeq ts",
    ),
    (
        "MESSAGE_REVOKED",
        "A message was recalled; its text is never served again.",
        "from to? groupId? conversationId serverMsgId msgSeq changeSeq ts",
    ),
    (
        "GROUP_CHANGED",
        "People or the group changed.",
        "event=joined|left|kicked|role|owner|updated|muted|all_muted|dissolved|dismissed|member_updated from \
         groupId conversationId changeSeq userIds? msgSeq? userId? role? mutedUntil? on? group? member? ts",
    ),
    (
        "GROUP_JOIN_REQUEST",
        "Somebody wants into a group you decide for; `serverMsgId` names the request.",
        "from groupId serverMsgId body ts",
    ),
    (
        "GROUP_JOIN_DECISION",
        "What was decided about your wish to join.",
        "from to groupId serverMsgId body=ACCEPTED|REJECTED ts",
    ),
    (
        "CONVERSATION_SETTINGS",
        "You chose something for a conversation, here or on another device.",
        "conversationId receive pinned hiddenSeq?",
    ),
    (
        "USER_UPDATED",
        "Somebody you share a conversation with has a new name or picture.",
        "userId nickname avatar ts",
    ),
    ("TYPING", "Somebody is writing.", "from to? groupId? ts"),
    ("RESEND_DONE", "A page of what was missed is complete.", "hasMore ts"),
];

pub fn schema() -> Value {
    let (mut forms, mut client_fields, mut server_fields) = (Map::new(), Map::new(), Map::new());
    add_fields::<decode::ClientFrame<'static>>(&mut client_fields, &mut forms);
    add_fields::<frame::ServerFrame<'static>>(&mut server_fields, &mut forms);
    add_fields::<group::GroupChangedFrame<'static>>(&mut server_fields, &mut forms);
    add_fields::<encode::SettingsFrame<'static>>(&mut server_fields, &mut forms);
    add_fields::<encode::UserUpdatedFrame<'static>>(&mut server_fields, &mut forms);
    for (side, rows, fields) in
        [("Client", &CLIENT[..], &client_fields), ("Server", &SERVER[..], &server_fields)]
    {
        let named = rows.iter().map(|row| (name(side, row, rows), form(row, fields)));
        let named: Vec<(String, Value)> = named.collect();
        let any = named.iter().map(|(name, _)| json!({ "$ref": format!("#/$defs/{name}") }));
        forms.insert(format!("{side}Frame"), json!({ "oneOf": any.collect::<Vec<_>>() }));
        forms.extend(named);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Nexo, the typed dialect",
        "description": "Text frames of the WebSocket, told apart by `type`. A client says a ClientFrame \
            and hears a ServerFrame. Fields that are not known are to be ignored.",
        "anyOf": [{ "$ref": "#/$defs/ClientFrame" }, { "$ref": "#/$defs/ServerFrame" }],
        "$defs": forms,
    })
}

/// Adds the field schemas of a struct, and the definitions they refer to.
fn add_fields<T: ToSchema>(fields: &mut Map<String, Value>, forms: &mut Map<String, Value>) {
    let mut named = Vec::new();
    T::schemas(&mut named);
    forms.extend(named.into_iter().map(|(name, form)| (name, localized(json!(form)))));
    let mut form = json!(T::schema());
    form["required"] = json!([]); // the table decides
    for (name, field) in localized(form)["properties"].as_object().into_iter().flatten() {
        fields.entry(name).or_insert_with(|| field.clone());
    }
}

/// A schema for this document: optional fields are never null, and references point into `$defs`.
fn localized(mut form: Value) -> Value {
    field_schemas::without_null(&mut form);
    let text = form.to_string().replace("#/components/schemas/", "#/$defs/");
    serde_json::from_str(&text).expect("it is still JSON")
}

/// The definition name of a frame; if several have its type, the first word of their enum is added.
fn name(side: &str, (kind, _, fields): &FrameRow, rows: &[FrameRow]) -> String {
    let is_alone = rows.iter().filter(|(other, ..)| other == kind).count() == 1;
    let words = fields.split(['=', '|', ' ']).nth(1).filter(|_| !is_alone).unwrap_or_default();
    let parts = kind.split('_').chain([words]).filter(|part| !part.is_empty());
    let parts = parts.map(|part| part[..1].to_uppercase() + &part[1..].to_lowercase());
    format!("{side}{}", parts.collect::<String>())
}

fn form((kind, meaning, fields): &FrameRow, known: &Map<String, Value>) -> Value {
    let mut properties = json!({ "type": { "const": kind } });
    let mut required = vec!["type"];
    for field in fields.split_whitespace() {
        let (field, words) = field.split_once('=').unwrap_or((field, ""));
        let name = field.trim_end_matches('?');
        let schema = known.get(name).unwrap_or_else(|| panic!("{kind}: no struct has {name}"));
        properties[name] = if words.is_empty() {
            schema.clone()
        } else {
            json!({ "enum": words.split('|').collect::<Vec<_>>() })
        };
        if name == field {
            required.push(name);
        }
    }
    json!({
        "type": "object", "description": meaning, "properties": properties, "required": required,
    })
}
