//! Schemas without `allOf`: many client generators cannot merge parts, or fail on those that contain a `oneOf`.

use serde_json::{Map, Value, json};

/// Merges the parts of every `allOf` schema, and drops the schemas that were only parts.
pub(in crate::http) fn flatten(schemas: &mut Map<String, Value>) {
    let known = schemas.clone();
    let mut parts = Vec::new();
    for schema in schemas.values_mut().filter(|schema| schema.get("allOf").is_some()) {
        let (properties, required) = fields(schema, &known, &mut parts);
        let description = schema.get("description").cloned();
        *schema = json!({ "type": "object", "properties": properties, "required": required });
        if let Some(description) = description {
            schema["description"] = description;
        }
    }
    let text = json!(schemas).to_string();
    schemas.retain(|name, _| !parts.contains(name) || text.contains(&format!("/{name}\"")));
}

/// The properties of a schema and the required ones: of a `oneOf`, those that every choice requires.
fn fields(
    schema: &Value,
    known: &Map<String, Value>,
    parts: &mut Vec<String>,
) -> (Map<String, Value>, Vec<Value>) {
    if let Some(name) = schema["$ref"].as_str().and_then(|it| it.rsplit('/').next()) {
        parts.push(name.to_owned());
        return known.get(name).map(|schema| fields(schema, known, parts)).unwrap_or_default();
    }
    let mut properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let mut required = schema["required"].as_array().cloned().unwrap_or_default();
    for part in schema["allOf"].as_array().into_iter().flatten() {
        let (more, always) = fields(part, known, parts);
        properties.extend(more);
        required.extend(always);
    }
    let mut in_all: Option<Vec<Value>> = None;
    for choice in schema["oneOf"].as_array().into_iter().flatten() {
        let (more, always) = fields(choice, known, parts);
        properties.extend(more);
        in_all = Some(match in_all {
            None => always,
            Some(before) => before.into_iter().filter(|name| always.contains(name)).collect(),
        });
    }
    required.extend(in_all.unwrap_or_default());
    (properties, required)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_of_parts_becomes_one_object() {
        let text = json!({ "type": "string" });
        let object = |fields: &[&str], required: &[&str]| {
            let properties: Map<String, Value> =
                fields.iter().map(|name| ((*name).to_owned(), text.clone())).collect();
            json!({ "type": "object", "properties": properties, "required": required })
        };
        let mut schemas = Map::from_iter([
            (
                "Choice".to_owned(),
                json!({ "oneOf": [object(&["a", "b"], &["a", "b"]), object(&["a"], &["a"])] }),
            ),
            ("Used".to_owned(), object(&["c"], &[])),
            (
                "Whole".to_owned(),
                json!({
                    "description": "It.",
                    "allOf": [
                        { "$ref": "#/components/schemas/Choice" },
                        { "$ref": "#/components/schemas/Used" },
                        object(&["d"], &["d"]),
                    ],
                }),
            ),
            ("List".to_owned(), json!({ "items": { "$ref": "#/components/schemas/Used" } })),
        ]);
        flatten(&mut schemas);
        let mut expect = object(&["a", "b", "c", "d"], &["a", "d"]);
        expect["description"] = json!("It.");
        assert_eq!(schemas["Whole"], expect);
        assert_eq!(schemas.keys().collect::<Vec<_>>(), ["List", "Used", "Whole"]);
    }
}
