//! Messages in a MySQL-protocol database that many nodes share: MariaDB, MySQL 8 or TiDB.
//!
//! A message, a join, a leave and a recall lock the row of their conversation, so they have one
//! order whichever node they come through. Messages are stored many at a time. In reading order:
//!
//! - `options`, `schema`: how the database is reached, and what is in it
//! - `fault`, `pool`, `sql`, `row`: what can go wrong, connections, statements, rows
//! - `act`: a transaction whose outcome can be found out
//! - `committer`: the queue of a conversation's writes
//! - `append`, `groups`, `group_acts`, `recall`: what is decided under the lock of a conversation
//! - `cursors`, `standings`, `accounts`: what is not
//! - `read`: everything that only reads
//! - `nodes`: who uses the database; `export`, `import`: everything on its way out or in
//! - `core`: what the tasks share

mod accounts;
mod act;
mod append;
mod committer;
mod core;
mod cursors;
mod export;
pub(crate) mod fault;
mod group_acts;
mod groups;
mod import;
mod nodes;
mod options;
mod pool;
mod read;
mod recall;
mod row;
mod schema;
mod sql;
mod standings;

use std::future::ready;
use std::hash::{BuildHasher, RandomState};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

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
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use self::accounts::Rotation;
use self::committer::{Committer, Work};
use self::core::{Core, closed};
use self::cursors::Move;
use self::fault::Fault;
use self::group_acts::GroupAct;
use self::nodes::{Presence, Role};
use self::pool::Pool;
use self::recall::RecallAct;
use self::standings::Look;
use crate::archive::ArchiveError;

use crate::prepared::Prepared;

pub use self::options::MySqlOptions;
pub(crate) use self::pool::opts;

/// Bytes of the messages that may wait; further ones are refused at once.
const QUEUE_BYTES_MAX: usize = 64 << 20;
/// How often the database is looked at when nobody asks for it.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long the names of transactions are kept.
const FORGET_ACTS: &str =
    "DELETE FROM acts WHERE at < CURRENT_TIMESTAMP - INTERVAL 1 HOUR LIMIT 10000";
const FORGET_EVERY: u64 = 5;

/// A store in a database.
pub struct MySql {
    core: Arc<Core>,
    runtime: Handle,
    committers: Vec<mpsc::UnboundedSender<Work>>,
    waiting_bytes: Arc<AtomicUsize>,
    mover: mpsc::UnboundedSender<Move>,
    looks: mpsc::UnboundedSender<Look>,
    /// Asks for the end of [`look_after`].
    leaving: mpsc::Sender<oneshot::Sender<()>>,
    hasher: RandomState,
}

impl MySql {
    /// Reaches the database and brings its tables up to date.
    pub async fn open(options: &MySqlOptions) -> Result<Arc<Self>, StoreError> {
        let core = Self::reach(options)?;
        schema::migrate(&core.pool).await?;
        let opened = Self::start(core, Role::Serve, options).await;
        opened.map_err(|error| match error {
            ArchiveError::Store(error) => error,
            refused => StoreError::Unavailable(refused.into()),
        })
    }

    fn reach(options: &MySqlOptions) -> Result<Arc<Core>, StoreError> {
        let url = |error: mysql_async::UrlError| StoreError::Unavailable(error.into());
        let pool = Pool::new(options).map_err(url)?;
        Ok(Arc::new(Core::new(pool, options.patience)))
    }

    /// Starts the tasks, if the database may be used so.
    async fn start(
        core: Arc<Core>,
        role: Role,
        options: &MySqlOptions,
    ) -> Result<Arc<Self>, ArchiveError> {
        let presence = nodes::enter(&core, role).await?;
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let committers = (0..options.committers.max(1)).map(|_| {
            let (sender, queue) = mpsc::unbounded_channel();
            let waiting_bytes = Arc::clone(&waiting_bytes);
            tokio::spawn(Committer { core: Arc::clone(&core), queue, waiting_bytes }.run());
            sender
        });
        let committers = committers.collect();
        let (mover, asked) = mpsc::unbounded_channel();
        tokio::spawn(cursors::mover(Arc::clone(&core), asked));
        let (looks, looked) = mpsc::unbounded_channel();
        tokio::spawn(standings::looker(Arc::clone(&core), looked));
        let (leaving, to_leave) = mpsc::channel(1);
        tokio::spawn(look_after(Arc::clone(&core), presence, to_leave));
        Ok(Arc::new(Self {
            core,
            runtime: Handle::current(),
            committers,
            waiting_bytes,
            mover,
            looks,
            leaving,
            hasher: RandomState::new(),
        }))
    }

