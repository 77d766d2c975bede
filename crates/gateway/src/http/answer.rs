//! What every handler needs: who asks, a name for the request, and one form of answer.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Json;
use axum::body::{HttpBody, to_bytes};
use axum::extract::{ConnectInfo, FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use nexo_chat::model::Caller;
use nexo_chat::read::Listed;
use nexo_chat::{Error, Reason, auth};
use nexo_wire::codes;
use nexo_wire::http::Envelope;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::gateway::Gateway;

/// The request as such: its name and where it came from.
pub(super) struct Asked {
    request_id: String,
    /// The peer's address, which limits are counted by.
    pub(super) from: IpAddr,
}

impl Asked {
    fn of(gateway: &Gateway, parts: &Parts) -> Self {
        let given = parts.headers.get("x-request-id").and_then(|value| value.to_str().ok());
        let is_fine = |id: &&str| {
            (1..=64).contains(&id.len())
                && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        let request_id = given
            .filter(is_fine)
            .map_or_else(|| format!("{:016x}", gateway.name_connection().0), ToOwned::to_owned);
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0.ip());
        let from = origin(peer, &parts.headers, &gateway.options.trusted_proxies);
        Self { request_id, from }
    }

    /// A success or a refusal.
    pub(super) fn answer<T: Serialize>(self, result: Result<T, Error>) -> Response {
        match result {
            Ok(data) => Json(Envelope::ok(data, self.request_id)).into_response(),
            Err(error) => self.fail(&error),
        }
    }

    /// A list, and whether it goes on. Items without a form of this kind are left out.
    pub(super) fn list<T, U: Serialize>(
        self,
        result: Result<Listed<T>, Error>,
        show: impl Fn(&T) -> Option<U>,
    ) -> Response {
        match result {
            Ok(listed) => {
                let data: Vec<U> = listed.items.iter().filter_map(show).collect();
                let envelope = Envelope {
                    has_more: Some(listed.has_more),
                    ..Envelope::ok(data, self.request_id)
                };
                Json(envelope).into_response()
            }
            Err(error) => self.fail(&error),
        }
    }

    fn fail(self, error: &Error) -> Response {
        if let Error::Unavailable(_) | Error::Internal(_) = error {
            tracing::warn!(request_id = self.request_id, %error, "a request failed");
        }
        self.refuse(error.reason())
    }

    /// A refusal.
    pub(super) fn refuse(self, reason: Reason) -> Response {
        let status = StatusCode::from_u16(codes::row(reason).http);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = Json(Envelope::refused(reason, self.request_id));
        let mut response = (status, body).into_response();
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

/// Where a request comes from: the peer, or what a trusted proxy says, read from the end, since
/// anybody may write the beginning. A household's IPv6 addresses count as one.
fn origin(peer: IpAddr, headers: &HeaderMap, trusted: &[IpAddr]) -> IpAddr {
    let said = headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
    let hops: Vec<&str> = said.flat_map(|value| value.split(',')).map(str::trim).collect();
    // A listener for both families shows IPv4 peers as IPv6: compare them in one form.
    let mut from = peer.to_canonical();
    for hop in hops.iter().rev() {
        match hop.parse::<IpAddr>() {
            Ok(before) if trusted.contains(&from) => from = before.to_canonical(),
            _ => break,
        }
    }
    match from {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

impl FromRequestParts<Arc<Gateway>> for Asked {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Self::Rejection> {
        Ok(Self::of(gateway, parts))
    }
}

/// Who asks, proven by their access token.
pub(super) struct Authenticated(pub(super) Caller);

impl FromRequestParts<Arc<Gateway>> for Authenticated {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Response> {
        let token = bearer(parts).unwrap_or_default();
        auth::authenticate(&gateway.chat, token)
            .await
            .map(Self)
            .map_err(|error| Asked::of(gateway, parts).fail(&error))
    }
}

/// The token of the `Authorization` header.
pub(super) fn bearer(parts: &Parts) -> Option<&str> {
    let value = parts.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// A JSON body.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<Gateway>> for Body<T> {
    type Rejection = Response;

    async fn from_request(request: Request, gateway: &Arc<Gateway>) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        let read = read_body(body, gateway).await.and_then(|bytes| from_json(&bytes));
        read.map(Self).map_err(|reason| Asked::of(gateway, &parts).refuse(reason))
    }
}

async fn read_body(body: axum::body::Body, gateway: &Gateway) -> Result<Bytes, Reason> {
    let limit = gateway.options.body_bytes_max;
    if body.size_hint().lower() > limit as u64 {
        return Err(Reason::FrameTooLarge); // announced as too large: there is no need to read it
    }
    let reading = tokio::time::timeout(gateway.options.header_timeout, to_bytes(body, limit));
    match reading.await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(Reason::FrameTooLarge),
        Err(_) => Err(Reason::IdleTimeout),
    }
}

fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Reason> {
    serde_json::from_slice(bytes).map_err(|_| Reason::BadJson)
}

/// A JSON body, or without one the query's parameters: some paths are asked both ways.
pub(super) struct Given<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<Gateway>> for Given<T> {
    type Rejection = Response;

    async fn from_request(request: Request, gateway: &Arc<Gateway>) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let given = match read_body(body, gateway).await {
            Ok(bytes) if bytes.is_empty() => {
                let Params(params) = Params::from_request_parts(&mut parts, gateway).await?;
                return Ok(Self(params));
            }
            Ok(bytes) => from_json(&bytes),
            Err(reason) => Err(reason),
        };
        given.map(Self).map_err(|reason| Asked::of(gateway, &parts).refuse(reason))
    }
}

/// The query's parameters.
pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Arc<Gateway>> for Params<T> {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Response> {
        Query::try_from_uri(&parts.uri)
            .map(|Query(params)| Self(params))
            .map_err(|_| Asked::of(gateway, parts).refuse(Reason::InvalidParam))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(peer: &str, forwarded: &[&str], expect: &str) {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        let trusted = ["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
        let from = origin(peer.parse().unwrap(), &headers, &trusted);
        assert_eq!(from, expect.parse::<IpAddr>().unwrap(), "{peer} {forwarded:?}");
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        check("1.2.3.4", &[], "1.2.3.4");
        check("1.2.3.4", &["9.9.9.9"], "1.2.3.4");
        check("10.0.0.1", &["9.9.9.9"], "9.9.9.9");
        check("10.0.0.1", &["6.6.6.6, 9.9.9.9"], "9.9.9.9");
        check("10.0.0.1", &["9.9.9.9, 10.0.0.2"], "9.9.9.9");
        check("10.0.0.1", &["6.6.6.6", "9.9.9.9"], "9.9.9.9");
        check("10.0.0.1", &["nonsense"], "10.0.0.1");
        check("::ffff:10.0.0.1", &["::ffff:9.9.9.9"], "9.9.9.9");
    }

    #[test]
    fn a_household_counts_as_one() {
        check("2001:db8:1:2:3:4:5:6", &[], "2001:db8:1:2::");
        check("::ffff:1.2.3.4", &[], "1.2.3.4");
    }
}
