//! Decodes a text frame into a command, or into a refusal with its echo.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use nexo_chat::Reason;
use nexo_chat::command::{Acknowledge, Command, NewMessage, Target};
use nexo_chat::ids::{ClientMsgId, ConversationId, MessageId, Seq, UserId};
use nexo_chat::model::{Content, ContentKind, CursorKind};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::dialect::{DecodeError, Decoded, Echo, Inbound};
use crate::text_or_number::TextOrNumber;
use crate::{mentions, parse_ids};

/// The fields of every type together. Fields that the server decides (`from`, `ts` …) are not read.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClientFrame<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    token: Option<Cow<'a, str>>,
    #[serde(borrow)]
    client_msg_id: Option<TextOrNumber<'a>>,
    #[serde(borrow)]
    server_msg_id: Option<TextOrNumber<'a>>,
    #[serde(borrow)]
    msg_seq: Option<TextOrNumber<'a>>,
    #[serde(borrow)]
    to: Option<TextOrNumber<'a>>,
    #[serde(borrow)]
    group_id: Option<TextOrNumber<'a>>,
    #[serde(borrow)]
    ack_type: Option<Cow<'a, str>>,
    #[serde(borrow)]
    msg_type: Option<TextOrNumber<'a>>,
    #[serde(borrow)]
    body: Option<Cow<'a, str>>,
    extra: Option<BTreeMap<String, String>>,
    #[serde(borrow)]
    mentions: Option<Vec<TextOrNumber<'a>>>,
    #[serde(borrow)]
    reply_to_server_msg_id: Option<TextOrNumber<'a>>,
    #[serde(borrow)]
    #[schema(value_type = BTreeMap<String, TextOrNumber>)]
    cursors: Option<BTreeMap<Cow<'a, str>, TextOrNumber<'a>>>,
}

/// Never panics; a frame that cannot be read is a refusal.
pub fn decode(text: &str) -> Result<Decoded, DecodeError> {
    let frame: ClientFrame<'_> = serde_json::from_str(text).map_err(|_| unreadable(text))?;
    let echo = Echo {
        client_msg_id: shorten(frame.client_msg_id.as_ref()),
        server_msg_id: shorten(frame.server_msg_id.as_ref()).map(Into::into),
        ..Echo::default()
    };
    match inbound(frame) {
        Ok(inbound) => Ok(Decoded { inbound, echo, claimed: None }),
        Err(reason) => Err(DecodeError { reason, echo }),
    }
}

/// A frame with a `type` but a field of a wrong type is refused with its echo; anything else is not a frame.
fn unreadable(text: &str) -> DecodeError {
    let fields: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    if !fields.get("type").is_some_and(Value::is_string) {
        return DecodeError { reason: Reason::BadJson, echo: Echo::default() };
    }
    let named = |name: &str| match fields.get(name) {
        Some(Value::String(id)) => shorten(Some(&TextOrNumber(id.into()))),
        Some(Value::Number(id)) => Some(id.to_string()),
        _ => None,
    };
    let client_msg_id = named("clientMsgId");
    let server_msg_id = named("serverMsgId").map(Into::into);
    let echo = Echo { client_msg_id, server_msg_id, ..Echo::default() };
    DecodeError { reason: Reason::InvalidParam, echo }
}

/// Wrong ids are echoed too, but cut.
fn shorten(id: Option<&TextOrNumber<'_>>) -> Option<String> {
    id.map(|id| id.0.chars().take(ClientMsgId::LEN_MAX).collect())
}

fn inbound(frame: ClientFrame<'_>) -> Result<Inbound, Reason> {
    let kind = frame.kind.as_deref().ok_or(Reason::MissingType)?;
    let command = match kind {
        "AUTH" => return Ok(Inbound::Auth { token: token(frame)?, renews: false }),
        "REAUTH" => Command::Reauth { token: token(frame)? },
        "PING" => Command::Ping,
        "PONG" => Command::Pong,
        "SINGLE_CHAT" => Command::Send(new_message(frame, receiver)?),
        "GROUP_CHAT" => Command::Send(new_message(frame, group)?),
        "ACK" => Command::Acknowledge(acknowledge(&frame)?),
        "MESSAGE_REVOKE" => Command::Recall { message: message_id(&frame)? },
        "TYPING" => Command::Typing { to: either(&frame)? },
        "RESEND" => Command::Resend { cursors: cursors(frame)? },
        _ => return Err(Reason::NotImplemented),
    };
    Ok(Inbound::Command(command))
}

fn token(frame: ClientFrame<'_>) -> Result<String, Reason> {
    frame.token.filter(|token| !token.is_empty()).map(Cow::into_owned).ok_or(Reason::MissingToken)
}

