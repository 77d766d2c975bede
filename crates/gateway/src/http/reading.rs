//! History, conversations and heads.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use nexo_chat::conversations::{self as listing, After, Which};
use nexo_chat::ids::{ConversationId, Millis, Seq, UserId};
use nexo_chat::model::Caller;
use nexo_chat::{Error, Reason, read, recall, sync};
use nexo_wire::camel::{ConversationLine, MemberState, MessageEntity};
use nexo_wire::changes::ChangeEntity;
use nexo_wire::http::{Head, Heads};
use serde::Deserialize;

use super::answer::{Asked, Authenticated, Params};
use crate::gateway::Gateway;

type Shared = State<Arc<Gateway>>;

/// A page size within its bounds; anything else is refused, not bent.
pub(super) fn limit(asked: Option<usize>, usual: usize, most: usize) -> Result<usize, Reason> {
    match asked.unwrap_or(usual) {
        limit if (1..=most).contains(&limit) => Ok(limit),
        _ => Err(Reason::InvalidParam),
    }
}

/// Where a page of the conversation list begins: its last line is named whole or not at all.
pub(super) fn after(
    updated_at: Option<u64>,
    conversation: Option<ConversationId>,
    pinned: Option<bool>,
) -> Result<Option<After>, Reason> {
    match (updated_at, conversation) {
        (None, None) if pinned.is_none() => Ok(None),
        (Some(at), Some(conversation)) => {
            Ok(Some(After { pinned, updated_at: Millis(at), conversation }))
        }
        _ => Err(Reason::InvalidParam),
    }
}

fn with_peer(caller: &Caller, peer: &str) -> Result<ConversationId, Reason> {
    let peer = UserId::parse(peer).map_err(|_| Reason::UserNotFound)?;
    Ok(ConversationId::private(&caller.user, &peer))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CursorParams {
    peer_user_id: String,
    limit: Option<usize>,
    last_seq: Option<u64>,
}

pub(super) async fn cursor(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<CursorParams>,
) -> Response {
    let found = async {
        let conversation = with_peer(&caller, &params.peer_user_id)?;
        let limit = limit(params.limit, 20, 100)?;
        let before = params.last_seq.map(Seq);
        read::history(&gateway.chat, &caller, &conversation, before, limit).await
    };
    asked.list(found.await, |it| Some(MessageEntity::from(&**it)))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SinceParams {
    peer_user_id: String,
    limit: Option<usize>,
    #[serde(default)]
    since_seq: u64,
}

pub(super) async fn since(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<SinceParams>,
) -> Response {
    let found = async {
        let conversation = with_peer(&caller, &params.peer_user_id)?;
        let limit = limit(params.limit, 50, 200)?;
        read::since(&gateway.chat, &caller, &conversation, Seq(params.since_seq), limit).await
    };
    asked.list(found.await, |it| Some(MessageEntity::from(&**it)))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConversationParams {
    limit: Option<usize>,
    last_updated_at: Option<u64>,
    last_id: Option<String>,
}

pub(super) async fn conversations(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<ConversationParams>,
) -> Response {
    let found = async {
        let limit = limit(params.limit, 20, 100)?;
        let last = params.last_id.as_deref().map(ConversationId::parse).transpose()?;
        let after = after(params.last_updated_at, last, None)?;
        let which = Which::Private;
        let (page, _) = listing::list(&gateway.chat, &caller, which, after, limit).await?;
        Ok::<_, Error>(page)
    };
    asked.list(found.await, ConversationLine::new)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MemberStateParams {
    peer_user_id: String,
}

pub(super) async fn member_state(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<MemberStateParams>,
) -> Response {
    let found = async {
        let conversation = with_peer(&caller, &params.peer_user_id)?;
        let standing = read::standing(&gateway.chat, &caller, &conversation).await?;
        let line = listing::line(&gateway.chat, &caller, standing).await?;
        let state = line.as_ref().and_then(MemberState::new);
        Ok::<_, Error>(state.ok_or(Reason::ConversationNotFound)?)
    };
    asked.answer(found.await)
}

#[derive(Deserialize)]
pub(super) struct ChangesParams {
    conversation_id: String,
    #[serde(default)]
    since: u64,
    limit: Option<usize>,
}

pub(super) async fn changes(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<ChangesParams>,
) -> Response {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let limit = limit(params.limit, 100, 200)?;
        recall::changes(&gateway.chat, &caller, &conversation, Seq(params.since), limit).await
    };
    asked.list(found.await, |change| Some(ChangeEntity::from(change)))
}

#[derive(Deserialize)]
pub(super) struct HeadsParams {
    limit: Option<usize>,
    cursor: Option<String>,
}

pub(super) async fn heads(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<HeadsParams>,
) -> Response {
    let found = async {
        let limit = limit(params.limit, 200, 1000)?;
        let after = params.cursor.as_deref().map(ConversationId::parse).transpose()?;
        let page = sync::heads(&gateway.chat, &caller, after.as_ref(), limit).await?;
        let last = page.items.last().map(|standing| standing.conversation.to_string());
        Ok::<_, Error>(Heads {
            heads: page.items.iter().map(Head::from).collect(),
            has_more: page.has_more,
            next_cursor: last.filter(|_| page.has_more),
        })
    };
    asked.answer(found.await)
}
