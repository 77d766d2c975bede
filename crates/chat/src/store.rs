//! What the domain needs from a store. Semantic: about messages and members, not keys or SQL.
//!
//! Engines: `memory` (the reference), `embedded`, `mysql`. Every sentence here is a
//! conformance case that runs on all of them.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::Boxed;
use crate::ids::{
    ConnectionId, ConversationId, FoldedId, GroupId, LoginId, MessageId, Millis, Seq, UserId,
};
use crate::membership::{Decision, Group, GroupFacts, GroupMember, JoinCode, JoinRequest};
use crate::model::{
    Change, CursorKind, Cursors, Draft, Kept, Login, Message, ProfileChange, ResetCode, Settings,
    SettingsChange, Standing, User,
};
use crate::policy::send::Permit;
use crate::reason::{BoxError, Error, Reason};

/// Why a store could not do its work. Conflicts are results, not errors.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Not now: nothing was decided, the same call may succeed later.
    #[error("the store is not available: {0}")]
    Unavailable(#[source] BoxError),
    /// The store found damage or failed to make something durable, and acknowledges nothing more.
    #[error("the store has stopped: {0}")]
    Poisoned(String),
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(Box::new(error))
    }
}

/// What an append came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    /// Stored by this call; durable.
    Stored(Arc<Message>),
    /// Stored by an earlier call with the same sender, client id and content; durable.
    Duplicate(Arc<Message>),
    /// The client id was used for other content. Nothing changed.
    Conflict,
    /// The sender may not speak in this group now. Nothing changed.
    Refused(Reason),
}

/// Messages that may be appended together.
pub const RUN_MAX: usize = 128;

/// How much of a list: so many, and about so many bytes, but at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How many at most.
    pub count: usize,
    /// About how many bytes at most, by [`Message::weight`].
    pub bytes: usize,
}

impl Limit {
    /// So many, whatever their size.
    pub fn of(count: usize) -> Self {
        Self { count, bytes: usize::MAX }
    }
}

/// What a decision on a recall needs to know, as it is inside the atomic act.
#[derive(Clone, Copy, Debug)]
pub struct RecallFacts<'a> {
    /// The message.
    pub message: &'a Message,
    /// Its group.
    pub group: Option<&'a Group>,
    /// Whether the asker is in that group.
    pub is_member: bool,
}

/// Decides on a recall. Pure: it runs inside the atomic act, again if that has to be tried again.
pub type MayRecall = Box<dyn Fn(RecallFacts<'_>) -> Result<(), Reason> + Send + Sync>;

/// Decides what becomes of a group. Pure: it runs inside the atomic act, again if that has to be
/// tried again.
pub type Decide = Box<dyn Fn(&GroupFacts) -> Result<Decision, Reason> + Send + Sync>;

/// What a decision about a group asks about.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Beside the asker.
    pub users: Vec<UserId>,
    /// A code the group would take.
    pub code: Option<JoinCode>,
}

/// A group after something was decided about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// As it is now.
    pub group: Arc<Group>,
    /// Who came in.
    pub joined: Vec<UserId>,
    /// Wishes to come in that are new.
    pub asked: Vec<JoinRequest>,
    /// Wishes to come in that are settled.
    pub settled: Vec<JoinRequest>,
    /// What everybody is told.
    pub changes: Vec<Arc<Change>>,
}

/// Who asks for a change, when, and through which socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    /// Who.
    pub user: UserId,
    /// When.
    pub at: Millis,
    /// Through what.
    pub origin: Option<ConnectionId>,
}

/// A sign-in that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    /// As it was kept.
    pub login: Login,
    /// Older sign-ins that ended because there were too many.
    pub ended: Vec<LoginId>,
}

/// What a rotation of a refresh token came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rotated {
    /// The new token is valid now, the old one no more.
    Done(Login),
    /// The same call was made just now: the new token is valid, and nothing was changed.
    Again(Login),
    /// Unknown, expired, ended, or rotated away just now by a call with another new token.
    Unknown,
    /// The token had been rotated away before: somebody holds a copy. The sign-in is ended now.
    Reused(Login),
}

/// A cursor before and after a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Before.
    pub before: Cursors,
    /// After; equal if the move was backwards or empty.
    pub after: Cursors,
}

/// Reading direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Oldest first.
    Ascending,
    /// Newest first.
    Descending,
}

/// Hears of every message and change that became durable.
pub trait Committed: Send + Sync {
    /// Called once per durable batch: after it is durable and readable, before the appends of the
    /// batch are answered, in the order of seqs and change seqs per conversation, from one thread at a
    /// time. Never called
    /// for duplicates. Must not block.
    fn committed(&self, batch: &[Kept]);
}

/// A result of a store call, to be awaited.
pub type Stored<'a, T> = Boxed<'a, Result<T, StoreError>>;

/// Keeps accounts, messages and cursors.
pub trait Store: Send + Sync {
    // Messages

