//! Decodes an envelope into a command, or into a refusal with its echo.

use std::borrow::Cow;
use std::collections::BTreeMap;

use data_encoding::BASE64;
use nexo_chat::command::{Command, NewMessage, Target};
use nexo_chat::ids::{ClientMsgId, ConversationId, Seq};
use nexo_chat::query::Query;
use nexo_chat::{DetailedReason, Reason};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{BY_LIST, BY_RANGE, DATA_ERROR, NEWEST, SEND, STATE};
use crate::dialect::{Call, ClaimedSender, DecodeError, Decoded, Echo, Inbound, Packet};
use crate::http::messages;
use crate::http::session_type::{SESSION_GROUP, SESSION_PRIVATE};
use crate::json::from_json;
use crate::text_or_number::TextOrNumber;
use crate::{mentions, parse_ids};

/// Conversations of one request.
const CONVERSATIONS_MAX: usize = 1000;
/// Messages of one answer.
const PULLED_MAX: u64 = 100;
/// Characters of each id that an answer repeats.
const ECHO_CHARS_MAX: usize = 128;

/// The envelope. Token and sender are those of the handshake; if a frame has them too, they must be the same.
#[derive(Deserialize)]
struct NumberedRequest<'a> {
    req_identifier: Option<i64>,
    #[serde(borrow)]
    msg_incr: Option<TextOrNumber<'a>>,
    #[serde(borrow)]
    operation_id: Option<TextOrNumber<'a>>,
    #[serde(borrow)]
    token: Option<TextOrNumber<'a>>,
    #[serde(borrow)]
    send_id: Option<TextOrNumber<'a>>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// The same JSON may come as a text or a binary frame.
pub fn decode(packet: Packet<'_>) -> Result<Decoded, DecodeError> {
    let bad = || DecodeError { reason: Reason::BadJson, echo: Echo::default() };
    let text = match packet {
        Packet::Text(text) => text,
        Packet::Binary(bytes) => std::str::from_utf8(bytes).map_err(|_| bad())?,
    };
    let request: NumberedRequest<'_> = serde_json::from_str(text).map_err(|_| bad())?;
    let short = |text: Option<&TextOrNumber<'_>>| -> String {
        text.map(|text| text.0.chars().take(ECHO_CHARS_MAX).collect()).unwrap_or_default()
    };
    let call = Call::Numbered {
        req_identifier: request.req_identifier.unwrap_or(DATA_ERROR),
        msg_incr: short(request.msg_incr.as_ref()),
        operation_id: short(request.operation_id.as_ref()),
    };
    let mut echo = Echo { call, ..Echo::default() };
    match command(&request, &mut echo) {
        Ok(decoded) => {
            let inbound = Inbound::Command(decoded);
            Ok(Decoded { inbound, echo, claimed: claimed_sender(&request) })
        }
        Err(DetailedReason { reason, detail }) => {
            echo.detail = detail;
            Err(DecodeError { reason, echo })
        }
    }
}

/// Empty strings claim nothing.
fn claimed_sender(request: &NumberedRequest<'_>) -> Option<Box<ClaimedSender>> {
    let given = |text: Option<&TextOrNumber<'_>>| {
        text.map(|text| text.0.as_ref()).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let (user, token) = (given(request.send_id.as_ref()), given(request.token.as_ref()));
    (user.is_some() || token.is_some()).then(|| Box::new(ClaimedSender { user, token }))
}

#[derive(Deserialize)]
struct NewestRequest {
    conversation_ids: Vec<String>,
}

#[derive(Deserialize)]
struct FetchRequest {
    conversation_id: String,
    seq_list: Vec<u64>,
}

#[derive(Deserialize)]
struct PullRequest {
    conversation_id: String,
    #[serde(default)]
    begin_seq: u64,
    /// Zero: up to the newest.
    #[serde(default)]
    end_seq: u64,
    #[serde(default)]
    limit: u64,
}

#[derive(Deserialize)]
struct StateRequest {
    conversation_id: String,
}

#[derive(Deserialize)]
struct NumberedSend {
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

fn command(request: &NumberedRequest<'_>, echo: &mut Echo) -> Result<Command, DetailedReason> {
    let query = match request.req_identifier.ok_or(Reason::MissingType)? {
        NEWEST => {
            let NewestRequest { conversation_ids } = data(request)?;
            if conversation_ids.len() > CONVERSATIONS_MAX {
                return Err(DetailedReason::field("conversation_ids"));
            }
            let ids = conversation_ids.iter().map(|id| ConversationId::parse(id));
            Query::Newest(ids.collect::<Result<_, _>>()?)
        }
        BY_LIST => {
            let list: FetchRequest = data(request)?;
            let seqs = list.seq_list.into_iter().map(Seq).collect();
            Query::Fetch(ConversationId::parse(&list.conversation_id)?, seqs)
        }
        SEND => return send(data(request)?, echo).map(Command::Send),
        BY_RANGE => {
            let range: PullRequest = data(request)?;
            let limit = if range.limit == 0 { PULLED_MAX } else { range.limit.min(PULLED_MAX) };
            let end = if range.end_seq == 0 { u64::MAX } else { range.end_seq };
            let conversation = ConversationId::parse(&range.conversation_id)?;
            let limit = usize::try_from(limit).map_err(|_| Reason::InvalidParam)?;
            Query::Pull(conversation, Seq(range.begin_seq)..=Seq(end), limit)
        }
        STATE => {
            let StateRequest { conversation_id } = data(request)?;
            Query::State(ConversationId::parse(&conversation_id)?)
        }
        _ => return Err(Reason::NotImplemented.into()),
    };
    Ok(Command::Query(query))
}

/// `data` is an object, or base64 of one.
fn data<T: DeserializeOwned>(request: &NumberedRequest<'_>) -> Result<T, DetailedReason> {
    let raw = request.data.ok_or_else(|| DetailedReason::field("data"))?.get();
    let json: Cow<'_, [u8]> = if raw.starts_with('"') {
        let text: String = serde_json::from_str(raw).map_err(|_| Reason::BadJson)?;
        BASE64.decode(text.as_bytes()).map_err(|_| Reason::BadJson)?.into()
    } else {
        raw.as_bytes().into()
    };
    from_json(&json)
}

fn send(send: NumberedSend, echo: &mut Echo) -> Result<NewMessage, DetailedReason> {
    echo.client_msg_id = Some(send.client_msg_id.chars().take(ECHO_CHARS_MAX).collect());
    let client_id = ClientMsgId::parse(&send.client_msg_id)?;
    let given = |id: Option<String>| id.filter(|id| !id.is_empty());
    let to = match send.session_type {
        SESSION_PRIVATE => {
            let to = given(send.recv_id).ok_or(Reason::MissingTo)?;
            Target::User(parse_ids::user_id(&to)?)
        }
        SESSION_GROUP => Target::Group(parse_ids::group_id(send.group_id.as_deref())?),
        _ => return Err(DetailedReason::field("session_type")),
    };
    let mut content = messages::content(send.msg_type, send.content)?;
    content.extra = send.extra.unwrap_or_default();
    mentions::add_mentions(&mut content, send.mentions.iter().map(String::as_str))?;
    let reply_to = mentions::message_id(send.reply_to_server_msg_id.as_deref())?;
    Ok(NewMessage { to, client_id, content, reply_to, marks_read: true })
}
