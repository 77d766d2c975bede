//! The things the domain speaks of.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::ids::{
    ClientMsgId, ConnectionId, ConversationId, LoginId, MessageId, Millis, Platform, Seq, UserId,
    first_half,
};
use crate::membership::{GroupChange, JoinRequest, Role};

/// A person's account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Who.
    pub id: UserId,
    /// What others see of them.
    pub profile: Profile,
    /// When they registered.
    pub created_at: Millis,
    /// The password in its kept form.
    pub password_hash: String,
    /// Session version: tokens of an older one are dead. A password change raises it.
    pub session_version: u64,
}

/// What others see of a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The name shown.
    pub nickname: String,
    /// Where the picture is, as the app knows it.
    pub avatar: String,
    /// The app's own data, opaque to the server.
    pub extra: String,
}

/// A change to a profile; `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileChange {
    /// New nickname.
    pub nickname: Option<String>,
    /// New avatar.
    pub avatar: Option<String>,
    /// New app data.
    pub extra: Option<String>,
}

impl Profile {
    /// Takes over what a change names.
    pub fn apply(&mut self, change: ProfileChange) {
        self.nickname = change.nickname.unwrap_or(std::mem::take(&mut self.nickname));
        self.avatar = change.avatar.unwrap_or(std::mem::take(&mut self.avatar));
        self.extra = change.extra.unwrap_or(std::mem::take(&mut self.extra));
    }
}

/// One sign-in on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Which sign-in.
    pub id: LoginId,
    /// Whose.
    pub user: UserId,
    /// On what kind of device.
    pub platform: Platform,
    /// When it began.
    pub created_at: Millis,
    /// When its refresh token dies of age.
    pub expires_at: Millis,
    /// BLAKE3 of the refresh token that is valid now. The token itself is kept nowhere.
    pub refresh_hash: [u8; 32],
    /// How often it was replaced. A replaced one is remembered: whoever shows it again holds a
    /// copy, which ends the sign-in.
    pub generation: u64,
    /// When it was last replaced.
    pub rotated_at: Millis,
    /// Set once it ended.
    pub ended: bool,
}

/// Who is asking, as proven by a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The token's user: the sender of whatever they send, whatever a frame claims.
    pub user: UserId,
    /// Their sign-in.
    pub login: LoginId,
    /// Their device.
    pub platform: Platform,
    /// When that sign-in began.
    pub signed_in_at: Millis,
    /// When the token dies.
    pub expires_at: Millis,
    /// The socket they ask through, if it is one.
    pub connection: Option<ConnectionId>,
}

/// What kind of content a message has. The server does not look inside; the number is the client's
/// to interpret, and unknown numbers are refused before they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContentKind(pub i32);

impl ContentKind {
    /// UTF-8 text.
    pub const TEXT: Self = Self(1);
    /// A picture.
    pub const IMAGE: Self = Self(2);
    /// A film.
    pub const VIDEO: Self = Self(3);
    /// A recording.
    pub const AUDIO: Self = Self(4);
    /// A file.
    pub const FILE: Self = Self(5);
    /// The app's own.
    pub const CUSTOM: Self = Self(100);

    /// Whether the number is one of the above.
    pub fn is_known(self) -> bool {
        matches!(self.0, 1..=5 | 100)
    }
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// How to read the body.
    pub kind: ContentKind,
    /// Opaque bytes; UTF-8 where the kind is text.
    pub body: Bytes,
    /// The app's own options, carried along.
    pub extra: BTreeMap<String, String>,
    /// The people it mentions.
    pub mentions: Vec<UserId>,
    /// Whether it mentions everybody.
    pub mentions_all: bool,
    /// The message it answers.
    pub reply_to: Option<ReplyTo>,
}

/// The message that another one answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyTo {
    /// Which.
    pub message: MessageId,
    /// Who had said it.
    pub sender: UserId,
}

impl Content {
    /// Plain text.
    pub fn text(body: impl Into<Bytes>) -> Self {
        Self {
            kind: ContentKind::TEXT,
            body: body.into(),
            extra: BTreeMap::new(),
            mentions: Vec::new(),
            mentions_all: false,
            reply_to: None,
        }
    }

