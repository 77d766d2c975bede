//! Checks the head of a request before any handler, and closes the connection after a response to a request whose
//! body was not read to its end: its remaining bytes would be parsed as the next request.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use nexo_chat::Reason;

use crate::gateway::Gateway;
use crate::http::response::RequestContext;

/// Marks a request that has both `Content-Length` and `Transfer-Encoding`.
#[derive(Clone)]
pub(crate) struct AmbiguousLength;

/// Refuses a head that this server and a proxy before it could read differently.
pub(super) async fn check(
    State(gateway): State<Arc<Gateway>>,
    request: Request,
    next: Next,
) -> Response {
    #[cfg(debug_assertions)]
    crate::test_panic::on_request(request.headers());
    if let Some(problem) = problem(&request) {
        let (parts, _body) = request.into_parts();
        let context = RequestContext::new(&gateway, &parts);
        return close_after(context.refuse_with_detail(Reason::InvalidParam, Some(problem)));
    }
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let is_read = Arc::new(AtomicBool::new(false));
    let tracked = |body| Body::new(TrackedBody { body, is_read: Arc::clone(&is_read) });
    let response = next.run(request.map(tracked)).await;
    if is_read.load(Ordering::Relaxed) || response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return response;
    }
    close_after(response)
}

fn problem(request: &Request) -> Option<&'static str> {
    let hosts = request.headers().get_all(header::HOST).iter().count();
    if request.extensions().get::<AmbiguousLength>().is_some() {
        return Some("a request has Content-Length or Transfer-Encoding, not both");
    }
    match hosts {
        0 if request.version() >= Version::HTTP_11 => Some("the Host header is missing"),
        0 | 1 => None,
        _ => Some("there is more than one Host header"),
    }
}

fn close_after(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A body that records that it was read to its end.
struct TrackedBody {
    body: Body,
    is_read: Arc<AtomicBool>,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() || self.body.is_end_stream() {
            self.is_read.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
