//! Writes that are applied together or not at all, and their bytes in the commit log.
//!
//! ```text
//! entry   covered (8), length of the own sends (4), own sends, then the writes:
//! write   keyspace (1), length of the key (2), length of the value + 1 or 0 (4), key, value
//! ```
//!
//! The cursors that were written contain all own sends up to the entry `covered`: recovery skips
//! those. A crash may lose the cursor moves of the last second, since they are written behind. For
//! a delivery that only means a repetition, but a sender's own message must not come back as
//! unread: so every entry lists its own sends.

use serde::{Deserialize, Serialize};

use nexo_chat::ids::{ConversationId, Seq, UserId};

use super::engine::Slice;
use super::keys::Keyspace;
use super::poison::EngineFault;
use crate::member_key::OwnSend;

/// A record to write, or to delete if the value is `None`.
pub(crate) struct Write {
    pub(crate) keyspace: Keyspace,
    pub(crate) key: Slice,
    pub(crate) value: Option<Slice>,
}

/// Writes that are applied together or not at all.
#[derive(Default)]
pub(crate) struct Batch(Vec<Write>);

impl Batch {
    pub(crate) fn put(&mut self, keyspace: Keyspace, key: &[u8], value: &[u8]) {
        self.0.push(Write { keyspace, key: key.into(), value: Some(value.into()) });
    }

    /// Replaces what this batch writes under a key, or adds it.
    pub(crate) fn replace(&mut self, keyspace: Keyspace, key: &[u8], value: &[u8]) {
        let known = |write: &&mut Write| write.keyspace == keyspace && *write.key == *key;
        match self.0.iter_mut().rev().find(known) {
            Some(write) => write.value = Some(value.into()),
            None => self.put(keyspace, key, value),
        }
    }

    pub(crate) fn delete(&mut self, keyspace: Keyspace, key: &[u8]) {
        self.0.push(Write { keyspace, key: key.into(), value: None });
    }

    /// Adds the writes of another batch.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn into_writes(self) -> impl Iterator<Item = Write> {
        self.0.into_iter()
    }

    /// Appends the bytes of a log entry.
    pub(crate) fn encode(
        &self,
        covered: u64,
        sent: &[OwnSend],
        bytes: &mut Vec<u8>,
    ) -> Result<(), EngineFault> {
        let start = bytes.len();
        bytes.extend_from_slice(&covered.to_be_bytes());
        bytes.extend_from_slice(&[0; 4]);
        if !sent.is_empty() {
            let records: Vec<OwnSendRecord<'_>> = sent.iter().map(OwnSendRecord::from).collect();
            *bytes = postcard::to_extend(&records, std::mem::take(bytes)).map_err(|error| {
                EngineFault::new(format!("cannot write the own sends: {error}"))
            })?;
        }
        let length = size(bytes.len() - start - HEADER_BYTES)?;
        bytes[start + 8..start + HEADER_BYTES].copy_from_slice(&length.to_be_bytes());
        for Write { keyspace, key, value } in &self.0 {
            let key_length = u16::try_from(key.len()).map_err(|_| too_long())?;
            let value_length = match value {
                Some(value) => size(value.len())? + 1,
                None => 0,
            };
            bytes.push(*keyspace as u8);
            bytes.extend_from_slice(&key_length.to_be_bytes());
            bytes.extend_from_slice(&value_length.to_be_bytes());
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(value.as_deref().unwrap_or_default());
        }
        Ok(())
    }

    /// Decodes the bytes of a log entry.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(u64, Vec<OwnSend>, Self), EngineFault> {
        decode(bytes).ok_or_else(|| EngineFault::new("an entry of the log makes no sense"))
    }
}

const HEADER_BYTES: usize = 12;

fn size(length: usize) -> Result<u32, EngineFault> {
    u32::try_from(length).ok().filter(|length| *length < u32::MAX).ok_or_else(too_long)
}

fn too_long() -> EngineFault {
    EngineFault::new("a record is too long")
}

fn decode(bytes: &[u8]) -> Option<(u64, Vec<OwnSend>, Batch)> {
    let (covered, rest) = bytes.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (sent, mut rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    let sent = if sent.is_empty() { Vec::new() } else { postcard::from_bytes(sent).ok()? };
    let sent: Option<Vec<OwnSend>> = sent.into_iter().map(OwnSendRecord::own_send).collect();
    let mut batch = Batch::default();
    while let Some((keyspace, after)) = rest.split_first() {
        let keyspace = *Keyspace::ALL.get(usize::from(*keyspace))?;
        let (key_length, after) = after.split_first_chunk()?;
        let (value_length, after) = after.split_first_chunk()?;
        let (key, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*key_length)))?;
        let Some(length) = u32::from_be_bytes(*value_length).checked_sub(1) else {
            batch.delete(keyspace, key);
            rest = after;
            continue;
        };
        let (value, after) = after.split_at_checked(length as usize)?;
        batch.put(keyspace, key, value);
        rest = after;
    }
    Some((u64::from_be_bytes(*covered), sent?, batch))
}

/// An own send: sender, conversation, seq, whether it marks everything before it as read.
#[derive(Serialize, Deserialize)]
struct OwnSendRecord<'a>(&'a str, &'a str, u64, bool);

impl<'a> From<&'a OwnSend> for OwnSendRecord<'a> {
    fn from(OwnSend { member_key: (user, conversation), seq, marks_read }: &'a OwnSend) -> Self {
        Self(user.as_str(), conversation.as_str(), seq.0, *marks_read)
    }
}

impl OwnSendRecord<'_> {
    fn own_send(self) -> Option<OwnSend> {
        let Self(user, conversation, seq, marks_read) = self;
        let member_key = (UserId::parse(user).ok()?, ConversationId::stored(conversation));
        Some(OwnSend { member_key, seq: Seq(seq), marks_read })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_reads_as_it_was_written() {
        let mut batch = Batch::default();
        batch.put(Keyspace::Messages, b"key", b"value");
        batch.put(Keyspace::Users, b"", b"");
        batch.delete(Keyspace::JoinCodes, b"gone");
        let member_key = (UserId::parse("alice").unwrap(), ConversationId::stored("si_alice_bob"));
        let sent = [OwnSend { member_key, seq: Seq(7), marks_read: true }];
        let mut bytes = Vec::new();
        batch.encode(6, &sent, &mut bytes).unwrap();
        let (covered, again, read) = Batch::decode(&bytes).unwrap();
        assert_eq!((covered, again.len(), again[0].seq), (6, 1, Seq(7)));
        let mut twice = Vec::new();
        read.encode(covered, &again, &mut twice).unwrap();
        assert_eq!(bytes, twice);
        for end in 0..bytes.len() {
            // A truncated entry decodes as another one or as none, and never panics.
            drop(Batch::decode(&bytes[..end]));
        }
    }
}
