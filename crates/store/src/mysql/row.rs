//! Conversions between rows and the domain's types.

use std::collections::BTreeMap;

use mysql_async::{Row, Value};
use nexo_chat::ids::{ClientMsgId, ConversationId, LoginId, MessageId, Millis, Platform, UserId};
use nexo_chat::model::{
    Change, Content, ContentKind, Fingerprint, Login, Message, Profile, Recall, Receive, ReplyTo,
    ResetCode, Settings, User, Window, WindowEnd,
};
use nexo_chat::progress::Progress;
use nexo_chat::store::{Collection, DocumentId};
use serde::{Deserialize, Serialize};

use super::fault::{SqlFault, damaged};
use super::fields::Fields;
use super::sql::values;
use crate::details;

/// The columns of [`message`].
pub(crate) const MESSAGE: &str = "conversation_id, seq, id, sender, client_id, sent_at, kind, \
     body, details, fingerprint, recalled_by, recalled_at";

/// Fields that most messages do not have, as JSON.
#[derive(Default, Serialize, Deserialize)]
struct Details {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    extra: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    mentions: Vec<UserId>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    mentions_all: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply_to: Option<ReplyTo>,
}

pub(crate) fn message(row: Row) -> Result<(Message, Fingerprint), SqlFault> {
    let mut fields = Fields::from(row);
    let (conversation, seq) = (fields.conversation()?, fields.seq()?);
    let (id, sender) = (MessageId(fields.array()?), fields.user()?);
    let client_id = ClientMsgId::parse(&fields.text()?);
    let (sent_at, kind, body) = (fields.millis()?, ContentKind(fields.i32()?), fields.bytes()?);
    let details = match fields.maybe_bytes()? {
        Some(details) => serde_json::from_slice(&details)
            .map_err(|error| damaged(format!("the details of a message: {error}")))?,
        None => Details::default(),
    };
    let fingerprint = Fingerprint(fields.array()?);
    let recalled = match (fields.maybe_user()?, fields.maybe_u64()?) {
        (Some(by), Some(at)) => Some(Recall { by, at: Millis(at) }),
        _ => None,
    };
    let Details { extra, mentions, mentions_all, reply_to } = details;
    let content = Content { kind, body: body.into(), extra, mentions, mentions_all, reply_to };
    let client_id = client_id.map_err(|_| damaged("not a client id"))?;
    let message = Message { id, conversation, seq, sender, client_id, sent_at, content, recalled };
    Ok((message, fingerprint))
}

pub(crate) fn message_values(message: &Message, fingerprint: Fingerprint) -> Vec<Value> {
    let content = &message.content;
    let is_plain = content.extra.is_empty()
        && content.mentions.is_empty()
        && !content.mentions_all
        && content.reply_to.is_none();
    let details = (!is_plain).then(|| {
        json(&Details {
            extra: content.extra.clone(),
            mentions: content.mentions.clone(),
            mentions_all: content.mentions_all,
            reply_to: content.reply_to.clone(),
        })
    });
    let recalled = message.recalled.as_ref();
    values![
        message.conversation.as_str(),
        message.seq.0,
        &message.id.0[..],
        message.sender.as_str(),
        message.client_id.as_str(),
        message.sent_at.0,
        content.kind.0,
        &content.body[..],
        details,
        &fingerprint.0[..],
        recalled.map(|recall| recall.by.as_str()),
        recalled.map(|recall| recall.at.0),
    ]
}

/// Encodes as JSON. The keys are all text, so this cannot fail.
pub(crate) fn json(it: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(it).unwrap_or_default()
}

/// The columns of [`change`], besides the conversation.
pub(crate) const CHANGE: &str = "seq, by_user, at, what";

pub(crate) fn change(
    fields: &mut Fields,
    conversation: ConversationId,
) -> Result<Change, SqlFault> {
    let (seq, by, at) = (fields.seq()?, fields.user()?, fields.millis()?);
    let kind = serde_json::from_slice(&fields.bytes()?);
    let kind = kind.map_err(|error| damaged(format!("a change: {error}")))?;
    Ok(Change { conversation, seq, by, at, kind })
}

pub(crate) fn change_values(change: &Change) -> Vec<Value> {
    values![
        change.conversation.as_str(),
        change.seq.0,
        change.by.as_str(),
        change.at.0,
        json(&change.kind),
    ]
}

pub(crate) fn window_end_values(end: Option<WindowEnd>) -> Vec<Value> {
    values![end.map(|end| end.seq.0), end.map(|end| end.change_seq.0), end.map(|end| end.at.0),]
}

