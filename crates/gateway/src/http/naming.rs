//! Every request has a name: it is in the answer, in the answer's head, and in every line that is
//! logged on the way. How long the request took is counted here too.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use nexo_chat::Reason;
use tracing::Instrument;

use crate::gateway::Gateway;
use crate::measure::Measures;

/// The header a request's name is given in, both ways.
pub(super) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// What a request is called.
#[derive(Clone)]
pub(super) struct RequestId(pub(super) String);

impl RequestId {
    /// The client's name for it, if that is one; else a new one.
    fn of(gateway: &Gateway, headers: &HeaderMap) -> Self {
        let given = headers.get(HEADER).and_then(|value| value.to_str().ok());
        let id = given.filter(|id| is_fine(id));
        Self(id.map_or_else(|| format!("{:016x}", gateway.name_connection().0), ToOwned::to_owned))
    }
}

fn is_fine(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// Names a request, and measures it. The query is not logged: it may hold a token.
pub(super) async fn name(
    State(gateway): State<Arc<Gateway>>,
    mut request: Request,
    next: Next,
) -> Response {
    let since = Instant::now();
    let id = RequestId::of(&gateway, request.headers());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let (method, path) = (request.method(), request.uri().path());
    let span = tracing::info_span!("http", request_id = id.0, %method, path);
    request.extensions_mut().insert(id.clone());
    let mut response = next.run(request).instrument(span.clone()).await;
    let elapsed = since.elapsed();
    let route = route.as_ref().map_or("other", MatchedPath::as_str).to_owned();
    let status = response.status();
    Measures::answered(route, status.as_u16(), elapsed);
    if let Some(reason) = response.extensions().get::<Reason>() {
        Measures::refused("http", *reason);
    }
    span.in_scope(|| {
        if status.is_server_error() {
            tracing::info!(status = status.as_u16(), ?elapsed, "answered");
        } else {
            tracing::debug!(status = status.as_u16(), ?elapsed, "answered");
        }
    });
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_name_is_short_and_plain() {
        for good in ["a", "0193-ab_C", &"x".repeat(64)] {
            assert!(is_fine(good), "{good}");
        }
        for bad in ["", "a b", "a\"b", "é", "a\n", &"x".repeat(65)] {
            assert!(!is_fine(bad), "{bad}");
        }
    }
}
