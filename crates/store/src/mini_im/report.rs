//! What an import changed or left out, and why.

use std::collections::BTreeMap;

/// Examples that are listed of each.
const EXAMPLES_MAX: usize = 3;

/// Something that was changed or left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImportNote {
    /// An account got a password hash that no password matches.
    NoPassword,
    /// An account was disabled; here it gets no usable password.
    SwitchedOff,
    /// An account got another id.
    UserRenamed,
    /// A group got another id.
    GroupRenamed,
    /// An account was created for a user id that had none.
    MadeUp,
    /// A message got another client id.
    ClientId,
    /// A message of an unknown kind became a custom one.
    UnknownKind,
    /// A group got another owner.
    NewOwner,
    /// A group got a new join code.
    NewCode,
    /// A conversation that was muted until some time is muted for good.
    Silent,
    /// A message without a sender was left out.
    NoSender,
    /// A message whose sender is not in the chat was left out.
    SenderOutside,
    /// A message of no chat or group was left out.
    NoConversation,
    /// A chat without messages was left out.
    EmptyChat,
    /// A chat that does not have two users was left out.
    NotTwo,
    /// A group without members was left out.
    EmptyGroup,
    /// A member without a user was left out.
    NoMember,
    /// A mention of an unknown user was left out.
    UnknownMention,
    /// A join request that is no longer open was left out.
    NoRequest,
}

impl ImportNote {
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

    /// Whether data was left out.
    pub fn is_loss(self) -> bool {
        self >= Self::NoSender
    }
}

/// Counts and examples of all notes.
#[derive(Clone, Debug, Default)]
pub struct ImportReport {
    notes: BTreeMap<ImportNote, (u64, Vec<String>)>,
    tables: Vec<(String, u64)>,
}

impl ImportReport {
    pub(super) fn note(&mut self, note: ImportNote, example: impl Into<String>) {
        let (count, examples) = self.notes.entry(note).or_default();
        *count += 1;
        if examples.len() < EXAMPLES_MAX {
            examples.push(example.into());
        }
    }

    pub(super) fn note_many(&mut self, note: ImportNote, count: u64) {
        if count > 0 {
            self.notes.entry(note).or_default().0 += count;
        }
    }

    pub(super) fn leave_table(&mut self, table: &str, rows: u64) {
        if rows > 0 {
            self.tables.push((table.to_owned(), rows));
        }
    }

    pub fn count(&self, note: ImportNote) -> u64 {
        self.notes.get(&note).map_or(0, |(count, _)| *count)
    }

    /// Returns the notes with their counts and examples.
    pub fn notes(&self) -> impl Iterator<Item = (ImportNote, u64, &[String])> {
        self.notes.iter().map(|(note, (count, examples))| (*note, *count, examples.as_slice()))
    }

    /// Returns the tables that were left out, and how many rows they have.
    pub fn tables(&self) -> &[(String, u64)] {
        &self.tables
    }
}
