//! JSON Schemas of enum fields, made from the tables that the fields are read and written by.

use nexo_chat::Reason;
use serde_json::{Value, json};
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use crate::http::session_type::{SESSION_GROUP, SESSION_PRIVATE};
use crate::{codes, enum_values, typed};

fn one_of<T: Into<Value>>(kind: Type, values: impl IntoIterator<Item = T>) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(kind).enum_values(Some(values))
}

fn words<T>(table: &[(&'static str, T)]) -> Object {
    one_of(Type::String, table.iter().map(|(word, _)| *word)).build()
}

/// Numbers, with their meaning as description.
fn numbers(named: impl Iterator<Item = (i32, &'static str)>) -> Object {
    let (numbers, meant): (Vec<i32>, Vec<String>) =
        named.map(|(number, word)| (number, format!("{number} {}", word.to_lowercase()))).unzip();
    one_of(Type::Integer, numbers).description(Some(format!("{}.", meant.join(", ")))).build()
}

/// The number of a value is its position in the table.
fn positions<T>(table: &[(&'static str, T)]) -> Object {
    numbers((0..).zip(table).map(|(number, (word, _))| (number, *word)))
}

pub fn join_policy() -> Object {
    words(&enum_values::JOIN_POLICIES)
}

pub fn history_policy() -> Object {
    words(&enum_values::HISTORY_POLICIES)
}

pub fn role() -> Object {
    words(&enum_values::ROLES)
}

pub fn role_number() -> Object {
    positions(&enum_values::ROLES)
}

pub fn receive_number() -> Object {
    positions(&enum_values::RECEIVE_OPTIONS)
}

pub fn receive() -> Object {
    words(&enum_values::RECEIVE_OPTIONS)
}

pub fn session_policy() -> Object {
    words(&enum_values::SESSION_POLICIES)
}

pub fn registration() -> Object {
    words(&enum_values::REGISTRATIONS)
}

pub fn msg_type() -> Object {
    words(&typed::KINDS)
}

pub fn msg_type_number() -> Object {
    numbers(typed::KINDS.iter().map(|(word, kind)| (kind.0, *word)))
}

pub fn session_type() -> Object {
    numbers([(SESSION_PRIVATE, "private"), (SESSION_GROUP, "group")].into_iter())
}

pub fn reason() -> Object {
    one_of(Type::String, Reason::ALL.iter().map(|reason| codes::row(*reason).typed)).build()
}

/// Removes `null` from optional fields: the server leaves them out instead. Required fields may be null.
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
