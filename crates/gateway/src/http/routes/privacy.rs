//! Whom a user does not want to hear from.

use axum::extract::State;
use nexo_chat::ids::UserId;
use nexo_chat::{Error, blocks, consent};
use nexo_wire::http::envelope::NoData;
use nexo_wire::http::privacy::{BlockBody, BlockPage, BlocksParams, ConsentBody, ConsentInfo};
use nexo_wire::parse_ids::user_id;

use crate::http::extract::{Authenticated, Body, GatewayState, Params};
use crate::http::openapi::paths::{Paths, paths};
use crate::http::paging::{page_cursor, page_size};
use crate::http::response::{ApiResponse, RequestContext};

pub(in crate::http) fn paths(paths: &mut Paths) {
    paths.group("Privacy", "Whom you do not want to hear from.");
    paths! { paths:
        POST "/user/block" block,
            "Blocks a person: their messages do not arrive, and they see neither when you are online nor what you read."
            [UserNotFound TargetIsSelf TooManyUsers ConversationNotFound]
        POST "/user/unblock" unblock, "Ends a block." [UserNotFound TargetIsSelf ConversationNotFound]
        GET "/user/blocks" list, "Lists the people you blocked, by id." []
        GET "/user/consent" get_consent, "Shows who may write to you, add you to groups, and see you online." []
        PUT "/user/consent" set_consent, "Changes that." []
    }
}

async fn block(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<BlockBody>,
) -> ApiResponse<NoData> {
    let done = async { blocks::block(&gateway.chat, &caller, &user_id(&body.user_id)?).await };
    context.respond(done.await.map(|_| NoData))
}

async fn unblock(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<BlockBody>,
) -> ApiResponse<NoData> {
    let done = async { blocks::unblock(&gateway.chat, &caller, &user_id(&body.user_id)?).await };
    context.respond(done.await.map(|_| NoData))
}

async fn list(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<BlocksParams>,
) -> ApiResponse<BlockPage> {
    let found = async {
        let after = page_cursor(params.cursor.as_deref(), UserId::parse)?;
        let limit = page_size(params.limit, 100, 1000);
        let page = blocks::list(&gateway.chat, &caller, after.as_ref(), limit).await?;
        let next = page.items.last().filter(|_| page.has_more).map(ToString::to_string);
        Ok::<_, Error>(BlockPage {
            user_ids: page.items.iter().map(ToString::to_string).collect(),
            has_more: page.has_more,
            next_cursor: next,
        })
    };
    context.respond(found.await)
}

async fn get_consent(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
) -> ApiResponse<ConsentInfo> {
    context.respond(consent::get(&gateway.chat, &caller).await.map(ConsentInfo::from))
}

async fn set_consent(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<ConsentBody>,
) -> ApiResponse<ConsentInfo> {
    let changed = async {
        let wanted = body.apply(consent::get(&gateway.chat, &caller).await?)?;
        consent::set(&gateway.chat, &caller, wanted).await
    };
    context.respond(changed.await.map(ConsentInfo::from))
}
