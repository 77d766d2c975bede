//! The default engine: a commit log and LSM trees on the local disk, with a single committer.
//!
//! All writes go through one thread, so its order is the order. It takes everything that waits,
//! de-duplicates, gives seqs, appends one entry to the log, syncs once, and shows it to the
//! readers; then a second thread announces and answers while the first syncs the next batch. Reads
//! do not pass through either. The trees' files are written behind all that; a commit waits for
//! them only while a tree takes a finished file over. In reading order:
//!
//! - `options`, `folder`, `witness`: what is in the data folder, and who holds it
//! - `keys`, `record`, `change_record`, `group_record`, `padded`: every byte on disk
//! - `batch`, `segment`, `log`: what is durable, and how it is found again
//! - `engine`: the only file that knows the LSM trees; `young`: the ids that they do not have yet
//! - `poison`: what is beyond repair
//! - `shards`, `cached`, `heads`, `cursors`, `recent`: what is kept in memory
//! - `pending`, `append`, `recall`, `groups`, `settings`, `accounts`, `folded`, `logins`: decisions of a
//!   batch
//! - `committer`, `announcer`: the two threads that answer
//! - `upkeep`: the two threads that keep the trees in order
//! - `read`: everything that only reads
//! - `entries`, `export`, `import`: everything on its way into or out of another store
//! - `core`: what the threads and the readers share; `open`: how it all begins

mod accounts;
mod announcer;
mod append;
mod batch;
mod cached;
mod change_record;
mod committer;
mod core;
mod cursors;
mod disk;
mod engine;
mod entries;
mod export;
mod folded;
mod folder;
mod group_record;
mod groups;
mod heads;
mod import;
mod keys;
mod log;
mod logins;
mod open;
mod options;
mod padded;
mod pending;
mod poison;
mod read;
mod recall;
mod recent;
mod record;
mod segment;
mod settings;
mod shards;
#[cfg(test)]
mod tests;
mod upkeep;
mod witness;
mod young;

use std::future::ready;
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use nexo_chat::Reason;
use nexo_chat::ids::{ConversationId, FoldedId, GroupId, LoginId, MessageId, Millis, Seq, UserId};
use nexo_chat::membership::{Group, GroupMember, JoinCode, JoinRequest};
use nexo_chat::model::{
    Change, CursorKind, Cursors, Draft, Login, Message, ProfileChange, ResetCode, Settings,
    SettingsChange, Standing, User,
};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{
    About, Appended, Asker, Committed, Decide, Decided, Limit, MayRecall, Moved, Order, Rotated,
    SignedIn, Store, StoreError, Stored,
};

use self::committer::{Answer, Work};
use self::core::Core;
use self::pending::Pending;
use self::poison::Fault;

pub(crate) use self::entries::encode as encode_item;
use crate::prepared::Prepared;

pub use self::folder::OpenError;
pub use self::options::{FaultKind, Faults, Options};

/// About what a change to an account or a sign-in takes.
const CHANGE_BYTES: usize = 512;

/// Bytes of the writes that may wait; further ones are refused at once.
const QUEUE_BYTES_MAX: usize = 64 << 20;

fn too_many() -> StoreError {
    StoreError::Unavailable("too many writes are waiting".into())
}

