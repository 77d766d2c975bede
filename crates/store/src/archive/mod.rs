//! Everything a store keeps, as things that any engine can give and take: how data moves from one
//! engine to another. In reading order:
//!
//! - [`Item`], [`Kind`]: the things
//! - [`Export`], [`Import`]: what an engine does for it
//! - [`copy`], [`survey`]: from one to the other, and what is there
//! - [`Tally`]: what was seen of a store, so that two can be compared
//! - [`ArchiveError`]: why it cannot be done, and what to do then

mod copy;
mod error;
mod lots;
mod tally;

use nexo_chat::ids::{ConversationId, GroupId, LoginId, Millis, Seq, UserId};
use nexo_chat::membership::{Group, GroupMember, JoinCode, JoinRequest};
use nexo_chat::model::{Change, Fingerprint, Login, Message, ResetCode, Settings, User, Window};
use nexo_chat::progress::Progress;
use nexo_chat::store::Stored;

pub use self::copy::{copy, survey};
pub use self::error::ArchiveError;
pub use self::lots::{Lot, Lots};
pub use self::tally::Tally;

/// Something that a store keeps. What an engine can work out from other things (heads, lists of
/// somebody's sign-ins) is not among them.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// An account.
    User(User),
    /// When somebody was last seen.
    Seen {
        /// Who.
        user: UserId,
        /// When.
        at: Millis,
    },
    /// A sign-in, with the refresh token that is valid now.
    Login(Login),
    /// A refresh token that was replaced: whoever shows it again holds a copy.
    Used {
        /// Whose it was.
        login: LoginId,
        /// Which of that sign-in's.
        generation: u64,
        /// BLAKE3 of it.
        hash: [u8; 32],
    },
    /// A one-time code that sets a password.
    Reset {
        /// Whose.
        user: UserId,
        /// What is kept of it.
        code: ResetCode,
    },
    /// A group, ended or not.
    Group(Box<Group>),
    /// A code that leads to a group.
    Code {
        /// Which.
        code: JoinCode,
        /// Where to.
        group: GroupId,
    },
    /// Somebody in a group.
    GroupMember {
        /// Where.
        group: GroupId,
        /// Who.
        member: GroupMember,
    },
    /// A mute that waits for somebody who left.
    Mute {
        /// Where.
        group: GroupId,
        /// Who.
        user: UserId,
        /// Until when.
        until: Millis,
    },
    /// Somebody who wants in.
    Request(JoinRequest),
    /// A message. Given in the order of seqs, one conversation after the other.
    Message {
        /// As it is now.
        message: Box<Message>,
        /// What content its id stands for, also after it was recalled.
        fingerprint: Fingerprint,
    },
    /// A change. Given in the order of change seqs, one conversation after the other.
    Change(Box<Change>),
    /// Somebody's place in a conversation.
    Member {
        /// Who.
        user: UserId,
        /// Where.
        conversation: ConversationId,
        /// What they may see, as it was when they last came or went.
        window: Window,
        /// How far they have come.
        progress: Progress,
        /// What they chose.
        settings: Settings,
    },
    /// An own message that marked nothing read.
    Quiet {
        /// Whose.
        user: UserId,
        /// Where.
        conversation: ConversationId,
        /// Its place.
        seq: Seq,
        /// How many of theirs there are up to it.
        total: u64,
    },
    /// A message that speaks to somebody.
    Mention {
        /// To whom; nobody in particular is everybody.
        whom: Option<UserId>,
        /// Where.
        conversation: ConversationId,
        /// Its place.
        seq: Seq,
        /// Who said it.
        sender: UserId,
    },
}

/// The kinds of things, in the order in which they are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Accounts.
    User,
    /// Times of being seen.
    Seen,
    /// Sign-ins.
    Login,
    /// Refresh tokens that were replaced.
    Used,
    /// One-time codes.
    Reset,
    /// Groups.
    Group,
    /// Join codes.
    Code,
    /// People in groups.
    GroupMember,
    /// Mutes of those who left.
    Mute,
    /// Wishes to come in.
    Request,
    /// Messages.
    Message,
    /// Changes.
    Change,
    /// Places in conversations.
    Member,
    /// Messages that marked nothing read.
    Quiet,
    /// Messages that speak to somebody.
    Mention,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::User,
        Self::Seen,
        Self::Login,
        Self::Used,
        Self::Reset,
        Self::Group,
        Self::Code,
        Self::GroupMember,
        Self::Mute,
        Self::Request,
        Self::Message,
        Self::Change,
        Self::Member,
        Self::Quiet,
        Self::Mention,
    ];

    /// What people call many of them.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "accounts",
            Self::Seen => "last-seen times",
            Self::Login => "sign-ins",
            Self::Used => "used refresh tokens",
            Self::Reset => "reset codes",
            Self::Group => "groups",
            Self::Code => "join codes",
            Self::GroupMember => "group members",
            Self::Mute => "mutes of former members",
            Self::Request => "requests to join",
            Self::Message => "messages",
            Self::Change => "changes",
            Self::Member => "places in conversations",
            Self::Quiet => "messages sent without marking read",
            Self::Mention => "mentions",
        }
    }
}

impl Item {
    /// What kind of thing it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::User(_) => Kind::User,
            Self::Seen { .. } => Kind::Seen,
            Self::Login(_) => Kind::Login,
            Self::Used { .. } => Kind::Used,
            Self::Reset { .. } => Kind::Reset,
            Self::Group(_) => Kind::Group,
            Self::Code { .. } => Kind::Code,
            Self::GroupMember { .. } => Kind::GroupMember,
            Self::Mute { .. } => Kind::Mute,
            Self::Request(_) => Kind::Request,
            Self::Message { .. } => Kind::Message,
            Self::Change(_) => Kind::Change,
            Self::Member { .. } => Kind::Member,
            Self::Quiet { .. } => Kind::Quiet,
            Self::Mention { .. } => Kind::Mention,
        }
    }

    /// About how many bytes it takes to hold or to write.
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
            Self::Request(request) => 256 + request.message.len(),
            Self::Change(_) => 1024,
            _ => 256,
        }
    }
}

/// What data can be taken out of.
pub trait Export: Send + Sync {
    /// Gives everything, in lots, while nobody changes anything. Messages and changes come in the
    /// order of their places, one conversation after the other. Whoever takes no more lots ends it.
    fn export(&self, lots: Lots) -> Stored<'static, ()>;

    /// About how many things there are, to show how far it is.
    fn about(&self) -> Stored<'_, u64>;
}

/// What data can be put into.
pub trait Import: Send + Sync {
    /// Puts a lot in. It begins when this is *called*; durable when the future is done. The order
    /// of lots does not matter.
    fn import(&self, lot: Lot) -> Stored<'static, ()>;

    /// Everything is there: from now on it is a store like any other.
    fn finish(&self) -> Stored<'_, ()>;
}
