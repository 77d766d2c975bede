//! A batch in the making: what was decided so far, seen over what is on disk.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;

use nexo_chat::ids::{ConversationId, GroupId, MessageId, UserId};
use nexo_chat::membership::{Group, GroupMember};
use nexo_chat::model::{Kept, User};
use nexo_chat::store::Order;

use super::batch::Batch;
use super::core::Core;
use super::cursors::{MemberChange, Place, Sent};
use super::heads::Head;
use super::keys::{KeyRange, Space};
use super::poison::Fault;
use super::recent::Known;
use super::record;

/// Decisions that become durable together. Later ones see the earlier ones.
pub(crate) struct Pending<'a> {
    pub(crate) core: &'a Core,
    /// Records that a later decision of the batch may ask for; `None` is deleted.
    changed: BTreeMap<(Space, Vec<u8>), Option<Vec<u8>>>,
    decided: Decided,
}

/// All that a batch comes to.
#[derive(Default)]
pub(crate) struct Decided {
    /// What to write.
    pub(crate) batch: Batch,
    /// New messages in the order of their seqs.
    pub(crate) kept: Vec<Kept>,
    /// The same by id.
    pub(crate) messages: HashMap<MessageId, Known>,
    /// New heads.
    pub(crate) heads: HashMap<ConversationId, Head>,
    /// Senders' own places, in the order of their messages.
    pub(crate) sent: Vec<Sent>,
    /// How many quiet messages a member has sent.
    pub(crate) quiet: HashMap<Place, u64>,
    /// What becomes of members, in order.
    pub(crate) members: Vec<(Place, MemberChange)>,
    /// New or changed groups.
    pub(crate) groups: HashMap<GroupId, Arc<Group>>,
    /// Who is in a group, or not any more.
    pub(crate) group_members: HashMap<(GroupId, UserId), Option<Arc<GroupMember>>>,
    /// New or changed accounts.
    pub(crate) users: HashMap<UserId, Arc<User>>,
}

impl<'a> Pending<'a> {
    pub(crate) fn new(core: &'a Core) -> Self {
        Self { core, changed: BTreeMap::new(), decided: Decided::default() }
    }

    /// What was decided so far.
    pub(crate) fn decided(&mut self) -> &mut Decided {
        &mut self.decided
    }

    /// The value under a key, as it will be.
    pub(crate) fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        if let Some(value) = self.changed.get(&(space, key.to_vec())) {
            return Ok(value.clone());
        }
        Ok(self.core.engine.get(space, key)?.map(|bytes| bytes.to_vec()))
    }

    /// The keys of a range, as they will be.
    pub(crate) fn keys(&self, space: Space, range: KeyRange) -> Result<Vec<Vec<u8>>, Fault> {
        let stored = self.core.engine.scan(
            space,
            range.clone(),
            usize::MAX,
            Order::Ascending,
            usize::MAX,
        )?;
        let mut keys: BTreeMap<Vec<u8>, bool> =
            stored.into_iter().map(|(key, _)| (key.to_vec(), true)).collect();
        let of_space = |key: std::ops::Bound<Vec<u8>>| key.map(|key| (space, key));
        let changed = self.changed.range((of_space(range.0), of_space(range.1)));
        keys.extend(changed.map(|((_, key), value)| (key.clone(), value.is_some())));
        Ok(keys.into_iter().filter_map(|(key, there)| there.then_some(key)).collect())
    }

    /// Writes a record that a later decision may ask for.
    pub(crate) fn set(
        &mut self,
        space: Space,
        key: Vec<u8>,
        value: &impl Serialize,
    ) -> Result<(), Fault> {
        let value = record::encode(space, &key, value)?;
        self.changed.insert((space, key), Some(value));
        Ok(())
    }

    /// Deletes a record.
    pub(crate) fn delete(&mut self, space: Space, key: Vec<u8>) {
        self.changed.insert((space, key), None);
    }

    /// Writes a record that no later decision asks for by its key.
    pub(crate) fn write(
        &mut self,
        space: Space,
        key: &[u8],
        value: &impl Serialize,
    ) -> Result<(), Fault> {
        let value = record::encode(space, key, value)?;
        self.decided.batch.put(space, key, &value);
        Ok(())
    }

    /// The newest place of a conversation, as it will be.
    pub(crate) fn head(&self, conversation: &ConversationId) -> Result<Head, Fault> {
        match self.decided.heads.get(conversation) {
            Some(head) => Ok(*head),
            None => self.core.heads.get(&self.core.engine, conversation),
        }
    }

    /// Ends the decisions.
    pub(crate) fn finish(mut self) -> Decided {
        for ((space, key), value) in self.changed {
            match value {
                Some(value) => self.decided.batch.put(space, &key, &value),
                None => self.decided.batch.delete(space, &key),
            }
        }
        self.decided
    }
}
