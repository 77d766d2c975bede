//! Messages over HTTP.

use axum::extract::State;
use nexo_chat::ids::{ConversationId, MessageId, Seq, UserId};
use nexo_chat::model::Caller;
use nexo_chat::{Error, Reason, read, recall, send};
use nexo_wire::http::conversations::ConversationParams;
use nexo_wire::http::damaged;
use nexo_wire::http::history::MessageEntity;
use nexo_wire::http::messages::{
    MaxSeq, MentionPage, MentionsParams, MessageInfo, MessageRange, PullParams, ReaderInfo,
    ReaderPage, ReadersParams, RecallBody, SendBody,
};

use crate::gateway::Gateway;
use crate::http::extract::{Authenticated, Body, GatewayState, Params};
use crate::http::openapi::paths::{Paths, paths};
use crate::http::paging::{page_cursor, page_size};
use crate::http::response::{ApiResponse, RequestContext};
use crate::http::with_key::{System, WithKey};

/// Why a message may be refused, from a user or from the operator.
const SENDING: [Reason; 16] = [
    Reason::InvalidParam,
    Reason::MissingTo,
    Reason::MissingGroupId,
    Reason::UserNotFound,
    Reason::GroupNotFound,
    Reason::GroupDissolved,
    Reason::MissingMsgId,
    Reason::BadMsgId,
    Reason::UnknownMsgType,
    Reason::MissingBody,
    Reason::BodyTooLong,
    Reason::MentionNotMember,
    Reason::TooManyMentions,
    Reason::MessageNotFound,
    Reason::ClientMsgIdConflict,
    Reason::CannotSendToSelf,
];

pub(in crate::http) fn paths(paths: &mut Paths) {
    paths.group("Messages", "Saying something, taking it back, and reading what was said.");
    paths! { paths:
        POST "/msg/send" send_message, "Sends a message; it is on disk when this answers, and a retry gets the same answer.",
            SENDING [NotGroupMember MemberNotActive GroupSpeakMuted GroupMuted NotGroupAdmin ReceiverBlocked
            NotAccepting TooManyStrangers]
        POST "/msg/send_without_mark_read" send_without_mark_read,
            "Sends a message and leaves unread what came before.",
            SENDING [NotGroupMember MemberNotActive GroupSpeakMuted GroupMuted NotGroupAdmin ReceiverBlocked
            NotAccepting TooManyStrangers]
        POST "/system/send" send_system, "Says something with the operator's own voice.", SENDING []
        POST "/msg/recall" recall_message, "Recalls (unsends) a message; its text is never served again."
            [BadServerMsgId MessageNotFound NotMessageSender RevokeTimeout]
        GET "/msg/pull" pull, "Reads a range of messages, oldest first." [ConversationNotFound]
        GET "/msg/max_seq" max_seq, "Tells where a conversation ends for you." [ConversationNotFound]
        GET "/msg/readers" readers, "Tells who has read a message."
            [BadServerMsgId MessageNotFound NotGroupMember MemberNotActive GroupDissolved]
        GET "/msg/mentions" mentions, "Finds messages that speak to you in particular."
            [ConversationNotFound]
    }
}

async fn recall_message(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<RecallBody>,
) -> ApiResponse<MessageEntity> {
    let recalled = async {
        let id = MessageId::parse(&body.server_msg_id)?;
        let message = recall::recall(&gateway.chat, &caller, id).await?;
        Ok::<_, Error>(MessageEntity::from(&*message))
    };
    context.respond(recalled.await)
}

async fn save(
    gateway: &Gateway,
    caller: &Caller,
    body: SendBody,
    marks_read: bool,
) -> Result<MessageInfo, Error> {
    let message = body.into_message(marks_read)?;
    let saved = send::save(&gateway.chat, caller, message).await?.await?;
    gateway.meters.acks_saved.increment(1);
    Ok(MessageInfo::from(&*saved.message))
}

async fn send_message(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<SendBody>,
) -> ApiResponse<MessageInfo> {
    context.respond(save(&gateway, &caller, body, true).await)
}

/// A message from the system account.
async fn send_system(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<System>,
    Body(body): Body<SendBody>,
) -> ApiResponse<MessageInfo> {
    let sent = async {
        let saved =
            send::send_as_system(&gateway.chat, &operator, body.into_message(true)?).await?;
        gateway.meters.acks_saved.increment(1);
        Ok::<_, Error>(MessageInfo::from(&*saved.message))
    };
    context.respond(sent.await)
}

/// For clients that send without having shown what came before: that stays unread.
async fn send_without_mark_read(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<SendBody>,
) -> ApiResponse<MessageInfo> {
    context.respond(save(&gateway, &caller, body, false).await)
}

async fn pull(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<PullParams>,
) -> ApiResponse<MessageRange> {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let limit = page_size(params.limit, 100, 100);
        let end = if params.end_seq == 0 { u64::MAX } else { params.end_seq };
        let range = Seq(params.begin_seq)..=Seq(end);
        let (page, max_seq) =
            read::range(&gateway.chat, &caller, &conversation, range, limit).await?;
        let messages = page.items.iter().map(|message| MessageInfo::from(&**message)).collect();
        let (has_more, damaged) = (page.has_more, damaged::ranges(&page.damaged));
        Ok::<_, Error>(MessageRange { messages, max_seq: max_seq.0, has_more, damaged })
    };
    context.respond(found.await)
}

async fn max_seq(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<ConversationParams>,
) -> ApiResponse<MaxSeq> {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let standing = read::standing(&gateway.chat, &caller, &conversation).await?;
        Ok::<_, Error>(MaxSeq { max_seq: standing.visible_max().0 })
    };
    context.respond(found.await)
}

async fn readers(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<ReadersParams>,
) -> ApiResponse<ReaderPage> {
    let found = async {
        let id = MessageId::parse(&params.server_msg_id)?;
        let limit = page_size(params.limit, 100, 200);
        let after = page_cursor(params.cursor.as_deref(), UserId::parse)?;
        let (page, next) = read::readers(&gateway.chat, &caller, id, after.as_ref(), limit).await?;
        Ok::<_, Error>(ReaderPage {
            readers: page.items.iter().map(ReaderInfo::from).collect(),
            has_more: page.has_more,
            next_cursor: next.map(|user| user.to_string()),
        })
    };
    context.respond(found.await)
}

/// The seqs of messages that mention the caller or reply to them.
async fn mentions(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<MentionsParams>,
) -> ApiResponse<MentionPage> {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let limit = page_size(params.limit, 100, 1000);
        let from = Seq(params.begin_seq);
        let page = read::mentions(&gateway.chat, &caller, &conversation, from, limit).await?;
        Ok::<_, Error>(MentionPage::new(&page.items, page.has_more))
    };
    context.respond(found.await)
}
