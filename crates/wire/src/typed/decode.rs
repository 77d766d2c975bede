//! A text frame becomes a command, or a refusal that can be answered.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use nexo_chat::Reason;
use nexo_chat::command::{Acknowledge, Command, Outgoing, Target};
use nexo_chat::ids::{ClientMsgId, ConversationId, GroupId, MessageId, Seq, UserId};
use nexo_chat::model::{Content, ContentKind, CursorKind};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::text::Text;
use crate::dialect::{Decoded, Echo, Inbound, Refused};
use crate::mentions;

/// The fields of every type together. Fields a client may not decide (`from`, `ts` …) are simply
/// not read.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Frame<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    token: Option<Cow<'a, str>>,
    #[serde(borrow)]
    client_msg_id: Option<Text<'a>>,
    #[serde(borrow)]
    server_msg_id: Option<Text<'a>>,
    #[serde(borrow)]
    msg_seq: Option<Text<'a>>,
    #[serde(borrow)]
    to: Option<Text<'a>>,
    #[serde(borrow)]
    group_id: Option<Text<'a>>,
    #[serde(borrow)]
    ack_type: Option<Cow<'a, str>>,
    #[serde(borrow)]
    msg_type: Option<Text<'a>>,
    #[serde(borrow)]
    body: Option<Cow<'a, str>>,
    extra: Option<BTreeMap<String, String>>,
    #[serde(borrow)]
    mentions: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    reply_to_server_msg_id: Option<Text<'a>>,
    #[serde(borrow)]
    #[schema(value_type = BTreeMap<String, Text>)]
    cursors: Option<BTreeMap<Cow<'a, str>, Text<'a>>>,
}

/// Reads one text frame. Never panics; whatever cannot be read is a refusal.
pub fn decode(text: &str) -> Result<Decoded, Refused> {
    let frame: Frame<'_> = serde_json::from_str(text).map_err(|_| unreadable(text))?;
    let echo = Echo {
        client_msg_id: short(frame.client_msg_id.as_ref()),
        server_msg_id: short(frame.server_msg_id.as_ref()),
        ..Echo::default()
    };
    match understand(frame) {
        Ok(inbound) => Ok(Decoded { inbound, echo, claimed: None }),
        Err(reason) => Err(Refused { reason, echo }),
    }
}

/// A frame of this protocol with a field of a wrong type is refused by its name; anything else is
/// not of this protocol.
fn unreadable(text: &str) -> Refused {
    let fields: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    if !fields.get("type").is_some_and(Value::is_string) {
        return Refused { reason: Reason::BadJson, echo: Echo::default() };
    }
    let named = |name: &str| match fields.get(name) {
        Some(Value::String(id)) => short(Some(&Text(id.into()))),
        Some(Value::Number(id)) => Some(id.to_string()),
        _ => None,
    };
    let (client_msg_id, server_msg_id) = (named("clientMsgId"), named("serverMsgId"));
    let echo = Echo { client_msg_id, server_msg_id, ..Echo::default() };
    Refused { reason: Reason::InvalidParam, echo }
}

/// Ids are echoed even when they are wrong, but not at any length.
fn short(id: Option<&Text<'_>>) -> Option<String> {
    id.map(|id| id.0.chars().take(ClientMsgId::LEN_MAX).collect())
}

fn understand(frame: Frame<'_>) -> Result<Inbound, Reason> {
    let kind = frame.kind.as_deref().ok_or(Reason::MissingType)?;
    let command = match kind {
        "AUTH" => return Ok(Inbound::Auth { token: token(frame)?, renews: false }),
        "REAUTH" => Command::Reauth { token: token(frame)? },
        "PING" => Command::Ping,
        "PONG" => Command::Pong,
        "SINGLE_CHAT" => Command::Send(outgoing(frame, receiver)?),
        "GROUP_CHAT" => Command::Send(outgoing(frame, group)?),
        "ACK" => Command::Acknowledge(acknowledge(&frame)?),
        "MESSAGE_REVOKE" => Command::Recall { message: message_id(&frame)? },
        "TYPING" => Command::Typing { to: either(&frame)? },
        "RESEND" => Command::Resend { cursors: cursors(frame)? },
        _ => return Err(Reason::NotImplemented),
    };
    Ok(Inbound::Command(command))
}

fn token(frame: Frame<'_>) -> Result<String, Reason> {
    frame.token.filter(|token| !token.is_empty()).map(Cow::into_owned).ok_or(Reason::MissingToken)
}

fn outgoing(
    frame: Frame<'_>,
    target: impl FnOnce(&Frame<'_>) -> Result<Target, Reason>,
) -> Result<Outgoing, Reason> {
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
    mentions::mention(&mut content, names.iter().map(|name| &*name.0))?;
    let answered = frame.reply_to_server_msg_id.as_ref();
    let reply_to = mentions::answered(answered.map(|id| &*id.0))?;
    Ok(Outgoing { to, client_id, content, reply_to, marks_read: true })
}

fn given<'f>(field: Option<&'f Text<'_>>) -> Option<&'f str> {
    field.map(|text| &*text.0).filter(|text| !text.is_empty())
}

fn receiver(frame: &Frame<'_>) -> Result<Target, Reason> {
    let to = given(frame.to.as_ref()).ok_or(Reason::MissingTo)?;
    // An id of a form that no user can have belongs to nobody.
    UserId::parse(to).map(Target::User).map_err(|_| Reason::UserNotFound)
}

fn group(frame: &Frame<'_>) -> Result<Target, Reason> {
    let id = given(frame.group_id.as_ref()).ok_or(Reason::MissingGroupId)?;
    GroupId::parse(id).map(Target::Group)
}

/// One person or one group, not both.
fn either(frame: &Frame<'_>) -> Result<Target, Reason> {
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

/// A content type's name.
pub(crate) fn kind_name(kind: ContentKind) -> &'static str {
    KINDS.iter().find(|(_, known)| *known == kind).map_or("CUSTOM", |(name, _)| name)
}

fn acknowledge(frame: &Frame<'_>) -> Result<Acknowledge, Reason> {
    let kind = frame.ack_type.as_deref().filter(|kind| !kind.is_empty());
    let kind = match kind.ok_or(Reason::MissingAckType)? {
        kind if kind.eq_ignore_ascii_case("delivered") => CursorKind::Delivered,
        kind if kind.eq_ignore_ascii_case("read") => CursorKind::Read,
        kind if kind.eq_ignore_ascii_case("ack_read") => CursorKind::Read,
        _ => return Err(Reason::UnknownAckType),
    };
    let message = message_id(frame)?;
    // A group may be named too, but the message knows where it is.
    let from = given(frame.to.as_ref()).map(UserId::parse).transpose();
    let from = from.map_err(|_| Reason::AckNotAllowed)?;
    let seq = frame.msg_seq.as_ref().map(|text| seq(text)).transpose();
    Ok(Acknowledge { kind, message, from, seq: seq.map_err(|_| Reason::AckNotAllowed)? })
}

fn message_id(frame: &Frame<'_>) -> Result<MessageId, Reason> {
    let id = given(frame.server_msg_id.as_ref()).ok_or(Reason::MissingServerMsgId)?;
    MessageId::parse(id)
}

fn seq(text: &Text<'_>) -> Result<Seq, Reason> {
    text.0.parse().map(Seq).map_err(|_| Reason::InvalidParam)
}

fn cursors(frame: Frame<'_>) -> Result<BTreeMap<ConversationId, Seq>, Reason> {
    let given = frame.cursors.unwrap_or_default();
    given.iter().map(|(id, at)| Ok((ConversationId::parse(id)?, seq(at)?))).collect()
}
