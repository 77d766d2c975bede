//! Validates against the part of JSON Schema that our documents use, strictly: a field that the schema does not
//! declare is a violation too.

use serde_json::Value;

use crate::http::Http;

/// Panics unless a frame is valid by the server's own schema of the typed dialect.
pub async fn assert_fits(http: &Http, name: &str, frame: &Value) {
    let schema = http.get("/docs/typed.schema.json", "").await.body;
    let violations = SchemaDocument(&schema).violations(&schema["$defs"][name], frame);
    assert!(violations.is_empty(), "{frame} is no {name}: {violations:#?}");
}

/// A document that contains schemas.
#[derive(Clone, Copy, Debug)]
pub struct SchemaDocument<'a>(pub &'a Value);

impl<'a> SchemaDocument<'a> {
    /// The violations; empty if the value is valid.
    pub fn violations(self, schema: &'a Value, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.check(schema, value, "", &mut found);
        self.check_known_fields(schema, value, "", &mut found);
        found
    }

    /// Follows a `$ref`.
    pub fn resolve(self, schema: &'a Value) -> &'a Value {
        let Some(reference) = schema["$ref"].as_str() else { return schema };
        let pointer = reference.strip_prefix('#').expect("references stay in the document");
        let found = self.0.pointer(pointer);
        self.resolve(found.unwrap_or_else(|| panic!("{reference} leads nowhere")))
    }

    fn list(schema: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
        schema[name].as_array().into_iter().flatten()
    }

    fn check(self, schema: &'a Value, value: &Value, at: &str, found: &mut Vec<String>) {
        let schema = self.resolve(schema);
        let kinds = &schema["type"];
        let is_one = kinds.is_null()
            || *kinds == json_type(value)
            || Self::list(schema, "type").any(|one| *one == json_type(value));
        let is_same = schema.get("const").is_none_or(|it| it == value);
        let is_among =
            schema.get("enum").is_none() || Self::list(schema, "enum").any(|it| it == value);
        let is_enough = schema["minimum"].as_f64() <= value.as_f64() || value.as_f64().is_none();
        if !(is_one && is_same && is_among && is_enough) {
            found.push(format!("{at}: {value} is not {schema}"));
        }
        for name in Self::list(schema, "required").filter_map(Value::as_str) {
            if value.get(name).is_none() {
                found.push(format!("{at}/{name} is missing"));
            }
        }
        for part in Self::list(schema, "allOf") {
            self.check(part, value, at, found);
        }
        let mut any = Self::list(schema, "oneOf").peekable();
        if any.peek().is_some() && !any.any(|one| self.is_valid(one, value)) {
            found.push(format!("{at}: {value} is none of {schema}"));
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            if let Some(schema) = schema.get("items") {
                self.check(schema, item, &format!("{at}/{index}"), found);
                self.check_known_fields(schema, item, &format!("{at}/{index}"), found);
            }
        }
        for (name, field) in value.as_object().into_iter().flatten() {
            let declared = schema["properties"].get(name).or(schema.get("additionalProperties"));
            if let Some(declared) = declared {
                self.check(declared, field, &format!("{at}/{name}"), found);
                self.check_known_fields(declared, field, &format!("{at}/{name}"), found);
            }
        }
    }

    fn is_valid(self, schema: &'a Value, value: &Value) -> bool {
        let mut found = Vec::new();
        self.check(schema, value, "", &mut found);
        found.is_empty()
    }

    /// Checks that every field is declared, if the schema declares any.
    fn check_known_fields(
        self,
        schema: &'a Value,
        value: &Value,
        at: &str,
        found: &mut Vec<String>,
    ) {
        let mut names = Vec::new();
        self.collect_field_names(schema, &mut names);
        for name in value.as_object().into_iter().flat_map(serde_json::Map::keys) {
            if !names.is_empty() && !names.contains(&name.as_str()) {
                found.push(format!("{at}/{name} is not declared"));
            }
        }
    }

    fn collect_field_names(self, schema: &'a Value, names: &mut Vec<&'a str>) {
        let schema = self.resolve(schema);
        let own = schema["properties"].as_object().into_iter().flat_map(serde_json::Map::keys);
        names.extend(own.map(String::as_str));
        for part in Self::list(schema, "allOf").chain(Self::list(schema, "oneOf")) {
            self.collect_field_names(part, names);
        }
    }
}

fn json_type(value: &Value) -> &'static str {
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
        let schema = json!({
            "allOf": [
                { "type": "object", "required": ["a"], "properties": { "a": { "$ref": "#/forms/Name" } } },
                { "properties": { "b": { "type": ["integer", "null"], "minimum": 0 } } },
                { "properties": { "c": { "type": "array", "items": { "enum": [1, 2] } } } },
            ],
        });
        let count = |value: Value| SchemaDocument(&document).violations(&schema, &value).len();
        assert_eq!(count(json!({ "a": "x", "b": null, "c": [1, 2] })), 0);
        assert_eq!(count(json!({ "a": "x", "b": 1 })), 0);
        assert_eq!(count(json!({ "b": 1 })), 1, "missing");
        assert_eq!(count(json!({ "a": 1 })), 1, "another kind");
        assert_eq!(count(json!({ "a": "x", "b": -1 })), 1, "too small");
        assert_eq!(count(json!({ "a": "x", "c": [3] })), 1, "not among");
        assert_eq!(count(json!({ "a": "x", "d": 1 })), 1, "not declared");
    }
}