    /// Stores a message in one atomic act: looks up (sender, client id), asks
    /// [`crate::policy::group::may_speak`] if it is for a group, gives the next seq, writes, makes
    /// durable, and moves the sender's cursors as [`crate::progress`] says. A retry of a stored
    /// message is a duplicate even if its sender may not speak any more.
    ///
    /// The place in the order is taken when this is *called*, not when the future is polled, so
    /// calls made one after the other get increasing seqs. Dropping the future does not undo it.
    /// The first message of a private conversation makes both people members of it.
    /// An error means "unknown": the same call again gives the one outcome.
    fn append(&self, permit: Permit, draft: Draft) -> Stored<'static, Appended>;

    /// Stores messages of one conversation as so many calls of [`Store::append`] would, one after
    /// the other, with one difference: if there is an error, none of them was stored, or all of
    /// them were. So the same call again never puts an earlier one after a later one.
    ///
    /// At most [`RUN_MAX`] messages.
    fn append_run(&self, permit: Permit, drafts: Vec<Draft>) -> Stored<'static, Vec<Appended>>;

    /// Names who hears of durable messages. Set once, before the first append.
    fn on_commit(&self, listener: Arc<dyn Committed>);

    /// The message with this id, if it was stored.
    fn message(&self, id: MessageId) -> Stored<'_, Option<Arc<Message>>>;

