//! Rows and the things they stand for.

use std::collections::BTreeMap;

use mysql_async::{Row, Value};
use nexo_chat::ids::{
    ClientMsgId, ConversationId, GroupId, LoginId, MessageId, Millis, Platform, Seq, UserId,
};
use nexo_chat::model::{
    Change, Content, ContentKind, Edge, Fingerprint, Hidden, Login, Message, Profile, Recall,
    Receive, ReplyTo, ResetCode, Settings, User, Window,
};
use nexo_chat::progress::Progress;
use serde::{Deserialize, Serialize};

use super::fault::{Fault, damaged};
use super::sql::values;

/// The fields of a row, read one after the other.
pub(crate) struct Fields(std::vec::IntoIter<Value>);

impl From<Row> for Fields {
    fn from(row: Row) -> Self {
        Self(row.unwrap().into_iter())
    }
}

impl Fields {
    fn value(&mut self) -> Result<Value, Fault> {
        self.0.next().ok_or_else(|| damaged("a field is missing"))
    }

    /// The next field, without going on.
    pub(crate) fn peek(&self) -> Option<&Value> {
        self.0.as_slice().first()
    }

    pub(crate) fn maybe_u64(&mut self) -> Result<Option<u64>, Fault> {
        match self.value()? {
            Value::NULL => Ok(None),
            Value::UInt(number) => Ok(Some(number)),
            Value::Int(number) => {
                u64::try_from(number).map(Some).map_err(|_| damaged("a number below zero"))
            }
            Value::Bytes(text) => {
                let number = String::from_utf8(text).ok().and_then(|text| text.parse().ok());
                number.map(Some).ok_or_else(|| damaged("not a number"))
            }
            _ => Err(damaged("not a number")),
        }
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Fault> {
        self.maybe_u64()?.ok_or_else(|| damaged("a number is missing"))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Fault> {
        self.u64()?.try_into().map_err(|_| damaged("a number is too large"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Fault> {
        self.u64()?.try_into().map_err(|_| damaged("a number is too large"))
    }

    pub(crate) fn size(&mut self) -> Result<usize, Fault> {
        self.u64()?.try_into().map_err(|_| damaged("a number is too large"))
    }

    pub(crate) fn bool(&mut self) -> Result<bool, Fault> {
        Ok(self.u64()? != 0)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Fault> {
        match self.value()? {
            Value::Int(number) => number.try_into().map_err(|_| damaged("a number is too large")),
            Value::UInt(number) => number.try_into().map_err(|_| damaged("a number is too large")),
            _ => Err(damaged("not a number")),
        }
    }

    pub(crate) fn maybe_bytes(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        match self.value()? {
            Value::NULL => Ok(None),
            Value::Bytes(bytes) => Ok(Some(bytes)),
            _ => Err(damaged("not text")),
        }
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, Fault> {
        self.maybe_bytes()?.ok_or_else(|| damaged("a text is missing"))
    }

    pub(crate) fn text(&mut self) -> Result<String, Fault> {
        String::from_utf8(self.bytes()?).map_err(|_| damaged("not UTF-8"))
    }

    /// A text that may not be there, which is an empty one.
    pub(crate) fn maybe_text(&mut self) -> Result<String, Fault> {
        let bytes = self.maybe_bytes()?.unwrap_or_default();
        String::from_utf8(bytes).map_err(|_| damaged("not UTF-8"))
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        self.bytes()?.try_into().map_err(|_| damaged("not as many bytes as there should be"))
    }

    pub(crate) fn seq(&mut self) -> Result<Seq, Fault> {
        self.u64().map(Seq)
    }

    pub(crate) fn millis(&mut self) -> Result<Millis, Fault> {
        self.u64().map(Millis)
    }

    pub(crate) fn maybe_user(&mut self) -> Result<Option<UserId>, Fault> {
        let Some(bytes) = self.maybe_bytes()? else { return Ok(None) };
        let id = std::str::from_utf8(&bytes).ok().and_then(|text| UserId::parse(text).ok());
        id.map(Some).ok_or_else(|| damaged("not a user id"))
    }

    pub(crate) fn user(&mut self) -> Result<UserId, Fault> {
        self.maybe_user()?.ok_or_else(|| damaged("a user id is missing"))
    }

    pub(crate) fn group(&mut self) -> Result<GroupId, Fault> {
        GroupId::parse(&self.text()?).map_err(|_| damaged("not a group id"))
    }

    pub(crate) fn conversation(&mut self) -> Result<ConversationId, Fault> {
        ConversationId::parse(&self.text()?).map_err(|_| damaged("not a conversation id"))
    }

    /// Three fields that are there together.
    pub(crate) fn edge(&mut self) -> Result<Option<Edge>, Fault> {
        let edge = (self.maybe_u64()?, self.maybe_u64()?, self.maybe_u64()?);
        let (Some(seq), Some(change_seq), Some(at)) = edge else { return Ok(None) };
        Ok(Some(Edge { seq: Seq(seq), change_seq: Seq(change_seq), at: Millis(at) }))
    }

    pub(crate) fn window(&mut self) -> Result<Window, Fault> {
        let (min, change_min, since) = (self.seq()?, self.seq()?, self.millis()?);
        Ok(Window { min, change_min, since, end: self.edge()? })
    }

    pub(crate) fn progress(&mut self) -> Result<Progress, Fault> {
        let mut progress = Progress::default();
        progress.cursors.delivered = self.seq()?;
        progress.cursors.read = self.seq()?;
        let own = (self.seq()?, self.seq()?);
        progress.own = (own.1 > Seq::ZERO).then_some(own);
        progress.quiet = self.seq()?;
        Ok(progress)
    }

    pub(crate) fn settings(&mut self) -> Result<Settings, Fault> {
        let pinned = self.bool()?;
        let receive = match self.u8()? {
            0 => Receive::Normal,
            1 => Receive::Silent,
            2 => Receive::Blocked,
            _ => return Err(damaged("an unknown receive option")),
        };
        let hidden = match (self.maybe_u64()?, self.maybe_u64()?) {
            (Some(seq), Some(since)) => Some(Hidden { seq: Seq(seq), since: Millis(since) }),
            _ => None,
        };
        Ok(Settings { pinned, receive, hidden, extra: self.maybe_text()? })
    }

    pub(crate) fn profile(&mut self) -> Result<Profile, Fault> {
        Ok(Profile { nickname: self.text()?, avatar: self.text()?, extra: self.text()? })
    }
}

/// The columns of [`message`].
pub(crate) const MESSAGE: &str = "conversation_id, seq, id, sender, client_id, sent_at, kind, \
     body, details, fingerprint, recalled_by, recalled_at";

/// What most messages do not have.
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

pub(crate) fn message(row: Row) -> Result<(Message, Fingerprint), Fault> {
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

/// JSON of something whose keys are all text, which cannot fail.
pub(crate) fn json(it: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(it).unwrap_or_default()
}

/// The columns of [`change`], beside the conversation.
pub(crate) const CHANGE: &str = "seq, by_user, at, what";

pub(crate) fn change(fields: &mut Fields, conversation: ConversationId) -> Result<Change, Fault> {
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

pub(crate) fn edge_values(edge: Option<Edge>) -> Vec<Value> {
    values![
        edge.map(|edge| edge.seq.0),
        edge.map(|edge| edge.change_seq.0),
        edge.map(|edge| edge.at.0),
    ]
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
    values.extend(edge_values(window.end));
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

/// A text for a column that says nothing of an empty one.
pub(crate) fn maybe(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// The columns of [`user`].
pub(crate) const USER: &str =
    "id, nickname, avatar, extra, created_at, updated_at, password_hash, session_version";

pub(crate) fn user(row: Row) -> Result<User, Fault> {
    let mut fields = Fields::from(row);
    let (id, profile, created_at) = (fields.user()?, fields.profile()?, fields.millis()?);
    Ok(User {
        id,
        profile,
        created_at,
        updated_at: fields.millis()?.max(created_at), // zero in rows from before it was kept
        password_hash: fields.text()?,
        session_version: fields.u64()?,
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
    ]
}

/// The columns of [`reset`].
pub(crate) const RESET: &str = "user_id, code_hash, expires_at";

pub(crate) fn reset(row: Row) -> Result<(UserId, ResetCode), Fault> {
    let mut fields = Fields::from(row);
    let (user, hash) = (fields.user()?, fields.array()?);
    Ok((user, ResetCode { hash, expires_at: fields.millis()? }))
}

pub(crate) fn reset_values(user: &UserId, code: ResetCode) -> Vec<Value> {
    values![user.as_str(), &code.hash[..], code.expires_at.0]
}

/// The columns of [`login`].
pub(crate) const LOGIN: &str =
    "id, user_id, platform, created_at, expires_at, refresh_hash, generation, rotated_at, ended";

pub(crate) fn login(row: Row) -> Result<Login, Fault> {
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
    ]
}
