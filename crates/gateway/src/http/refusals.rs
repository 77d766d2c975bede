//! How the document tells of refusals: by status, each with the reasons it may have.

use std::collections::BTreeMap;

use nexo_chat::Reason;
use nexo_wire::{codes, shapes};
use serde_json::{Map, Value, json};

use super::document::answer;

/// What many operations are refused for alike.
const COMMON: [(&str, &[Reason]); 6] = [
    (
        "NotSignedIn",
        &[Reason::MissingToken, Reason::InvalidToken, Reason::TokenExpired, Reason::SessionInvalid],
    ),
    ("TooSlow", &[Reason::IdleTimeout]),
    ("TooLarge", &[Reason::FrameTooLarge]),
    ("TooOften", &[Reason::TooManyRequests]),
    ("Broken", &[Reason::InternalError]),
    ("Busy", &[Reason::ServerBusy]),
];

fn request_id() -> Value {
    json!({ "type": "string", "description": "Names this request in the server's log." })
}

/// The envelope of what worked, with these fields beside what all have.
pub(super) fn success(fields: &Value) -> Value {
    let mut properties = json!({
        "code": { "type": "integer", "const": 0 },
        "message": { "type": "string", "const": "ok" },
        "request_id": request_id(),
    });
    let mut required = vec!["code", "message", "request_id"];
    for (name, field) in fields.as_object().into_iter().flatten() {
        properties[name] = field.clone();
        required.push(name);
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

/// The envelope of what did not work.
pub(super) fn envelopes() -> Map<String, Value> {
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
        "Reason": shapes::reason(),
    });
    forms.as_object().cloned().unwrap_or_default()
}

/// The responses that have a name.
pub(super) fn common() -> Map<String, Value> {
    COMMON.iter().map(|(name, reasons)| ((*name).to_owned(), response(reasons))).collect()
}

/// The responses of an operation that may be refused for these reasons, by status.
pub(super) fn responses(reasons: &[Reason]) -> BTreeMap<String, Value> {
    let mut by_status = BTreeMap::<u16, Vec<Reason>>::new();
    // In the order of the table, and each once.
    for reason in Reason::ALL.iter().filter(|reason| reasons.contains(reason)) {
        by_status.entry(codes::row(*reason).http).or_default().push(*reason);
    }
    let told = by_status.into_iter().map(|(status, reasons)| {
        let known = COMMON.iter().find(|(_, known)| **known == reasons[..]);
        let told = match known {
            Some((name, _)) => json!({ "$ref": format!("#/components/responses/{name}") }),
            None => response(&reasons),
        };
        (status.to_string(), told)
    });
    told.collect()
}

fn response(reasons: &[Reason]) -> Value {
    let told = |reason: &Reason| format!("`{}`: {reason}", codes::row(*reason).typed);
    let description = reasons.iter().map(told).collect::<Vec<_>>().join("; ");
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
