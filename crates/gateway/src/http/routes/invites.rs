//! Invite links, of members and of the operator.

use axum::extract::State;
use nexo_chat::invites;
use nexo_wire::http::invites::{CreatedInvite, InviteInfo, NewInviteBody};

use crate::http::extract::{Authenticated, Body, EmptyBody, GatewayState};
use crate::http::openapi::paths::{Paths, paths};
use crate::http::path_id::{InviteId, PathId};
use crate::http::response::{ApiResponse, RequestContext};
use crate::http::with_key::{Admin, WithKey};

pub(in crate::http) fn paths(paths: &mut Paths) {
    paths.group(
        "Invites",
        "Links with which people make an account on a server that is by invitation only.",
    );
    paths! { paths:
        POST "/user/invites" create_own, "Makes a link, if this server lets members invite." [Forbidden]
        GET "/user/invites" list_own, "Lists your links." []
        DELETE "/user/invites/{invite_id}" revoke_own, "Ends one of your links." []
        POST "/admin/invites" create, "Makes a link." [Forbidden]
        GET "/admin/invites" list, "Lists all links." []
        DELETE "/admin/invites/{invite_id}" revoke, "Ends a link." []
    }
}

async fn create_own(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<NewInviteBody>,
) -> ApiResponse<CreatedInvite> {
    let from = context.client_ip;
    let created = invites::create_own(&gateway.chat, &caller, from, body.into()).await;
    context.respond(created.map(|(invite, code)| CreatedInvite::new(&invite, code)))
}

async fn list_own(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
) -> ApiResponse<Vec<InviteInfo>> {
    let found = invites::list_own(&gateway.chat, &caller).await;
    context.respond(found.map(|invites| invites.iter().map(InviteInfo::from).collect()))
}

async fn revoke_own(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    PathId(InviteId(id)): PathId<InviteId>,
    _: EmptyBody,
) -> ApiResponse<InviteInfo> {
    let revoked = invites::revoke_own(&gateway.chat, &caller, &id).await;
    context.respond(revoked.map(|invite| InviteInfo::from(&invite)))
}

async fn create(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    Body(body): Body<NewInviteBody>,
) -> ApiResponse<CreatedInvite> {
    let created = invites::create(&gateway.chat, &operator, body.into()).await;
    context.respond(created.map(|(invite, code)| CreatedInvite::new(&invite, code)))
}

async fn list(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
) -> ApiResponse<Vec<InviteInfo>> {
    let found = invites::list(&gateway.chat, &operator).await;
    context.respond(found.map(|invites| invites.iter().map(InviteInfo::from).collect()))
}

async fn revoke(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    PathId(InviteId(id)): PathId<InviteId>,
    _: EmptyBody,
) -> ApiResponse<InviteInfo> {
    let revoked = invites::revoke(&gateway.chat, &operator, &id).await;
    context.respond(revoked.map(|invite| InviteInfo::from(&invite)))
}
