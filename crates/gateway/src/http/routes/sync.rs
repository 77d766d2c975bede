//! What a device compares and reads after reconnecting: the head of each conversation, and its changes.

use axum::extract::State;
use nexo_chat::ids::{ConversationId, Seq};
use nexo_chat::{Error, recall, sync};
use nexo_wire::changes::ChangeEntity;
use nexo_wire::http::sync::{ChangesParams, ConversationHead, HeadPage, HeadsParams};

use crate::http::extract::{Authenticated, GatewayState, Params};
use crate::http::openapi::paths::{Paths, paths};
use crate::http::paging::page_size;
use crate::http::response::{ApiListResponse, ApiResponse, RequestContext};

pub(in crate::http) fn paths(paths: &mut Paths) {
    paths! { paths:
        GET "/conversation/heads" heads,
            "Tells per conversation what there is and how far you are; compare it after reconnecting."
            [ConversationNotFound]
        GET "/conversation/changes" changes, "Reads what happened to stored things after `since`, oldest first."
            [ConversationNotFound]
    }
}

async fn heads(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<HeadsParams>,
) -> ApiResponse<HeadPage> {
    let found = async {
        let limit = page_size(params.limit, 200, 1000);
        let after = params.cursor.as_deref().map(ConversationId::parse).transpose()?;
        let (chat, include_empty) = (&gateway.chat, params.include_empty);
        let page = sync::heads(chat, &caller, after.as_ref(), limit, include_empty).await?;
        let last = page.items.last().map(|standing| standing.conversation.to_string());
        Ok::<_, Error>(HeadPage {
            heads: page.items.iter().map(ConversationHead::from).collect(),
            has_more: page.has_more,
            next_cursor: last.filter(|_| page.has_more),
        })
    };
    context.respond(found.await)
}

async fn changes(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<ChangesParams>,
) -> ApiListResponse<ChangeEntity> {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let limit = page_size(params.limit, 100, 200);
        recall::changes(&gateway.chat, &caller, &conversation, Seq(params.since), limit).await
    };
    context.respond_list(found.await, |change| Some(ChangeEntity::from(change)))
}