    /// Does something that goes on whether or not anybody waits for it.
    fn ask<T, F>(&self, work: impl FnOnce(Arc<Core>) -> F) -> Stored<'static, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let task = self.runtime.spawn(work(Arc::clone(&self.core)));
        Box::pin(async move {
            task.await.unwrap_or_else(|error| Err(StoreError::Unavailable(error.into())))
        })
    }

    /// The same for what a closed store refuses.
    fn change<T, F>(&self, work: impl FnOnce(Arc<Core>) -> F) -> Stored<'static, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        if self.core.closed.load(Ordering::SeqCst) {
            return Box::pin(ready(Err(closed())));
        }
        self.ask(work)
    }

    /// Puts something into the queue of its conversation, now. The future waits for the answer.
    /// Counts what is about to wait, unless there is too much already.
    fn make_room(&self, bytes: usize) -> Result<(), StoreError> {
        if self.waiting_bytes.load(Ordering::Relaxed) > QUEUE_BYTES_MAX {
            return Err(StoreError::Unavailable("too many writes are waiting".into()));
        }
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn submit<T: Send + 'static>(
        &self,
        conversation: &ConversationId,
        work: impl FnOnce(committer::Answer<T>) -> Work,
    ) -> Stored<'static, T> {
        if self.core.closed.load(Ordering::SeqCst) {
            return Box::pin(ready(Err(closed())));
        }
        let (answer, outcome) = oneshot::channel();
        let place = self.hasher.hash_one(conversation) % self.committers.len() as u64;
        let committer = &self.committers[usize::try_from(place).unwrap_or(0)];
        if committer.send(work(answer)).is_err() {
            return Box::pin(ready(Err(closed())));
        }
        Box::pin(async move { outcome.await.unwrap_or_else(|_| Err(closed())) })
    }
}

/// Looks whether the database is there, says that we are, and forgets what is over, for as long as
/// the store is used. Whoever asks for the end is answered when nothing tells of us any more.
async fn look_after(
    core: Arc<Core>,
    presence: Presence,
    mut leaving: mpsc::Receiver<oneshot::Sender<()>>,
) {
    for second in 0.. {
        if let Ok(asked) = timeout(LOOK_EVERY, leaving.recv()).await {
            if let Some(answer) = asked {
                tell(presence.leave(&core).await);
                drop(answer); // which tells whoever waits
            }
            return;
        }
        let looked = look(&core, &presence, second).await;
        // Others at the same work may be in the way, which is no trouble.
        let trouble = looked.err().filter(|fault| matches!(fault, Fault::Away(_)));
        core.pool.note(trouble.as_ref());
    }
}

async fn look(core: &Core, presence: &Presence, second: u64) -> Result<(), Fault> {
    let mut lease = core.pool.lease().await?;
    if second.is_multiple_of(FORGET_EVERY) {
        lease.plain(FORGET_ACTS).await?;
        lease.plain(nodes::FORGET).await?;
    }
    if second.is_multiple_of(nodes::STAY_EVERY) {
        return presence.stay(&mut lease).await;
    }
    lease.plain("SELECT 1").await
}

fn tell(looked: Result<(), Fault>) {
    if let Err(error) = looked {
        tracing::debug!(target: "nexo::store", %error, "the database does not answer");
    }
}

