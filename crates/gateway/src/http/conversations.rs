//! Conversations over the `snake_case` paths.

use std::sync::Arc;

use axum::extract::State;
use nexo_chat::conversations::{self as listing, Which};
use nexo_chat::ids::{ConversationId, Seq};
use nexo_chat::model::{Caller, SettingsChange};
use nexo_chat::{Chat, Error, Reason, read};
use nexo_wire::http::Nothing;
use nexo_wire::snake::{Chosen, ConversationInfo, Conversations, Cursor, ReadState, Unread};
use nexo_wire::{shapes, words};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::answer::{Answer, Asked};
use super::paths::{Paths, paths};
use super::reading::{after, limit};
use super::taken::{Authenticated, Body, Given, Params};
use crate::gateway::Gateway;

type Shared = State<Arc<Gateway>>;

/// The `snake_case` paths of conversations.
pub(super) fn paths(paths: &mut Paths) {
    paths.group("Conversations", "What you talk in, how far you have read, and what you chose.");
    paths! { paths:
        GET "/conversation/list" list, "Lists your conversations: pinned ones first, then the latest."
            [ConversationNotFound]
        POST "/conversation/list" list, "Lists your conversations, asked by a body."
            [ConversationNotFound]
        GET "/conversation/all" all, "Lists up to 1,000 conversations at once." [ConversationNotFound]
        POST "/conversation/all" all, "Lists up to 1,000 conversations at once, asked by a body."
            [ConversationNotFound]
        GET "/conversation/info" info, "Shows one of your conversations." [ConversationNotFound]
        PUT "/conversation/update" update,
            "Pins a conversation, chooses what you hear of it, or keeps your app's data about it."
            [ConversationNotFound BadProfile]
        POST "/conversation/hide" hide,
            "Takes a conversation out of your list until something is said in it, or puts it back."
            [ConversationNotFound]
        POST "/conversation/delete" delete,
            "Dissolves the group of a conversation; private ones cannot be deleted."
            [ConversationNotFound CannotDeletePrivate GroupNotFound GroupDissolved NotGroupMember
             MemberNotActive NotGroupOwner]
        POST "/conversation/mark_read" mark_read, "Marks everything up to a message as read."
            [ConversationNotFound]
        GET "/conversation/max_read_seq" max_read_seq, "Tells how far you have read."
            [ConversationNotFound]
        GET "/conversation/unread_count" unread_count,
            "Counts what is unread, from where you have read or from `read_seq`."
            [ConversationNotFound]
        GET "/conversation/unread_total" unread_total, "Counts what is unread everywhere." []
    }
}