/// A row of `members` without its settings.
pub(crate) fn member_values(
    user: &UserId,
    conversation: &ConversationId,
    window: Window,
    progress: Progress,
) -> Vec<Value> {
    let mut values = values![
        user.as_str(),
        conversation.as_str(),
        window.min.0,
        window.change_min.0,
        window.since.0,
    ];
    values.extend(window_end_values(window.end));
    let (first, last) = progress.own.unwrap_or_default();
    values.extend(values![
        progress.cursors.delivered.0,
        progress.cursors.read.0,
        first.0,
        last.0,
        progress.quiet.0,
    ]);
    values
}

/// The columns of [`Fields::settings`].
pub(crate) const SETTINGS: &str = "pinned, receive, hidden_seq, hidden_since, extra";

pub(crate) fn settings_values(settings: &Settings) -> Vec<Value> {
    let receive = match settings.receive {
        Receive::Normal => 0,
        Receive::Silent => 1,
        Receive::Blocked => 2,
    };
    values![
        settings.pinned,
        receive,
        settings.hidden.map(|hidden| hidden.seq.0),
        settings.hidden.map(|hidden| hidden.since.0),
        maybe(&settings.extra),
    ]
}

/// A text for a column that is `NULL` when it is empty.
pub(crate) fn maybe(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// The same for bytes.
pub(crate) fn maybe_bytes(bytes: Vec<u8>) -> Option<Vec<u8>> {
    Some(bytes).filter(|bytes| !bytes.is_empty())
}

/// The columns of [`user`].
pub(crate) const USER: &str =
    "id, nickname, avatar, extra, created_at, updated_at, password_hash, session_version, details";

pub(crate) fn user(row: Row) -> Result<User, SqlFault> {
    let mut fields = Fields::from(row);
    let (id, profile, created_at) = (fields.user()?, fields.profile()?, fields.millis()?);
    Ok(User {
        id,
        profile,
        created_at,
        updated_at: fields.millis()?.max(created_at), // zero in rows that are older than this column
        password_hash: fields.text()?,
        session_version: fields.u64()?,
        details: fields.details()?,
    })
}

pub(crate) fn user_values(user: &User) -> Vec<Value> {
    let Profile { nickname, avatar, extra } = &user.profile;
    values![
        user.id.as_str(),
        nickname,
        avatar,
        extra,
        user.created_at.0,
        user.updated_at.0,
        &user.password_hash,
        user.session_version,
        maybe_bytes(details::encode(&user.details)),
    ]
}

/// The columns of [`reset`].
pub(crate) const RESET: &str = "user_id, code_hash, expires_at";

pub(crate) fn reset(row: Row) -> Result<(UserId, ResetCode), SqlFault> {
    let mut fields = Fields::from(row);
    let (user, hash) = (fields.user()?, fields.array()?);
    Ok((user, ResetCode { hash, expires_at: fields.millis()? }))
}

pub(crate) fn reset_values(user: &UserId, code: ResetCode) -> Vec<Value> {
    values![user.as_str(), &code.hash[..], code.expires_at.0]
}

/// The columns of [`document`].
pub(crate) const DOCUMENT: &str = "collection, id, body";

pub(crate) fn document(row: Row) -> Result<(DocumentId, Vec<u8>), SqlFault> {
    let mut fields = Fields::from(row);
    let (collection, key) = (Collection::parse(&fields.text()?), fields.text()?);
    let id = collection.and_then(|collection| DocumentId::parse(collection, &key));
    Ok((id.ok_or_else(|| damaged("not a document"))?, fields.bytes()?))
}

/// The columns of [`login`].
pub(crate) const LOGIN: &str = "id, user_id, platform, created_at, expires_at, refresh_hash, \
     generation, rotated_at, ended, details";

pub(crate) fn login(row: Row) -> Result<Login, SqlFault> {
    let mut fields = Fields::from(row);
    Ok(Login {
        id: LoginId(fields.array()?),
        user: fields.user()?,
        platform: Platform(fields.i32()?),
        created_at: fields.millis()?,
        expires_at: fields.millis()?,
        refresh_hash: fields.array()?,
        generation: fields.u64()?,
        rotated_at: fields.millis()?,
        ended: fields.bool()?,
        device: fields.details()?,
    })
}

pub(crate) fn login_values(login: &Login) -> Vec<Value> {
    values![
        &login.id.0[..],
        login.user.as_str(),
        login.platform.0,
        login.created_at.0,
        login.expires_at.0,
        &login.refresh_hash[..],
        login.generation,
        login.rotated_at.0,
        login.ended,
        maybe_bytes(details::encode(&login.device)),
    ]
}
