//! Changes to what is stored: recalls and everything that happens to a group.

use serde::{Deserialize, Serialize};

use crate::ids::{ConversationId, MessageId, Millis, Seq, UserId};
use crate::membership::{GroupChange, MemberProfileChange, Role};

/// A change with a seq of its own in the conversation's second sequence, so that a device that was
/// offline can fetch it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub conversation: ConversationId,
    /// 1, 2, 3 … without gaps, independent of the messages' seqs.
    pub seq: Seq,
    /// The user who made the change.
    pub by: UserId,
    pub at: Millis,
    pub kind: ChangeKind,
}

/// The kinds of change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeKind {
    Recalled {
        message: MessageId,
        seq: Seq,
        sender: UserId,
    },
    Joined {
        users: Vec<UserId>,
        /// The first message that they may see.
        from: Seq,
    },
    Left,
    Kicked {
        user: UserId,
    },
    Role {
        user: UserId,
        role: Role,
    },
    /// The ownership was transferred; the former owner is a plain member.
    Owner {
        user: UserId,
    },
    Updated(GroupChange),
    Muted {
        user: UserId,
        /// Zero unmutes.
        until: Millis,
    },
    /// Only the owner and admins may post, or everyone again.
    AllMuted {
        on: bool,
    },
    /// The group ended; its messages stay.
    Dissolved,
    /// The group ended, and its profile is gone.
    Dismissed,
    MemberUpdated(MemberProfileChange),
}

impl Change {
    /// Whether the user made the change or is affected by it.
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
