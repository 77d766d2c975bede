//! Messages over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use nexo_chat::command::Outgoing;
use nexo_chat::ids::{ClientMsgId, ConversationId, MessageId, Seq, UserId};
use nexo_chat::{Error, Reason, read, recall as recalling, send as sending};
use nexo_wire::http::MessageEntity;
use nexo_wire::snake::{self, MessageInfo, Pulled, SESSION_PRIVATE};
use serde::Deserialize;
use serde_json::json;

use super::answer::{Asked, Authenticated, Body, Params};
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
    session_type: i32,
    msg_type: i32,
    content: BTreeMap<String, String>,
}

impl SendBody {
    fn outgoing(self) -> Result<Outgoing, Reason> {
        if self.session_type != SESSION_PRIVATE {
            return Err(Reason::NotImplemented);
        }
        let to = self.recv_id.filter(|to| !to.is_empty()).ok_or(Reason::MissingTo)?;
        Ok(Outgoing {
            to: UserId::parse(&to).map_err(|_| Reason::UserNotFound)?,
            client_id: ClientMsgId::parse(&self.client_msg_id)?,
            content: snake::content(self.msg_type, self.content)?,
        })
    }
}

pub(super) async fn send(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<SendBody>,
) -> Response {
    let sent = async {
        let saved = sending::send(&gateway.chat, &caller, body.outgoing()?).await?.await?;
        Ok::<_, Error>(MessageInfo::from(&*saved.message))
    };
    asked.answer(sent.await)
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
