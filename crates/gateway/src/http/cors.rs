//! Which pages of other sites may ask: those the operator named, the same that may open a socket.
//! Everybody else hears nothing of it, and a browser then keeps the answer from the page.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::gateway::Gateway;

/// How long a browser may remember what it was told, in seconds.
const REMEMBERED: HeaderValue = HeaderValue::from_static("3600");
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT");
const HEADERS: HeaderValue = HeaderValue::from_static("authorization, content-type, x-request-id");
const EXPOSED: HeaderValue = HeaderValue::from_static("x-request-id, retry-after");

/// Lets the pages in that may ask, and answers what their browsers ask first.
pub(super) async fn allow(
    State(gateway): State<Arc<Gateway>>,
    request: Request,
    next: Next,
) -> Response {
    let allowed = &gateway.options.allowed_origins;
    if allowed.is_empty() {
        return next.run(request).await;
    }
    let origin = named(request.headers(), allowed);
    let is_first = request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match &origin {
        Some(_) if is_first => preflight(),
        _ => next.run(request).await,
    };
    let headers = response.headers_mut();
    // Who caches must not give one page's answer to another.
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
    response
}

/// The page that asks, if it may.
fn named(headers: &HeaderMap, allowed: &[String]) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    let text = origin.to_str().ok()?;
    allowed.iter().any(|one| one.eq_ignore_ascii_case(text)).then(|| origin.clone())
}

fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS),
        (header::ACCESS_CONTROL_MAX_AGE, REMEMBERED),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}
