//! What was changed or left out on the way, and why.

use std::collections::BTreeMap;

/// Examples that are told of each.
const EXAMPLES_MAX: usize = 3;

/// Something that is not as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Note {
    /// An account has no password any more.
    NoPassword,
    /// An account was switched off, which there is none of here.
    SwitchedOff,
    /// An account has another id.
    UserRenamed,
    /// A group has another id.
    GroupRenamed,
    /// An account was made up.
    MadeUp,
    /// A message has another client id.
    ClientId,
    /// A message is of a kind that nobody knows.
    UnknownKind,
    /// A group has a new owner.
    NewOwner,
    /// A group has a new code.
    NewCode,
    /// A group is quiet for somebody, also after the time they had chosen.
    Silent,
    /// A message has no sender.
    NoSender,
    /// A message's sender is not in the chat.
    SenderOutside,
    /// A message is in no chat or group.
    NoConversation,
    /// A chat has no message.
    EmptyChat,
    /// A chat is not of two people.
    NotTwo,
    /// A group has no members.
    EmptyGroup,
    /// A member of nothing, or nobody.
    NoMember,
    /// A message mentions somebody whom nobody knows.
    UnknownMention,
    /// A wish to come in is not open any more.
    NoRequest,
}

impl Note {
    /// What it says.
    pub fn text(self) -> &'static str {
        match self {
            Self::NoPassword => {
                "accounts whose password is kept in a form that is not known here: they set a new \
                 one with their reset code"
            }
            Self::SwitchedOff => {
                "accounts that were switched off: they are here, but without a password"
            }
            Self::UserRenamed => "accounts with another id, since theirs cannot be one here",
            Self::GroupRenamed => "groups with another id, since theirs cannot be one here",
            Self::MadeUp => {
                "accounts that were made up for people who are only named in chats and groups"
            }
            Self::ClientId => {
                "messages with the client id mini-im-<id>, since theirs was missing, not allowed, or \
                 used before"
            }
            Self::UnknownKind => "messages of an unknown kind, which are custom ones now",
            Self::NewOwner => "groups whose owner was missing or not the only one",
            Self::NewCode => "groups with a new join code, since theirs was missing or not allowed",
            Self::Silent => "conversations that were quiet for a while, and are quiet for good now",
            Self::NoSender => "messages without a sender",
            Self::SenderOutside => "messages whose sender is not in the chat",
            Self::NoConversation => "messages of no chat or group that is there",
            Self::EmptyChat => "chats without a message, which begin with the first one here",
            Self::NotTwo => "chats that are not of two people",
            Self::EmptyGroup => "groups without members, with their messages",
            Self::NoMember => "members without a name",
            Self::UnknownMention => "mentions of people whom nobody knows",
            Self::NoRequest => "wishes to join by people who are in already, or asked again",
        }
    }

    /// Whether something is not there any more.
    pub fn is_loss(self) -> bool {
        self >= Self::NoSender
    }
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Report {
    notes: BTreeMap<Note, (u64, Vec<String>)>,
    tables: Vec<(String, u64)>,
}

impl Report {
    pub(super) fn note(&mut self, note: Note, example: impl Into<String>) {
        let (count, examples) = self.notes.entry(note).or_default();
        *count += 1;
        if examples.len() < EXAMPLES_MAX {
            examples.push(example.into());
        }
    }

    pub(super) fn note_many(&mut self, note: Note, count: u64) {
        if count > 0 {
            self.notes.entry(note).or_default().0 += count;
        }
    }

    pub(super) fn leave_table(&mut self, table: &str, rows: u64) {
        if rows > 0 {
            self.tables.push((table.to_owned(), rows));
        }
    }

    /// How many of these there were.
    pub fn count(&self, note: Note) -> u64 {
        self.notes.get(&note).map_or(0, |(count, _)| *count)
    }

    /// What there was, how many, and examples.
    pub fn notes(&self) -> impl Iterator<Item = (Note, u64, &[String])> {
        self.notes.iter().map(|(note, (count, examples))| (*note, *count, examples.as_slice()))
    }

    /// Tables that were left out, and how many rows they have.
    pub fn tables(&self) -> &[(String, u64)] {
        &self.tables
    }
}
