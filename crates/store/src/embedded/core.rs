//! The state that the committer, the announcer and the readers share.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use nexo_chat::ids::{GroupId, UserId};
use nexo_chat::membership::{Group, GroupMember};
use nexo_chat::model::User;
use nexo_chat::store::{CommitListener, StoreError};

use super::disk::Disk;
use super::engine::Engine;
use super::folder::Folder;
use super::heads::Heads;
use super::log_pins::LogPins;
use super::members::MemberCache;
use super::poison::{EngineFault, Poison};
use super::recent_messages::RecentMessages;
use super::record_cache::RecordCache;
use super::witness::Witness;
use crate::meters::Meters;

const HEADS_MAX: usize = 200_000;
const MEMBERS_MAX: usize = 400_000;
const USERS_MAX: usize = 100_000;
const GROUPS_MAX: usize = 50_000;

/// The open store behind its threads. Fields are dropped in order: the folder's lock is released
/// last.
pub(crate) struct Core {
    pub(crate) engine: Engine,
    pub(crate) heads: Heads,
    pub(crate) members: MemberCache,
    pub(crate) users: RecordCache<UserId, User>,
    pub(crate) groups: RecordCache<GroupId, Group>,
    pub(crate) group_members: RecordCache<(GroupId, UserId), GroupMember>,
    pub(crate) recent_messages: RecentMessages,
    pub(crate) poison: Poison,
    pub(crate) listener: OnceLock<Arc<dyn CommitListener>>,
    pub(crate) meters: Meters,
    /// Set when the store is being closed: compaction and waiting for disk room end early.
    pub(crate) closing: AtomicBool,
    /// Set when the committer takes no more writes.
    pub(crate) closed: AtomicBool,
    /// Writes that wait for the committer, and about how many bytes they have.
    pub(crate) waiting: AtomicUsize,
    pub(crate) waiting_bytes: AtomicUsize,
    /// Durable batches that the announcer has yet to announce.
    pub(crate) announcing: AtomicUsize,
    /// Sealed generations of memtables that wait to be flushed.
    pub(crate) sealed: AtomicUsize,
    /// No table has anything newer than this entry of the log.
    pub(crate) sealed_up_to: AtomicU64,
    /// Segments that a backup copies.
    pub(crate) log_pins: LogPins,
    pub(crate) disk: Disk,
    pub(crate) witness: Witness,
    pub(crate) folder: Folder,
}

impl Core {
    pub(crate) fn new(engine: Engine, witness: Witness, folder: Folder, reserve: u64) -> Self {
        Self {
            engine,
            heads: Heads::new(HEADS_MAX),
            members: MemberCache::new(MEMBERS_MAX),
            users: RecordCache::new(USERS_MAX),
            groups: RecordCache::new(GROUPS_MAX),
            group_members: RecordCache::new(MEMBERS_MAX),
            recent_messages: RecentMessages::default(),
            poison: Poison::default(),
            listener: OnceLock::new(),
            meters: Meters::new(),
            closing: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            waiting_bytes: AtomicUsize::new(0),
            announcing: AtomicUsize::new(0),
            sealed: AtomicUsize::new(0),
            sealed_up_to: AtomicU64::new(0),
            log_pins: LogPins::default(),
            disk: Disk::new(folder.trees(), reserve),
            witness,
            folder,
        }
    }

    /// Remembers a failed sync for the next start.
    pub(crate) fn mark_dirty(&self, fault: &EngineFault) {
        if let Err(error) = self.folder.mark_dirty(fault) {
            tracing::warn!(target: "nexo::store", %error, "cannot mark the folder as dirty");
        }
    }

    /// The error for a caller. Damage is counted; a fatal fault stops the store.
    pub(crate) fn refusal(&self, fault: &EngineFault) -> StoreError {
        if fault.is_damage() {
            self.engine.quarantine.note(fault);
        }
        self.poison.set(fault)
    }

    /// Returns the fault, unless it is damage: that is counted and passed over.
    pub(crate) fn pass_damage(&self, fault: EngineFault) -> Result<(), EngineFault> {
        if !fault.is_damage() {
            return Err(fault);
        }
        self.engine.quarantine.note(&fault);
        Ok(())
    }

    /// Why a write was not answered: the store is poisoned, closed, or the disk was full.
    pub(crate) fn unavailable(&self) -> StoreError {
        match self.poison.check() {
            Err(stopped) => stopped,
            Ok(()) if self.closed.load(Ordering::SeqCst) => {
                StoreError::Unavailable("the store is closed".into())
            }
            Ok(()) => self.disk.unavailable(),
        }
    }
}
