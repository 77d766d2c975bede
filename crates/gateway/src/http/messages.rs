//! Messages over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use nexo_chat::command::{Outgoing, Target};
use nexo_chat::ids::{ClientMsgId, ConversationId, MessageId, Seq, UserId};
use nexo_chat::model::Caller;
use nexo_chat::read::Listed;
use nexo_chat::{Chat, Error, Reason, read, recall as recalling, send as sending};
use nexo_wire::camel::MessageEntity;
use nexo_wire::mentions;
use nexo_wire::snake::{
    self, Mentioned, MessageInfo, Pulled, ReaderInfo, Readers, SESSION_GROUP, SESSION_PRIVATE,
};
use serde::Deserialize;
use serde_json::json;

use super::answer::{Asked, Authenticated, Body, Params};
use super::groups::{cursor, group_id};
use super::operations::is_operator;
use super::reading::limit;
use crate::gateway::Gateway;

type Shared = State<Arc<Gateway>>;

#[derive(Deserialize)]
pub(super) struct RecallBody {
    server_msg_id: String,
}

pub(super) async fn recall(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<RecallBody>,
) -> Response {
    let recalled = async {
        let id = MessageId::parse(&body.server_msg_id)?;
        let message = recalling::recall(&gateway.chat, &caller, id).await?;
        Ok::<_, Error>(MessageEntity::from(&*message))
    };
    asked.answer(recalled.await)
}

#[derive(Deserialize)]
pub(super) struct SendBody {
    client_msg_id: String,
    recv_id: Option<String>,
    group_id: Option<String>,
    session_type: i32,
    msg_type: i32,
    content: BTreeMap<String, String>,
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
        mentions::mention(&mut content, self.mentions.iter().map(String::as_str))?;
        let reply_to = mentions::answered(self.reply_to_server_msg_id.as_deref())?;
        Ok(Outgoing { to, client_id, content, reply_to, marks_read })
    }

    async fn send(
        self,
        chat: &Chat,
        caller: &Caller,
        marks_read: bool,
    ) -> Result<MessageInfo, Error> {
        let saved = sending::send(chat, caller, self.outgoing(marks_read)?).await?.await?;
        Ok(MessageInfo::from(&*saved.message))
    }
}

pub(super) async fn send(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<SendBody>,
) -> Response {
    asked.answer(body.send(&gateway.chat, &caller, true).await)
}

/// Something said with the operator's own voice.
pub(super) async fn system(
    State(gateway): Shared,
    asked: Asked,
    parts: Parts,
    Body(body): Body<SendBody>,
) -> Response {
    if !is_operator(gateway.options.system_token.as_ref(), &parts) {
        return asked.refuse(Reason::Unauthorized);
    }
    let said = async {
        let saved = sending::system(&gateway.chat, body.outgoing(true)?).await?;
        Ok::<_, Error>(MessageInfo::from(&*saved.message))
    };
    asked.answer(said.await)
}

/// For those who speak without looking: what came before stays unread.
pub(super) async fn send_without_mark_read(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<SendBody>,
) -> Response {
    asked.answer(body.send(&gateway.chat, &caller, false).await)
}

#[derive(Deserialize)]
pub(super) struct PullParams {
    conversation_id: String,
    #[serde(default)]
    begin_seq: u64,
    /// Zero is the end.
    #[serde(default)]
    end_seq: u64,
    limit: Option<usize>,
}

pub(super) async fn pull(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<PullParams>,
) -> Response {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let limit = limit(params.limit, 100, 100)?;
        let end = if params.end_seq == 0 { u64::MAX } else { params.end_seq };
        let range = Seq(params.begin_seq)..=Seq(end);
        let (page, max_seq) =
            read::range(&gateway.chat, &caller, &conversation, range, limit).await?;
        let messages = page.items.iter().map(|message| MessageInfo::from(&**message)).collect();
        Ok::<_, Error>(Pulled { messages, max_seq: max_seq.0, has_more: page.has_more })
    };
    asked.answer(found.await)
}

#[derive(Deserialize)]
pub(super) struct MaxSeqParams {
    conversation_id: String,
}

pub(super) async fn max_seq(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<MaxSeqParams>,
) -> Response {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let standing = read::standing(&gateway.chat, &caller, &conversation).await?;
        Ok::<_, Error>(json!({ "max_seq": standing.visible_max().0 }))
    };
    asked.answer(found.await)
}

#[derive(Deserialize)]
pub(super) struct ReadersParams {
    server_msg_id: String,
    cursor: Option<String>,
    limit: Option<usize>,
}

pub(super) async fn readers(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<ReadersParams>,
) -> Response {
    let found = async {
        let id = MessageId::parse(&params.server_msg_id)?;
        let limit = limit(params.limit, 100, 200)?;
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

#[derive(Deserialize)]
pub(super) struct MentionsParams {
    conversation_id: String,
    #[serde(default)]
    begin_seq: u64,
    limit: Option<usize>,
}

/// Where the caller is spoken to in particular.
pub(super) async fn mentioned(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<MentionsParams>,
) -> Response {
    let found = async {
        let conversation = ConversationId::parse(&params.conversation_id)?;
        let limit = limit(params.limit, 100, 1000)?;
        let standing = read::standing(&gateway.chat, &caller, &conversation).await?;
        let range = standing.window.min.max(Seq(params.begin_seq))..=standing.visible_max();
        let mut seqs = Vec::new();
        if !range.is_empty() {
            let store = &gateway.chat.store;
            seqs = store.mentions(&caller.user, &conversation, range, limit + 1).await?;
        }
        let page = Listed::cut(seqs, limit);
        Ok::<_, Error>(Mentioned::new(&page.items, page.has_more))
    };
    asked.answer(found.await)
}
