//! The `OpenAPI` document, put together from the described operations.

use axum::http::Method;
use nexo_chat::Reason;
use nexo_wire::field_schemas;
use serde_json::{Map, Value, json};

use crate::http::openapi::describe::{NamedSchema, Operation};
use crate::http::openapi::flatten::flatten;
use crate::http::openapi::refusals;

#[derive(Default)]
pub(in crate::http) struct Document {
    tags: Vec<Value>,
    paths: Map<String, Value>,
    schemas: Map<String, Value>,
}

impl Document {
    pub(in crate::http) fn tag(&mut self, name: &str, description: &str) {
        self.tags.push(json!({ "name": name, "description": description }));
    }

    /// Adds an operation whose success is an envelope.
    pub(in crate::http) fn add(
        &mut self,
        method: &Method,
        path: &str,
        group: &str,
        summary: &str,
        described: Operation,
    ) {
        let (name, fields) = described.success;
        let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
        self.add_schema(&name, &refusals::success(&fields));
        let mut operation = json!({ "responses": { "200": answer("It worked.", &schema) } });
        if !described.parameters.is_empty() {
            operation["parameters"] = json!(described.parameters);
        }
        if let Some((schema, required)) = described.body {
            let content = json!({ "application/json": { "schema": schema } });
            operation["requestBody"] = json!({ "content": content, "required": required });
        }
        if let Some(schema) = described.lines {
            let content = json!({ "application/octet-stream": { "schema": schema } });
            operation["requestBody"] = json!({ "content": content, "required": true });
        }
        if let Some(scheme) = described.security {
            operation["security"] = json!([{ scheme: [] }]);
        }
        for named in &described.schemas {
            self.add_schema(&named.name, &normalized(named));
        }
        self.put(method, path, group, summary, &described.reasons, operation);
    }

    /// Adds an operation whose success has no envelope.
    pub(in crate::http) fn add_plain(
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

    /// Adds a named schema. Two different schemas of one name are a bug.
    fn add_schema(&mut self, name: &str, schema: &Value) {
        let known = self.schemas.entry(name).or_insert_with(|| schema.clone());
        assert!(known == schema, "two schemas are called {name}");
    }

    pub(in crate::http) fn finish(self, version: &str) -> Value {
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
                    "admin_key": key("admin", "`system.token` of the data folder works too."),
                    "backend_key": key("backend", "One with the scope `admin` works too."),
                    "system_key": key("system", "`system.token` of the data folder works too."),
                    "metrics_key": key("metrics", "`metrics.token` of the data folder works too."),
                },
            },
        })
    }
}

/// The security scheme of a scope.
fn key(scope: &str, also: &str) -> Value {
    let description = format!("An API key (`nk_…`) with the scope `{scope}`. {also}");
    json!({ "type": "http", "scheme": "bearer", "description": description })
}

/// A schema as the document shows it: optional fields of answers are never null, and requests are strict.
fn normalized(named: &NamedSchema) -> Value {
    let mut schema = json!(named.schema);
    if named.is_answer {
        field_schemas::without_null(&mut schema);
    } else if schema["type"] == "object" {
        let is_strict = schema["additionalProperties"] == false;
        assert!(is_strict, "{} would ignore an unknown field", named.name);
    }
    schema
}

/// A response object with JSON content.
pub(in crate::http) fn answer(description: &str, schema: &Value) -> Value {
    json!({
        "description": description,
        "content": { "application/json": { "schema": schema } },
    })
}
