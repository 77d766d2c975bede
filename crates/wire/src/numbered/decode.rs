//! An envelope becomes a command, or a refusal that can be answered.

use std::borrow::Cow;
use std::collections::BTreeMap;

use data_encoding::BASE64;
use nexo_chat::Reason;
use nexo_chat::command::{Command, Outgoing, Target};
use nexo_chat::ids::{ClientMsgId, ConversationId, GroupId, Seq, UserId};
use nexo_chat::query::Query;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{BY_LIST, BY_RANGE, DATA_ERROR, NEWEST, SEND, STATE};
use crate::dialect::{Call, Claimed, Decoded, Echo, Inbound, Packet, Refused};
use crate::snake::{self, SESSION_GROUP, SESSION_PRIVATE};
use crate::{mentions, typed::Text};

/// Conversations one question may name.
const CONVERSATIONS_MAX: usize = 1000;
/// Messages of one answer.
const PULLED_MAX: u64 = 100;
/// Characters of what is repeated.
const ECHO_CHARS_MAX: usize = 128;

/// What every frame has. Token and sender are those of the handshake; if a frame names them too,
/// they must be the same.
#[derive(Deserialize)]
struct Envelope<'a> {
    req_identifier: Option<i64>,
    #[serde(borrow)]
    msg_incr: Option<Text<'a>>,
    #[serde(borrow)]
    operation_id: Option<Text<'a>>,
    #[serde(borrow)]
    token: Option<Text<'a>>,
    #[serde(borrow)]
    send_id: Option<Text<'a>>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// Reads a frame: text, or the same as bytes.
pub fn decode(packet: Packet<'_>) -> Result<Decoded, Refused> {
    let bad = || Refused { reason: Reason::BadJson, echo: Echo::default() };
    let text = match packet {
        Packet::Text(text) => text,
        Packet::Binary(bytes) => std::str::from_utf8(bytes).map_err(|_| bad())?,
    };
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|_| bad())?;
    let short = |text: Option<&Text<'_>>| -> String {
        text.map(|text| text.0.chars().take(ECHO_CHARS_MAX).collect()).unwrap_or_default()
    };
    let call = Call::Numbered {
        req_identifier: envelope.req_identifier.unwrap_or(DATA_ERROR),
        msg_incr: short(envelope.msg_incr.as_ref()),
        operation_id: short(envelope.operation_id.as_ref()),
    };
    let mut echo = Echo { call, ..Echo::default() };
    match understand(&envelope, &mut echo) {
        Ok(command) => {
            let inbound = Inbound::Command(command);
            Ok(Decoded { inbound, echo, claimed: claimed(&envelope) })
        }
        Err(reason) => Err(Refused { reason, echo }),
    }
}

/// Who a frame says it is from; what is empty says nothing.
fn claimed(envelope: &Envelope<'_>) -> Option<Box<Claimed>> {
    let said = |text: Option<&Text<'_>>| {
        text.map(|text| text.0.as_ref()).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let (user, token) = (said(envelope.send_id.as_ref()), said(envelope.token.as_ref()));
    (user.is_some() || token.is_some()).then(|| Box::new(Claimed { user, token }))
}

#[derive(Deserialize)]
struct Conversations {
    conversation_ids: Vec<String>,
}

#[derive(Deserialize)]
struct List {
    conversation_id: String,
    seq_list: Vec<u64>,
}

#[derive(Deserialize)]
struct Range {
    conversation_id: String,
    #[serde(default)]
    begin_seq: u64,
    /// Zero is the end.
    #[serde(default)]
    end_seq: u64,
    #[serde(default)]
    limit: u64,
}

#[derive(Deserialize)]
struct Conversation {
    conversation_id: String,
}

#[derive(Deserialize)]
struct Send {
    client_msg_id: String,
    recv_id: Option<String>,
    group_id: Option<String>,
    session_type: i32,
    msg_type: i32,
    content: BTreeMap<String, String>,
    extra: Option<BTreeMap<String, String>>,
    #[serde(default)]
    mentions: Vec<String>,
    reply_to_server_msg_id: Option<String>,
}

fn understand(envelope: &Envelope<'_>, echo: &mut Echo) -> Result<Command, Reason> {
    let query = match envelope.req_identifier.ok_or(Reason::MissingType)? {
        NEWEST => {
            let Conversations { conversation_ids } = data(envelope)?;
            if conversation_ids.len() > CONVERSATIONS_MAX {
                return Err(Reason::InvalidParam);
            }
            let ids = conversation_ids.iter().map(|id| ConversationId::parse(id));
            Query::Newest(ids.collect::<Result<_, _>>()?)
        }
        BY_LIST => {
            let list: List = data(envelope)?;
            let seqs = list.seq_list.into_iter().map(Seq).collect();
            Query::Fetch(ConversationId::parse(&list.conversation_id)?, seqs)
        }
        SEND => return send(data(envelope)?, echo).map(Command::Send),
        BY_RANGE => {
            let range: Range = data(envelope)?;
            let limit = if range.limit == 0 { PULLED_MAX } else { range.limit.min(PULLED_MAX) };
            let end = if range.end_seq == 0 { u64::MAX } else { range.end_seq };
            let conversation = ConversationId::parse(&range.conversation_id)?;
            let limit = usize::try_from(limit).map_err(|_| Reason::InvalidParam)?;
            Query::Pull(conversation, Seq(range.begin_seq)..=Seq(end), limit)
        }
        STATE => {
            let Conversation { conversation_id } = data(envelope)?;
            Query::State(ConversationId::parse(&conversation_id)?)
        }
        _ => return Err(Reason::NotImplemented),
    };
    Ok(Command::Ask(query))
}

/// The data of a frame: an object, or base64 of one.
fn data<T: DeserializeOwned>(envelope: &Envelope<'_>) -> Result<T, Reason> {
    let raw = envelope.data.ok_or(Reason::InvalidParam)?.get();
    let json: Cow<'_, [u8]> = if raw.starts_with('"') {
        let text: String = serde_json::from_str(raw).map_err(|_| Reason::BadJson)?;
        BASE64.decode(text.as_bytes()).map_err(|_| Reason::BadJson)?.into()
    } else {
        raw.as_bytes().into()
    };
    serde_json::from_slice(&json).map_err(|error| {
        // Readable but not what the operation asks for, or not readable at all.
        if error.is_data() { Reason::InvalidParam } else { Reason::BadJson }
    })
}

fn send(send: Send, echo: &mut Echo) -> Result<Outgoing, Reason> {
    echo.client_msg_id = Some(send.client_msg_id.chars().take(ECHO_CHARS_MAX).collect());
    let client_id = ClientMsgId::parse(&send.client_msg_id)?;
    let given = |id: Option<String>| id.filter(|id| !id.is_empty());
    let to = match send.session_type {
        SESSION_PRIVATE => {
            let to = given(send.recv_id).ok_or(Reason::MissingTo)?;
            Target::User(UserId::parse(&to).map_err(|_| Reason::UserNotFound)?)
        }
        SESSION_GROUP => {
            Target::Group(GroupId::parse(&given(send.group_id).ok_or(Reason::MissingGroupId)?)?)
        }
        _ => return Err(Reason::InvalidParam),
    };
    let mut content = snake::content(send.msg_type, send.content)?;
    content.extra = send.extra.unwrap_or_default();
    mentions::mention(&mut content, send.mentions.iter().map(String::as_str))?;
    let reply_to = mentions::answered(send.reply_to_server_msg_id.as_deref())?;
    Ok(Outgoing { to, client_id, content, reply_to, marks_read: true })
}
