//! Forms without `allOf`: many generators of clients cannot put a form together from parts, or give
//! up on those that have a choice among them.

use serde_json::{Map, Value, json};

/// Puts every form together from its parts, and leaves out those that only were parts.
pub(super) fn flatten(schemas: &mut Map<String, Value>) {
    let known = schemas.clone();
    let mut parts = Vec::new();
    for form in schemas.values_mut().filter(|form| form.get("allOf").is_some()) {
        let (properties, required) = fields(form, &known, &mut parts);
        let description = form.get("description").cloned();
        *form = json!({ "type": "object", "properties": properties, "required": required });
        if let Some(description) = description {
            form["description"] = description;
        }
    }
    let text = json!(schemas).to_string();
    schemas.retain(|name, _| !parts.contains(name) || text.contains(&format!("/{name}\"")));
}

/// The fields of a form, and which of them are always there: of a choice, those that all have.
fn fields(
    form: &Value,
    known: &Map<String, Value>,
    parts: &mut Vec<String>,
) -> (Map<String, Value>, Vec<Value>) {
    if let Some(name) = form["$ref"].as_str().and_then(|it| it.rsplit('/').next()) {
        parts.push(name.to_owned());
        return known.get(name).map(|form| fields(form, known, parts)).unwrap_or_default();
    }
    let mut properties = form["properties"].as_object().cloned().unwrap_or_default();
    let mut required = form["required"].as_array().cloned().unwrap_or_default();
    for part in form["allOf"].as_array().into_iter().flatten() {
        let (more, always) = fields(part, known, parts);
        properties.extend(more);
        required.extend(always);
    }
    let mut in_all: Option<Vec<Value>> = None;
    for choice in form["oneOf"].as_array().into_iter().flatten() {
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
