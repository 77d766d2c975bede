//! A batch in the making: the decisions so far, seen over what is on disk.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;

use nexo_chat::event::Event;
use nexo_chat::ids::{ConversationId, GroupId, MessageId, UserId};
use nexo_chat::membership::{Group, GroupMember};
use nexo_chat::model::User;
use nexo_chat::store::Order;

use super::batch::Batch;
use super::core::Core;
use super::heads::ConversationHead;
use super::keys::{KeyRange, Keyspace};
use super::members::MemberChange;
use super::poison::EngineFault;
use super::recent_messages::FingerprintedMessage;
use super::record;
use crate::member_key::{MemberKey, OwnSend};

/// Decisions that become durable together. Later ones see the earlier ones.
pub(crate) struct Pending<'a> {
    pub(crate) core: &'a Core,
    /// Records that a later decision of the batch may read; `None` is deleted.
    changed: BTreeMap<(Keyspace, Vec<u8>), Option<Vec<u8>>>,
    effects: BatchEffects,
}

/// Everything that a batch writes and changes.
#[derive(Default)]
pub(crate) struct BatchEffects {
    pub(crate) batch: Batch,
    /// Events for the listener, in the order of seqs and change seqs.
    pub(crate) events: Vec<Event>,
    /// New and recalled messages by id.
    pub(crate) messages: HashMap<MessageId, FingerprintedMessage>,
    pub(crate) heads: HashMap<ConversationId, ConversationHead>,
    /// In the order of their messages.
    pub(crate) own_sends: Vec<OwnSend>,
    /// How many messages each member has sent without marking anything read.
    pub(crate) sent_without_read: HashMap<MemberKey, u64>,
    /// Changes of members, in order.
    pub(crate) members: Vec<(MemberKey, MemberChange)>,
    /// New or changed groups.
    pub(crate) groups: HashMap<GroupId, Arc<Group>>,
    /// New or changed members of groups; `None` if they left.
    pub(crate) group_members: HashMap<(GroupId, UserId), Option<Arc<GroupMember>>>,
    /// New or changed accounts.
    pub(crate) users: HashMap<UserId, Arc<User>>,
}

impl<'a> Pending<'a> {
    pub(crate) fn new(core: &'a Core) -> Self {
        Self { core, changed: BTreeMap::new(), effects: BatchEffects::default() }
    }

    pub(crate) fn effects(&mut self) -> &mut BatchEffects {
        &mut self.effects
    }

    /// A number that changes with everything that is added. Decisions read all they need before
    /// they add anything, so one that meets damage has added nothing.
    pub(crate) fn mark(&self) -> usize {
        let BatchEffects {
            batch,
            events,
            messages,
            heads,
            own_sends,
            sent_without_read,
            members,
            groups,
            group_members,
            users,
        } = &self.effects;
        let records = batch.len() + self.changed.len() + events.len() + own_sends.len();
        let members = members.len() + group_members.len() + groups.len() + users.len();
        records + members + messages.len() + heads.len() + sent_without_read.len()
    }

    /// Returns the value under a key, as it will be after the batch.
    pub(crate) fn get(
        &self,
        keyspace: Keyspace,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, EngineFault> {
        if let Some(value) = self.changed.get(&(keyspace, key.to_vec())) {
            return Ok(value.clone());
        }
        Ok(self.core.engine.get(keyspace, key)?.map(|bytes| bytes.to_vec()))
    }

    /// Returns the keys of a range, as they will be after the batch.
    pub(crate) fn keys(
        &self,
        keyspace: Keyspace,
        range: KeyRange,
    ) -> Result<Vec<Vec<u8>>, EngineFault> {
        let stored = self.core.engine.scan(
            keyspace,
            range.clone(),
            usize::MAX,
            Order::Ascending,
            usize::MAX,
        )?;
        let mut keys: BTreeMap<Vec<u8>, bool> =
            stored.into_iter().map(|(key, _)| (key.to_vec(), true)).collect();
        let of_space = |key: std::ops::Bound<Vec<u8>>| key.map(|key| (keyspace, key));
        let changed = self.changed.range((of_space(range.0), of_space(range.1)));
        keys.extend(changed.map(|((_, key), value)| (key.clone(), value.is_some())));
        Ok(keys.into_iter().filter_map(|(key, there)| there.then_some(key)).collect())
    }

    /// Writes a record that a later decision may read.
    pub(crate) fn set(
        &mut self,
        keyspace: Keyspace,
        key: Vec<u8>,
        value: &impl Serialize,
    ) -> Result<(), EngineFault> {
        let value = record::encode(keyspace, &key, value)?;
        self.changed.insert((keyspace, key), Some(value));
        Ok(())
    }

    pub(crate) fn delete(&mut self, keyspace: Keyspace, key: Vec<u8>) {
        self.changed.insert((keyspace, key), None);
    }

    /// Writes a record that no later decision reads by its key.
    pub(crate) fn write(
        &mut self,
        keyspace: Keyspace,
        key: &[u8],
        value: &impl Serialize,
    ) -> Result<(), EngineFault> {
        let value = record::encode(keyspace, key, value)?;
        self.effects.batch.put(keyspace, key, &value);
        Ok(())
    }

    /// Returns the head of a conversation, as it will be after the batch.
    pub(crate) fn head(
        &self,
        conversation: &ConversationId,
    ) -> Result<ConversationHead, EngineFault> {
        match self.effects.heads.get(conversation) {
            Some(head) => Ok(*head),
            None => self.core.heads.get(&self.core.engine, conversation),
        }
    }

    /// Moves the changed records into the batch and returns it.
    pub(crate) fn finish(mut self) -> BatchEffects {
        for ((keyspace, key), value) in self.changed {
            match value {
                Some(value) => self.effects.batch.put(keyspace, &key, &value),
                None => self.effects.batch.delete(keyspace, &key),
            }
        }
        self.effects
    }
}
