//! The `OpenAPI` document, put together from what the handlers tell.

use axum::http::Method;
use nexo_chat::Reason;
use nexo_wire::shapes;
use serde_json::{Map, Value, json};

use super::flat::flatten;
use super::refusals;
use super::told::{Named, Told};

/// The document so far.
#[derive(Default)]
pub(super) struct Document {
    tags: Vec<Value>,
    paths: Map<String, Value>,
    schemas: Map<String, Value>,
}

impl Document {
    /// A group of operations.
    pub(super) fn tag(&mut self, name: &str, description: &str) {
        self.tags.push(json!({ "name": name, "description": description }));
    }

    /// An operation that answers with the envelope.
    pub(super) fn add(
        &mut self,
        method: &Method,
        path: &str,
        group: &str,
        summary: &str,
        told: Told,
    ) {
        let (name, fields) = told.success;
        let form = json!({ "$ref": format!("#/components/schemas/{name}") });
        self.name(&name, &refusals::success(&fields));
        let mut operation = json!({ "responses": { "200": answer("It worked.", &form) } });
        if !told.parameters.is_empty() {
            operation["parameters"] = json!(told.parameters);
        }
        if let Some((form, required)) = told.body {
            let content = json!({ "application/json": { "schema": form } });
            operation["requestBody"] = json!({ "content": content, "required": required });
        }
        if let Some(scheme) = told.security {
            operation["security"] = json!([{ scheme: [] }]);
        }
        for named in &told.schemas {
            self.name(&named.name, &form_of(named));
        }
        self.put(method, path, group, summary, &told.reasons, operation);
    }

    /// An operation that answers with something else.
    pub(super) fn add_plain(
        &mut self,
        path: &str,
        group: &str,
        summary: &str,
        reasons: &[Reason],
        operation: Value,
    ) {
        self.put(&Method::GET, path, group, summary, reasons, operation);
    }

    fn put(
        &mut self,
        method: &Method,
        path: &str,
        group: &str,
        summary: &str,
        reasons: &[Reason],
        mut operation: Value,
    ) {
        let method = method.as_str().to_lowercase();
        let name = format!("{method}{path}").replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        operation["operationId"] = json!(name.trim_end_matches('_'));
        operation["tags"] = json!([group]);
        operation["summary"] = json!(summary);
        for (status, response) in refusals::responses(reasons) {
            operation["responses"][status] = response;
        }
        let item = self.paths.entry(path).or_insert_with(|| json!({}));
        item[method] = operation;
    }

    /// A form that operations speak of by name. One name is one form.
    fn name(&mut self, name: &str, form: &Value) {
        let known = self.schemas.entry(name).or_insert_with(|| form.clone());
        assert!(known == form, "two forms are called {name}");
    }

    /// The whole document.
    pub(super) fn finish(self, version: &str) -> Value {
        let mut schemas = self.schemas;
        schemas.extend(refusals::envelopes());
        flatten(&mut schemas);
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Nexo",
                "version": version,
                "description": "A self-hosted chat server. Every answer is an envelope `{code, message, \
                    data, request_id}` with a real status; a refusal has a `reason` instead of data. \
                    `request_id` is also the header `x-request-id`, of every answer; a request may \
                    bring its own. A request with a field that nobody reads is refused \
                    (`invalid_param`, naming it); unknown fields may appear in answers.",
                "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            },
            "servers": [{ "url": "/" }],
            "tags": self.tags,
            "paths": self.paths,
            "components": {
                "schemas": schemas,
                "responses": refusals::common(),
                "securitySchemes": {
                    "bearer": {
                        "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
                        "description": "The `token` of `POST /auth/login`.",
                    },
                    "operator": {
                        "type": "http", "scheme": "bearer",
                        "description": "A token in the data folder, for the operator alone.",
                    },
                },
            },
        })
    }
}

/// A form as the document has it.
fn form_of(named: &Named) -> Value {
    let mut form = json!(named.schema);
    if named.is_said {
        shapes::without_null(&mut form);
    } else if form["type"] == "object" {
        let is_strict = form["additionalProperties"] == false;
        assert!(is_strict, "{} would ignore a field that nobody reads", named.name);
    }
    form
}

/// An answer in JSON.
pub(super) fn answer(description: &str, form: &Value) -> Value {
    json!({
        "description": description,
        "content": { "application/json": { "schema": form } },
    })
}
