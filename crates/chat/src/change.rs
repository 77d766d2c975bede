//! What happens to what is stored, and what everybody is told.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{ConnectionId, ConversationId, MessageId, Millis, Seq, UserId};
use crate::membership::{GroupChange, JoinRequest, MemberProfileChange, Role};
use crate::model::Message;
use crate::standing::Settings;

/// What happened to something stored: an event with a place of its own in the conversation's second
/// sequence, so that a device that was away learns of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// A member wants to be seen otherwise in the group.
    MemberUpdated(MemberProfileChange),
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
                ChangeKind::Left
                | ChangeKind::Updated(_)
                | ChangeKind::AllMuted { .. }
                | ChangeKind::MemberUpdated(_) => false,
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
        /// The newest change of its conversation when it was stored: whoever knows fewer is
        /// behind, and may not know who hears it.
        change_seq: Seq,
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
