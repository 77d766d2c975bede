//! Messages and figures of the whole server.

use axum::extract::State;
use nexo_chat::admin::{messages, statistics};
use nexo_chat::ids::MessageId;
use nexo_wire::http::admin::messages::{AroundParams, MessagesAround, ServerStatistics};
use nexo_wire::http::messages::MessageInfo;

use crate::http::extract::{EmptyBody, GatewayState, Params};
use crate::http::openapi::paths::{Paths, paths};
use crate::http::path_id::PathId;
use crate::http::response::{ApiResponse, RequestContext};
use crate::http::with_key::{Admin, WithKey};

/// Messages shown before and after one.
const AROUND_DEFAULT: usize = 10;
const AROUND_MAX: usize = 100;

pub(super) fn paths(paths: &mut Paths) {
    paths! { paths:
        GET "/admin/messages/{server_msg_id}" get, "Shows a message. That it was read is recorded." []
        GET "/admin/messages/{server_msg_id}/around" around,
            "Shows a message with those before and after it." []
        POST "/admin/messages/{server_msg_id}/recall" recall, "Unsends a message, whoever sent it." []
        GET "/admin/statistics" count, "Counts users and groups." []
    }
}

async fn get(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    PathId(id): PathId<MessageId>,
) -> ApiResponse<MessageInfo> {
    let found = messages::get(&gateway.chat, &operator, id).await;
    context.respond(found.map(|message| MessageInfo::from(&*message)))
}

async fn around(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    PathId(id): PathId<MessageId>,
    Params(params): Params<AroundParams>,
) -> ApiResponse<MessagesAround> {
    let count = |asked: Option<usize>| asked.unwrap_or(AROUND_DEFAULT).min(AROUND_MAX);
    let (before, after) = (count(params.before), count(params.after));
    let found = messages::around(&gateway.chat, &operator, id, before, after).await;
    context.respond(found.map(|messages| MessagesAround {
        messages: messages.iter().map(|message| MessageInfo::from(&**message)).collect(),
    }))
}

async fn recall(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    PathId(id): PathId<MessageId>,
    _: EmptyBody,
) -> ApiResponse<MessageInfo> {
    let recalled = messages::recall(&gateway.chat, &operator, id).await;
    context.respond(recalled.map(|message| MessageInfo::from(&*message)))
}

async fn count(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
) -> ApiResponse<ServerStatistics> {
    let counted = statistics::statistics(&gateway.chat, &operator).await;
    context.respond(counted.map(ServerStatistics::from))
}
