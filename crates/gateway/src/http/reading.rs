//! History, conversations and heads.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use nexo_chat::ids::{ConversationId, Millis, Seq, UserId};
use nexo_chat::model::{Caller, Change, Message};
use nexo_chat::read::Line;
use nexo_chat::{Error, Reason, read, recall, sync};
use nexo_wire::http::{ChangeEntity, ConversationLine, Head, Heads, MemberState, MessageEntity};
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
    asked.list::<Arc<Message>, Shown>(found.await)
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
    asked.list::<Arc<Message>, Shown>(found.await)
}

/// A shared message as its entity.
#[derive(serde::Serialize)]
#[serde(transparent)]
struct Shown(MessageEntity);

impl From<&Arc<Message>> for Shown {
    fn from(message: &Arc<Message>) -> Self {
        Self(MessageEntity::from(&**message))
    }
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
        let before = match (params.last_updated_at, params.last_id) {
            (None, None) => None,
            (Some(at), Some(id)) => Some((Millis(at), ConversationId::parse(&id)?)),
            _ => return Err(Error::from(Reason::InvalidParam)),
        };
        read::conversations(&gateway.chat, &caller, before, limit).await
    };
    asked.list::<Line, ConversationLine>(found.await)
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
        let line = read::line(&gateway.chat, &caller, standing).await?;
        let line = line.ok_or(Reason::ConversationNotFound)?;
        Ok::<_, Error>(MemberState::from(&line))
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
    asked.list::<Arc<Change>, ChangeEntity>(found.await)
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
