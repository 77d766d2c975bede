//! The response of every handler: JSON in the one envelope, with the request id.

use std::marker::PhantomData;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Json;
use axum::extract::{ConnectInfo, FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use nexo_chat::read::Page;
use nexo_chat::{Error, Reason};
use nexo_wire::codes;
use nexo_wire::http::damaged;
use nexo_wire::http::envelope::HttpEnvelope;
use serde::Serialize;

use crate::gateway::Gateway;
use crate::http::client_ip::client_ip;
use crate::http::request_id::RequestId;

/// A detail repeats parts of the request, but no more characters of it than this.
const DETAIL_CHARS_MAX: usize = 200;

/// What a response needs of its request: the request id, and the client it counts against.
pub(super) struct RequestContext {
    request_id: String,
    /// Rate limits are counted by this address.
    pub(super) client_ip: IpAddr,
}

/// A `T`, or a refusal. The type is for the `OpenAPI` document.
pub(super) struct ApiResponse<T>(Response, PhantomData<fn() -> T>);

/// A list of `T` with `has_more`, or a refusal.
pub(super) struct ApiListResponse<T>(Response, PhantomData<fn() -> T>);

impl RequestContext {
    pub(super) fn new(gateway: &Gateway, parts: &Parts) -> Self {
        let request_id = parts.extensions.get::<RequestId>();
        let request_id = request_id.map_or_else(String::new, |id| id.0.clone());
        let client_ip = client_of(gateway, &parts.extensions, &parts.headers);
        Self { request_id, client_ip }
    }

    /// For an answer that only needs the request id.
    pub(super) fn without_client(id: &RequestId) -> Self {
        Self { request_id: id.0.clone(), client_ip: IpAddr::from([0, 0, 0, 0]) }
    }

    /// A refusal, if the query has a parameter that the path does not know.
    pub(super) fn refuse_unknown_query(self, parts: &Parts) -> Option<Response> {
        let allowed = parts.extensions.get::<AllowedQuery>();
        let problem = allowed.and_then(|allowed| allowed.problem(&parts.uri))?;
        Some(self.refuse_with_detail(Reason::InvalidParam, Some(&problem)))
    }

    pub(super) fn respond<T: Serialize>(self, result: Result<T, Error>) -> ApiResponse<T> {
        let response = match result {
            Ok(data) => no_store(Json(HttpEnvelope::ok(data, self.request_id)).into_response()),
            Err(error) => self.respond_error(&error),
        };
        ApiResponse(response, PhantomData)
    }

    /// Items that `encode` has no form for are left out.
    pub(super) fn respond_list<T, U: Serialize>(
        self,
        result: Result<Page<T>, Error>,
        encode: impl Fn(&T) -> Option<U>,
    ) -> ApiListResponse<U> {
        let response = match result {
            Ok(listed) => {
                let data: Vec<U> = listed.items.iter().filter_map(encode).collect();
                let damaged = damaged::ranges(&listed.damaged).into_iter().map(Into::into);
                let envelope = HttpEnvelope {
                    has_more: Some(listed.has_more),
                    damaged: damaged.collect(),
                    ..HttpEnvelope::ok(data, self.request_id)
                };
                no_store(Json(envelope).into_response())
            }
            Err(error) => self.respond_error(&error),
        };
        ApiListResponse(response, PhantomData)
    }

    pub(super) fn respond_error(self, error: &Error) -> Response {
        if let Error::Unavailable(_) | Error::Internal(_) = error {
            tracing::warn!(%error, "a request failed");
        }
        self.refuse_with_detail(error.reason(), error.detail())
    }

    pub(super) fn refuse(self, reason: Reason) -> Response {
        self.refuse_with_detail(reason, None)
    }

    /// A refusal whose message says what is wrong with the request.
    pub(super) fn refuse_with_detail(self, reason: Reason, detail: Option<&str>) -> Response {
        let status = StatusCode::from_u16(codes::row(reason).http);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut body = HttpEnvelope::refused(reason, self.request_id);
        if let Some(detail) = detail {
            body.message = format!("{}: {}", body.message, shorten(detail));
        }
        let mut response = (status, Json(body)).into_response();
        response.extensions_mut().insert(reason); // read by the check against the document, and counted
        let headers = response.headers_mut();
        let is_temporary =
            matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        // A cooldown takes hours: a client must not retry after a second.
        if is_temporary && reason != Reason::CooldownNotReached {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// The client of a request, which may have come through a proxy.
pub(super) fn client_of(gateway: &Gateway, of: &Extensions, headers: &HeaderMap) -> IpAddr {
    let peer = of.get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0.ip());
    client_ip(peer, headers, &gateway.options.trusted_proxies)
}

/// Answers may hold tokens and messages: caches on the way must not keep them.
fn no_store(mut response: Response) -> Response {
    let value = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, value);
    response
}

fn shorten(detail: &str) -> String {
    detail.chars().take(DETAIL_CHARS_MAX).collect()
}

/// The query parameters of a path. A request with any other is refused, so that a misspelled one is noticed.
#[derive(Clone)]
pub(super) struct AllowedQuery {
    pub(super) names: Arc<[String]>,
    /// The query is only checked once the token is: a caller without one learns nothing else.
    pub(super) needs_token: bool,
}

impl AllowedQuery {
    fn problem(&self, uri: &Uri) -> Option<String> {
        let given = query_names(uri);
        let unknown = given.iter().find(|name| !self.names.contains(name))?;
        let known =
            self.names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "nothing".to_owned() } else { known };
        Some(format!("unknown field `{unknown}`, the query may have {known}"))
    }
}

/// The names of the parameters in a query.
pub(super) fn query_names(uri: &Uri) -> Vec<String> {
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri);
    pairs.map(|Query(pairs)| pairs.into_iter().map(|(name, _)| name).collect()).unwrap_or_default()
}

impl FromRequestParts<Arc<Gateway>> for RequestContext {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Response> {
        let allowed = parts.extensions.get::<AllowedQuery>();
        if allowed.is_some_and(|allowed| !allowed.needs_token)
            && let Some(refusal) = Self::new(gateway, parts).refuse_unknown_query(parts)
        {
            return Err(refusal);
        }
        Ok(Self::new(gateway, parts))
    }
}

impl<T> IntoResponse for ApiResponse<T> {
    fn into_response(self) -> Response {
        self.0
    }
}

impl<T> IntoResponse for ApiListResponse<T> {
    fn into_response(self) -> Response {
        self.0
    }
}
