//! Messages over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use nexo_chat::command::{Outgoing, Target};
use nexo_chat::ids::{ClientMsgId, ConversationId, MessageId, Seq, UserId};
use nexo_chat::model::Caller;
use nexo_chat::{Error, Reason, read, recall as recalling, send as sending};
use nexo_wire::camel::MessageEntity;
use nexo_wire::snake::{
    self, MaxSeq, Mentioned, MessageInfo, Pulled, ReaderInfo, Readers, SESSION_GROUP,
    SESSION_PRIVATE,
};
use nexo_wire::{mentions, shapes};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::answer::{Answer, Asked};
use super::named::{cursor, group_id};
use super::operations::Operator;
use super::paths::{Paths, paths};
use super::reading::limit;
use super::taken::{Authenticated, Body, Params};
use crate::gateway::Gateway;

type Shared = State<Arc<Gateway>>;

/// What a message may be refused for, whoever sends it.
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

/// The paths of messages.
pub(super) fn paths(paths: &mut Paths) {
    paths.group("Messages", "Saying something, taking it back, and reading what was said.");
    paths! { paths:
        POST "/msg/send" send, "Sends a message; it is on disk when this answers, and a retry gets the same answer.",
            SENDING [NotGroupMember MemberNotActive GroupSpeakMuted GroupMuted NotGroupAdmin]
        POST "/msg/send_without_mark_read" send_without_mark_read,
            "Sends a message and leaves unread what came before.",
            SENDING [NotGroupMember MemberNotActive GroupSpeakMuted GroupMuted NotGroupAdmin]
        POST "/system/send" system, "Says something with the operator's own voice.", SENDING []
        POST "/msg/recall" recall, "Takes a message back; its text is never served again."
            [BadServerMsgId MessageNotFound NotMessageSender RevokeTimeout]
        GET "/msg/pull" pull, "Reads a range of messages, oldest first." [ConversationNotFound]
        GET "/msg/max_seq" max_seq, "Tells where a conversation ends for you." [ConversationNotFound]
        GET "/msg/readers" readers, "Tells who has read a message."
            [BadServerMsgId MessageNotFound NotGroupMember MemberNotActive GroupDissolved]
        GET "/msg/mentions" mentioned, "Finds messages that speak to you in particular."
            [ConversationNotFound]
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RecallBody {
    server_msg_id: String,
}

async fn recall(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<RecallBody>,
) -> Answer<MessageEntity> {
    let recalled = async {
        let id = MessageId::parse(&body.server_msg_id)?;
        let message = recalling::recall(&gateway.chat, &caller, id).await?;
        Ok::<_, Error>(MessageEntity::from(&*message))
    };
    asked.answer(recalled.await)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "client_msg_id": "1", "session_type": 1, "recv_id": "bob", "msg_type": 1, "content": { "text": "Hello" },
}))]
struct SendBody {
    /// Your name for this message, up to 128 bytes. The same name on every retry.
    client_msg_id: String,
    /// Whom it is for, in a private conversation.
    recv_id: Option<String>,
    /// Which group it is for.
    group_id: Option<String>,
    #[schema(schema_with = shapes::session_type)]
    session_type: i32,
    #[schema(schema_with = shapes::msg_type_number)]
    msg_type: i32,
    /// Exactly one field, named after the type: `text`, `image`, `video`, `audio`, `file` or `custom`.
    content: BTreeMap<String, String>,
    /// Your app's own options, strings under names; the server carries them along.
    extra: Option<BTreeMap<String, String>>,
    /// User ids, or `@all` by owner and admins.
    #[serde(default)]
    mentions: Vec<String>,
    reply_to_server_msg_id: Option<String>,
}

impl SendBody {
    fn target(&self) -> Result<Target, Reason> {
        match self.session_type {
            SESSION_PRIVATE => {
                let to = self.recv_id.as_deref().filter(|to| !to.is_empty());
                let to = UserId::parse(to.ok_or(Reason::MissingTo)?);
                to.map(Target::User).map_err(|_| Reason::UserNotFound)
            }
            SESSION_GROUP => group_id(self.group_id.as_deref()).map(Target::Group),
            _ => Err(Reason::InvalidParam),
        }
    }

