//! CORS: pages of `allowed_origins` may call the API, as they may open a socket. Other pages get no CORS headers, so
//! their browser withholds the answer.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::gateway::Gateway;

/// Seconds a browser may cache a preflight.
const MAX_AGE: HeaderValue = HeaderValue::from_static("3600");
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT");
const HEADERS: HeaderValue = HeaderValue::from_static("authorization, content-type, x-request-id");
const EXPOSED: HeaderValue = HeaderValue::from_static("x-request-id, retry-after");

/// Answers preflights, and adds the CORS headers for allowed origins.
pub(super) async fn allow(
    State(gateway): State<Arc<Gateway>>,
    request: Request,
    next: Next,
) -> Response {
    let allowed = &gateway.options.allowed_origins;
    if allowed.is_empty() {
        return next.run(request).await;
    }
    let origin = allowed_origin(request.headers(), allowed);
    let is_preflight = request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match &origin {
        Some(_) if is_preflight => preflight(),
        _ => next.run(request).await,
    };
    let headers = response.headers_mut();
    // A cache must not give the answer for one origin to another.
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
    response
}

fn allowed_origin(headers: &HeaderMap, allowed: &[String]) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    let text = origin.to_str().ok()?;
    allowed.iter().any(|one| one.eq_ignore_ascii_case(text)).then(|| origin.clone())
}

fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS),
        (header::ACCESS_CONTROL_MAX_AGE, MAX_AGE),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}
