//! Server info, health checks and metrics.

use axum::Json;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use nexo_chat::keys::Scope;
use nexo_chat::{Chat, Reason};
use nexo_wire::enum_values;
use nexo_wire::http::server_info::{OidcWay, ServerInfo, SignInWays};
use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::http::extract::GatewayState;
use crate::http::openapi::document::answer;
use crate::http::openapi::paths::{Paths, paths};
use crate::http::response::{ApiResponse, RequestContext};
use crate::http::routes::web_client;
use crate::http::with_key::operator;

pub(in crate::http) fn paths(paths: &mut Paths) {
    paths.group("Server", "What it is, how it is, and what it counts.");
    paths! { paths:
        GET "/server/info" info, "What this server is, what it speaks, and what one must keep to." []
    }
    let page = text_operation("text/html", "The page.");
    paths.plain("/", web_client::page, "The web client.", &[], page);
    let schema = json!({ "type": "object", "required": ["status"], "properties": {
        "status": { "type": "string" },
        "store": { "type": "string", "description": "What is wrong; only with the key of `/metrics`." },
        "bus": { "type": "string", "description": "Why other nodes are not reached; only with that key." },
        "damaged_places": { "type": "integer",
            "description": "Places of the stored data that were found damaged; only with that key." },
        "damaged": { "type": "array", "items": { "type": "string" },
            "description": "The first of these places; only with that key." },
    } });
    let alive = json!({ "responses": { "200": answer("It answers.", &schema) } });
    paths.plain("/healthz", healthz, "Whether the process answers.", &[], alive);
    let ready = json!({ "responses": {
        "200": answer("It takes requests.", &schema),
        "503": answer("It is going down, or its store has stopped.", &schema),
    } });
    paths.plain(
        "/readyz",
        readyz,
        "Whether it takes requests; with the key of `/metrics` also why not.",
        &[],
        ready,
    );
    let mut counted = text_operation("text/plain", "The text format of Prometheus.");
    counted["security"] = json!([{ "metrics_key": [] }]);
    let reasons = [Reason::Unauthorized, Reason::ScopeMissing, Reason::TooManyRequests];
    paths.plain("/metrics", metrics, "What is counted and timed.", &reasons, counted);
}

/// An operation of the document whose success is text.
pub(in crate::http) fn text_operation(kind: &str, description: &str) -> Value {
    let content = json!({ kind: { "schema": { "type": "string" } } });
    json!({ "responses": { "200": { "description": description, "content": content } } })
}

async fn info(State(gateway): GatewayState, context: RequestContext) -> ApiResponse<ServerInfo> {
    context.respond(Ok(ServerInfo {
        name: "nexo",
        version: gateway.options.version.clone(),
        dialects: ["typed", "numbered", "dotted"],
        session_policy: enum_values::session_policy(gateway.chat.rules.session_policy),
        registration: enum_values::registration(gateway.chat.rules.registration()),
        sign_in: sign_in_ways(&gateway.chat),
        limits: gateway.limits.clone(),
    }))
}

fn sign_in_ways(chat: &Chat) -> SignInWays {
    SignInWays {
        password: true,
        token: chat.token_verifier.is_some(),
        oidc: chat.oidc.as_ref().map(|oidc| OidcWay { name: oidc.name.clone() }),
    }
}

pub(in crate::http) async fn healthz() -> Response {
    Json(json!({ "status": "ok" })).into_response()
}

pub(in crate::http) async fn readyz(State(gateway): GatewayState, parts: Parts) -> Response {
    let key = operator(&gateway, &parts, Scope::Metrics).await;
    readiness(&gateway, key.is_ok())
}

pub(in crate::http) async fn open_readyz(State(gateway): GatewayState) -> Response {
    readiness(&gateway, true)
}

/// Only the operator sees the details: they may name hosts and folders.
fn readiness(gateway: &Gateway, with_details: bool) -> Response {
    let body = |status: &str, part: &str, problem: String| {
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
        None => {
            let damage = gateway.chat.store.known_damage();
            match gateway.chat.bus.health() {
                Ok(()) if damage.places == 0 => Json(json!({ "status": "ready" })).into_response(),
                // Still serving: only what needs the damaged places is refused.
                Ok(()) => {
                    let mut body = json!({ "status": "degraded" });
                    if with_details {
                        body["damaged_places"] = damage.places.into();
                        body["damaged"] = damage.examples.into();
                    }
                    Json(body).into_response()
                }
                // Still serving: sessions find messages of other nodes by a gap in seq, only later.
                Err(problem) => body("degraded", "bus", problem).into_response(),
            }
        }
        Some(problem) => {
            let body = body("not ready", "store", problem);
            let wait = [(header::RETRY_AFTER, "1")];
            (StatusCode::SERVICE_UNAVAILABLE, wait, body).into_response()
        }
    }
}

pub(in crate::http) async fn metrics(
    State(gateway): GatewayState,
    context: RequestContext,
    parts: Parts,
) -> Response {
    if let Err(error) = operator(&gateway, &parts, Scope::Metrics).await {
        return context.respond_error(&error);
    }
    open_metrics(State(gateway)).await
}

pub(in crate::http) async fn open_metrics(State(gateway): GatewayState) -> Response {
    // The page also reads files of the system and of the data folder.
    match tokio::task::spawn_blocking(move || (gateway.metrics_page)()).await {
        Ok(page) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], page).into_response(),
        Err(error) => {
            tracing::error!(%error, "the page of metrics cannot be made");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
