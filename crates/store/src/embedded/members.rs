//! The cache of members: cursors move in memory at once, and are written behind.

use std::sync::{Mutex, PoisonError};

use nexo_chat::ids::Seq;
use nexo_chat::model::{CursorKind, Settings, Window};
use nexo_chat::progress::Progress;
use nexo_chat::store::CursorMove;

use super::batch::Batch;
use super::engine::Engine;
use super::keys::{self, Keyspace};
use super::poison::EngineFault;
use super::record::{self, CursorRecord, SettingsRecord, WindowRecord};
use super::sharded_map::ShardedMap;
use crate::member_key::{MemberKey, OwnSend};

/// A member of a conversation.
#[derive(Clone, Debug)]
pub(crate) struct CachedMember {
    pub(crate) window: Window,
    pub(crate) progress: Progress,
    pub(crate) settings: Settings,
    /// Whether the cursors moved since they were written: only memory has their positions.
    dirty: bool,
}

/// A change of a member other than a cursor move.
#[derive(Clone, Debug)]
pub(crate) enum MemberChange {
    Joined(Window, Progress),
    Left(Window),
    SettingsChanged(Settings),
}

/// The cached members.
pub(crate) struct MemberCache {
    members: ShardedMap<MemberKey, CachedMember>,
    /// The keys of all dirty members, each once.
    dirty: Mutex<Vec<MemberKey>>,
}

impl MemberCache {
    pub(crate) fn new(max: usize) -> Self {
        Self { members: ShardedMap::new(max), dirty: Mutex::default() }
    }

    /// Runs `change` on a member, if there is one, and marks it dirty if a cursor moved.
    fn update<T>(
        &self,
        engine: &Engine,
        member_key: &MemberKey,
        change: impl FnOnce(&mut CachedMember) -> T,
    ) -> Result<Option<T>, EngineFault> {
        let mut shard = self.members.lock_shard(member_key);
        if !shard.contains_key(member_key) {
            let Some(member) = load(engine, member_key)? else { return Ok(None) };
            // A dirty member may not be evicted: the disk does not have its cursors.
            self.members.insert(&mut shard, member_key.clone(), member, |member| !member.dirty);
        }
        let Some(member) = shard.get_mut(member_key) else { return Ok(None) };
        let before = member.progress;
        let done = change(member);
        if member.progress != before && !member.dirty {
            member.dirty = true;
            self.dirty_keys().push(member_key.clone());
        }
        Ok(Some(done))
    }

    fn dirty_keys(&self) -> std::sync::MutexGuard<'_, Vec<MemberKey>> {
        self.dirty.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(
        &self,
        engine: &Engine,
        member_key: &MemberKey,
    ) -> Result<Option<CachedMember>, EngineFault> {
        self.update(engine, member_key, |member| member.clone())
    }

    /// Moves a cursor forward, at most to what the member can see.
    pub(crate) fn advance_cursor(
        &self,
        engine: &Engine,
        head: Seq,
        member_key: &MemberKey,
        kind: CursorKind,
        seq: Seq,
    ) -> Result<Option<CursorMove>, EngineFault> {
        self.update(engine, member_key, |member| {
            let before = member.progress.cursors;
            let to = seq.min(member.window.end.map_or(head, |end| end.seq.min(head)));
            member.progress.acknowledged(kind, to);
            CursorMove { before, after: member.progress.cursors }
        })
    }

    /// Moves a sender's cursors to their own message.
    pub(crate) fn apply_own_send(
        &self,
        engine: &Engine,
        sent: &OwnSend,
    ) -> Result<(), EngineFault> {
        let moved = self.update(engine, &sent.member_key, |member| {
            member.progress.sent(sent.seq, sent.marks_read);
        })?;
        moved.ok_or_else(|| record::impossible(Keyspace::Members, "a sender who is no member"))
    }

    /// Closes a member's window in memory ahead of the disk, and marks the member dirty: it stays
    /// cached until its cursors are written, so the open window is not loaded again before the end
    /// is durable.
    pub(crate) fn close_window(
        &self,
        engine: &Engine,
        member_key: &MemberKey,
        window: Window,
    ) -> Result<(), EngineFault> {
        let mut must_note = false;
        self.update(engine, member_key, |member| {
            member.window = window;
            must_note = !member.dirty;
            member.dirty = true;
        })?;
        if must_note {
            self.dirty_keys().push(member_key.clone());
        }
        Ok(())
    }

    /// Applies durable changes to a cached member. A member that is not cached is loaded when
    /// needed.
    pub(crate) fn publish(&self, member_key: &MemberKey, changes: Vec<MemberChange>) {
        let mut shard = self.members.lock_shard(member_key);
        let Some(member) = shard.get_mut(member_key) else { return };
        for change in changes {
            match change {
                MemberChange::Joined(window, progress) => {
                    (member.window, member.progress) = (window, progress);
                }
                MemberChange::Left(window) => member.window = window,
                MemberChange::SettingsChanged(settings) => member.settings = settings,
            }
        }
    }

    /// Takes the keys of all dirty members, to write their cursors.
    pub(crate) fn take_dirty(&self) -> Vec<MemberKey> {
        std::mem::take(&mut *self.dirty_keys())
    }

    /// Adds the cursors of these members to a batch. They stay dirty until
    /// [`MemberCache::mark_clean`].
    pub(crate) fn write_cursors(
        &self,
        member_keys: impl Iterator<Item = MemberKey>,
        batch: &mut Batch,
    ) -> Result<Vec<(MemberKey, Progress)>, EngineFault> {
        let mut written = Vec::new();
        for member_key in member_keys {
            let Some(progress) =
                self.members.lock_shard(&member_key).get(&member_key).map(|member| member.progress)
            else {
                continue;
            };
            let key = keys::member(&member_key.0, &member_key.1);
            let value = record::encode(Keyspace::Cursors, &key, &CursorRecord::from(progress))?;
            batch.put(Keyspace::Cursors, &key, &value);
            written.push((member_key, progress));
        }
        Ok(written)
    }

    /// Puts back members whose cursors could not be written.
    pub(crate) fn mark_dirty(&self, member_keys: impl IntoIterator<Item = MemberKey>) {
        self.dirty_keys().extend(member_keys);
    }

    /// After the batch is committed: members that did not move meanwhile are clean.
    pub(crate) fn mark_clean(&self, written: Vec<(MemberKey, Progress)>) {
        for (member_key, progress) in written {
            let mut shard = self.members.lock_shard(&member_key);
            let Some(member) = shard.get_mut(&member_key) else { continue };
            member.dirty = member.progress != progress;
            if member.dirty {
                self.dirty_keys().push(member_key.clone());
            }
        }
    }
}

fn load(engine: &Engine, member_key: &MemberKey) -> Result<Option<CachedMember>, EngineFault> {
    let key = keys::member(&member_key.0, &member_key.1);
    let Some(window) = engine.get(Keyspace::Members, &key)? else { return Ok(None) };
    let window: WindowRecord = record::decode(Keyspace::Members, &key, &window)?;
    let progress = match engine.get(Keyspace::Cursors, &key)? {
        Some(bytes) => record::decode::<CursorRecord>(Keyspace::Cursors, &key, &bytes)?.into(),
        None => Progress::default(),
    };
    let settings = match engine.get(Keyspace::Settings, &key)? {
        Some(bytes) => {
            record::decode::<SettingsRecord<'_>>(Keyspace::Settings, &key, &bytes)?.settings()?
        }
        None => Settings::default(),
    };
    Ok(Some(CachedMember { window: window.into(), progress, settings, dirty: false }))
}
