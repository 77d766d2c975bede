//! What fields may hold, for the documents that describe them. All of it comes from the tables that
//! the fields are read and written by.

use nexo_chat::Reason;
use serde_json::{Value, json};
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use crate::{codes, typed, words};

fn among<T: Into<Value>>(kind: Type, values: impl IntoIterator<Item = T>) -> Object {
    ObjectBuilder::new().schema_type(kind).enum_values(Some(values)).build()
}

fn word<T>(table: &[(&'static str, T)]) -> Object {
    among(Type::String, table.iter().map(|(word, _)| *word))
}

fn number<T>(table: &[(&'static str, T)]) -> Object {
    among(Type::Integer, 0..table.len())
}

/// How one comes into a group.
pub fn joining() -> Object {
    word(&words::JOININGS)
}

/// What a newcomer sees.
pub fn history() -> Object {
    word(&words::HISTORIES)
}

/// A role by its word.
pub fn role() -> Object {
    word(&words::ROLES)
}

/// A role by its number: 0 member, 1 admin, 2 owner.
pub fn role_number() -> Object {
    number(&words::ROLES)
}

/// A receive option by its number: 0 normal, 1 silent, 2 blocked.
pub fn receive_number() -> Object {
    number(&words::RECEIVES)
}

/// A receive option by its word.
pub fn receive() -> Object {
    word(&words::RECEIVES)
}

/// How many devices of one person may be there.
pub fn session_policy() -> Object {
    word(&words::SESSION_POLICIES)
}

/// A content type by its name.
pub fn msg_type() -> Object {
    word(&typed::KINDS)
}

/// A content type by its number.
pub fn msg_type_number() -> Object {
    among(Type::Integer, typed::KINDS.iter().map(|(_, kind)| kind.0))
}

/// A conversation's kind: 1 private, 2 a group's.
pub fn session_type() -> Object {
    among(Type::Integer, [crate::snake::SESSION_PRIVATE, crate::snake::SESSION_GROUP])
}

/// Why something was refused.
pub fn reason() -> Object {
    among(Type::String, Reason::ALL.iter().map(|reason| codes::row(*reason).typed))
}

/// What the server leaves out it does not say as null: only a field that is always there may be.
pub fn without_null(form: &mut Value) {
    let required = form.get("required").cloned().unwrap_or_default();
    let is_required = |name| required.as_array().is_some_and(|all| all.contains(&json!(name)));
    let fields = form.get_mut("properties").and_then(Value::as_object_mut);
    for (name, field) in fields.into_iter().flatten() {
        if !is_required(name) {
            not_null(field);
        }
    }
    for parts in ["allOf", "oneOf"] {
        let parts = form.get_mut(parts).and_then(Value::as_array_mut);
        parts.into_iter().flatten().for_each(without_null);
    }
}

fn not_null(field: &mut Value) {
    let null = json!("null");
    if let Some(kinds) = field.get_mut("type").and_then(Value::as_array_mut) {
        kinds.retain(|kind| *kind != null);
        if let [kind] = &kinds[..] {
            field["type"] = kind.clone();
        }
    }
    if let Some(forms) = field.get_mut("oneOf").and_then(Value::as_array_mut) {
        forms.retain(|form| form.get("type") != Some(&null));
        if let [form] = &forms[..] {
            *field = form.clone();
        }
    }
}