    /// Whether it speaks to this person in particular: names them or everybody, or answers them.
    pub fn concerns(&self, user: &UserId) -> bool {
        self.mentions_all
            || self.mentions.contains(user)
            || self.reply_to.as_ref().is_some_and(|reply| reply.sender == *user)
    }

    /// Stands for this content sent to that conversation: equal for a retry, different for
    /// anything else under the same client id.
    pub fn fingerprint(&self, conversation: &ConversationId) -> Fingerprint {
        let mut hasher = blake3::Hasher::new_derive_key("nexo content fingerprint v1");
        let mut part = |bytes: &[u8]| {
            // The length goes first, so that parts cannot run together.
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        part(conversation.as_str().as_bytes());
        part(&self.kind.0.to_le_bytes());
        part(&self.body);
        part(self.reply_to.as_ref().map_or(&[][..], |reply| &reply.message.0));
        part(&[u8::from(self.mentions_all)]);
        for mention in &self.mentions {
            part(mention.as_str().as_bytes());
        }
        for (key, value) in &self.extra {
            part(key.as_bytes());
            part(value.as_bytes());
        }
        Fingerprint(first_half(&hasher.finalize()))
    }
}

/// 128 bits that stand for a content in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 16]);

/// A message on its way into the store: everything but its seq.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Where to.
    pub conversation: ConversationId,
    /// Who says it.
    pub sender: UserId,
    /// The sender's name for it.
    pub client_id: ClientMsgId,
    /// What it says, as it was sent: a retry is known by this.
    pub content: Content,
    /// What is stored instead, where words were replaced.
    pub cleaned: Option<Content>,
    /// When the server got it.
    pub sent_at: Millis,
    /// The socket it came through, which gets an ACK instead of a push.
    pub origin: Option<ConnectionId>,
    /// Whether sending it reads everything before it.
    pub marks_read: bool,
}

/// A stored message. Never changes once readable, except that it may be recalled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its name for everybody.
    pub id: MessageId,
    /// Where it is.
    pub conversation: ConversationId,
    /// Its place there.
    pub seq: Seq,
    /// Who said it.
    pub sender: UserId,
    /// The sender's name for it.
    pub client_id: ClientMsgId,
    /// When the server got it.
    pub sent_at: Millis,
    /// What it says; nothing once it is recalled.
    pub content: Content,
    /// Set once it is recalled.
    pub recalled: Option<Recall>,
}

/// Who took a message back, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recall {
    /// Who.
    pub by: UserId,
    /// When.
    pub at: Millis,
}

impl Message {
    /// The message without what it said.
    #[must_use]
    pub fn recalled(&self, recall: Recall) -> Self {
        let content = Content { kind: self.content.kind, ..Content::text("") };
        Self { content, recalled: Some(recall), ..self.clone() }
    }

    /// About how many bytes it costs to hold or to send.
    pub fn weight(&self) -> usize {
        let content = &self.content;
        let extra = content.extra.iter().map(|(key, value)| key.len() + value.len() + 64);
        512 + content.body.len() + extra.sum::<usize>() + content.mentions.len() * 80
    }
}

/// What happened to something stored: an event with a place of its own in the conversation's second
/// sequence, so that a device that was away learns of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub conversation: ConversationId,
    /// Its place among the changes: 1, 2, 3 … without a hole.
    pub seq: Seq,
    /// Whose doing.
    pub by: UserId,
    /// When.
    pub at: Millis,
    /// What.
    pub kind: ChangeKind,
}

/// The kinds of change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// A message was taken back.
    Recalled {
        /// Which.
        message: MessageId,
        /// Its place.
        seq: Seq,
        /// Who had said it.
        sender: UserId,
    },
    /// People came into the group.
    Joined {
        /// Who.
        users: Vec<UserId>,
        /// The first message they see.
        from: Seq,
    },
    /// Somebody left.
    Left,
    /// Somebody was put out.
    Kicked {
        /// Who.
        user: UserId,
    },
    /// Somebody has another role.
    Role {
        /// Who.
        user: UserId,
        /// Which.
        role: Role,
    },
    /// The group has another owner; the old one is a member.
    Owner {
        /// Who.
        user: UserId,
    },
    /// The group's profile or its ways changed.
    Updated(GroupChange),
    /// Somebody may not speak for a while, or may again.
    Muted {
        /// Who.
        user: UserId,
        /// Until when; zero is not at all.
        until: Millis,
    },
    /// Only owner and admins may speak, or everybody may again.
    AllMuted {
        /// Which.
        on: bool,
    },
    /// The group ended; its messages stay.
    Dissolved,
    /// The group ended, and its profile is gone.
    Dismissed,
}