    fn outgoing(self, marks_read: bool) -> Result<Outgoing, Reason> {
        let to = self.target()?;
        let client_id = ClientMsgId::parse(&self.client_msg_id)?;
        let mut content = snake::content(self.msg_type, self.content)?;
        content.extra = self.extra.unwrap_or_default();
        mentions::mention(&mut content, self.mentions.iter().map(String::as_str))?;
        let reply_to = mentions::answered(self.reply_to_server_msg_id.as_deref())?;
        Ok(Outgoing { to, client_id, content, reply_to, marks_read })
    }

    async fn send(
        self,
        gateway: &Gateway,
        caller: &Caller,
        marks_read: bool,
    ) -> Result<MessageInfo, Error> {
        let outgoing = self.outgoing(marks_read)?;
        let saved = sending::save(&gateway.chat, caller, outgoing).await?.await?;
        gateway.measures.acks_saved.increment(1);
        Ok(MessageInfo::from(&*saved.message))
    }
}

async fn send(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<SendBody>,
) -> Answer<MessageInfo> {
    asked.answer(body.send(&gateway, &caller, true).await)
}

/// Something said with the operator's own voice.
async fn system(
    State(gateway): Shared,
    asked: Asked,
    _: Operator,
    Body(body): Body<SendBody>,
) -> Answer<MessageInfo> {
    let said = async {
        let saved = sending::system(&gateway.chat, body.outgoing(true)?).await?;
        gateway.measures.acks_saved.increment(1);
        Ok::<_, Error>(MessageInfo::from(&*saved.message))
    };
    asked.answer(said.await)
}

/// For those who speak without looking: what came before stays unread.
async fn send_without_mark_read(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<SendBody>,
) -> Answer<MessageInfo> {
    asked.answer(body.send(&gateway, &caller, false).await)
}

#[derive(Deserialize, IntoParams)]
struct PullParams {
    conversation_id: String,
    #[serde(default)]
    begin_seq: u64,
    /// Zero is the end.
    #[serde(default)]
    end_seq: u64,
    /// How many at most: up to 100, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 100)]
    limit: Option<usize>,
}

async fn pull(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<PullParams>,
) -> Answer<Pulled> {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let limit = limit(params.limit, 100, 100);
        let end = if params.end_seq == 0 { u64::MAX } else { params.end_seq };
        let range = Seq(params.begin_seq)..=Seq(end);
        let (page, max_seq) =
            read::range(&gateway.chat, &caller, &conversation, range, limit).await?;
        let messages = page.items.iter().map(|message| MessageInfo::from(&**message)).collect();
        Ok::<_, Error>(Pulled { messages, max_seq: max_seq.0, has_more: page.has_more })
    };
    asked.answer(found.await)
}

#[derive(Deserialize, IntoParams)]
struct MaxSeqParams {
    conversation_id: String,
}

async fn max_seq(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<MaxSeqParams>,
) -> Answer<MaxSeq> {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let standing = read::standing(&gateway.chat, &caller, &conversation).await?;
        Ok::<_, Error>(MaxSeq { max_seq: standing.visible_max().0 })
    };
    asked.answer(found.await)
}

#[derive(Deserialize, IntoParams)]
struct ReadersParams {
    server_msg_id: String,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many at most: up to 200, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 100)]
    limit: Option<usize>,
}

async fn readers(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<ReadersParams>,
) -> Answer<Readers> {
    let found = async {
        let id = MessageId::parse(&params.server_msg_id)?;
        let limit = limit(params.limit, 100, 200);
        let after = cursor(params.cursor.as_deref(), UserId::parse)?;
        let (page, next) = read::readers(&gateway.chat, &caller, id, after.as_ref(), limit).await?;
        Ok::<_, Error>(Readers {
            readers: page.items.iter().map(ReaderInfo::from).collect(),
            has_more: page.has_more,
            next_cursor: next.map(|user| user.to_string()),
        })
    };
    asked.answer(found.await)
}

#[derive(Deserialize, IntoParams)]
struct MentionsParams {
    conversation_id: String,
    #[serde(default)]
    begin_seq: u64,
    /// How many at most: up to 1,000, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 100)]
    limit: Option<usize>,
}

/// Where the caller is spoken to in particular.
async fn mentioned(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<MentionsParams>,
) -> Answer<Mentioned> {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let limit = limit(params.limit, 100, 1000);
        let from = Seq(params.begin_seq);
        let page = read::mentions(&gateway.chat, &caller, &conversation, from, limit).await?;
        Ok::<_, Error>(Mentioned::new(&page.items, page.has_more))
    };
    asked.answer(found.await)
}