    /// The same, as it is or as it was before it was recalled: where it is and who said it never
    /// change. Asked for every acknowledgement, so it may come from memory.
    fn message_or_before(&self, id: MessageId) -> Stored<'_, Option<Arc<Message>>> {
        self.message(id)
    }

    /// Other nodes stored this message, which may soon be asked for.
    fn heard(&self, _message: &Arc<Message>) {}

    /// Messages of a conversation with seqs in the range, in the given order, up to a limit. Ranges
    /// beyond what exists give what exists; an unknown conversation gives none.
    fn messages(
        &self,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
        limit: Limit,
        order: Order,
    ) -> Stored<'_, Vec<Arc<Message>>>;

    /// Takes a message back in one atomic act: asks `may` about the message as it is, sets who
    /// recalled it and when, forgets its content for good, and writes the change under the next
    /// change seq. Durable when it returns, and heard as a change. A message that was recalled
    /// before is returned as it is, without another change; an unknown one is `MessageNotFound`.
    fn recall(
        &self,
        id: MessageId,
        asker: Asker,
        may: MayRecall,
    ) -> Stored<'_, Result<Arc<Message>, Reason>>;

    /// Places in the range whose messages speak to `user`: that mention them, or everybody, or
    /// answer them, and were not said by them. Ascending, up to `limit`.
    fn mentions(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
        limit: usize,
    ) -> Stored<'_, Vec<Seq>>;

    /// Up to `limit` changes of a conversation after a change seq, oldest first.
    fn changes(
        &self,
        conversation: &ConversationId,
        after: Seq,
        limit: usize,
    ) -> Stored<'_, Vec<Arc<Change>>>;

    // Members and cursors

    /// Where a member stands, or `None` if they never were a member.
    fn standing(
        &self,
        user: &UserId,
        conversation: &ConversationId,
    ) -> Stored<'_, Option<Standing>>;

    /// Up to `limit` conversations of a user in the order of their ids, after a given one.
    fn standings(
        &self,
        user: &UserId,
        after: Option<&ConversationId>,
        limit: usize,
    ) -> Stored<'_, Vec<Standing>>;

    /// Moves a cursor forward to `seq`, at most to the visible maximum; read moves delivered too.
    /// Backwards or equal changes nothing. `None` if the user is no member. Durable within about a
    /// second without a sync of its own: losing a move only repeats a delivery.
    fn advance(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        kind: CursorKind,
        seq: Seq,
    ) -> Stored<'_, Option<Moved>>;

    /// How many messages of the range `user` sent without marking anything read.
    fn quiet(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
    ) -> Stored<'_, u64>;

    /// Changes a member's choices and returns them as they are now; `None` if they never were a
    /// member. Durable when it returns.
    fn update_settings(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        change: SettingsChange,
    ) -> Stored<'_, Option<Settings>>;

    // Groups

    /// Changes a group in one atomic act, in one order with the messages of its conversation:
    /// gathers the facts, asks `decide`, and does what it says. Whoever comes begins with both
    /// cursors at the newest message. Durable when it returns, and its changes are heard, in
    /// order. A refusal changes nothing; a decision that changes nothing writes nothing.
    fn change_group(
        &self,
        id: &GroupId,
        asker: Asker,
        about: About,
        decide: Decide,
    ) -> Stored<'static, Result<Decided, Reason>>;

    /// A group, ended or not. Asked for every send, so it is shared, not copied.
    fn group(&self, id: &GroupId) -> Stored<'_, Option<Arc<Group>>>;

    /// The group a code leads to.
    fn group_by_code(&self, code: &JoinCode) -> Stored<'_, Option<GroupId>>;

    /// Somebody in a group; `None` if they are not in it, or it has ended.
    fn group_member(&self, group: &GroupId, user: &UserId) -> Stored<'_, Option<GroupMember>>;

    /// Up to `limit` members of a group in the order of their ids, after a given one. None once it
    /// has ended.
    fn group_members(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> Stored<'_, Vec<GroupMember>>;

    /// The same members with how far each has come, in one look.
    fn group_cursors(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> Stored<'_, Vec<(GroupMember, Cursors)>>;

    /// Which of these people a user knows: themselves, and whoever has a private conversation with
    /// them or is in a group with them now. In the order asked.
    fn acquainted(&self, user: &UserId, others: Vec<UserId>) -> Stored<'_, Vec<bool>>;

    /// Up to `limit` people who wait to be let in, in the order of their ids, after a given one.
    fn join_requests(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> Stored<'_, Vec<JoinRequest>>;

    // Accounts

    /// Notes that a user was seen. It need not outlive a crash.
    fn seen(&self, user: &UserId, at: Millis) -> Stored<'_, ()>;

    /// When a user was last seen.
    fn last_seen(&self, user: &UserId) -> Stored<'_, Option<Millis>>;

    /// Creates an account; `false` if the id is taken, or one that folds to the same
    /// ([`UserId::folded`]). Durable when it returns.
    fn create_user(&self, user: User) -> Stored<'_, bool>;

    /// The id that holds a folded form. Of accounts that were there before ids were folded and that
    /// look alike, it is the oldest.
    fn holder<'a>(&'a self, folded: &'a FoldedId) -> Stored<'a, Option<UserId>>;

    /// The account, if there is one. Asked for every send, so it is shared, not copied.
    fn user(&self, id: &UserId) -> Stored<'_, Option<Arc<User>>>;

    /// Whether there is such an account. Asked for every send; accounts never go away.
    fn user_exists<'a>(&'a self, id: &'a UserId) -> Stored<'a, bool> {
        Box::pin(async move { Ok(self.user(id).await?.is_some()) })
    }

    /// Changes a profile and when it last changed, which never goes back. Returns the account as it
    /// is now; `None` without such a user.
    fn update_profile(
        &self,
        id: &UserId,
        change: ProfileChange,
        at: Millis,
    ) -> Stored<'_, Option<Arc<User>>>;

    /// Replaces the password, raises the session version and ends all sign-ins of the user, in one
    /// act. Returns the new version; `None` without such a user, or if the session version is no
    /// longer the given one: whoever knew only the old password comes too late.
    fn change_password(
        &self,
        id: &UserId,
        session_version: u64,
        hash: String,
    ) -> Stored<'_, Option<u64>>;

    /// Keeps a one-time code, in place of the one before; `false` without such a user. Durable when
    /// it returns. A new password ends it.
    fn put_reset_code(&self, id: &UserId, code: ResetCode) -> Stored<'_, bool>;

    /// The one-time code of a user that was not used yet; it may have expired.
    fn reset_code(&self, id: &UserId) -> Stored<'_, Option<ResetCode>>;

    /// Replaces the password by a one-time code, as [`Store::change_password`] would: uses the code
    /// up, raises the session version and ends all sign-ins, in one act. Returns the new version;
    /// `None`, and nothing changed, if it is not the user's code or has expired.
    fn reset_password(
        &self,
        id: &UserId,
        code_hash: [u8; 32],
        now: Millis,
        hash: String,
    ) -> Stored<'_, Option<u64>>;

    // Sign-ins

    /// Keeps a new sign-in, unless the user's session version is no longer the given one (then
    /// `None`): a password that was changed meanwhile signs nobody in. It begins after every
    /// sign-in the user had, whatever the clock says. Forgets the user's sign-ins that ended or expired (`expires_at <=
    /// now`), and ends the oldest live ones beyond 64.
    fn create_login(
        &self,
        login: Login,
        session_version: u64,
        now: Millis,
    ) -> Stored<'_, Option<SignedIn>>;

    /// A sign-in, ended or not, as long as it is remembered.
    fn login(&self, id: LoginId) -> Stored<'_, Option<Login>>;

    /// Replaces a refresh token by the next one, once: of two calls with one token, one wins. The
    /// other changes nothing within `grace_ms`, and succeeds if it is the same call; later it ends
    /// the sign-in.
    fn rotate(
        &self,
        old_hash: [u8; 32],
        new_hash: [u8; 32],
        expires_at: Millis,
        now: Millis,
        grace_ms: u64,
    ) -> Stored<'_, Rotated>;

    /// Ends those of a user's live sign-ins that `which` picks, and returns their ids in order. For
    /// good: an ended sign-in never comes back.
    fn end_logins(
        &self,
        user: &UserId,
        which: Box<dyn Fn(&Login) -> bool + Send + Sync>,
    ) -> Stored<'_, Vec<LoginId>>;

    // The store itself

    /// Why the store cannot be relied on, or `Ok`.
    fn health(&self) -> Result<(), StoreError>;

    /// Makes everything durable and stops. Later writes fail; reads go on.
    fn close(&self) -> Stored<'_, ()>;
}
