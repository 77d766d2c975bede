//! Conversations under document 003's paths.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use nexo_chat::conversations::{self as listing, Which};
use nexo_chat::ids::{ConversationId, Seq};
use nexo_chat::model::{Caller, SettingsChange};
use nexo_chat::{Chat, Error, Reason, read};
use nexo_wire::http::Nothing;
use nexo_wire::snake::{Chosen, ConversationInfo, Conversations, Cursor, ReadState};
use nexo_wire::words;
use serde::Deserialize;
use serde_json::json;

use super::answer::{Asked, Authenticated, Body, Given, Params};
use super::reading::{after, limit};
use crate::gateway::Gateway;

type Shared = State<Arc<Gateway>>;

#[derive(Deserialize)]
pub(super) struct ListParams {
    #[serde(default)]
    with_last_message: bool,
    limit: Option<usize>,
    cursor_updated_at: Option<u64>,
    cursor_conversation_id: Option<String>,
    cursor_pinned: Option<bool>,
}

impl ListParams {
    /// A page of the list, so many lines if nothing is asked and at most.
    async fn page(
        self,
        chat: &Chat,
        caller: &Caller,
        usual: usize,
        most: usize,
    ) -> Result<Conversations, Error> {
        let limit = limit(self.limit, usual, most)?;
        let last = self.cursor_conversation_id.as_deref().map(ConversationId::parse).transpose()?;
        let after = after(self.cursor_updated_at, last, self.cursor_pinned)?;
        let (page, next) = listing::list(chat, caller, Which::All, after, limit).await?;
        let shown = |line| ConversationInfo::new(line, self.with_last_message);
        Ok(Conversations {
            list: page.items.iter().map(shown).collect(),
            has_more: page.has_more,
            next_cursor: next.as_ref().map(Cursor::from),
        })
    }
}

pub(super) async fn list(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Given(params): Given<ListParams>,
) -> Response {
    asked.answer(params.page(&gateway.chat, &caller, 20, 100).await)
}

/// The list in one go, for those who have no more than so many.
pub(super) async fn all(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Given(params): Given<ListParams>,
) -> Response {
    asked.answer(params.page(&gateway.chat, &caller, 1000, 1000).await)
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
        let line = listing::line(&gateway.chat, &caller, standing).await?;
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

#[derive(Deserialize)]
pub(super) struct UpdateParams {
    conversation_id: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct UpdateBody {
    conversation_id: Option<String>,
    recv_msg_opt: Option<i64>,
    is_pinned: Option<bool>,
}

pub(super) async fn update(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<UpdateParams>,
    Body(body): Body<UpdateBody>,
) -> Response {
    let updated = async {
        let id = params.conversation_id.or(body.conversation_id).ok_or(Reason::InvalidParam)?;
        let conversation = ConversationId::parse(&id)?;
        let receive = |option| words::receive_at(option).ok_or(Reason::InvalidParam);
        let receive = body.recv_msg_opt.map(receive).transpose()?;
        let change = SettingsChange { pinned: body.is_pinned, receive };
        let settings = listing::choose(&gateway.chat, &caller, &conversation, change).await?;
        Ok::<_, Error>(Chosen::new(&conversation, settings))
    };
    asked.answer(updated.await)
}

#[derive(Deserialize)]
pub(super) struct DeleteBody {
    conversation_id: String,
}

pub(super) async fn delete(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<DeleteBody>,
) -> Response {
    let deleted = async {
        let conversation = ConversationId::parse(&body.conversation_id)?;
        listing::delete(&gateway.chat, &caller, &conversation).await?;
        Ok::<_, Error>(Nothing)
    };
    asked.answer(deleted.await)
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
        let standing = read::standing(&gateway.chat, &caller, &conversation).await?;
        let unread = match params.read_seq {
            Some(read) => read::unread_from(&gateway.chat, &caller, standing, Seq(read)).await?,
            None => standing.unread(),
        };
        Ok::<_, Error>(json!({ "unread_count": unread }))
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