impl Change {
    /// Whether it is somebody's own doing, or happens to them.
    pub fn is_about(&self, user: &UserId) -> bool {
        self.by == *user
            || match &self.kind {
                ChangeKind::Joined { users, .. } => users.contains(user),
                ChangeKind::Kicked { user: it }
                | ChangeKind::Role { user: it, .. }
                | ChangeKind::Owner { user: it }
                | ChangeKind::Muted { user: it, .. } => it == user,
                ChangeKind::Recalled { sender, .. } => sender == user,
                ChangeKind::Dissolved | ChangeKind::Dismissed => true,
                ChangeKind::Left | ChangeKind::Updated(_) | ChangeKind::AllMuted { .. } => false,
            }
    }
}

/// What became durable, and the socket it came through, which gets an ACK instead of a push.
#[derive(Clone, Debug)]
pub enum Kept {
    /// A new message.
    Message {
        /// The message.
        message: Arc<Message>,
        /// The socket that sent it.
        origin: Option<ConnectionId>,
        /// How many members its group has; zero between two people.
        members: u32,
    },
    /// A change.
    Change {
        /// The change.
        change: Arc<Change>,
        /// The socket that asked for it.
        origin: Option<ConnectionId>,
        /// How many members its group has; zero between two people.
        members: u32,
    },
    /// Somebody wants to come into a group.
    Asked {
        /// Who, and where.
        request: JoinRequest,
        /// Those who decide.
        to: Vec<UserId>,
    },
    /// Somebody was let in, or not.
    Answered {
        /// Who, and where.
        request: JoinRequest,
        /// Which.
        accepted: bool,
        /// Who decided.
        by: UserId,
        /// When.
        at: Millis,
    },
    /// Somebody chose what they want to hear.
    Chose {
        /// Who.
        user: UserId,
        /// Of which conversation.
        conversation: ConversationId,
        /// What.
        settings: Settings,
    },
}

/// How far a member has come in a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursors {
    /// Everything up to here reached one of the member's devices.
    pub delivered: Seq,
    /// Everything up to here was read.
    pub read: Seq,
}

/// The two kinds of cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CursorKind {
    /// Reached a device.
    Delivered,
    /// Was read; moves delivered too.
    Read,
}

/// What a member may see: from `min` on, up to `end` once they left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first visible message.
    pub min: Seq,
    /// The first visible change.
    pub change_min: Seq,
    /// When it opened.
    pub since: Millis,
    /// Set for a former member, and for everybody once the group ended.
    pub end: Option<Edge>,
}

/// Where a window ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The last visible message.
    pub seq: Seq,
    /// The last visible change: the one that tells of the end.
    pub change_seq: Seq,
    /// When.
    pub at: Millis,
}

impl Window {
    /// Everything, from the first message on: both people of a private conversation.
    pub const ALL: Self = Self { min: Seq(1), change_min: Seq(1), since: Millis(0), end: None };

    /// The same, ended there unless it ended before.
    #[must_use]
    pub fn until(self, edge: Option<Edge>) -> Self {
        Self { end: self.end.or(edge), ..self }
    }
}

/// What a member wants to hear of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Receive {
    /// Everything.
    #[default]
    Normal,
    /// Everything, quietly.
    Silent,
    /// Nothing is pushed or sent again; it is there when they look.
    Blocked,
}

/// A member's own choices for a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Shown before all others.
    pub pinned: bool,
    /// What is pushed.
    pub receive: Receive,
}

/// A change to the choices; `None` leaves one as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SettingsChange {
    /// New pin.
    pub pinned: Option<bool>,
    /// New receive option.
    pub receive: Option<Receive>,
}