/// A store in a folder.
pub struct Embedded {
    core: Arc<Core>,
    queue: SyncSender<Work>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Embedded {
    /// Puts a write into the queue, now. The future waits for its answer.
    fn submit<T: Send + 'static>(
        &self,
        bytes: usize,
        act: impl FnOnce(&mut Pending<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Stored<'static, T> {
        if let Err(stopped) = self.core.poison.check() {
            return Box::pin(ready(Err(stopped)));
        }
        let core = &self.core;
        if let Err(no_room) = core.disk.check() {
            return Box::pin(ready(Err(no_room)));
        }
        if core.waiting_bytes.load(Ordering::Relaxed) > QUEUE_BYTES_MAX {
            return Box::pin(ready(Err(too_many())));
        }
        let (sender, receiver) = oneshot::channel();
        let act = Box::new(move |pending: &mut Pending<'_>| {
            let outcome = act(pending).inspect_err(|fault| {
                // Before the sender is dropped: whoever notices that can ask why.
                drop(pending.core.poison.set(fault));
            })?;
            // Nobody may be waiting any more: that undoes nothing.
            Ok(Box::new(move || drop(sender.send(outcome))) as Answer)
        });
        core.waiting.fetch_add(1, Ordering::Relaxed);
        core.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        let refused = match self.queue.try_send(Work::Act(act, bytes)) {
            Ok(()) => {
                let core = Arc::clone(core);
                return Box::pin(async move { receiver.await.map_err(|_| core.gone()) });
            }
            Err(TrySendError::Full(_)) => too_many(),
            Err(TrySendError::Disconnected(_)) => core.gone(),
        };
        core.waiting.fetch_sub(1, Ordering::Relaxed);
        core.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        Box::pin(ready(Err(refused)))
    }

    /// Reads a little, at once.
    fn look<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Core) -> Result<T, Fault>,
    ) -> Stored<'static, T> {
        Box::pin(ready(read(&self.core).map_err(|fault| self.core.poison.set(&fault))))
    }

    /// Reads what may take long, on a thread that may block.
    fn scan<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Core) -> Result<T, Fault> + Send + 'static,
    ) -> Stored<'static, T> {
        let core = Arc::clone(&self.core);
        Box::pin(async move {
            let reader = Arc::clone(&core);
            let outcome = match tokio::task::spawn_blocking(move || read(&reader)).await {
                Ok(outcome) => outcome,
                Err(error) if error.is_panic() => Err(Fault::new("a read panicked")),
                Err(error) => return Err(StoreError::Unavailable(Box::new(error))),
            };
            outcome.map_err(|fault| core.poison.set(&fault))
        })
    }

    /// Asks the committer to end, and returns what to wait for; `None` if it has ended before. The
    /// queue may be full, so this may block until the committer has taken its next batch.
    fn end(&self) -> Option<oneshot::Receiver<()>> {
        self.core.closing.store(true, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel::<()>();
        // Dropping the sender is the answer.
        let answer = Box::new(move || drop(sender));
        self.queue.send(Work::Close(answer)).ok().map(|()| receiver)
    }

    fn join(&self) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!(target: "nexo::store", "a thread of the store panicked");
            }
        }
    }
}

impl Drop for Embedded {
    /// Ends the threads, so that the folder is free when this returns.
    fn drop(&mut self) {
        drop(self.end());
        self.join();
    }
}

