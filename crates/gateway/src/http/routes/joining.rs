//! Joining a group: at once, or after its owner or an admin accepts the request.

use axum::extract::State;
use nexo_chat::ids::UserId;
use nexo_chat::membership::GroupAction;
use nexo_chat::{Error, Reason, group};
use nexo_wire::http::groups::GroupPage;
use nexo_wire::http::joining::{DecideBody, JoinBody, JoinDecision, JoinRequestInfo, JoinResult};
use nexo_wire::http::members::GroupPageParams;
use nexo_wire::parse_ids::group_id;

use crate::http::extract::{Authenticated, Body, GatewayState, Params};
use crate::http::openapi::paths::{Paths, paths};
use crate::http::paging::{page_cursor, page_size};
use crate::http::response::{ApiResponse, RequestContext};
use crate::http::routes::groups::{ACTING, by_id_or_code};

/// Why a request to join may be refused.
const JOINING: [Reason; 10] = [
    Reason::BadUserId,
    Reason::MissingGroupId,
    Reason::GroupNotFound,
    Reason::GroupDissolved,
    Reason::AlreadyMember,
    Reason::JoinNotAllowed,
    Reason::BodyTooLong,
    Reason::TooManyJoinRequests,
    Reason::GroupFull,
    Reason::TooManyGroups,
];

pub(in crate::http) fn paths(paths: &mut Paths) {
    paths! { paths:
        POST "/group/join" join, "Joins a group, or asks to be let in.", JOINING []
        POST "/group/join_request" join, "Joins a group, or asks to be let in, as `/group/join`.", JOINING []
        GET "/group/join_requests" requests, "Lists who waits to be let in. For owner and admins.",
            ACTING [NotGroupAdmin]
        POST "/group/join_decide" decide, "Lets somebody in, or not. For owner and admins.",
            ACTING [InvalidParam UserNotFound JoinRequestNotFound NotGroupAdmin GroupFull]
    }
}

async fn join(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<JoinBody>,
) -> ApiResponse<JoinResult> {
    let joined = async {
        let (id, code) = (body.group_id.as_deref(), body.group_code.as_deref());
        let id = by_id_or_code(&gateway.chat, &caller, id, code).await?;
        let inviter = body.inviter_id.as_deref().filter(|id| !id.is_empty());
        let inviter = inviter.map(UserId::parse).transpose()?;
        let action = GroupAction::Join { message: body.message, inviter };
        let outcome = group::apply(&gateway.chat, &caller, &id, action).await?;
        let is_in = outcome.joined.contains(&caller.user);
        Ok::<_, Error>(JoinResult::new(&id, &caller.user, is_in))
    };
    context.respond(joined.await)
}

async fn requests(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<GroupPageParams>,
) -> ApiResponse<GroupPage<JoinRequestInfo>> {
    let found = async {
        let id = group_id(params.group_id.as_deref())?;
        let limit = page_size(params.limit, 100, 1000);
        let after = page_cursor(params.cursor.as_deref(), UserId::parse)?;
        let page = group::join_requests(&gateway.chat, &caller, &id, after.as_ref(), limit).await?;
        let last = page.items.last().map(|request| request.user.to_string());
        Ok::<_, Error>(GroupPage {
            list: page.items.iter().map(JoinRequestInfo::from).collect(),
            has_more: page.has_more,
            next_cursor: last.filter(|_| page.has_more),
            total: None,
        })
    };
    context.respond(found.await)
}

async fn decide(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<DecideBody>,
) -> ApiResponse<JoinDecision> {
    let decided = async {
        let ((id, user), accept) = (body.request()?, body.accept()?);
        let action = GroupAction::AnswerRequest { user: user.clone(), accept };
        group::apply(&gateway.chat, &caller, &id, action).await?;
        Ok::<_, Error>(JoinDecision::new(&id, &user, accept))
    };
    context.respond(decided.await)
}
