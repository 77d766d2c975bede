//! The holder of an API key, and the scopes that paths ask for.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::Response;
use nexo_chat::Error;
use nexo_chat::keys::{self, Operator, Scope};

use crate::gateway::Gateway;
use crate::http::extract::bearer;
use crate::http::response::RequestContext;

/// The holder of a key with a scope.
pub(super) struct WithKey<S>(pub(super) Operator, pub(super) PhantomData<S>);

/// A scope that a path asks for.
pub(super) trait KeyScope {
    const SCOPE: Scope;
    /// The security scheme in the document.
    const SCHEME: &'static str;
}

pub(super) struct Admin;
pub(super) struct Backend;
pub(super) struct System;

impl KeyScope for Admin {
    const SCOPE: Scope = Scope::Admin;
    const SCHEME: &'static str = "admin_key";
}

impl KeyScope for Backend {
    const SCOPE: Scope = Scope::Backend;
    const SCHEME: &'static str = "backend_key";
}

impl KeyScope for System {
    const SCOPE: Scope = Scope::System;
    const SCHEME: &'static str = "system_key";
}

impl<S: KeyScope> FromRequestParts<Arc<Gateway>> for WithKey<S> {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Response> {
        let context = RequestContext::new(gateway, parts);
        match operator(gateway, parts, S::SCOPE).await {
            Ok(operator) => {
                let refusal = context.refuse_unknown_query(parts);
                refusal.map_or(Ok(Self(operator, PhantomData)), Err)
            }
            Err(error) => Err(context.respond_error(&error)),
        }
    }
}

/// The holder of the key of a request.
pub(super) async fn operator(
    gateway: &Gateway,
    parts: &Parts,
    scope: Scope,
) -> Result<Operator, Error> {
    let from = RequestContext::new(gateway, parts).client_ip;
    let key = bearer(&parts.headers).unwrap_or_default();
    keys::authenticate(&gateway.chat, from, key, scope).await
}
