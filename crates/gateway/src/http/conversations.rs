//! Conversations under document 003's paths.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use nexo_chat::ids::{ConversationId, Millis, Seq};
use nexo_chat::{Error, Reason, read};
use nexo_wire::snake::{ConversationInfo, Conversations, Cursor, ReadState};
use serde::Deserialize;
use serde_json::json;

use super::answer::{Asked, Authenticated, Body, Params};
use super::reading::limit;
use crate::gateway::Gateway;

type Shared = State<Arc<Gateway>>;

#[derive(Deserialize)]
pub(super) struct ListParams {
    #[serde(default)]
    with_last_message: bool,
    limit: Option<usize>,
    cursor_updated_at: Option<u64>,
    cursor_conversation_id: Option<String>,
}

pub(super) async fn list(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<ListParams>,
) -> Response {
    let found = async {
        let limit = limit(params.limit, 20, 100)?;
        let before = match (params.cursor_updated_at, params.cursor_conversation_id) {
            (None, None) => None,
            (Some(at), Some(id)) => Some((Millis(at), ConversationId::parse(&id)?)),
            _ => return Err(Error::from(Reason::InvalidParam)),
        };
        let page = read::conversations(&gateway.chat, &caller, before, limit).await?;
        let end = page.items.last().map(|line| &line.standing).filter(|_| page.has_more);
        let next_cursor = end.map(|end| Cursor::new(end.updated_at, &end.conversation));
        let with_last = params.with_last_message;
        let list = page.items.iter().map(|line| ConversationInfo::new(line, with_last)).collect();
        Ok(Conversations { list, has_more: page.has_more, next_cursor })
    };
    asked.answer(found.await)
}

#[derive(Deserialize)]
pub(super) struct OneParams {
    conversation_id: String,
    read_seq: Option<u64>,
}

pub(super) async fn info(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<OneParams>,
) -> Response {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let standing = read::standing(&gateway.chat, &caller, &conversation).await?;
        let line = read::line(&gateway.chat, &caller, standing).await?;
        let line = line.ok_or(Reason::ConversationNotFound)?;
        Ok::<_, Error>(ConversationInfo::new(&line, true))
    };
    asked.answer(found.await)
}

#[derive(Deserialize)]
pub(super) struct MarkReadBody {
    conversation_id: String,
    read_seq: u64,
}

pub(super) async fn mark_read(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<MarkReadBody>,
) -> Response {
    let marked = async {
        let conversation = ConversationId::parse(&body.conversation_id)?;
        let chat = &gateway.chat;
        read::mark_read(chat, &caller, &conversation, Seq(body.read_seq)).await?;
        let standing = read::standing(chat, &caller, &conversation).await?;
        Ok::<_, Error>(ReadState::from(&standing))
    };
    asked.answer(marked.await)
}

pub(super) async fn max_read_seq(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<OneParams>,
) -> Response {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let standing = read::standing(&gateway.chat, &caller, &conversation).await?;
        Ok::<_, Error>(ReadState::from(&standing))
    };
    asked.answer(found.await)
}

pub(super) async fn unread_count(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<OneParams>,
) -> Response {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let mut standing = read::standing(&gateway.chat, &caller, &conversation).await?;
        if let Some(read) = params.read_seq {
            standing.cursors.read = Seq(read);
        }
        Ok::<_, Error>(json!({ "unread_count": standing.unread() }))
    };
    asked.answer(found.await)
}

pub(super) async fn unread_total(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
) -> Response {
    let total = read::unread_total(&gateway.chat, &caller).await;
    asked.answer(total.map(|total| json!({ "unread_count": total })))
}
