//! The request id: in the body and a header of the answer, and in every log line of the request. The middleware
//! also measures how long the request took.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt;
use nexo_chat::Reason;
use tracing::Instrument;

use crate::admission::Place;
use crate::gateway::Gateway;
use crate::http::response::{RequestContext, client_of};
use crate::meters::Meters;

/// In requests and responses.
pub(super) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

#[derive(Clone)]
pub(super) struct RequestId(pub(super) String);

impl RequestId {
    /// The id of the client, if it is a valid one; else a new one.
    fn new(gateway: &Gateway, headers: &HeaderMap) -> Self {
        let given = headers.get(HEADER).and_then(|value| value.to_str().ok());
        let id = given.filter(|id| is_valid(id));
        Self(
            id.map_or_else(
                || format!("{:016x}", gateway.next_connection_id().0),
                ToOwned::to_owned,
            ),
        )
    }
}

fn is_valid(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// A panic ends the request, not its connection; the hook of the process has logged it.
fn refuse_after_panic(id: &RequestId) -> Response {
    RequestContext::without_client(id).refuse(Reason::InternalError)
}

/// Gives the request its id, logs and measures it. The query is not logged: it may hold a token.
pub(super) async fn assign(
    State(gateway): State<Arc<Gateway>>,
    mut request: Request,
    next: Next,
) -> Response {
    let since = Instant::now();
    let place = request.extensions().get::<Arc<Place>>();
    if let Some(place) = place.filter(|place| place.is_proxied()) {
        let client = client_of(&gateway, request.extensions(), request.headers());
        place.set_client(client, gateway.chat.clock.ticks());
    }
    let id = RequestId::new(&gateway, request.headers());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let (method, path) = (request.method(), request.uri().path());
    let span = tracing::info_span!("http", request_id = id.0, %method, path);
    request.extensions_mut().insert(id.clone());
    let answering = AssertUnwindSafe(next.run(request)).catch_unwind();
    let answered = answering.instrument(span.clone()).await;
    let mut response = answered.unwrap_or_else(|_panic| refuse_after_panic(&id));
    let elapsed = since.elapsed();
    let route = route.as_ref().map_or("other", MatchedPath::as_str).to_owned();
    let status = response.status();
    Meters::record_http(route, status.as_u16(), elapsed);
    let reason = response.extensions().get::<Reason>().copied();
    if let Some(reason) = reason {
        Meters::count_refusal("http", reason);
    }
    span.in_scope(|| {
        // What is busy has its own lines in the log; a flood of requests must not write one each.
        if status.is_server_error() && reason != Some(Reason::ServerBusy) {
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
            assert!(is_valid(good), "{good}");
        }
        for bad in ["", "a b", "a\"b", "é", "a\n", &"x".repeat(65)] {
            assert!(!is_valid(bad), "{bad}");
        }
    }
}
