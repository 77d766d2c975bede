//! The reference engine: the shortest correct implementation of the contract. Keeps nothing over a
//! restart. One file per trait of the contract.

mod accounts;
mod conversations;
mod documents;
mod groups;
mod logins;
mod messages;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use nexo_chat::event::Event;
use nexo_chat::ids::{ConversationId, FoldedId, GroupId, LoginId, MessageId, Millis, Seq, UserId};
use nexo_chat::membership::{Group, GroupMember, JoinCode, JoinRequest};
use nexo_chat::model::{Change, Fingerprint, Login, Message, ResetCode, Settings, User, Window};
use nexo_chat::progress::Progress;
use nexo_chat::store::{CommitListener, DocumentId, Store, StoreError, StoreFuture};

use crate::member_key::MemberKey;

/// A store in memory.
#[derive(Default)]
pub struct Memory {
    state: Mutex<MemoryState>,
    /// Held from the decision of a write until the listener was called, so that the listener
    /// receives commits in order.
    order: Mutex<()>,
    listener: OnceLock<Arc<dyn CommitListener>>,
}

#[derive(Default)]
struct MemoryState {
    conversations: HashMap<ConversationId, Vec<Arc<Message>>>,
    messages_by_id: HashMap<MessageId, (Arc<Message>, Fingerprint)>,
    changes: HashMap<ConversationId, Vec<Arc<Change>>>,
    members: BTreeMap<MemberKey, MemoryMember>,
    /// Messages that mention a user by name or reply to them.
    mentions: BTreeMap<MemberKey, BTreeSet<Seq>>,
    /// Messages with `@all`, and their senders.
    mentions_all: HashMap<ConversationId, BTreeMap<Seq, UserId>>,
    groups: BTreeMap<GroupId, Arc<Group>>,
    group_members: BTreeMap<(GroupId, UserId), GroupMember>,
    requests: BTreeMap<(GroupId, UserId), JoinRequest>,
    /// Mutes that wait for former members to come back.
    mutes: BTreeMap<(GroupId, UserId), Millis>,
    join_codes: HashMap<JoinCode, GroupId>,
    last_seen: HashMap<UserId, Millis>,
    users: BTreeMap<UserId, User>,
    reset_codes: HashMap<UserId, ResetCode>,
    folded_ids: HashMap<FoldedId, UserId>,
    logins: BTreeMap<LoginId, Login>,
    /// Hashes of refresh tokens that were rotated away.
    used_tokens: HashMap<[u8; 32], LoginId>,
    documents: BTreeMap<DocumentId, Vec<u8>>,
    closed: bool,
}

struct MemoryMember {
    window: Window,
    progress: Progress,
    settings: Settings,
    /// Own messages that were sent without marking anything read.
    sent_without_read: BTreeSet<Seq>,
}

impl MemoryMember {
    fn new(window: Window, progress: Progress) -> Self {
        Self { window, progress, settings: Settings::default(), sent_without_read: BTreeSet::new() }
    }

    /// A user of a private conversation.
    fn of_pair() -> Self {
        Self::new(Window::ALL, Progress::default())
    }
}

impl Memory {
    /// Creates an empty store.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        // A panic leaves no half-done change: every write checks first and changes afterwards.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the listener; the caller holds the lock of the order.
    fn announce(&self, events: &[Event]) {
        if let (Some(listener), false) = (self.listener.get(), events.is_empty()) {
            listener.on_committed(events);
        }
    }

    /// Runs a read on the locked state.
    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&MemoryState) -> T,
    ) -> StoreFuture<'static, T> {
        Box::pin(ready(Ok(read(&self.state()))))
    }

    /// Runs a write on the locked state, unless the store is closed.
    fn try_write<T>(&self, write: impl FnOnce(&mut MemoryState) -> T) -> Result<T, StoreError> {
        let mut state = self.state();
        if state.closed {
            return Err(StoreError::Unavailable("the store is closed".into()));
        }
        Ok(write(&mut state))
    }

    /// [`Memory::try_write`] as a finished future.
    fn write<T: Send + 'static>(
        &self,
        write: impl FnOnce(&mut MemoryState) -> T,
    ) -> StoreFuture<'static, T> {
        Box::pin(ready(self.try_write(write)))
    }
}

impl Store for Memory {
    fn set_commit_listener(&self, listener: Arc<dyn CommitListener>) {
        if self.listener.set(listener).is_err() {
            tracing::warn!("a second listener for commits was ignored");
        }
    }

    fn health(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.state().closed = true;
        Box::pin(ready(Ok(())))
    }
}
