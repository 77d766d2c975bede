//! What operators and newcomers ask: is it alive, is it ready, what does it count, what is it.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use nexo_chat::Reason;
use nexo_wire::info::ServerInfo;
use nexo_wire::words;
use serde_json::{Value, json};

use super::answer::{Answer, Asked};
use super::document::answer;
use super::paths::{Paths, paths};
use super::taken::bearer;
use super::web;
use crate::gateway::Gateway;

/// The paths about the server itself.
pub(super) fn paths(paths: &mut Paths) {
    paths.group("Server", "What it is, how it is, and what it counts.");
    paths! { paths:
        GET "/server/info" info, "What this server is, what it speaks, and what one must keep to." []
    }
    let page = text("text/html", "The page.");
    paths.plain("/", web::page, "The web client.", &[], page);
    let form = json!({ "type": "object", "required": ["status"], "properties": {
        "status": { "type": "string" },
        "store": { "type": "string", "description": "What is wrong; only with the token of `/metrics`." },
        "bus": { "type": "string", "description": "Why other nodes are not reached; only with that token." },
    } });
    let alive = json!({ "responses": { "200": answer("It answers.", &form) } });
    paths.plain("/healthz", healthz, "Whether the process answers.", &[], alive);
    let ready = json!({ "responses": {
        "200": answer("It takes requests.", &form),
        "503": answer("It is going down, or its store has stopped.", &form),
    } });
    paths.plain(
        "/readyz",
        readyz,
        "Whether it takes requests; with the token of `/metrics` also why not.",
        &[],
        ready,
    );
    let mut counted = text("text/plain", "The text format of Prometheus.");
    counted["security"] = json!([{ "operator": [] }]);
    let refused = [Reason::Unauthorized];
    paths.plain("/metrics", metrics, "What is counted and timed.", &refused, counted);
}

/// An operation that answers with text.
pub(super) fn text(kind: &str, description: &str) -> Value {
    let content = json!({ kind: { "schema": { "type": "string" } } });
    json!({ "responses": { "200": { "description": description, "content": content } } })
}

async fn info(State(gateway): State<Arc<Gateway>>, asked: Asked) -> Answer<ServerInfo> {
    asked.answer(Ok(ServerInfo {
        name: "nexo",
        version: gateway.options.version.clone(),
        dialects: ["typed", "numbered", "dotted"],
        session_policy: words::session_policy(gateway.chat.rules.session_policy),
        registration: words::registration(gateway.chat.rules.registration()),
        limits: gateway.limits.clone(),
    }))
}

async fn healthz() -> Response {
    Json(json!({ "status": "ok" })).into_response()
}

async fn readyz(State(gateway): State<Arc<Gateway>>, parts: Parts) -> Response {
    let is_operator = is_operator(gateway.options.metrics_token.as_ref(), &parts);
    readiness(&gateway, is_operator)
}

pub(super) async fn open_readyz(State(gateway): State<Arc<Gateway>>) -> Response {
    readiness(&gateway, true)
}

/// Whether it takes requests. Why not is for the operator: it may name hosts and folders.
fn readiness(gateway: &Gateway, with_details: bool) -> Response {
    let told = |status: &str, part: &str, problem: String| {
        let mut body = json!({ "status": status });
        if with_details {
            body[part] = problem.into();
        }
        Json(body)
    };
    let problem = if gateway.is_draining() {
        Some("shutting down".to_owned())
    } else {
        gateway.chat.store.health().err().map(|error| error.to_string())
    };
    match problem {
        None => match gateway.chat.bus.health() {
            Ok(()) => Json(json!({ "status": "ready" })).into_response(),
            // Everything works, only slower: what others say here is found by asking for it.
            Err(problem) => told("degraded", "bus", problem).into_response(),
        },
        Some(problem) => {
            let body = told("not ready", "store", problem);
            let wait = [(header::RETRY_AFTER, "1")];
            (StatusCode::SERVICE_UNAVAILABLE, wait, body).into_response()
        }
    }
}

async fn metrics(State(gateway): State<Arc<Gateway>>, asked: Asked, parts: Parts) -> Response {
    if !is_operator(gateway.options.metrics_token.as_ref(), &parts) {
        return asked.refuse(Reason::Unauthorized);
    }
    open_metrics(State(gateway)).await
}

pub(super) async fn open_metrics(State(gateway): State<Arc<Gateway>>) -> Response {
    // It also reads files, of the system and of the data folder.
    match tokio::task::spawn_blocking(move || (gateway.metrics_page)()).await {
        Ok(page) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], page).into_response(),
        Err(error) => {
            tracing::error!(%error, "the page of metrics cannot be made");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Proof that the operator asks, by the token of the system's voice.
pub(super) struct Operator;

impl FromRequestParts<Arc<Gateway>> for Operator {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Response> {
        let asked = Asked::of(gateway, parts);
        if is_operator(gateway.options.system_token.as_ref(), parts) {
            return asked.refuse_unknown_query(parts).map_or(Ok(Self), Err);
        }
        Err(asked.refuse(Reason::Unauthorized))
    }
}

/// Whether a request shows the token that only the operator has.
fn is_operator(token: Option<&String>, parts: &Parts) -> bool {
    match (token, bearer(parts)) {
        (Some(token), Some(given)) => is_same(token.as_bytes(), given.as_bytes()),
        _ => false,
    }
}

/// Compares without telling by its time how much fits.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}
