//! Messages from the operator to many users.

use std::sync::Arc;

use axum::extract::State;
use nexo_chat::admin::broadcast;
use nexo_chat::{Chat, Error};
use nexo_wire::http::admin::broadcast::{BroadcastBody, BroadcastInfo};
use nexo_wire::parse_ids::user_ids;

use crate::http::extract::{Body, GatewayState};
use crate::http::openapi::paths::{Paths, paths};
use crate::http::path_id::{BroadcastId, PathId};
use crate::http::response::{ApiResponse, RequestContext};
use crate::http::with_key::{Admin, WithKey};

pub(super) fn paths(paths: &mut Paths) {
    paths! { paths:
        POST "/admin/broadcast" create,
            "Begins to send a message from the system account to everybody, or to these people." [UserNotFound]
        GET "/admin/broadcast/{broadcast_id}" get, "Tells how far a broadcast is." []
    }
}

async fn create(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    Body(body): Body<BroadcastBody>,
) -> ApiResponse<BroadcastInfo> {
    let created = async {
        let users = body.user_ids.as_deref().map(user_ids).transpose()?;
        let created = broadcast::create(&gateway.chat, &operator, body.text, users).await?;
        tokio::spawn(send(Arc::clone(&gateway.chat), created.id.clone()));
        Ok::<_, Error>(BroadcastInfo::from(&created))
    };
    context.respond(created.await)
}

async fn get(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    PathId(BroadcastId(id)): PathId<BroadcastId>,
) -> ApiResponse<BroadcastInfo> {
    let found = broadcast::get(&gateway.chat, &operator, &id).await;
    context.respond(found.map(|found| BroadcastInfo::from(&found)))
}

/// Continues the broadcasts that were not finished when the server stopped.
pub(crate) async fn resume(chat: Arc<Chat>) {
    match broadcast::unfinished(&chat).await {
        Ok(unfinished) => {
            for id in unfinished {
                send(Arc::clone(&chat), id).await;
            }
        }
        Err(error) => tracing::warn!(%error, "unfinished broadcasts cannot be read"),
    }
}

async fn send(chat: Arc<Chat>, id: String) {
    if let Err(error) = broadcast::run(&chat, &id).await {
        tracing::warn!(broadcast = id, %error, "a broadcast stopped; the next start continues it");
    }
}
