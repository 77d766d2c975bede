//! History, conversations and heads.

use std::sync::Arc;

use axum::extract::State;
use nexo_chat::conversations::{self as listing, After, Which};
use nexo_chat::ids::{ConversationId, Millis, Seq};
use nexo_chat::model::Caller;
use nexo_chat::{Chat, Error, Reason, people, read, recall, sync};
use nexo_wire::camel::{ConversationLine, MemberState, MessageEntity};
use nexo_wire::changes::ChangeEntity;
use nexo_wire::http::{Head, Heads};
use serde::Deserialize;
use utoipa::IntoParams;

use super::answer::{Answer, Answers, Asked};
use super::named::user_id;
use super::paths::{Paths, paths};
use super::taken::{Authenticated, Params};
use crate::gateway::Gateway;

type Shared = State<Arc<Gateway>>;

/// The paths of history.
pub(super) fn paths(paths: &mut Paths) {
    paths.group("History", "What was said with one person, and what a device has missed.");
    paths! { paths:
        GET "/single-chat/message/cursor" cursor, "Reads backwards: messages before `lastSeq`, newest first."
            [UserNotFound ConversationNotFound]
        GET "/single-chat/message/since" since, "Reads on: messages after `sinceSeq`, oldest first."
            [UserNotFound ConversationNotFound]
        GET "/single-chat/conversation/cursor" conversations, "Lists conversations with one person each."
            [ConversationNotFound]
        GET "/single-chat/member/state" member_state, "Tells how far both people have read."
            [UserNotFound ConversationNotFound]
        GET "/conversation/heads" heads,
            "Tells per conversation what there is and how far you are; compare it after reconnecting."
            [ConversationNotFound]
        GET "/conversation/changes" changes, "Reads what happened to stored things after `since`, oldest first."
            [ConversationNotFound]
    }
}

/// A page size within its bounds: zero is the usual one, and more than can be is cut.
pub(super) fn limit(asked: Option<usize>, usual: usize, most: usize) -> usize {
    asked.filter(|limit| *limit > 0).map_or(usual, |limit| limit.min(most))
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

async fn with_peer(chat: &Chat, caller: &Caller, peer: &str) -> Result<ConversationId, Error> {
    let peer = people::meant(chat, user_id(peer)?).await?;
    Ok(ConversationId::private(&caller.user, &peer))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
struct CursorParams {
    peer_user_id: String,
    /// How many at most: up to 100, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 20)]
    limit: Option<usize>,
    last_seq: Option<u64>,
}

async fn cursor(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<CursorParams>,
) -> Answers<MessageEntity> {
    let found = async {
        let conversation = with_peer(&gateway.chat, &caller, &params.peer_user_id).await?;
        let limit = limit(params.limit, 20, 100);
        let before = params.last_seq.map(Seq);
        read::history(&gateway.chat, &caller, &conversation, before, limit).await
    };
    asked.list(found.await, |it| Some(MessageEntity::from(&**it)))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
struct SinceParams {
    peer_user_id: String,
    /// How many at most: up to 200, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 50)]
    limit: Option<usize>,
    #[serde(default)]
    since_seq: u64,
}

async fn since(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<SinceParams>,
) -> Answers<MessageEntity> {
    let found = async {
        let conversation = with_peer(&gateway.chat, &caller, &params.peer_user_id).await?;
        let limit = limit(params.limit, 50, 200);
        read::since(&gateway.chat, &caller, &conversation, Seq(params.since_seq), limit).await
    };
    asked.list(found.await, |it| Some(MessageEntity::from(&**it)))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
struct ConversationParams {
    /// How many at most: up to 100, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 20)]
    limit: Option<usize>,
    /// With `lastId`, the last line of the page before.
    last_updated_at: Option<u64>,
    last_id: Option<String>,
}

async fn conversations(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<ConversationParams>,
) -> Answers<ConversationLine> {
    let found = async {
        let limit = limit(params.limit, 20, 100);
        let last = params.last_id.as_deref().map(ConversationId::parse).transpose()?;
        let after = after(params.last_updated_at, last, None)?;
        let which = Which::Private;
        let (page, _) = listing::list(&gateway.chat, &caller, which, after, limit).await?;
        Ok::<_, Error>(page)
    };
    asked.list(found.await, ConversationLine::new)
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
struct MemberStateParams {
    peer_user_id: String,
}

async fn member_state(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<MemberStateParams>,
) -> Answer<MemberState> {
    let found = async {
        let conversation = with_peer(&gateway.chat, &caller, &params.peer_user_id).await?;
        let standing = read::standing(&gateway.chat, &caller, &conversation).await?;
        let line = listing::line(&gateway.chat, &caller, standing).await?;
        let state = line.as_ref().and_then(MemberState::new);
        Ok::<_, Error>(state.ok_or(Reason::ConversationNotFound)?)
    };
    asked.answer(found.await)
}

#[derive(Deserialize, IntoParams)]
struct ChangesParams {
    conversation_id: String,
    #[serde(default)]
    since: u64,
    /// How many at most: up to 200, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 100)]
    limit: Option<usize>,
}

async fn changes(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<ChangesParams>,
) -> Answers<ChangeEntity> {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let limit = limit(params.limit, 100, 200);
        recall::changes(&gateway.chat, &caller, &conversation, Seq(params.since), limit).await
    };
    asked.list(found.await, |change| Some(ChangeEntity::from(change)))
}

#[derive(Deserialize, IntoParams)]
struct HeadsParams {
    /// How many at most: up to 1,000, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 200)]
    limit: Option<usize>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

async fn heads(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<HeadsParams>,
) -> Answer<Heads> {
    let found = async {
        let limit = limit(params.limit, 200, 1000);
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