impl Settings {
    /// Takes over what a change names.
    #[must_use]
    pub fn with(self, change: SettingsChange) -> Self {
        Self {
            pinned: change.pinned.unwrap_or(self.pinned),
            receive: change.receive.unwrap_or(self.receive),
        }
    }
}

/// Where a member stands in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The conversation.
    pub conversation: ConversationId,
    /// What they may see.
    pub window: Window,
    /// How far they have come.
    pub cursors: Cursors,
    /// Own messages above the read cursor: those sent without marking anything read.
    pub own_unread: u64,
    /// What they chose.
    pub settings: Settings,
    /// The newest message's place; zero if there is none.
    pub max_seq: Seq,
    /// The newest change's place (recall, joins, roles …); zero if there is none.
    pub change_seq: Seq,
    /// When the newest message came.
    pub newest_at: Millis,
}

impl Standing {
    /// The newest place this member may see.
    pub fn visible_max(&self) -> Seq {
        self.window.end.map_or(self.max_seq, |end| end.seq.min(self.max_seq))
    }

    /// The newest change this member may see.
    pub fn visible_change_max(&self) -> Seq {
        self.window.end.map_or(self.change_seq, |end| end.change_seq.min(self.change_seq))
    }

    /// Everything up to here counts as read.
    pub fn read_from(&self) -> Seq {
        self.cursors.read.max(self.window.min.previous())
    }

    /// Messages they have not read. One formula everywhere; their own never count.
    pub fn unread(&self) -> u64 {
        let above = self.visible_max().0.saturating_sub(self.read_from().0);
        above.saturating_sub(self.own_unread)
    }

    /// When something last happened here that they may see. What goes on after they left shows
    /// nowhere.
    pub fn updated_at(&self) -> Millis {
        self.window.end.map_or(self.newest_at, |end| end.at).max(self.window.since)
    }

    /// Whether they are in it now.
    pub fn is_active(&self) -> bool {
        self.window.end.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_tells_every_difference() {
        let (a, b) = (UserId::parse("a").unwrap(), UserId::parse("b").unwrap());
        let here = ConversationId::private(&a, &b);
        let there = ConversationId::private(&a, &UserId::parse("c").unwrap());
        let plain = Content::text("hi");
        let mut seen = vec![plain.fingerprint(&here), plain.fingerprint(&there)];
        for change in [
            Content::text("hi!"),
            Content { kind: ContentKind::CUSTOM, ..plain.clone() },
            Content { mentions: vec![a.clone()], ..plain.clone() },
            Content { mentions_all: true, ..plain.clone() },
            Content {
                reply_to: Some(ReplyTo { message: MessageId([7; 16]), sender: b.clone() }),
                ..plain.clone()
            },
            Content { extra: BTreeMap::from([("k".into(), "v".into())]), ..plain.clone() },
        ] {
            seen.push(change.fingerprint(&here));
        }
        for (i, one) in seen.iter().enumerate() {
            assert!(!seen[..i].contains(one), "content {i} looks like an earlier one");
        }
        assert_eq!(plain.fingerprint(&here), Content::text("hi").fingerprint(&here));
    }

    #[test]
    fn unread_counts_the_window_above_the_read_cursor() {
        let check = |min: u64, max: Option<u64>, read: u64, max_seq: u64, expect: u64| {
            let end = max.map(|max| Edge { seq: Seq(max), change_seq: Seq(1), at: Millis(1) });
            let standing = Standing {
                conversation: ConversationId::stored("sg_1"),
                window: Window { min: Seq(min), end, ..Window::ALL },
                cursors: Cursors { delivered: Seq(read), read: Seq(read) },
                own_unread: 0,
                settings: Settings::default(),
                max_seq: Seq(max_seq),
                change_seq: Seq::ZERO,
                newest_at: Millis(0),
            };
            assert_eq!(standing.unread(), expect);
        };
        check(1, None, 0, 0, 0);
        check(1, None, 0, 5, 5);
        check(1, None, 3, 5, 2);
        check(4, None, 0, 5, 2);
        check(4, Some(4), 0, 9, 1);
        check(4, Some(2), 0, 9, 0);
    }
}
