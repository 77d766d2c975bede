//! Reads the fields of a row as the domain's types.

use mysql_async::{Row, Value};
use nexo_chat::ids::{ConversationId, GroupId, Millis, Seq, UserId};
use nexo_chat::model::{HiddenMark, Profile, Receive, Settings, Window, WindowEnd};
use nexo_chat::progress::Progress;
use serde::de::DeserializeOwned;

use super::fault::{SqlFault, damaged};
use crate::details;

/// Reads the fields of a row one after the other.
pub(crate) struct Fields(std::vec::IntoIter<Value>);

impl From<Row> for Fields {
    fn from(row: Row) -> Self {
        Self(row.unwrap().into_iter())
    }
}

impl Fields {
    fn value(&mut self) -> Result<Value, SqlFault> {
        self.0.next().ok_or_else(|| damaged("a field is missing"))
    }

    /// Returns the next field without consuming it.
    pub(crate) fn peek(&self) -> Option<&Value> {
        self.0.as_slice().first()
    }

    pub(crate) fn maybe_u64(&mut self) -> Result<Option<u64>, SqlFault> {
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

    pub(crate) fn u64(&mut self) -> Result<u64, SqlFault> {
        self.maybe_u64()?.ok_or_else(|| damaged("a number is missing"))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, SqlFault> {
        self.u64()?.try_into().map_err(|_| damaged("a number is too large"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, SqlFault> {
        self.u64()?.try_into().map_err(|_| damaged("a number is too large"))
    }

    pub(crate) fn size(&mut self) -> Result<usize, SqlFault> {
        self.u64()?.try_into().map_err(|_| damaged("a number is too large"))
    }

    pub(crate) fn bool(&mut self) -> Result<bool, SqlFault> {
        Ok(self.u64()? != 0)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, SqlFault> {
        match self.value()? {
            Value::Int(number) => number.try_into().map_err(|_| damaged("a number is too large")),
            Value::UInt(number) => number.try_into().map_err(|_| damaged("a number is too large")),
            _ => Err(damaged("not a number")),
        }
    }

    pub(crate) fn maybe_bytes(&mut self) -> Result<Option<Vec<u8>>, SqlFault> {
        match self.value()? {
            Value::NULL => Ok(None),
            Value::Bytes(bytes) => Ok(Some(bytes)),
            _ => Err(damaged("not text")),
        }
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, SqlFault> {
        self.maybe_bytes()?.ok_or_else(|| damaged("a text is missing"))
    }

    pub(crate) fn text(&mut self) -> Result<String, SqlFault> {
        String::from_utf8(self.bytes()?).map_err(|_| damaged("not UTF-8"))
    }

    /// Reads a text; `NULL` is an empty one.
    pub(crate) fn maybe_text(&mut self) -> Result<String, SqlFault> {
        let bytes = self.maybe_bytes()?.unwrap_or_default();
        String::from_utf8(bytes).map_err(|_| damaged("not UTF-8"))
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], SqlFault> {
        self.bytes()?.try_into().map_err(|_| damaged("not as many bytes as there should be"))
    }

    pub(crate) fn seq(&mut self) -> Result<Seq, SqlFault> {
        self.u64().map(Seq)
    }

    pub(crate) fn millis(&mut self) -> Result<Millis, SqlFault> {
        self.u64().map(Millis)
    }

    pub(crate) fn maybe_user(&mut self) -> Result<Option<UserId>, SqlFault> {
        let Some(bytes) = self.maybe_bytes()? else { return Ok(None) };
        let id = std::str::from_utf8(&bytes).ok().and_then(|text| UserId::parse(text).ok());
        id.map(Some).ok_or_else(|| damaged("not a user id"))
    }

    pub(crate) fn user(&mut self) -> Result<UserId, SqlFault> {
        self.maybe_user()?.ok_or_else(|| damaged("a user id is missing"))
    }

    pub(crate) fn group(&mut self) -> Result<GroupId, SqlFault> {
        GroupId::parse(&self.text()?).map_err(|_| damaged("not a group id"))
    }

    pub(crate) fn conversation(&mut self) -> Result<ConversationId, SqlFault> {
        ConversationId::parse(&self.text()?).map_err(|_| damaged("not a conversation id"))
    }

    /// Reads three fields that are `NULL` together.
    pub(crate) fn window_end(&mut self) -> Result<Option<WindowEnd>, SqlFault> {
        let edge = (self.maybe_u64()?, self.maybe_u64()?, self.maybe_u64()?);
        let (Some(seq), Some(change_seq), Some(at)) = edge else { return Ok(None) };
        Ok(Some(WindowEnd { seq: Seq(seq), change_seq: Seq(change_seq), at: Millis(at) }))
    }

    pub(crate) fn window(&mut self) -> Result<Window, SqlFault> {
        let (min, change_min, since) = (self.seq()?, self.seq()?, self.millis()?);
        Ok(Window { min, change_min, since, end: self.window_end()? })
    }

    pub(crate) fn progress(&mut self) -> Result<Progress, SqlFault> {
        let mut progress = Progress::default();
        progress.cursors.delivered = self.seq()?;
        progress.cursors.read = self.seq()?;
        let own = (self.seq()?, self.seq()?);
        progress.own = (own.1 > Seq::ZERO).then_some(own);
        progress.quiet = self.seq()?;
        Ok(progress)
    }

    pub(crate) fn settings(&mut self) -> Result<Settings, SqlFault> {
        let pinned = self.bool()?;
        let receive = match self.u8()? {
            0 => Receive::Normal,
            1 => Receive::Silent,
            2 => Receive::Blocked,
            _ => return Err(damaged("an unknown receive option")),
        };
        let hidden = match (self.maybe_u64()?, self.maybe_u64()?) {
            (Some(seq), Some(since)) => Some(HiddenMark { seq: Seq(seq), since: Millis(since) }),
            _ => None,
        };
        Ok(Settings { pinned, receive, hidden, extra: self.maybe_text()? })
    }

    /// Reads what [`details::encode`] returned, or `NULL`.
    pub(crate) fn details<T: Default + DeserializeOwned>(&mut self) -> Result<T, SqlFault> {
        let bytes = self.maybe_bytes()?.unwrap_or_default();
        details::decode(&bytes).map_err(|error| damaged(format!("details: {error}")))
    }

    pub(crate) fn profile(&mut self) -> Result<Profile, SqlFault> {
        Ok(Profile { nickname: self.text()?, avatar: self.text()?, extra: self.text()? })
    }
}
