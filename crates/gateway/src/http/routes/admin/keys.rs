//! API keys.

use axum::extract::State;
use nexo_chat::{Error, keys};
use nexo_wire::http::admin::keys::{CreatedKey, KeyInfo, NewKeyBody};

use crate::http::extract::{Body, EmptyBody, GatewayState};
use crate::http::openapi::paths::{Paths, paths};
use crate::http::path_id::{KeyId, PathId};
use crate::http::response::{ApiResponse, RequestContext};
use crate::http::with_key::{Admin, WithKey};

pub(super) fn paths(paths: &mut Paths) {
    paths! { paths:
        POST "/admin/keys" create, "Makes an API key and shows it, this once." [Forbidden]
        GET "/admin/keys" list, "Lists the API keys, without their secrets." []
        DELETE "/admin/keys/{key_id}" revoke, "Revokes an API key: it is refused from now on." []
    }
}

async fn create(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    Body(body): Body<NewKeyBody>,
) -> ApiResponse<CreatedKey> {
    let created = async {
        let chat = &gateway.chat;
        let (store, now) = (&*chat.store, chat.clock.now());
        let new = body.into_request()?;
        let (key, plain) = keys::create(store, &*chat.rng, now, &operator, new).await?;
        Ok::<_, Error>(CreatedKey { key: plain, info: KeyInfo::from(&key) })
    };
    context.respond(created.await)
}

async fn list(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
) -> ApiResponse<Vec<KeyInfo>> {
    let found = keys::list(&*gateway.chat.store, &operator).await;
    context.respond(found.map(|keys| keys.iter().map(KeyInfo::from).collect()))
}

async fn revoke(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    PathId(KeyId(id)): PathId<KeyId>,
    _: EmptyBody,
) -> ApiResponse<KeyInfo> {
    let chat = &gateway.chat;
    let revoked = keys::revoke(&*chat.store, chat.clock.now(), &operator, &id).await;
    context.respond(revoked.map(|key| KeyInfo::from(&key)))
}
