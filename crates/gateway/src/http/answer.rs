//! One form of answer for every handler.

use std::marker::PhantomData;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Json;
use axum::extract::{ConnectInfo, FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use nexo_chat::read::Listed;
use nexo_chat::{Error, Reason};
use nexo_wire::codes;
use nexo_wire::http::Envelope;
use serde::Serialize;

use super::naming::RequestId;
use super::origin::origin;
use crate::gateway::Gateway;

/// Characters of what a refusal says in detail.
const DETAIL_CHARS_MAX: usize = 200;

/// The request as such: its name and where it came from.
pub(super) struct Asked {
    request_id: String,
    /// The peer's address, which limits are counted by.
    pub(super) from: IpAddr,
}

/// A `T`, or a refusal.
pub(super) struct Answer<T>(Response, PhantomData<fn() -> T>);

/// A list of `T` that may go on, or a refusal.
pub(super) struct Answers<T>(Response, PhantomData<fn() -> T>);

impl Asked {
    pub(super) fn of(gateway: &Gateway, parts: &Parts) -> Self {
        let request_id = parts.extensions.get::<RequestId>();
        let request_id = request_id.map_or_else(String::new, |id| id.0.clone());
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0.ip());
        let from = origin(peer, &parts.headers, &gateway.options.trusted_proxies);
        Self { request_id, from }
    }

    /// A refusal, if the query says something that its path does not know.
    pub(super) fn refuse_unknown_query(self, parts: &Parts) -> Option<Response> {
        let known = parts.extensions.get::<KnownQuery>();
        let problem = known.and_then(|known| known.problem(&parts.uri))?;
        Some(self.refuse_with(Reason::InvalidParam, Some(&problem)))
    }

    /// A success or a refusal.
    pub(super) fn answer<T: Serialize>(self, result: Result<T, Error>) -> Answer<T> {
        let response = match result {
            Ok(data) => private(Json(Envelope::ok(data, self.request_id)).into_response()),
            Err(error) => self.fail(&error),
        };
        Answer(response, PhantomData)
    }

    /// A list, and whether it goes on. Items without a form of this kind are left out.
    pub(super) fn list<T, U: Serialize>(
        self,
        result: Result<Listed<T>, Error>,
        show: impl Fn(&T) -> Option<U>,
    ) -> Answers<U> {
        let response = match result {
            Ok(listed) => {
                let data: Vec<U> = listed.items.iter().filter_map(show).collect();
                let envelope = Envelope {
                    has_more: Some(listed.has_more),
                    ..Envelope::ok(data, self.request_id)
                };
                private(Json(envelope).into_response())
            }
            Err(error) => self.fail(&error),
        };
        Answers(response, PhantomData)
    }

    pub(super) fn fail(self, error: &Error) -> Response {
        if let Error::Unavailable(_) | Error::Internal(_) = error {
            tracing::warn!(%error, "a request failed");
        }
        self.refuse(error.reason())
    }

    /// A refusal.
    pub(super) fn refuse(self, reason: Reason) -> Response {
        self.refuse_with(reason, None)
    }

    /// A refusal that says what exactly is wrong with the request.
    pub(super) fn refuse_with(self, reason: Reason, detail: Option<&str>) -> Response {
        let status = StatusCode::from_u16(codes::row(reason).http);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut body = Envelope::refused(reason, self.request_id);
        if let Some(detail) = detail {
            body.message = format!("{}: {}", body.message, short(detail));
        }
        let mut response = (status, Json(body)).into_response();
        response.extensions_mut().insert(reason); // for those who compare it with the document
        let headers = response.headers_mut();
        let is_passing =
            matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        // A cooldown takes hours: nobody should come back in a second.
        if is_passing && reason != Reason::CooldownNotReached {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// What is answered may hold tokens, and what people write: nobody on the way keeps it.
fn private(mut response: Response) -> Response {
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, no_store);
    response
}

/// A detail repeats what was sent, but not at any length.
fn short(detail: &str) -> String {
    detail.chars().take(DETAIL_CHARS_MAX).collect()
}

/// The names of the query parameters that a path knows; it is refused with any other, so that a
/// misspelled one is noticed.
#[derive(Clone)]
pub(super) struct KnownQuery {
    pub(super) names: Arc<[String]>,
    /// Whether it is asked first who asks: without that, nothing else is said.
    pub(super) needs_token: bool,
}

impl KnownQuery {
    /// What is wrong with the query, if anything is.
    fn problem(&self, uri: &Uri) -> Option<String> {
        let given = query_names(uri);
        let unknown = given.iter().find(|name| !self.names.contains(name))?;
        let known =
            self.names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "nothing".to_owned() } else { known };
        Some(format!("unknown field `{unknown}`, the query may have {known}"))
    }
}

/// The names of what a query says.
pub(super) fn query_names(uri: &Uri) -> Vec<String> {
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri);
    pairs.map(|Query(pairs)| pairs.into_iter().map(|(name, _)| name).collect()).unwrap_or_default()
}

impl FromRequestParts<Arc<Gateway>> for Asked {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Response> {
        let known = parts.extensions.get::<KnownQuery>();
        if known.is_some_and(|known| !known.needs_token)
            && let Some(refusal) = Self::of(gateway, parts).refuse_unknown_query(parts)
        {
            return Err(refusal);
        }
        Ok(Self::of(gateway, parts))
    }
}

impl<T> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        self.0
    }
}

impl<T> IntoResponse for Answers<T> {
    fn into_response(self) -> Response {
        self.0
    }
}