impl Store for Embedded {
    fn append(&self, _permit: Permit, draft: Draft) -> Stored<'static, Appended> {
        let prepared = Prepared::new(draft);
        self.submit(prepared.bytes(), |pending| append::append(pending, prepared))
    }

    fn append_run(&self, _permit: Permit, drafts: Vec<Draft>) -> Stored<'static, Vec<Appended>> {
        let run: Vec<Prepared> = drafts.into_iter().map(Prepared::new).collect();
        let bytes = run.iter().map(Prepared::bytes).sum();
        self.submit(bytes, |pending| {
            run.into_iter().map(|it| append::append(pending, it)).collect()
        })
    }

    fn on_commit(&self, listener: Arc<dyn Committed>) {
        if self.core.listener.set(listener).is_err() {
            tracing::warn!(target: "nexo::store", "a second listener for commits was ignored");
        }
    }

    fn message(&self, id: MessageId) -> Stored<'_, Option<Arc<Message>>> {
        self.look(|core| Ok(read::known(core, id)?.map(|(message, _)| message)))
    }

    fn messages(
        &self,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
        limit: Limit,
        order: Order,
    ) -> Stored<'_, Vec<Arc<Message>>> {
        let conversation = conversation.clone();
        self.scan(move |core| read::messages(core, &conversation, &range, limit, order))
    }

    fn recall(
        &self,
        id: MessageId,
        asker: Asker,
        may: MayRecall,
    ) -> Stored<'_, Result<Arc<Message>, Reason>> {
        self.submit(CHANGE_BYTES, move |pending| recall::recall(pending, id, &asker, &may))
    }

    fn mentions(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
        limit: usize,
    ) -> Stored<'_, Vec<Seq>> {
        let place = (user.clone(), conversation.clone());
        self.scan(move |core| read::mentions(core, &place, &range, limit))
    }

    fn changes(
        &self,
        conversation: &ConversationId,
        after: Seq,
        limit: usize,
    ) -> Stored<'_, Vec<Arc<Change>>> {
        let conversation = conversation.clone();
        self.scan(move |core| recall::changes(core, &conversation, after, limit))
    }

    fn standing(
        &self,
        user: &UserId,
        conversation: &ConversationId,
    ) -> Stored<'_, Option<Standing>> {
        self.look(|core| read::standing(core, &(user.clone(), conversation.clone())))
    }

    fn standings(
        &self,
        user: &UserId,
        after: Option<&ConversationId>,
        limit: usize,
    ) -> Stored<'_, Vec<Standing>> {
        let (user, after) = (user.clone(), after.cloned());
        self.scan(move |core| read::standings(core, &user, after.as_ref(), limit))
    }

    fn advance(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        kind: CursorKind,
        seq: Seq,
    ) -> Stored<'_, Option<Moved>> {
        let place = (user.clone(), conversation.clone());
        self.look(|core| core.members.advance(&core.engine, &core.heads, &place, kind, seq))
    }

    fn quiet(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
    ) -> Stored<'_, u64> {
        let place = (user.clone(), conversation.clone());
        self.look(|core| read::quiet(core, &place, &range))
    }

    fn update_settings(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        change: SettingsChange,
    ) -> Stored<'_, Option<Settings>> {
        let place = (user.clone(), conversation.clone());
        self.submit(CHANGE_BYTES, move |pending| settings::update(pending, place, change))
    }

    fn change_group(
        &self,
        id: &GroupId,
        asker: Asker,
        about: About,
        decide: Decide,
    ) -> Stored<'static, Result<Decided, Reason>> {
        let id = id.clone();
        let bytes = CHANGE_BYTES * (1 + about.users.len());
        self.submit(bytes, move |pending| groups::change(pending, &id, &asker, about, &decide))
    }

    fn group(&self, id: &GroupId) -> Stored<'_, Option<Arc<Group>>> {
        self.look(|core| groups::get(core, id))
    }

    fn group_by_code(&self, code: &JoinCode) -> Stored<'_, Option<GroupId>> {
        self.look(|core| groups::by_code(core, code))
    }

    fn group_member(&self, group: &GroupId, user: &UserId) -> Stored<'_, Option<GroupMember>> {
        self.look(|core| {
            Ok(groups::member(core, group, user)?.map(|member| GroupMember::clone(&member)))
        })
    }

    fn group_members(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> Stored<'_, Vec<GroupMember>> {
        let (group, after) = (group.clone(), after.cloned());
        self.scan(move |core| groups::members(core, &group, after.as_ref(), limit))
    }

    fn group_cursors(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> Stored<'_, Vec<(GroupMember, Cursors)>> {
        let (group, after) = (group.clone(), after.cloned());
        self.scan(move |core| groups::cursors(core, &group, after.as_ref(), limit))
    }

    fn acquainted(&self, user: &UserId, others: Vec<UserId>) -> Stored<'_, Vec<bool>> {
        let user = user.clone();
        self.scan(move |core| groups::acquainted(core, &user, &others))
    }

    fn join_requests(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> Stored<'_, Vec<JoinRequest>> {
        let (group, after) = (group.clone(), after.cloned());
        self.scan(move |core| groups::requests(core, &group, after.as_ref(), limit))
    }

    fn seen(&self, user: &UserId, at: Millis) -> Stored<'_, ()> {
        let user = user.clone();
        self.submit(CHANGE_BYTES, move |pending| accounts::seen(pending, &user, at))
    }

    fn last_seen(&self, user: &UserId) -> Stored<'_, Option<Millis>> {
        self.look(|core| accounts::last_seen(core, user))
    }

    fn create_user(&self, user: User) -> Stored<'_, bool> {
        self.submit(CHANGE_BYTES, |pending| accounts::create(pending, user))
    }

    fn holder<'a>(&'a self, folded: &'a FoldedId) -> Stored<'a, Option<UserId>> {
        self.look(|core| folded::holder(core, folded))
    }

    fn user(&self, id: &UserId) -> Stored<'_, Option<Arc<User>>> {
        self.look(|core| accounts::get(core, id))
    }

    fn update_profile(
        &self,
        id: &UserId,
        change: ProfileChange,
        at: Millis,
    ) -> Stored<'_, Option<Arc<User>>> {
        let id = id.clone();
        self.submit(CHANGE_BYTES, move |pending| accounts::update_profile(pending, &id, change, at))
    }

    fn change_password(
        &self,
        id: &UserId,
        session_version: u64,
        hash: String,
    ) -> Stored<'_, Option<u64>> {
        let id = id.clone();
        self.submit(CHANGE_BYTES, move |pending| {
            accounts::change_password(pending, &id, session_version, hash)
        })
    }

    fn put_reset_code(&self, id: &UserId, code: ResetCode) -> Stored<'_, bool> {
        let id = id.clone();
        self.submit(CHANGE_BYTES, move |pending| accounts::put_reset(pending, &id, code))
    }

    fn reset_code(&self, id: &UserId) -> Stored<'_, Option<ResetCode>> {
        self.look(|core| accounts::reset(core, id))
    }

    fn reset_password(
        &self,
        id: &UserId,
        code_hash: [u8; 32],
        now: Millis,
        hash: String,
    ) -> Stored<'_, Option<u64>> {
        let id = id.clone();
        self.submit(CHANGE_BYTES, move |pending| {
            accounts::reset_password(pending, &id, code_hash, now, hash)
        })
    }

    fn create_login(
        &self,
        login: Login,
        session_version: u64,
        now: Millis,
    ) -> Stored<'_, Option<SignedIn>> {
        self.submit(CHANGE_BYTES, move |pending| {
            logins::create(pending, login, session_version, now)
        })
    }

    fn login(&self, id: LoginId) -> Stored<'_, Option<Login>> {
        self.look(|core| logins::get(&core.engine, id))
    }

    fn rotate(
        &self,
        old_hash: [u8; 32],
        new_hash: [u8; 32],
        expires_at: Millis,
        now: Millis,
        grace_ms: u64,
    ) -> Stored<'_, Rotated> {
        self.submit(CHANGE_BYTES, move |pending| {
            logins::rotate(pending, old_hash, new_hash, expires_at, now, grace_ms)
        })
    }

    fn end_logins(
        &self,
        user: &UserId,
        which: Box<dyn Fn(&Login) -> bool + Send + Sync>,
    ) -> Stored<'_, Vec<LoginId>> {
        let user = user.clone();
        self.submit(CHANGE_BYTES, move |pending| logins::end(pending, &user, &which))
    }

    fn health(&self) -> Result<(), StoreError> {
        self.core.poison.check()?;
        self.core.disk.health()
    }

    fn close(&self) -> Stored<'_, ()> {
        let ended = self.end();
        Box::pin(async move {
            if let Some(ended) = ended {
                // The end is told by dropping the sender, so there is nothing to look at.
                drop(ended.await);
            }
            self.core.poison.check()
        })
    }
}
