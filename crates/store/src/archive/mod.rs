//! Everything in a store as items that any engine can export and import: how data moves from one
//! engine to another. In reading order:
//!
//! - [`Item`], [`ItemKind`]: the items
//! - [`Export`], [`Import`]: what an engine implements
//! - [`copy`], [`survey`]: copy a store, or read what it has
//! - [`Tally`]: counts and checksums of a store, so that two can be compared
//! - [`ArchiveError`]: why it cannot be done, and what to do then

mod copy;
mod error;
mod item_batch;
mod tally;

use nexo_chat::ids::{ConversationId, GroupId, LoginId, Millis, Seq, UserId};
use nexo_chat::membership::{Group, GroupMember, JoinCode, JoinRequest};
use nexo_chat::model::{Change, Fingerprint, Login, Message, ResetCode, Settings, User, Window};
use nexo_chat::progress::Progress;
use nexo_chat::store::{DocumentId, StoreFuture};

pub use self::copy::{copy, survey};
pub use self::error::ArchiveError;
pub use self::item_batch::{ItemBatch, ItemSender};
pub use self::tally::Tally;

/// An item of a store. What an engine derives from other items (heads, the list of a user's logins)
/// is not among them.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    User(User),
    LastSeen {
        user: UserId,
        at: Millis,
    },
    /// A login, with the hash of its current refresh token.
    Login(Login),
    /// A refresh token that was rotated away: if it is presented again, it was copied.
    UsedToken {
        login: LoginId,
        generation: u64,
        /// BLAKE3 of the token.
        hash: [u8; 32],
    },
    ResetCode {
        user: UserId,
        code: ResetCode,
    },
    /// A group, ended or not.
    Group(Box<Group>),
    JoinCode {
        code: JoinCode,
        group: GroupId,
    },
    GroupMember {
        group: GroupId,
        member: GroupMember,
    },
    /// A mute that waits for a former member to come back.
    Mute {
        group: GroupId,
        user: UserId,
        until: Millis,
    },
    JoinRequest(JoinRequest),
    /// A message. Exported in the order of seqs, one conversation after the other.
    Message {
        message: Box<Message>,
        /// Of the content it was sent with, also after it was recalled.
        fingerprint: Fingerprint,
    },
    /// A change. Exported in the order of change seqs, one conversation after the other.
    Change(Box<Change>),
    /// A member of a conversation.
    Member {
        user: UserId,
        conversation: ConversationId,
        /// The visibility window, as of the last join or leave.
        window: Window,
        progress: Progress,
        settings: Settings,
    },
    /// A message that its sender sent without marking anything read.
    SentWithoutRead {
        user: UserId,
        conversation: ConversationId,
        seq: Seq,
        /// How many of these the user has up to it.
        total: u64,
    },
    /// A message that mentions a user or replies to them.
    Mention {
        /// `None` is `@all`.
        whom: Option<UserId>,
        conversation: ConversationId,
        seq: Seq,
        sender: UserId,
    },
    Document {
        id: DocumentId,
        body: Vec<u8>,
    },
}

/// The kinds of items, in the order in which they are exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemKind {
    User,
    LastSeen,
    Login,
    UsedToken,
    ResetCode,
    Group,
    JoinCode,
    GroupMember,
    Mute,
    JoinRequest,
    Message,
    Change,
    Member,
    SentWithoutRead,
    Mention,
    Document,
}

impl ItemKind {
    pub const ALL: [Self; 16] = [
        Self::User,
        Self::LastSeen,
        Self::Login,
        Self::UsedToken,
        Self::ResetCode,
        Self::Group,
        Self::JoinCode,
        Self::GroupMember,
        Self::Mute,
        Self::JoinRequest,
        Self::Message,
        Self::Change,
        Self::Member,
        Self::SentWithoutRead,
        Self::Mention,
        Self::Document,
    ];

    /// The plural, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "accounts",
            Self::LastSeen => "last-seen times",
            Self::Login => "sign-ins",
            Self::UsedToken => "used refresh tokens",
            Self::ResetCode => "reset codes",
            Self::Group => "groups",
            Self::JoinCode => "join codes",
            Self::GroupMember => "group members",
            Self::Mute => "mutes of former members",
            Self::JoinRequest => "requests to join",
            Self::Message => "messages",
            Self::Change => "changes",
            Self::Member => "places in conversations",
            Self::SentWithoutRead => "messages sent without marking read",
            Self::Mention => "mentions",
            Self::Document => "documents",
        }
    }
}

impl Item {
    pub fn kind(&self) -> ItemKind {
        match self {
            Self::User(_) => ItemKind::User,
            Self::LastSeen { .. } => ItemKind::LastSeen,
            Self::Login(_) => ItemKind::Login,
            Self::UsedToken { .. } => ItemKind::UsedToken,
            Self::ResetCode { .. } => ItemKind::ResetCode,
            Self::Group(_) => ItemKind::Group,
            Self::JoinCode { .. } => ItemKind::JoinCode,
            Self::GroupMember { .. } => ItemKind::GroupMember,
            Self::Mute { .. } => ItemKind::Mute,
            Self::JoinRequest(_) => ItemKind::JoinRequest,
            Self::Message { .. } => ItemKind::Message,
            Self::Change(_) => ItemKind::Change,
            Self::Member { .. } => ItemKind::Member,
            Self::SentWithoutRead { .. } => ItemKind::SentWithoutRead,
            Self::Mention { .. } => ItemKind::Mention,
            Self::Document { .. } => ItemKind::Document,
        }
    }

    /// About how many bytes it takes in memory or to write.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Message { message, .. } => message.weight(),
            Self::User(user) => {
                512 + user.profile.nickname.len()
                    + user.profile.avatar.len()
                    + user.profile.extra.len()
            }
            Self::Group(group) => {
                let profile = &group.profile;
                let texts = [&profile.name, &profile.introduction, &profile.announcement];
                let texts = texts.into_iter().chain([&profile.avatar, &profile.extra]);
                1024 + texts.map(String::len).sum::<usize>() + group.admins.len() * 80
            }
            Self::GroupMember { member, .. } => {
                let profile = &member.profile;
                256 + profile.nickname.len() + profile.avatar.len() + profile.extra.len()
            }
            Self::Member { settings, .. } => 256 + settings.extra.len(),
            Self::JoinRequest(request) => 256 + request.message.len(),
            Self::Change(_) => 1024,
            Self::Document { id, body } => 256 + id.key.len() + body.len(),
            _ => 256,
        }
    }
}

/// A store that can be exported.
pub trait Export: Send + Sync {
    /// Sends everything, in batches, while nothing changes. Messages and changes come in the order
    /// of their seqs, one conversation after the other. Ends early if the receiver is dropped.
    fn export(&self, items: ItemSender) -> StoreFuture<'static, ()>;

    /// Returns about how many items there are, to show progress.
    fn approximate_len(&self) -> StoreFuture<'_, u64>;
}

/// An empty store that can be filled.
pub trait Import: Send + Sync {
    /// Imports a batch. It begins when this is *called*; durable when the future is done. The order
    /// of batches does not matter.
    fn import(&self, batch: ItemBatch) -> StoreFuture<'static, ()>;

    /// Completes the import: from now on it is a store like any other.
    fn finish(&self) -> StoreFuture<'_, ()>;
}
