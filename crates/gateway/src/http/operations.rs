//! What operators and newcomers ask: is it alive, is it ready, what does it count, what is it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use nexo_chat::Reason;
use serde_json::json;

use super::answer::{Asked, bearer};
use crate::gateway::Gateway;

/// Nothing from elsewhere, no script, no frame.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

pub(super) async fn welcome() -> Response {
    let headers = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, Html(include_str!("welcome.html"))).into_response()
}

pub(super) async fn healthz() -> Response {
    Json(json!({ "status": "ok" })).into_response()
}

pub(super) async fn readyz(State(gateway): State<Arc<Gateway>>) -> Response {
    let problem = if gateway.is_draining() {
        Some("shutting down".to_owned())
    } else {
        gateway.chat.store.health().err().map(|error| error.to_string())
    };
    match problem {
        None => Json(json!({ "status": "ready" })).into_response(),
        Some(problem) => {
            let body = Json(json!({ "status": "not ready", "store": problem }));
            (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
        }
    }
}

pub(super) async fn metrics(
    State(gateway): State<Arc<Gateway>>,
    asked: Asked,
    parts: Parts,
) -> Response {
    if !is_operator(gateway.options.metrics_token.as_ref(), &parts) {
        return asked.refuse(Reason::Unauthorized);
    }
    open_metrics(State(gateway)).await
}

/// Whether a request shows the token that only the operator has.
pub(super) fn is_operator(token: Option<&String>, parts: &Parts) -> bool {
    match (token, bearer(parts)) {
        (Some(token), Some(given)) => is_same(token.as_bytes(), given.as_bytes()),
        _ => false,
    }
}

pub(super) async fn open_metrics(State(gateway): State<Arc<Gateway>>) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    (kind, (gateway.metrics_page)()).into_response()
}

/// Compares without telling by its time how much fits.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}