#[derive(Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
struct ListParams {
    #[serde(default)]
    with_last_message: bool,
    /// How many at most: up to 100 of the list, 1,000 of all; more is cut to that. 0 is the
    /// default: 20 of the list, 1,000 of all.
    #[param(minimum = 0)]
    #[schema(minimum = 0)]
    limit: Option<usize>,
    /// With the two others, `next_cursor` of the page before.
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
        let limit = limit(self.limit, usual, most);
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

async fn list(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Given(params): Given<ListParams>,
) -> Answer<Conversations> {
    asked.answer(params.page(&gateway.chat, &caller, 20, 100).await)
}

/// The list in one go, for those who have no more than so many.
async fn all(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Given(params): Given<ListParams>,
) -> Answer<Conversations> {
    asked.answer(params.page(&gateway.chat, &caller, 1000, 1000).await)
}

#[derive(Deserialize, IntoParams)]
struct OneParams {
    conversation_id: String,
}

#[derive(Deserialize, IntoParams)]
struct UnreadParams {
    conversation_id: String,
    /// As if this were the last message you have read.
    read_seq: Option<u64>,
}

async fn info(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<OneParams>,
) -> Answer<ConversationInfo> {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let standing = read::standing(&gateway.chat, &caller, &conversation).await?;
        let line = listing::line(&gateway.chat, &caller, standing).await?;
        let line = line.ok_or(Reason::ConversationNotFound)?;
        Ok::<_, Error>(ConversationInfo::new(&line, true))
    };
    asked.answer(found.await)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MarkReadBody {
    conversation_id: String,
    /// The last message you have read; beyond the end is the end.
    read_seq: u64,
}

async fn mark_read(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<MarkReadBody>,
) -> Answer<ReadState> {
    let marked = async {
        let conversation = ConversationId::parse(&body.conversation_id)?;
        let chat = &gateway.chat;
        read::mark_read(chat, &caller, &conversation, Seq(body.read_seq)).await?;
        let standing = read::standing(chat, &caller, &conversation).await?;
        Ok::<_, Error>(ReadState::from(&standing))
    };
    asked.answer(marked.await)
}

#[derive(Deserialize, IntoParams)]
struct UpdateParams {
    /// Here or in the body.
    conversation_id: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SettingsBody {
    /// Here or in the query.
    conversation_id: Option<String>,
    #[schema(schema_with = shapes::receive_number)]
    recv_msg_opt: Option<i64>,
    is_pinned: Option<bool>,
    /// Your app's own data about it, up to 4,096 bytes; only you see it.
    extra: Option<String>,
}

async fn update(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<UpdateParams>,
    Body(body): Body<SettingsBody>,
) -> Answer<Chosen> {
    let updated = async {
        let id = params.conversation_id.or(body.conversation_id).ok_or(Reason::InvalidParam)?;
        let conversation = ConversationId::parse(&id)?;
        let receive = |option| words::receive_at(option).ok_or(Reason::InvalidParam);
        let receive = body.recv_msg_opt.map(receive).transpose()?;
        let change = SettingsChange {
            pinned: body.is_pinned,
            receive,
            extra: body.extra,
            ..SettingsChange::default()
        };
        let settings = listing::choose(&gateway.chat, &caller, &conversation, change).await?;
        Ok::<_, Error>(Chosen::new(&conversation, settings))
    };
    asked.answer(updated.await)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct HideBody {
    conversation_id: String,
    /// `false` puts it back into the list.
    #[serde(default = "yes")]
    #[schema(default = true)]
    hidden: bool,
    /// The newest message you have seen: a later one brings it back at once.
    seq: Option<u64>,
}

fn yes() -> bool {
    true
}

/// Any conversation of the caller's, also one that they left.
async fn hide(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<HideBody>,
) -> Answer<Nothing> {
    let hidden = async {
        let conversation = ConversationId::parse(&body.conversation_id)?;
        if body.hidden {
            let seen = body.seq.map(Seq);
            listing::hide(&gateway.chat, &caller, &conversation, seen).await?;
        } else {
            listing::show(&gateway.chat, &caller, &conversation).await?;
        }
        Ok::<_, Error>(Nothing)
    };
    asked.answer(hidden.await)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DeleteBody {
    conversation_id: String,
}

async fn delete(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<DeleteBody>,
) -> Answer<Nothing> {
    let deleted = async {
        let conversation = ConversationId::parse(&body.conversation_id)?;
        listing::delete(&gateway.chat, &caller, &conversation).await?;
        Ok::<_, Error>(Nothing)
    };
    asked.answer(deleted.await)
}

async fn max_read_seq(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<OneParams>,
) -> Answer<ReadState> {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let standing = read::standing(&gateway.chat, &caller, &conversation).await?;
        Ok::<_, Error>(ReadState::from(&standing))
    };
    asked.answer(found.await)
}

async fn unread_count(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<UnreadParams>,
) -> Answer<Unread> {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let standing = read::standing(&gateway.chat, &caller, &conversation).await?;
        let unread = match params.read_seq {
            Some(read) => read::unread_from(&gateway.chat, &caller, standing, Seq(read)).await?,
            None => standing.unread(),
        };
        Ok::<_, Error>(Unread { unread_count: unread })
    };
    asked.answer(found.await)
}

async fn unread_total(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
) -> Answer<Unread> {
    let total = read::unread_total(&gateway.chat, &caller).await;
    asked.answer(total.map(|unread_count| Unread { unread_count }))
}
