//! Conversations over the `snake_case` paths.

use axum::extract::State;
use nexo_chat::conversations::{self, ListFilter};
use nexo_chat::ids::{ConversationId, Seq};
use nexo_chat::model::{Caller, SettingsChange};
use nexo_chat::{Chat, DetailedReason, Error, read};
use nexo_wire::enum_values;
use nexo_wire::http::conversations::{
    ConversationCursor, ConversationInfo, ConversationPage, ConversationParams,
    ConversationSettings, DeleteBody, HideBody, ListParams, MarkReadBody, ReadState, SettingsBody,
    SettingsParams, UnreadCount, UnreadParams,
};
use nexo_wire::http::envelope::NoData;

use crate::http::extract::{Authenticated, Body, BodyOrQuery, GatewayState, Params};
use crate::http::openapi::paths::{Paths, paths};
use crate::http::paging::{list_cursor, page_size};
use crate::http::response::{ApiResponse, RequestContext};

pub(in crate::http) fn paths(paths: &mut Paths) {
    paths.group("Conversations", "What you talk in, how far you have read, and what you chose.");
    paths! { paths:
        GET "/conversation/list" list, "Lists your conversations: pinned ones first, then the latest."
            [ConversationNotFound]
        POST "/conversation/list" list, "Lists your conversations, asked by a body."
            [ConversationNotFound]
        GET "/conversation/all" all, "Lists up to 1,000 conversations at once." [ConversationNotFound]
        POST "/conversation/all" all, "Lists up to 1,000 conversations at once, asked by a body."
            [ConversationNotFound]
        GET "/conversation/info" info,
            "Shows one of your conversations; a private one also before its first message."
            [ConversationNotFound]
        PUT "/conversation/update" update,
            "Pins a conversation, chooses what you hear of it, or keeps your app's data about it; of a \
             private one also before its first message."
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

async fn conversation_page(
    chat: &Chat,
    caller: &Caller,
    params: ListParams,
    default: usize,
    max: usize,
) -> Result<ConversationPage, Error> {
    let limit = page_size(params.limit, default, max);
    let last = params.cursor_conversation_id.as_deref().map(ConversationId::parse).transpose()?;
    let after = list_cursor(params.cursor_updated_at, last, params.cursor_pinned)?;
    let (page, next) = conversations::list(chat, caller, ListFilter::All, after, limit).await?;
    let info = |line| ConversationInfo::new(line, params.with_last_message);
    Ok(ConversationPage {
        list: page.items.iter().map(info).collect(),
        has_more: page.has_more,
        next_cursor: next.as_ref().map(ConversationCursor::from),
    })
}

async fn list(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    BodyOrQuery(params): BodyOrQuery<ListParams>,
) -> ApiResponse<ConversationPage> {
    context.respond(conversation_page(&gateway.chat, &caller, params, 20, 100).await)
}

/// The list in one page, for clients with up to 1,000 conversations.
async fn all(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    BodyOrQuery(params): BodyOrQuery<ListParams>,
) -> ApiResponse<ConversationPage> {
    context.respond(conversation_page(&gateway.chat, &caller, params, 1000, 1000).await)
}

async fn info(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<ConversationParams>,
) -> ApiResponse<ConversationInfo> {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let line = conversations::info(&gateway.chat, &caller, &conversation).await?;
        Ok::<_, Error>(ConversationInfo::new(&line, true))
    };
    context.respond(found.await)
}

async fn mark_read(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<MarkReadBody>,
) -> ApiResponse<ReadState> {
    let marked = async {
        let conversation = ConversationId::parse(&body.conversation_id)?;
        let chat = &gateway.chat;
        read::mark_read(chat, &caller, &conversation, Seq(body.read_seq)).await?;
        let standing = read::standing(chat, &caller, &conversation).await?;
        Ok::<_, Error>(ReadState::from(&standing))
    };
    context.respond(marked.await)
}

async fn update(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<SettingsParams>,
    Body(body): Body<SettingsBody>,
) -> ApiResponse<ConversationSettings> {
    let updated = async {
        let id = params
            .conversation_id
            .or(body.conversation_id)
            .ok_or_else(|| DetailedReason::field("conversation_id"))?;
        let conversation = ConversationId::parse(&id)?;
        let wrong = || DetailedReason::field("recv_msg_opt");
        let receive = |option| enum_values::receive_from_number(option).ok_or_else(wrong);
        let receive = body.recv_msg_opt.map(receive).transpose()?;
        let change = SettingsChange {
            pinned: body.is_pinned,
            receive,
            extra: body.extra,
            ..SettingsChange::default()
        };
        let settings =
            conversations::update_settings(&gateway.chat, &caller, &conversation, change).await?;
        Ok::<_, Error>(ConversationSettings::new(&conversation, settings))
    };
    context.respond(updated.await)
}

/// Also hides a conversation that the caller left.
async fn hide(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<HideBody>,
) -> ApiResponse<NoData> {
    let hidden = async {
        let conversation = ConversationId::parse(&body.conversation_id)?;
        if body.hidden {
            let seen = body.seq.map(Seq);
            conversations::hide(&gateway.chat, &caller, &conversation, seen).await?;
        } else {
            conversations::show(&gateway.chat, &caller, &conversation).await?;
        }
        Ok::<_, Error>(NoData)
    };
    context.respond(hidden.await)
}

async fn delete(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<DeleteBody>,
) -> ApiResponse<NoData> {
    let deleted = async {
        let conversation = ConversationId::parse(&body.conversation_id)?;
        conversations::delete(&gateway.chat, &caller, &conversation).await?;
        Ok::<_, Error>(NoData)
    };
    context.respond(deleted.await)
}

async fn max_read_seq(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<ConversationParams>,
) -> ApiResponse<ReadState> {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let standing = read::standing(&gateway.chat, &caller, &conversation).await?;
        Ok::<_, Error>(ReadState::from(&standing))
    };
    context.respond(found.await)
}

async fn unread_count(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<UnreadParams>,
) -> ApiResponse<UnreadCount> {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let standing = read::standing(&gateway.chat, &caller, &conversation).await?;
        let unread = match params.read_seq {
            Some(read) => read::unread_after(&gateway.chat, &caller, standing, Seq(read)).await?,
            None => standing.unread(),
        };
        Ok::<_, Error>(UnreadCount { unread_count: unread })
    };
    context.respond(found.await)
}

async fn unread_total(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
) -> ApiResponse<UnreadCount> {
    let total = read::unread_total(&gateway.chat, &caller).await;
    context.respond(total.map(|unread_count| UnreadCount { unread_count }))
}
