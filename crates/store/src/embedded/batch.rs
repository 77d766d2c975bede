//! Writes that happen together or not at all, and their bytes in the commit log.
//!
//! ```text
//! entry   covered (8), length of the own sends (4), own sends, then the writes:
//! write   keyspace (1), length of the key (2), length of the value + 1 or 0 (4), key, value
//! ```
//!
//! Up to the entry `covered` all own sends are among the written cursors: they need not be done again.

use serde::{Deserialize, Serialize};

use nexo_chat::ids::{ConversationId, Seq, UserId};

use super::cursors::Sent;
use super::engine::Bytes;
use super::keys::Space;
use super::poison::Fault;

/// One record, or its end.
pub(crate) struct Write {
    pub(crate) space: Space,
    pub(crate) key: Bytes,
    pub(crate) value: Option<Bytes>,
}

/// Writes that happen together or not at all.
#[derive(Default)]
pub(crate) struct Batch(Vec<Write>);

impl Batch {
    pub(crate) fn put(&mut self, space: Space, key: &[u8], value: &[u8]) {
        self.0.push(Write { space, key: key.into(), value: Some(value.into()) });
    }

    /// Replaces what this batch would write under a key, or adds it.
    pub(crate) fn replace(&mut self, space: Space, key: &[u8], value: &[u8]) {
        let known = |write: &&mut Write| write.space == space && *write.key == *key;
        match self.0.iter_mut().rev().find(known) {
            Some(write) => write.value = Some(value.into()),
            None => self.put(space, key, value),
        }
    }

    pub(crate) fn delete(&mut self, space: Space, key: &[u8]) {
        self.0.push(Write { space, key: key.into(), value: None });
    }

    /// Adds what another one would write.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_writes(self) -> impl Iterator<Item = Write> {
        self.0.into_iter()
    }

    /// Appends the bytes of an entry.
    pub(crate) fn encode(
        &self,
        covered: u64,
        sent: &[Sent],
        bytes: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let start = bytes.len();
        bytes.extend_from_slice(&covered.to_be_bytes());
        bytes.extend_from_slice(&[0; 4]);
        if !sent.is_empty() {
            let moves: Vec<Move<'_>> = sent.iter().map(Move::from).collect();
            *bytes = postcard::to_extend(&moves, std::mem::take(bytes))
                .map_err(|error| Fault::new(format!("cannot write the own sends: {error}")))?;
        }
        let length = size(bytes.len() - start - HEAD)?;
        bytes[start + 8..start + HEAD].copy_from_slice(&length.to_be_bytes());
        for Write { space, key, value } in &self.0 {
            let key_length = u16::try_from(key.len()).map_err(|_| too_long())?;
            let value_length = match value {
                Some(value) => size(value.len())? + 1,
                None => 0,
            };
            bytes.push(*space as u8);
            bytes.extend_from_slice(&key_length.to_be_bytes());
            bytes.extend_from_slice(&value_length.to_be_bytes());
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(value.as_deref().unwrap_or_default());
        }
        Ok(())
    }

    /// What these bytes of an entry say.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(u64, Vec<Sent>, Self), Fault> {
        decode(bytes).ok_or_else(|| Fault::new("an entry of the log makes no sense"))
    }
}

const HEAD: usize = 12;

fn size(length: usize) -> Result<u32, Fault> {
    u32::try_from(length).ok().filter(|length| *length < u32::MAX).ok_or_else(too_long)
}

fn too_long() -> Fault {
    Fault::new("a record is too long")
}

fn decode(bytes: &[u8]) -> Option<(u64, Vec<Sent>, Batch)> {
    let (covered, rest) = bytes.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (sent, mut rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    let sent = if sent.is_empty() { Vec::new() } else { postcard::from_bytes(sent).ok()? };
    let sent: Option<Vec<Sent>> = sent.into_iter().map(Move::sent).collect();
    let mut batch = Batch::default();
    while let Some((space, after)) = rest.split_first() {
        let space = *Space::ALL.get(usize::from(*space))?;
        let (key_length, after) = after.split_first_chunk()?;
        let (value_length, after) = after.split_first_chunk()?;
        let (key, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*key_length)))?;
        let Some(length) = u32::from_be_bytes(*value_length).checked_sub(1) else {
            batch.delete(space, key);
            rest = after;
            continue;
        };
        let (value, after) = after.split_at_checked(length as usize)?;
        batch.put(space, key, value);
        rest = after;
    }
    Some((u64::from_be_bytes(*covered), sent?, batch))
}

/// An own send: sender, conversation, seq, whether it marks everything before it read.
#[derive(Serialize, Deserialize)]
struct Move<'a>(&'a str, &'a str, u64, bool);

impl<'a> From<&'a Sent> for Move<'a> {
    fn from(Sent { place: (user, conversation), seq, marks_read }: &'a Sent) -> Self {
        Self(user.as_str(), conversation.as_str(), seq.0, *marks_read)
    }
}

impl Move<'_> {
    fn sent(self) -> Option<Sent> {
        let Self(user, conversation, seq, marks_read) = self;
        let place = (UserId::parse(user).ok()?, ConversationId::stored(conversation));
        Some(Sent { place, seq: Seq(seq), marks_read })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_reads_as_it_was_written() {
        let mut batch = Batch::default();
        batch.put(Space::Messages, b"key", b"value");
        batch.put(Space::Users, b"", b"");
        batch.delete(Space::Codes, b"gone");
        let place = (UserId::parse("alice").unwrap(), ConversationId::stored("si_alice_bob"));
        let sent = [Sent { place, seq: Seq(7), marks_read: true }];
        let mut bytes = Vec::new();
        batch.encode(6, &sent, &mut bytes).unwrap();
        let (covered, again, read) = Batch::decode(&bytes).unwrap();
        assert_eq!((covered, again.len(), again[0].seq), (6, 1, Seq(7)));
        let mut twice = Vec::new();
        read.encode(covered, &again, &mut twice).unwrap();
        assert_eq!(bytes, twice);
        for end in 0..bytes.len() {
            // Cut short it is another entry or none, and never a panic.
            drop(Batch::decode(&bytes[..end]));
        }
    }
}
