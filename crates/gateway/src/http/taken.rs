//! What handlers take: who asks, a body, the query.

use std::sync::Arc;

use axum::body::{HttpBody, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use nexo_chat::model::Caller;
use nexo_chat::{Error, Reason, auth};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::answer::{Asked, query_names};
use crate::gateway::Gateway;

/// Who asks, proven by their access token.
pub(super) struct Authenticated(pub(super) Caller);

impl FromRequestParts<Arc<Gateway>> for Authenticated {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Response> {
        let known = async {
            let token = bearer(parts).unwrap_or_default();
            let caller = auth::authenticate(&gateway.chat, token).await?;
            gateway.chat.count_request(&caller)?;
            Ok::<_, Error>(Self(caller))
        };
        let asked = Asked::of(gateway, parts);
        match known.await {
            Ok(known) => asked.refuse_unknown_query(parts).map_or(Ok(known), Err),
            Err(error) => Err(asked.fail(&error)),
        }
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
        let bytes = read_body(body, gateway).await;
        let bytes = bytes.map_err(|reason| Asked::of(gateway, &parts).refuse(reason))?;
        from_json(&bytes).map(Self).map_err(|wrong| wrong.told(Asked::of(gateway, &parts)))
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

/// A body that is not JSON, or not of the form the path asks for: then it is said where.
struct Wrong(serde_json::Error);

impl Wrong {
    fn told(self, asked: Asked) -> Response {
        if self.0.is_data() {
            return asked.refuse_with(Reason::InvalidParam, Some(&self.0.to_string()));
        }
        asked.refuse(Reason::BadJson)
    }
}

fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Wrong> {
    serde_json::from_slice(bytes).map_err(Wrong)
}

/// A JSON body, or without one the query's parameters: some paths are asked both ways.
pub(super) struct Given<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<Gateway>> for Given<T> {
    type Rejection = Response;

    async fn from_request(request: Request, gateway: &Arc<Gateway>) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let bytes = read_body(body, gateway).await;
        let bytes = bytes.map_err(|reason| Asked::of(gateway, &parts).refuse(reason))?;
        if bytes.is_empty() {
            let Params(params) = Params::from_request_parts(&mut parts, gateway).await?;
            return Ok(Self(params));
        }
        if let Some(name) = query_names(&parts.uri).first() {
            let detail = format!("unknown field `{name}` in the query of a request with a body");
            let asked = Asked::of(gateway, &parts);
            return Err(asked.refuse_with(Reason::InvalidParam, Some(&detail)));
        }
        from_json(&bytes).map(Self).map_err(|wrong| wrong.told(Asked::of(gateway, &parts)))
    }
}

/// No body, `null`, or an object with nothing in it: some clients always send one.
pub(super) struct NoBody;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

impl FromRequest<Arc<Gateway>> for NoBody {
    type Rejection = Response;

    async fn from_request(request: Request, gateway: &Arc<Gateway>) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        let bytes = read_body(body, gateway).await;
        let bytes = bytes.map_err(|reason| Asked::of(gateway, &parts).refuse(reason))?;
        if !bytes.is_empty() {
            let nothing = from_json::<Option<Nothing>>(&bytes);
            nothing.map_err(|wrong| wrong.told(Asked::of(gateway, &parts)))?;
        }
        Ok(Self)
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
        Query::try_from_uri(&parts.uri).map(|Query(params)| Self(params)).map_err(|wrong| {
            let detail = wrong.body_text();
            Asked::of(gateway, parts).refuse_with(Reason::InvalidParam, Some(&detail))
        })
    }
}
