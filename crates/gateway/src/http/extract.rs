//! Extractors of the handlers: the caller, a JSON body, the query.

use std::sync::Arc;

use axum::body::{HttpBody, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use bytes::Bytes;
use nexo_chat::model::Caller;
use nexo_chat::{DetailedReason, Error, Reason, auth};
use nexo_wire::json::from_json;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::admission::Place;
use crate::gateway::Gateway;
use crate::http::response::{RequestContext, query_names};

/// Shared state of every handler.
pub(super) type GatewayState = State<Arc<Gateway>>;

/// The caller, by the access token of the request.
pub(super) struct Authenticated(pub(super) Caller);

impl FromRequestParts<Arc<Gateway>> for Authenticated {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Response> {
        let authenticated = async {
            let token = bearer(&parts.headers).unwrap_or_default();
            let caller = auth::authenticate(&gateway.chat, token).await?;
            if let Some(place) = parts.extensions.get::<Arc<Place>>() {
                // If it has to make room meanwhile, the listener closes it.
                let _stays = place.set_authenticated();
            }
            gateway.chat.count_request(&caller)?;
            Ok::<_, Error>(Self(caller))
        };
        let context = RequestContext::new(gateway, parts);
        match authenticated.await {
            Ok(caller) => context.refuse_unknown_query(parts).map_or(Ok(caller), Err),
            Err(error) => Err(context.respond_error(&error)),
        }
    }
}

/// The token of the `Authorization` header.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
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
        let bytes = bytes.map_err(|reason| RequestContext::new(gateway, &parts).refuse(reason))?;
        from_json(&bytes).map(Self).map_err(|refused| refuse_body(&refused, gateway, &parts))
    }
}

async fn read_body(body: axum::body::Body, gateway: &Gateway) -> Result<Bytes, Reason> {
    let limit = gateway.options.body_bytes_max;
    if body.size_hint().lower() > limit as u64 {
        return Err(Reason::FrameTooLarge); // Content-Length says so: do not read it
    }
    let reading = tokio::time::timeout(gateway.options.header_timeout, to_bytes(body, limit));
    match reading.await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(Reason::FrameTooLarge),
        Err(_) => Err(Reason::IdleTimeout),
    }
}

fn refuse_body(refused: &DetailedReason, gateway: &Gateway, parts: &Parts) -> Response {
    let context = RequestContext::new(gateway, parts);
    context.refuse_with_detail(refused.reason, refused.detail.as_deref())
}

/// A JSON body, or the query if there is no body: some paths take their parameters either way.
pub(super) struct BodyOrQuery<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<Gateway>> for BodyOrQuery<T> {
    type Rejection = Response;

    async fn from_request(request: Request, gateway: &Arc<Gateway>) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let bytes = read_body(body, gateway).await;
        let bytes = bytes.map_err(|reason| RequestContext::new(gateway, &parts).refuse(reason))?;
        if bytes.is_empty() {
            let Params(params) = Params::from_request_parts(&mut parts, gateway).await?;
            return Ok(Self(params));
        }
        if let Some(name) = query_names(&parts.uri).first() {
            let detail = format!("unknown field `{name}` in the query of a request with a body");
            let context = RequestContext::new(gateway, &parts);
            return Err(context.refuse_with_detail(Reason::InvalidParam, Some(&detail)));
        }
        from_json(&bytes).map(Self).map_err(|refused| refuse_body(&refused, gateway, &parts))
    }
}

/// No body, `null` or `{}`: some clients always send a body.
pub(super) struct EmptyBody;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EmptyObject {}

impl FromRequest<Arc<Gateway>> for EmptyBody {
    type Rejection = Response;

    async fn from_request(request: Request, gateway: &Arc<Gateway>) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        let bytes = read_body(body, gateway).await;
        let bytes = bytes.map_err(|reason| RequestContext::new(gateway, &parts).refuse(reason))?;
        if !bytes.is_empty() {
            let empty = from_json::<Option<EmptyObject>>(&bytes);
            empty.map_err(|refused| refuse_body(&refused, gateway, &parts))?;
        }
        Ok(Self)
    }
}

/// The query.
pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Arc<Gateway>> for Params<T> {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Response> {
        Query::try_from_uri(&parts.uri).map(|Query(params)| Self(params)).map_err(|error| {
            let detail = error.body_text();
            RequestContext::new(gateway, parts)
                .refuse_with_detail(Reason::InvalidParam, Some(&detail))
        })
    }
}
