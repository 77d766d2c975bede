//! As much of JSON Schema as our documents use, read strictly: a field that no form tells of is a
//! misfit too.

use serde_json::Value;

use crate::http::Http;

/// Panics unless a frame is as a server's own schema of the typed dialect says.
pub async fn assert_fits(http: &Http, form: &str, frame: &Value) {
    let schema = http.get("/docs/typed.schema.json", "").await.body;
    let misfits = Forms(&schema).misfits(&schema["$defs"][form], frame);
    assert!(misfits.is_empty(), "{frame} is no {form}: {misfits:#?}");
}

/// A document with forms in it.
#[derive(Clone, Copy, Debug)]
pub struct Forms<'a>(pub &'a Value);

impl<'a> Forms<'a> {
    /// What does not fit; empty if all does.
    pub fn misfits(self, form: &'a Value, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.fit(form, value, "", &mut found);
        self.known(form, value, "", &mut found);
        found
    }

    /// What a `$ref` stands for.
    pub fn follow(self, form: &'a Value) -> &'a Value {
        let Some(reference) = form["$ref"].as_str() else { return form };
        let pointer = reference.strip_prefix('#').expect("references stay in the document");
        let found = self.0.pointer(pointer);
        self.follow(found.unwrap_or_else(|| panic!("{reference} leads nowhere")))
    }

    fn list(form: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
        form[name].as_array().into_iter().flatten()
    }

    fn fit(self, form: &'a Value, value: &Value, at: &str, found: &mut Vec<String>) {
        let form = self.follow(form);
        let kinds = &form["type"];
        let is_one = kinds.is_null()
            || *kinds == kind(value)
            || Self::list(form, "type").any(|one| *one == kind(value));
        let is_same = form.get("const").is_none_or(|it| it == value);
        let is_among = form.get("enum").is_none() || Self::list(form, "enum").any(|it| it == value);
        let is_enough = form["minimum"].as_f64() <= value.as_f64() || value.as_f64().is_none();
        if !(is_one && is_same && is_among && is_enough) {
            found.push(format!("{at}: {value} is not {form}"));
        }
        for name in Self::list(form, "required").filter_map(Value::as_str) {
            if value.get(name).is_none() {
                found.push(format!("{at}/{name} is missing"));
            }
        }
        for part in Self::list(form, "allOf") {
            self.fit(part, value, at, found);
        }
        let mut any = Self::list(form, "oneOf").peekable();
        if any.peek().is_some() && !any.any(|one| self.fits(one, value)) {
            found.push(format!("{at}: {value} is none of {form}"));
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            if let Some(form) = form.get("items") {
                self.fit(form, item, &format!("{at}/{index}"), found);
                self.known(form, item, &format!("{at}/{index}"), found);
            }
        }
        for (name, field) in value.as_object().into_iter().flatten() {
            let told = form["properties"].get(name).or(form.get("additionalProperties"));
            if let Some(told) = told {
                self.fit(told, field, &format!("{at}/{name}"), found);
                self.known(told, field, &format!("{at}/{name}"), found);
            }
        }
    }

    fn fits(self, form: &'a Value, value: &Value) -> bool {
        let mut found = Vec::new();
        self.fit(form, value, "", &mut found);
        found.is_empty()
    }

    /// Whether every field is told of somewhere, if any form tells of fields.
    fn known(self, form: &'a Value, value: &Value, at: &str, found: &mut Vec<String>) {
        let mut names = Vec::new();
        self.names(form, &mut names);
        for name in value.as_object().into_iter().flat_map(serde_json::Map::keys) {
            if !names.is_empty() && !names.contains(&name.as_str()) {
                found.push(format!("{at}/{name} is not told of"));
            }
        }
    }

    fn names(self, form: &'a Value, names: &mut Vec<&'a str>) {
        let form = self.follow(form);
        let own = form["properties"].as_object().into_iter().flat_map(serde_json::Map::keys);
        names.extend(own.map(String::as_str));
        for part in Self::list(form, "allOf").chain(Self::list(form, "oneOf")) {
            self.names(part, names);
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_fit_is_found() {
        let document = json!({ "forms": { "Name": { "type": "string" } } });
        let form = json!({
            "allOf": [
                { "type": "object", "required": ["a"], "properties": { "a": { "$ref": "#/forms/Name" } } },
                { "properties": { "b": { "type": ["integer", "null"], "minimum": 0 } } },
                { "properties": { "c": { "type": "array", "items": { "enum": [1, 2] } } } },
            ],
        });
        let count = |value: Value| Forms(&document).misfits(&form, &value).len();
        assert_eq!(count(json!({ "a": "x", "b": null, "c": [1, 2] })), 0);
        assert_eq!(count(json!({ "a": "x", "b": 1 })), 0);
        assert_eq!(count(json!({ "b": 1 })), 1, "missing");
        assert_eq!(count(json!({ "a": 1 })), 1, "another kind");
        assert_eq!(count(json!({ "a": "x", "b": -1 })), 1, "too small");
        assert_eq!(count(json!({ "a": "x", "c": [3] })), 1, "not among");
        assert_eq!(count(json!({ "a": "x", "d": 1 })), 1, "not told of");
    }
}