fn new_message(
    frame: ClientFrame<'_>,
    target: impl FnOnce(&ClientFrame<'_>) -> Result<Target, Reason>,
) -> Result<NewMessage, Reason> {
    let client_id = frame.client_msg_id.as_ref().map_or("", |id| &id.0);
    let client_id = ClientMsgId::parse(client_id)?;
    let to = target(&frame)?;
    let body = frame.body.ok_or(Reason::MissingBody)?.into_owned();
    let kind = match &frame.msg_type {
        Some(name) => content_kind(&name.0).ok_or(Reason::UnknownMsgType)?,
        None => ContentKind::TEXT,
    };
    let extra = frame.extra.unwrap_or_default();
    let mut content = Content { kind, extra, ..Content::text(Bytes::from(body)) };
    let names = frame.mentions.as_deref().unwrap_or_default();
    mentions::add_mentions(&mut content, names.iter().map(|name| &*name.0))?;
    let reply_to = frame.reply_to_server_msg_id.as_ref();
    let reply_to = mentions::message_id(reply_to.map(|id| &*id.0))?;
    Ok(NewMessage { to, client_id, content, reply_to, marks_read: true })
}

fn given<'f>(field: Option<&'f TextOrNumber<'_>>) -> Option<&'f str> {
    field.map(|text| &*text.0).filter(|text| !text.is_empty())
}

fn receiver(frame: &ClientFrame<'_>) -> Result<Target, Reason> {
    let to = given(frame.to.as_ref()).ok_or(Reason::MissingTo)?;
    parse_ids::user_id(to).map(Target::User)
}

fn group(frame: &ClientFrame<'_>) -> Result<Target, Reason> {
    parse_ids::group_id(given(frame.group_id.as_ref())).map(Target::Group)
}

/// A user or a group, not both.
fn either(frame: &ClientFrame<'_>) -> Result<Target, Reason> {
    match (given(frame.to.as_ref()), given(frame.group_id.as_ref())) {
        (Some(_), Some(_)) => Err(Reason::InvalidParam),
        (None, Some(_)) => group(frame),
        (_, None) => receiver(frame),
    }
}

pub(crate) const KINDS: [(&str, ContentKind); 6] = [
    ("TEXT", ContentKind::TEXT),
    ("IMAGE", ContentKind::IMAGE),
    ("VIDEO", ContentKind::VIDEO),
    ("AUDIO", ContentKind::AUDIO),
    ("FILE", ContentKind::FILE),
    ("CUSTOM", ContentKind::CUSTOM),
];

/// A content type by its name or number.
fn content_kind(text: &str) -> Option<ContentKind> {
    let by_name = KINDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    let by_number = || text.parse().ok().map(ContentKind).filter(|kind| kind.is_known());
    by_name.map(|(_, kind)| *kind).or_else(by_number)
}

pub(crate) fn kind_name(kind: ContentKind) -> &'static str {
    KINDS.iter().find(|(_, known)| *known == kind).map_or("CUSTOM", |(name, _)| name)
}

fn acknowledge(frame: &ClientFrame<'_>) -> Result<Acknowledge, Reason> {
    let kind = frame.ack_type.as_deref().filter(|kind| !kind.is_empty());
    let kind = match kind.ok_or(Reason::MissingAckType)? {
        kind if kind.eq_ignore_ascii_case("delivered") => CursorKind::Delivered,
        kind if kind.eq_ignore_ascii_case("read") => CursorKind::Read,
        kind if kind.eq_ignore_ascii_case("ack_read") => CursorKind::Read,
        _ => return Err(Reason::UnknownAckType),
    };
    let message = message_id(frame)?;
    // A `groupId` is not read: the message id tells the conversation.
    let from = given(frame.to.as_ref()).map(UserId::parse).transpose();
    let from = from.map_err(|_| Reason::AckNotAllowed)?;
    let seq = frame.msg_seq.as_ref().map(|text| seq(text)).transpose();
    Ok(Acknowledge { kind, message, from, seq: seq.map_err(|_| Reason::AckNotAllowed)? })
}

fn message_id(frame: &ClientFrame<'_>) -> Result<MessageId, Reason> {
    let id = given(frame.server_msg_id.as_ref()).ok_or(Reason::MissingServerMsgId)?;
    MessageId::parse(id)
}

fn seq(text: &TextOrNumber<'_>) -> Result<Seq, Reason> {
    text.0.parse().map(Seq).map_err(|_| Reason::InvalidParam)
}

fn cursors(frame: ClientFrame<'_>) -> Result<BTreeMap<ConversationId, Seq>, Reason> {
    let given = frame.cursors.unwrap_or_default();
    given.iter().map(|(id, at)| Ok((ConversationId::parse(id)?, seq(at)?))).collect()
}
