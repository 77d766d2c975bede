//! Refusals in the document: one response per status, with its reasons.

use std::collections::BTreeMap;

use nexo_chat::Reason;
use nexo_wire::{codes, field_schemas};
use serde_json::{Map, Value, json};

use crate::http::openapi::document::answer;

/// Responses that many operations share, by component name.
const COMMON: [(&str, &[Reason]); 6] = [
    (
        "NotSignedIn",
        &[Reason::MissingToken, Reason::InvalidToken, Reason::TokenExpired, Reason::SessionInvalid],
    ),
    ("TooSlow", &[Reason::IdleTimeout]),
    ("TooLarge", &[Reason::FrameTooLarge]),
    ("TooOften", &[Reason::TooManyRequests]),
    ("Broken", &[Reason::Damaged, Reason::InternalError]),
    ("Busy", &[Reason::ServerBusy]),
];

/// The field of lists that is left out while nothing is damaged.
pub(in crate::http) const DAMAGED: &str = "damaged";

fn request_id() -> Value {
    json!({ "type": "string", "description": "Names this request in the server's log." })
}

/// The schema of a success envelope with these fields.
pub(in crate::http) fn success(fields: &Value) -> Value {
    let mut properties = json!({
        "code": { "type": "integer", "const": 0 },
        "message": { "type": "string", "const": "ok" },
        "request_id": request_id(),
    });
    let mut required = vec!["code", "message", "request_id"];
    for (name, field) in fields.as_object().into_iter().flatten() {
        properties[name] = field.clone();
        if name != DAMAGED {
            required.push(name);
        }
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

/// The schema of a refusal.
pub(in crate::http) fn envelopes() -> Map<String, Value> {
    let name = request_id();
    let text = json!({ "type": "string", "description": "What went wrong, in words." });
    let code = "The reason's number; the same for reasons of one kind.";
    let forms = json!({
        "Refusal": {
            "type": "object",
            "description": "The envelope of what did not work.",
            "required": ["code", "message", "reason", "request_id"],
            "properties": {
                "code": { "type": "integer", "format": "int32", "description": code },
                "message": text,
                "reason": { "$ref": "#/components/schemas/Reason" },
                "request_id": name,
            },
        },
        "Reason": field_schemas::reason(),
    });
    forms.as_object().cloned().unwrap_or_default()
}

/// The shared responses as components.
pub(in crate::http) fn common() -> Map<String, Value> {
    COMMON.iter().map(|(name, reasons)| ((*name).to_owned(), response(reasons))).collect()
}

/// The responses of an operation that may be refused for these reasons, by status.
pub(in crate::http) fn responses(reasons: &[Reason]) -> BTreeMap<String, Value> {
    let mut by_status = BTreeMap::<u16, Vec<Reason>>::new();
    // `Reason::ALL` gives the order, and each reason once.
    for reason in Reason::ALL.iter().filter(|reason| reasons.contains(reason)) {
        by_status.entry(codes::row(*reason).http).or_default().push(*reason);
    }
    let responses = by_status.into_iter().map(|(status, reasons)| {
        let known = COMMON.iter().find(|(_, known)| **known == reasons[..]);
        let response = match known {
            Some((name, _)) => json!({ "$ref": format!("#/components/responses/{name}") }),
            None => response(&reasons),
        };
        (status.to_string(), response)
    });
    responses.collect()
}

fn response(reasons: &[Reason]) -> Value {
    let described = |reason: &Reason| format!("`{}`: {reason}", codes::row(*reason).typed);
    let description = reasons.iter().map(described).collect::<Vec<_>>().join("; ");
    let words: Vec<&str> = reasons.iter().map(|reason| codes::row(*reason).typed).collect();
    let refusal = json!({ "$ref": "#/components/schemas/Refusal" });
    let mut response = answer(&format!("{description}."), &refusal);
    response["x-reasons"] = json!(words);
    let status = reasons.first().map_or(0, |reason| codes::row(*reason).http);
    if matches!(status, 429 | 503) {
        response["headers"] = json!({ "retry-after": {
            "description": "Seconds to wait, if that is known.",
            "schema": { "type": "integer" },
        } });
    }
    response
}
