//! The `OpenAPI` document, and a page to read and try it. The page loads nothing from other hosts.

use std::sync::{Arc, OnceLock};

use axum::extract::{Path, State};
use axum::handler::Handler;
use axum::http::header::{self, HeaderName};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use nexo_chat::Reason;
use nexo_wire::typed;
use serde_json::json;

use crate::gateway::Gateway;
use crate::http::openapi::paths::Paths;
use crate::http::pretty_json;
use crate::http::response::RequestContext;
use crate::http::routes::server::text_operation;

/// Scripts, styles and requests only from and to this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const PAGE: &str = include_str!("docs_page/page.html");
const SCRIPT: &str = include_str!("docs_page/app.js");
const STYLE: &str = include_str!("docs_page/style.css");

static DOCUMENT: OnceLock<Bytes> = OnceLock::new();

pub(in crate::http) fn paths(paths: &mut Paths) {
    let form = json!({ "application/json": { "schema": { "type": "object" } } });
    let operation =
        json!({ "responses": { "200": { "description": "OpenAPI 3.1.", "content": form } } });
    paths.plain("/openapi.json", document, "This document.", &[], operation);
    let page = text_operation("text/html", "The page.");
    paths.plain("/docs", page_of_docs, "A page to read this document and to try it.", &[], page);
    let files = json!({
        "parameters": [{ "name": "file", "in": "path", "required": true, "schema": {
            "enum": ["app.js", "style.css", "typed.schema.json"],
        } }],
        "responses": { "200": { "description": "The file.", "content": {
            "text/javascript": { "schema": { "type": "string" } },
            "text/css": { "schema": { "type": "string" } },
            "application/schema+json": { "schema": { "type": "object" } },
        } } },
    });
    let summary = "A file of that page, or the JSON Schema of the typed dialect's frames.";
    paths.plain("/docs/{file}", file, summary, &[Reason::NotFound], files);
}

/// The path of the WebSocket.
pub(in crate::http) fn socket<H, T>(paths: &mut Paths, upgrade: H)
where
    H: Handler<T, Arc<Gateway>>,
    T: 'static,
{
    let numbered = [
        (
            "token",
            "The access token. With `send_id` it makes this the numbered dialect. Better in the header \
             `Authorization: Bearer …`, or offered by a browser as the protocol `nexo.token.…` beside `nexo`; \
             `gateway.token_in_query = false` refuses it here.",
        ),
        ("send_id", "Whose token it is."),
        ("platform_id", "The device's kind, if it is to be checked."),
        ("operation_id", "Repeated by the answer to `is_msg_resp`."),
        ("sdk_type", "`js` for nested objects instead of base64."),
        ("is_msg_resp", "`true` to hear as a frame whether the connection was accepted."),
        ("v", "All of these as JSON, or base64 of it; or 1, the version."),
    ];
    let parameters = numbered.map(|(name, description)| {
        let form = json!({ "type": if name == "platform_id" { "integer" } else { "string" } });
        json!({ "name": name, "in": "query", "description": description, "schema": form })
    });
    let operation = json!({
        "parameters": parameters,
        "responses": { "101": { "description": "A WebSocket. Without a token in the query, the first \
            frame says who it is: `{\"type\":\"AUTH\",\"token\":\"…\"}`." } },
    });
    let reasons = [
        Reason::InvalidParam,
        Reason::MissingToken,
        Reason::InvalidToken,
        Reason::TokenExpired,
        Reason::SessionInvalid,
        Reason::OriginNotAllowed,
        Reason::TooManyConnections,
        Reason::ServerBusy,
        Reason::ShuttingDown,
        Reason::ReauthUidMismatch,
        Reason::Damaged,
        Reason::InternalError,
    ];
    paths.plain("/ws", upgrade, "Opens a WebSocket.", &reasons, operation);
}

async fn document(State(gateway): State<Arc<Gateway>>) -> Response {
    let page = DOCUMENT.get_or_init(|| {
        let document = crate::http::all_paths().document.finish(&gateway.options.version);
        pretty_json::to_string(&document).into()
    });
    ([(header::CONTENT_TYPE, "application/json")], page.clone()).into_response()
}

async fn page_of_docs() -> Response {
    serve("text/html; charset=utf-8", PAGE.into())
}

async fn file(context: RequestContext, Path(name): Path<String>) -> Response {
    match name.as_str() {
        "app.js" => serve("text/javascript; charset=utf-8", SCRIPT.into()),
        "style.css" => serve("text/css; charset=utf-8", STYLE.into()),
        "typed.schema.json" => {
            serve("application/schema+json", pretty_json::to_string(&typed::schema()).into())
        }
        _ => context.refuse(Reason::NotFound),
    }
}

fn serve(kind: &'static str, body: Bytes) -> Response {
    let headers: [(HeaderName, &str); 5] = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, body).into_response()
}
