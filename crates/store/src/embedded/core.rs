//! What the committer, the announcer and the readers share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use nexo_chat::ids::{GroupId, UserId};
use nexo_chat::membership::{Group, GroupMember};
use nexo_chat::model::User;
use nexo_chat::store::{Committed, StoreError};

use super::cached::Cached;
use super::cursors::Members;
use super::disk::Disk;
use super::engine::Engine;
use super::folder::Folder;
use super::heads::Heads;
use super::poison::Poison;
use super::recent::Recent;
use super::witness::Witness;
use crate::meters::Meters;

const HEADS_MAX: usize = 200_000;
const MEMBERS_MAX: usize = 400_000;
const USERS_MAX: usize = 100_000;
const GROUPS_MAX: usize = 50_000;

/// The open store behind its threads. Fields are dropped in order: the folder is let go last.
pub(crate) struct Core {
    pub(crate) engine: Engine,
    pub(crate) heads: Heads,
    pub(crate) members: Members,
    pub(crate) users: Cached<UserId, User>,
    pub(crate) groups: Cached<GroupId, Group>,
    pub(crate) group_members: Cached<(GroupId, UserId), GroupMember>,
    pub(crate) recent: Recent,
    pub(crate) poison: Poison,
    pub(crate) listener: OnceLock<Arc<dyn Committed>>,
    pub(crate) meters: Meters,
    /// Set when somebody wants it closed: nobody waits for the trees any more.
    pub(crate) closing: AtomicBool,
    /// Set when the committer takes nothing more.
    pub(crate) closed: AtomicBool,
    /// Writes that wait for the committer, and about how many bytes they are.
    pub(crate) waiting: AtomicUsize,
    pub(crate) waiting_bytes: AtomicUsize,
    /// What is sealed and waits to be written out.
    pub(crate) sealed: AtomicUsize,
    pub(crate) disk: Disk,
    pub(crate) witness: Witness,
    pub(crate) folder: Folder,
}

impl Core {
    pub(crate) fn new(engine: Engine, witness: Witness, folder: Folder, reserve: u64) -> Self {
        Self {
            engine,
            heads: Heads::new(HEADS_MAX),
            members: Members::new(MEMBERS_MAX),
            users: Cached::new(USERS_MAX),
            groups: Cached::new(GROUPS_MAX),
            group_members: Cached::new(MEMBERS_MAX),
            recent: Recent::default(),
            poison: Poison::default(),
            listener: OnceLock::new(),
            meters: Meters::new(),
            closing: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            waiting_bytes: AtomicUsize::new(0),
            sealed: AtomicUsize::new(0),
            disk: Disk::new(folder.trees(), reserve),
            witness,
            folder,
        }
    }

    /// Why a write was not answered: the store has stopped, it is closed, or there was no room.
    pub(crate) fn gone(&self) -> StoreError {
        match self.poison.check() {
            Err(stopped) => stopped,
            Ok(()) if self.closed.load(Ordering::SeqCst) => {
                StoreError::Unavailable("the store is closed".into())
            }
            Ok(()) => self.disk.unavailable(),
        }
    }
}