impl Store for MySql {
    fn append(&self, _permit: Permit, draft: Draft) -> Stored<'static, Appended> {
        let conversation = draft.conversation.clone();
        let prepared = Box::new(Prepared::new(draft));
        if let Err(busy) = self.make_room(prepared.bytes()) {
            return Box::pin(ready(Err(busy)));
        }
        self.submit(&conversation, |answer| Work::Append(prepared, answer))
    }

    fn append_run(&self, _permit: Permit, drafts: Vec<Draft>) -> Stored<'static, Vec<Appended>> {
        let Some(first) = drafts.first() else { return Box::pin(ready(Ok(Vec::new()))) };
        let conversation = first.conversation.clone();
        let run: Vec<Prepared> = drafts.into_iter().map(Prepared::new).collect();
        if let Err(busy) = self.make_room(run.iter().map(Prepared::bytes).sum()) {
            return Box::pin(ready(Err(busy)));
        }
        self.submit(&conversation, |answer| Work::Run(run, answer))
    }

    fn on_commit(&self, listener: Arc<dyn Committed>) {
        self.core.listen(listener);
    }

    fn message(&self, id: MessageId) -> Stored<'_, Option<Arc<Message>>> {
        self.ask(async move |core| read::message(&core, id).await)
    }

    fn message_or_before(&self, id: MessageId) -> Stored<'_, Option<Arc<Message>>> {
        if let Some(message) = self.core.heard.get(&id) {
            return Box::pin(ready(Ok(Some(message))));
        }
        self.message(id)
    }

    fn heard(&self, message: &Arc<Message>) {
        self.core.hear(message);
    }

    fn messages(
        &self,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
        limit: Limit,
        order: Order,
    ) -> Stored<'_, Vec<Arc<Message>>> {
        let conversation = conversation.clone();
        self.ask(async move |core| read::messages(&core, &conversation, range, limit, order).await)
    }

    fn recall(
        &self,
        id: MessageId,
        asker: Asker,
        may: MayRecall,
    ) -> Stored<'_, Result<Arc<Message>, Reason>> {
        Box::pin(async move {
            let mut message = self.message(id).await?;
            if message.is_none() {
                // It may be on its way: what was asked before this comes before it.
                self.pass().await;
                message = self.message(id).await?;
            }
            let Some(message) = message else { return Ok(Err(Reason::MessageNotFound)) };
            let conversation = message.conversation.clone();
            let act = RecallAct { id, conversation: conversation.clone(), asker, may };
            self.submit(&conversation, |answer| Work::Recall(act, answer)).await
        })
    }

    fn mentions(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
        limit: usize,
    ) -> Stored<'_, Vec<Seq>> {
        let place = (user.clone(), conversation.clone());
        self.ask(async move |core| read::mentions(&core, &place, range, limit).await)
    }

    fn changes(
        &self,
        conversation: &ConversationId,
        after: Seq,
        limit: usize,
    ) -> Stored<'_, Vec<Arc<Change>>> {
        let conversation = conversation.clone();
        self.ask(async move |core| read::changes(&core, &conversation, after, limit).await)
    }

    fn standing(
        &self,
        user: &UserId,
        conversation: &ConversationId,
    ) -> Stored<'_, Option<Standing>> {
        let (answer, standing) = oneshot::channel();
        let place = (user.clone(), conversation.clone());
        if self.looks.send((place, answer)).is_err() {
            return Box::pin(ready(Err(closed())));
        }
        Box::pin(async move { standing.await.unwrap_or_else(|_| Err(closed())) })
    }

    fn standings(
        &self,
        user: &UserId,
        after: Option<&ConversationId>,
        limit: usize,
    ) -> Stored<'_, Vec<Standing>> {
        let (user, after) = (user.clone(), after.cloned());
        self.ask(async move |core| standings::standings(&core, &user, after.as_ref(), limit).await)
    }

    fn advance(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        kind: CursorKind,
        seq: Seq,
    ) -> Stored<'_, Option<Moved>> {
        let place = (user.clone(), conversation.clone());
        self.moved(|answer| Move::Advance { place, kind, seq, answer })
    }

    fn quiet(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
    ) -> Stored<'_, u64> {
        let place = (user.clone(), conversation.clone());
        self.ask(async move |core| {
            let up_to = standings::quiet_up_to(&core, &place, *range.end()).await?;
            let before = standings::quiet_up_to(&core, &place, range.start().previous()).await?;
            Ok(up_to.saturating_sub(before))
        })
    }

    fn update_settings(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        change: SettingsChange,
    ) -> Stored<'_, Option<Settings>> {
        let place = (user.clone(), conversation.clone());
        self.change(async move |core| standings::choose(&core, place, change).await)
    }

    fn change_group(
        &self,
        id: &GroupId,
        asker: Asker,
        about: About,
        decide: Decide,
    ) -> Stored<'static, Result<Decided, Reason>> {
        let act = GroupAct { id: id.clone(), asker, about, decide };
        self.submit(&id.conversation(), |answer| Work::Group(act, answer))
    }

    fn group(&self, id: &GroupId) -> Stored<'_, Option<Arc<Group>>> {
        let id = id.clone();
        self.ask(async move |core| groups::get(&core, &id).await)
    }

    fn group_by_code(&self, code: &JoinCode) -> Stored<'_, Option<GroupId>> {
        let code = code.clone();
        self.ask(async move |core| groups::by_code(&core, &code).await)
    }

    fn group_member(&self, group: &GroupId, user: &UserId) -> Stored<'_, Option<GroupMember>> {
        let (group, user) = (group.clone(), user.clone());
        self.ask(async move |core| groups::get_member(&core, &group, &user).await)
    }

    fn group_members(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> Stored<'_, Vec<GroupMember>> {
        let (group, after) = (group.clone(), after.cloned());
        self.ask(async move |core| groups::members(&core, &group, after.as_ref(), limit).await)
    }

    fn group_cursors(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> Stored<'_, Vec<(GroupMember, Cursors)>> {
        let (group, after) = (group.clone(), after.cloned());
        self.ask(async move |core| groups::cursors(&core, &group, after.as_ref(), limit).await)
    }

    fn acquainted(&self, user: &UserId, others: Vec<UserId>) -> Stored<'_, Vec<bool>> {
        let user = user.clone();
        self.ask(async move |core| groups::acquainted(&core, &user, &others).await)
    }

    fn join_requests(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> Stored<'_, Vec<JoinRequest>> {
        let (group, after) = (group.clone(), after.cloned());
        self.ask(async move |core| groups::requests(&core, &group, after.as_ref(), limit).await)
    }

    fn seen(&self, user: &UserId, at: Millis) -> Stored<'_, ()> {
        let user = user.clone();
        self.moved(|answer| Move::Seen { user, at, answer })
    }

    fn last_seen(&self, user: &UserId) -> Stored<'_, Option<Millis>> {
        let user = user.clone();
        self.ask(async move |core| accounts::last_seen(&core, &user).await)
    }

    fn create_user(&self, user: User) -> Stored<'_, bool> {
        self.change(async move |core| accounts::create(&core, user).await)
    }

    fn holder<'a>(&'a self, folded: &'a FoldedId) -> Stored<'a, Option<UserId>> {
        let folded = folded.clone();
        self.ask(async move |core| accounts::holder(&core, &folded).await)
    }

    fn user(&self, id: &UserId) -> Stored<'_, Option<Arc<User>>> {
        let id = id.clone();
        self.ask(async move |core| accounts::get(&core, &id).await)
    }

    fn user_exists<'a>(&'a self, id: &'a UserId) -> Stored<'a, bool> {
        if self.core.people.get(id).is_some() {
            return Box::pin(ready(Ok(true)));
        }
        Box::pin(async move {
            let exists = self.user(id).await?.is_some();
            if exists {
                self.core.people.insert(id.clone(), ());
            }
            Ok(exists)
        })
    }

    fn update_profile(
        &self,
        id: &UserId,
        change: ProfileChange,
        at: Millis,
    ) -> Stored<'_, Option<Arc<User>>> {
        let id = id.clone();
        self.change(async move |core| accounts::update_profile(&core, &id, change, at).await)
    }

    fn change_password(
        &self,
        id: &UserId,
        session_version: u64,
        hash: String,
    ) -> Stored<'_, Option<u64>> {
        let id = id.clone();
        self.change(async move |core| {
            accounts::change_password(&core, &id, session_version, &hash).await
        })
    }

    fn put_reset_code(&self, id: &UserId, code: ResetCode) -> Stored<'_, bool> {
        let id = id.clone();
        self.change(async move |core| accounts::put_reset(&core, &id, code).await)
    }

    fn reset_code(&self, id: &UserId) -> Stored<'_, Option<ResetCode>> {
        let id = id.clone();
        self.ask(async move |core| accounts::reset(&core, &id).await)
    }

    fn reset_password(
        &self,
        id: &UserId,
        code_hash: [u8; 32],
        now: Millis,
        hash: String,
    ) -> Stored<'_, Option<u64>> {
        let id = id.clone();
        self.change(async move |core| {
            accounts::reset_password(&core, &id, code_hash, now, &hash).await
        })
    }

    fn create_login(
        &self,
        login: Login,
        session_version: u64,
        now: Millis,
    ) -> Stored<'_, Option<SignedIn>> {
        self.change(async move |core| {
            accounts::create_login(&core, login, session_version, now).await
        })
    }

    fn login(&self, id: LoginId) -> Stored<'_, Option<Login>> {
        self.ask(async move |core| accounts::login(&core, id).await)
    }

    fn rotate(
        &self,
        old_hash: [u8; 32],
        new_hash: [u8; 32],
        expires_at: Millis,
        now: Millis,
        grace_ms: u64,
    ) -> Stored<'_, Rotated> {
        let rotation = Rotation { old_hash, new_hash, expires_at, now, grace_ms };
        self.change(async move |core| accounts::rotate(&core, rotation).await)
    }

    fn end_logins(
        &self,
        user: &UserId,
        which: Box<dyn Fn(&Login) -> bool + Send + Sync>,
    ) -> Stored<'_, Vec<LoginId>> {
        let user = user.clone();
        self.change(async move |core| accounts::end_logins(&core, &user, &*which).await)
    }

    fn health(&self) -> Result<(), StoreError> {
        let is_open = !self.core.closed.load(Ordering::SeqCst);
        if is_open && self.has_stopped() {
            return Err(StoreError::Poisoned("a part of the store has stopped".into()));
        }
        match self.core.pool.trouble() {
            Some(error) => Err(StoreError::Unavailable(error.into())),
            None => Ok(()),
        }
    }

    fn close(&self) -> Stored<'_, ()> {
        self.core.closed.store(true, Ordering::SeqCst);
        Box::pin(async move {
            for committer in &self.committers {
                let (answer, done) = oneshot::channel();
                if committer.send(Work::Close(answer)).is_ok() {
                    // It may have ended since, which is what is wanted.
                    drop(done.await);
                }
            }
            let (answer, done) = oneshot::channel();
            if self.mover.send(Move::Close(answer)).is_ok() {
                drop(done.await);
            }
            let (answer, done) = oneshot::channel();
            if self.leaving.send(answer).await.is_ok() {
                drop(done.await);
            }
            Ok(())
        })
    }
}

impl MySql {
    /// Whether one of those who work for it is gone.
    fn has_stopped(&self) -> bool {
        let committers = self.committers.iter().any(mpsc::UnboundedSender::is_closed);
        committers || self.mover.is_closed() || self.looks.is_closed()
    }

    /// Returns when everything that was asked before is done.
    async fn pass(&self) {
        let passed = self.committers.iter().map(|committer| {
            let (answer, done) = oneshot::channel();
            committer.send(Work::Pass(answer)).is_ok().then_some(done)
        });
        for done in passed.collect::<Vec<_>>().into_iter().flatten() {
            drop(done.await); // it is told by the end of the channel
        }
    }

    /// Puts something into the queue of the mover, now.
    fn moved<T: Send + 'static>(
        &self,
        asked: impl FnOnce(committer::Answer<T>) -> Move,
    ) -> Stored<'static, T> {
        if self.core.closed.load(Ordering::SeqCst) {
            return Box::pin(ready(Err(closed())));
        }
        let (answer, outcome) = oneshot::channel();
        if self.mover.send(asked(answer)).is_err() {
            return Box::pin(ready(Err(closed())));
        }
        Box::pin(async move { outcome.await.unwrap_or_else(|_| Err(closed())) })
    }
}
