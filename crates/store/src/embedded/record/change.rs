//! Changes on disk.

use serde::{Deserialize, Serialize};

use nexo_chat::ids::{ConversationId, MessageId, Millis, Seq, UserId};
use nexo_chat::membership::{GroupChange, MemberProfileChange, Role};
use nexo_chat::model::{Change, ChangeKind};

use super::group::{GroupChangeRecord, role, role_number};
use super::user_id;
use crate::embedded::poison::EngineFault;

#[derive(Serialize, Deserialize)]
pub(crate) struct ChangeRecord<'a> {
    by: &'a str,
    at: u64,
    #[serde(borrow)]
    kind: KindRecord<'a>,
}

/// The index of the variant is what is written, so new kinds are added at the end.
#[derive(Serialize, Deserialize)]
enum KindRecord<'a> {
    Recalled {
        message: [u8; 16],
        seq: u64,
        sender: &'a str,
    },
    Joined {
        users: Vec<&'a str>,
        from: u64,
    },
    Left,
    Kicked {
        user: &'a str,
    },
    Role {
        user: &'a str,
        role: u8,
    },
    Owner {
        user: &'a str,
    },
    Updated(#[serde(borrow)] GroupChangeRecord<'a>),
    Muted {
        user: &'a str,
        until: u64,
    },
    AllMuted {
        on: bool,
    },
    Dissolved,
    Dismissed,
    /// Nickname, avatar, extra.
    MemberUpdated(#[serde(borrow)] [Option<&'a str>; 3]),
}

impl<'a> From<&'a Change> for ChangeRecord<'a> {
    fn from(change: &'a Change) -> Self {
        let kind = match &change.kind {
            ChangeKind::Recalled { message, seq, sender } => {
                KindRecord::Recalled { message: message.0, seq: seq.0, sender: sender.as_str() }
            }
            ChangeKind::Joined { users, from } => KindRecord::Joined {
                users: users.iter().map(UserId::as_str).collect(),
                from: from.0,
            },
            ChangeKind::Left => KindRecord::Left,
            ChangeKind::Kicked { user } => KindRecord::Kicked { user: user.as_str() },
            ChangeKind::Role { user, role } => {
                KindRecord::Role { user: user.as_str(), role: role_number(*role) }
            }
            ChangeKind::Owner { user } => KindRecord::Owner { user: user.as_str() },
            ChangeKind::Updated(change) => KindRecord::Updated(change.into()),
            ChangeKind::Muted { user, until } => {
                KindRecord::Muted { user: user.as_str(), until: until.0 }
            }
            ChangeKind::AllMuted { on } => KindRecord::AllMuted { on: *on },
            ChangeKind::Dissolved => KindRecord::Dissolved,
            ChangeKind::Dismissed => KindRecord::Dismissed,
            ChangeKind::MemberUpdated(MemberProfileChange { nickname, avatar, extra }) => {
                KindRecord::MemberUpdated([nickname, avatar, extra].map(Option::as_deref))
            }
        };
        Self { by: change.by.as_str(), at: change.at.0, kind }
    }
}

impl KindRecord<'_> {
    fn kind(&self) -> Result<ChangeKind, EngineFault> {
        Ok(match self {
            Self::Recalled { message, seq, sender } => ChangeKind::Recalled {
                message: MessageId(*message),
                seq: Seq(*seq),
                sender: user_id(sender)?,
            },
            Self::Joined { users, from } => {
                let users: Result<Vec<UserId>, EngineFault> =
                    users.iter().map(|id| user_id(id)).collect();
                ChangeKind::Joined { users: users?, from: Seq(*from) }
            }
            Self::Left => ChangeKind::Left,
            Self::Kicked { user } => ChangeKind::Kicked { user: user_id(user)? },
            Self::Role { user, role: number } => {
                let role: Role = role(*number)?;
                ChangeKind::Role { user: user_id(user)?, role }
            }
            Self::Owner { user } => ChangeKind::Owner { user: user_id(user)? },
            Self::Updated(record) => ChangeKind::Updated(GroupChange::try_from(record)?),
            Self::Muted { user, until } => {
                ChangeKind::Muted { user: user_id(user)?, until: Millis(*until) }
            }
            Self::AllMuted { on } => ChangeKind::AllMuted { on: *on },
            Self::Dissolved => ChangeKind::Dissolved,
            Self::Dismissed => ChangeKind::Dismissed,
            Self::MemberUpdated(fields) => {
                let [nickname, avatar, extra] = fields.map(|field| field.map(str::to_owned));
                ChangeKind::MemberUpdated(MemberProfileChange { nickname, avatar, extra })
            }
        })
    }
}

impl ChangeRecord<'_> {
    pub(crate) fn change(
        &self,
        conversation: &ConversationId,
        seq: Seq,
    ) -> Result<Change, EngineFault> {
        let (by, at) = (user_id(self.by)?, Millis(self.at));
        Ok(Change { conversation: conversation.clone(), seq, by, at, kind: self.kind.kind()? })
    }
}
