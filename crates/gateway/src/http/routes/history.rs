//! Message history and conversation lists over the camelCase paths, of private chats and of groups.

use std::sync::Arc;

use axum::extract::State;
use nexo_chat::command::Target;
use nexo_chat::conversations::{self, ConversationSummary, ListFilter};
use nexo_chat::ids::{ConversationId, GroupId, Seq};
use nexo_chat::model::{Caller, Message};
use nexo_chat::read::Page;
use nexo_chat::{Chat, Error, Reason, group, read, user_lookup};
use nexo_wire::http::history::{
    ConversationLine, ConversationPageParams, GroupHistoryParams, GroupLine, GroupSinceParams,
    MemberState, MemberStateParams, MessageEntity, PeerHistoryParams, PeerSinceParams,
};
use nexo_wire::parse_ids::{group_id, user_id};

use crate::http::extract::{Authenticated, GatewayState, Params};
use crate::http::openapi::paths::{Paths, paths};
use crate::http::paging::{list_cursor, page_size};
use crate::http::response::{ApiListResponse, ApiResponse, RequestContext};

/// The paths of private chats.
pub(in crate::http) fn paths(paths: &mut Paths) {
    paths.group("History", "What was said with one person, and what a device has missed.");
    paths! { paths:
        GET "/single-chat/message/cursor" peer_history, "Reads backwards: messages before `lastSeq`, newest first."
            [UserNotFound ConversationNotFound]
        GET "/single-chat/message/since" peer_since, "Reads on: messages after `sinceSeq`, oldest first."
            [UserNotFound ConversationNotFound]
        GET "/single-chat/conversation/cursor" peer_conversations, "Lists conversations with one person each."
            [ConversationNotFound]
        GET "/single-chat/member/state" member_state, "Tells how far both people have read."
            [UserNotFound ConversationNotFound]
    }
}

/// The paths of groups, which the document lists with the other paths of groups.
pub(in crate::http) fn group_paths(paths: &mut Paths) {
    paths! { paths:
        GET "/group/message/cursor" group_history, "Reads backwards: messages before `lastSeq`, newest first."
            [MissingGroupId GroupNotFound NotGroupMember]
        GET "/group/message/since" group_since, "Reads on: messages after `sinceSeq`, oldest first."
            [MissingGroupId GroupNotFound NotGroupMember]
        GET "/group/conversation/cursor" group_conversations, "Lists the conversations of groups."
            [GroupNotFound]
    }
}

/// The conversation with a peer, or of a group that the caller is or was in.
async fn conversation_with(
    chat: &Chat,
    caller: &Caller,
    target: Result<Target, Reason>,
) -> Result<ConversationId, Error> {
    match target? {
        Target::User(peer) => {
            let peer = user_lookup::resolve_id(chat, peer).await?;
            Ok(ConversationId::private(&caller.user, &peer))
        }
        Target::Group(id) => group::conversation(chat, caller, &id).await,
    }
}

/// Messages before `last_seq`, newest first.
async fn history(
    chat: &Chat,
    caller: &Caller,
    target: Result<Target, Reason>,
    last_seq: Option<u64>,
    limit: Option<usize>,
) -> Result<Page<Arc<Message>>, Error> {
    let conversation = conversation_with(chat, caller, target).await?;
    let limit = page_size(limit, 20, 100);
    read::history(chat, caller, &conversation, last_seq.map(Seq), limit).await
}

/// Messages after `since_seq`, oldest first.
async fn since(
    chat: &Chat,
    caller: &Caller,
    target: Result<Target, Reason>,
    since_seq: u64,
    limit: Option<usize>,
) -> Result<Page<Arc<Message>>, Error> {
    let conversation = conversation_with(chat, caller, target).await?;
    let limit = page_size(limit, 50, 200);
    read::since(chat, caller, &conversation, Seq(since_seq), limit).await
}

/// A page of the conversation list; `parse` reads the id of the last conversation on the page before.
async fn conversation_page(
    chat: &Chat,
    caller: &Caller,
    filter: ListFilter,
    params: ConversationPageParams,
    parse: fn(&str) -> Result<ConversationId, Reason>,
) -> Result<Page<ConversationSummary>, Error> {
    let limit = page_size(params.limit, 20, 100);
    let last = params.last_id.as_deref().map(parse).transpose()?;
    let after = list_cursor(params.last_updated_at, last, None)?;
    let (page, _) = conversations::list(chat, caller, filter, after, limit).await?;
    Ok(page)
}

#[expect(clippy::unnecessary_wraps, reason = "the form that `respond_list` takes")]
fn message_entity(message: &Arc<Message>) -> Option<MessageEntity> {
    Some(MessageEntity::from(&**message))
}

async fn peer_history(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<PeerHistoryParams>,
) -> ApiListResponse<MessageEntity> {
    let PeerHistoryParams { peer_user_id, limit, last_seq } = params;
    let peer = user_id(&peer_user_id).map(Target::User);
    let page = history(&gateway.chat, &caller, peer, last_seq, limit).await;
    context.respond_list(page, message_entity)
}

async fn group_history(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<GroupHistoryParams>,
) -> ApiListResponse<MessageEntity> {
    let GroupHistoryParams { group_id: id, limit, last_seq } = params;
    let group = group_id(id.as_deref()).map(Target::Group);
    let page = history(&gateway.chat, &caller, group, last_seq, limit).await;
    context.respond_list(page, message_entity)
}

async fn peer_since(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<PeerSinceParams>,
) -> ApiListResponse<MessageEntity> {
    let PeerSinceParams { peer_user_id, limit, since_seq } = params;
    let peer = user_id(&peer_user_id).map(Target::User);
    let page = since(&gateway.chat, &caller, peer, since_seq, limit).await;
    context.respond_list(page, message_entity)
}

async fn group_since(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<GroupSinceParams>,
) -> ApiListResponse<MessageEntity> {
    let GroupSinceParams { group_id: id, limit, since_seq } = params;
    let group = group_id(id.as_deref()).map(Target::Group);
    let page = since(&gateway.chat, &caller, group, since_seq, limit).await;
    context.respond_list(page, message_entity)
}

async fn peer_conversations(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<ConversationPageParams>,
) -> ApiListResponse<ConversationLine> {
    let (chat, filter) = (&gateway.chat, ListFilter::Private);
    let page = conversation_page(chat, &caller, filter, params, ConversationId::parse).await;
    context.respond_list(page, ConversationLine::new)
}

async fn group_conversations(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<ConversationPageParams>,
) -> ApiListResponse<GroupLine> {
    let (chat, filter) = (&gateway.chat, ListFilter::Groups);
    let page = conversation_page(chat, &caller, filter, params, conversation_or_group).await;
    context.respond_list(page, GroupLine::new)
}

/// Clients give the id of the conversation or of its group; no group id has the form of a conversation id.
fn conversation_or_group(id: &str) -> Result<ConversationId, Reason> {
    ConversationId::parse(id).or_else(|_| Ok(GroupId::parse(id)?.conversation()))
}

async fn member_state(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<MemberStateParams>,
) -> ApiResponse<MemberState> {
    let found = async {
        let chat = &gateway.chat;
        let peer = user_id(&params.peer_user_id).map(Target::User);
        let conversation = conversation_with(chat, &caller, peer).await?;
        let standing = read::standing(chat, &caller, &conversation).await?;
        let line = conversations::summarize(chat, &caller, standing).await?;
        let state = line.as_ref().and_then(MemberState::new);
        Ok::<_, Error>(state.ok_or(Reason::ConversationNotFound)?)
    };
    context.respond(found.await)
}
