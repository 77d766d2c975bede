//! What fields may hold, for the documents that describe them. All of it comes from the tables that
//! the fields are read and written by.

use nexo_chat::Reason;
use serde_json::{Value, json};
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use crate::snake::{SESSION_GROUP, SESSION_PRIVATE};
use crate::{codes, typed, words};

fn among<T: Into<Value>>(kind: Type, values: impl IntoIterator<Item = T>) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(kind).enum_values(Some(values))
}

fn words<T>(table: &[(&'static str, T)]) -> Object {
    among(Type::String, table.iter().map(|(word, _)| *word)).build()
}

/// Numbers, and what they mean.
fn numbers(named: impl Iterator<Item = (i32, &'static str)>) -> Object {
    let (numbers, meant): (Vec<i32>, Vec<String>) =
        named.map(|(number, word)| (number, format!("{number} {}", word.to_lowercase()))).unzip();
    among(Type::Integer, numbers).description(Some(format!("{}.", meant.join(", ")))).build()
}

/// The numbers of a table are its places.
fn places<T>(table: &[(&'static str, T)]) -> Object {
    numbers((0..).zip(table).map(|(number, (word, _))| (number, *word)))
}

/// How one comes into a group.
pub fn joining() -> Object {
    words(&words::JOININGS)
}

/// What a newcomer sees.
pub fn history() -> Object {
    words(&words::HISTORIES)
}

/// A role by its word.
pub fn role() -> Object {
    words(&words::ROLES)
}

/// A role by its number.
pub fn role_number() -> Object {
    places(&words::ROLES)
}

/// A receive option by its number.
pub fn receive_number() -> Object {
    places(&words::RECEIVES)
}

/// A receive option by its word.
pub fn receive() -> Object {
    words(&words::RECEIVES)
}

/// How many devices of one person may be there.
pub fn session_policy() -> Object {
    words(&words::SESSION_POLICIES)
}

/// Who may make an account.
pub fn registration() -> Object {
    words(&words::REGISTRATIONS)
}

/// A content type by its name.
pub fn msg_type() -> Object {
    words(&typed::KINDS)
}

/// A content type by its number.
pub fn msg_type_number() -> Object {
    numbers(typed::KINDS.iter().map(|(word, kind)| (kind.0, *word)))
}

/// A conversation's kind by its number.
pub fn session_type() -> Object {
    numbers([(SESSION_PRIVATE, "private"), (SESSION_GROUP, "group")].into_iter())
}

/// Why something was refused.
pub fn reason() -> Object {
    among(Type::String, Reason::ALL.iter().map(|reason| codes::row(*reason).typed)).build()
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
