//! Every keyspace and the layout of its keys: the one table of what is where on disk.
//!
//! Numbers are big-endian, so that the order of keys is the order of numbers. Ids have no zero
//! byte, so a zero ends one and separates it from what follows.
//!
//! | keyspace        | key                                        | value                          |
//! |-----------------|--------------------------------------------|--------------------------------|
//! | `messages`      | conversation, 0, seq (8)                   | the message                    |
//! | `ids`           | message id (16)                            | conversation, seq, fingerprint |
//! | `members`       | user, 0, conversation                      | visibility window              |
//! | `cursors`       | user, 0, conversation                      | delivered, read                |
//! | `users`         | user                                       | the account                    |
//! | `logins`        | login id (16)                              | the login                      |
//! | `refresh`       | BLAKE3 of a refresh token (32)             | login id                       |
//! | `changes`       | conversation, 0, change seq (8)            | the change                     |
//! | `used`          | login id (16), generation (8)              | the refresh hash it replaced   |
//! | `user_logins`   | user, 0, login id (16)                     | nothing                        |
//! | `settings`      | user, 0, conversation                      | the member's settings          |
//! | `quiet`         | user, 0, conversation, 0, seq (8)          | number of sends without read   |
//! | `mentions`      | user or `@all`, 0, conversation, 0, seq (8) | the sender                     |
//! | `groups`        | group                                      | the group                      |
//! | `group_members` | group, 0, user                             | the member                     |
//! | `requests`      | group, 0, user                             | the request to join            |
//! | `codes`         | join code                                  | group                          |
//! | `seen`          | user                                       | when they were last seen       |
//! | `mutes`         | group, 0, user                             | a former member's mute         |
//! | `resets`        | user                                       | the reset code                 |
//! | `folded`        | folded user id; 0 once all are indexed     | user; nothing                  |
//! | `lost`          | `m` or `c`, conversation, 0, first seq (8) | the last seq                   |
//! | `documents`     | name of the collection, 0, key             | the body                       |

use std::ops::{Bound, RangeInclusive};

use nexo_chat::ids::{ConversationId, FoldedId, GroupId, LoginId, Seq, UserId};
use nexo_chat::store::{Collection, DocumentId};

/// The number of this layout. Raised when a folder written by the new code cannot be read by the
/// old one. Every older format is read: opening a folder upgrades it to this one.
///
/// Since 4, there are documents, and accounts have details and logins a device: records have version 3.
pub(crate) const FORMAT: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Keyspace {
    Messages,
    MessageIds,
    Members,
    Cursors,
    Users,
    Logins,
    RefreshTokens,
    UserLogins,
    Changes,
    UsedTokens,
    Settings,
    SentWithoutRead,
    Mentions,
    Groups,
    GroupMembers,
    JoinRequests,
    JoinCodes,
    LastSeen,
    Mutes,
    FoldedIds,
    ResetCodes,
    /// Ranges of seqs (`m`) and change seqs (`c`) that were lost when the folder was salvaged.
    Lost,
    Documents,
}

impl Keyspace {
    /// All of them; the index in this list is part of each record's checksum.
    pub(crate) const ALL: [Self; 23] = [
        Self::Messages,
        Self::MessageIds,
        Self::Members,
        Self::Cursors,
        Self::Users,
        Self::Logins,
        Self::RefreshTokens,
        Self::UserLogins,
        Self::Changes,
        Self::UsedTokens,
        Self::Settings,
        Self::SentWithoutRead,
        Self::Mentions,
        Self::Groups,
        Self::GroupMembers,
        Self::JoinRequests,
        Self::JoinCodes,
        Self::LastSeen,
        Self::Mutes,
        Self::FoldedIds,
        Self::ResetCodes,
        Self::Lost,
        Self::Documents,
    ];

    /// The name on disk.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::MessageIds => "ids",
            Self::Members => "members",
            Self::Cursors => "cursors",
            Self::Users => "users",
            Self::Logins => "logins",
            Self::RefreshTokens => "refresh",
            Self::UserLogins => "user_logins",
            Self::Changes => "changes",
            Self::UsedTokens => "used",
            Self::Settings => "settings",
            Self::SentWithoutRead => "quiet",
            Self::Mentions => "mentions",
            Self::Groups => "groups",
            Self::GroupMembers => "group_members",
            Self::JoinRequests => "requests",
            Self::JoinCodes => "codes",
            Self::LastSeen => "seen",
            Self::Mutes => "mutes",
            Self::FoldedIds => "folded",
            Self::ResetCodes => "resets",
            Self::Lost => "lost",
            Self::Documents => "documents",
        }
    }

    /// Whether folders of the first format have it. Later keyspaces are created where they are
    /// missing.
    pub(crate) fn is_in_first_format(self) -> bool {
        self <= Self::Mutes
    }
}

pub(crate) type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

const END_OF_ID: u8 = 0;

fn prefixed(first: &str, rest: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(first.len() + 1 + rest.len());
    key.extend_from_slice(first.as_bytes());
    key.push(END_OF_ID);
    key.extend_from_slice(rest);
    key
}

/// Everything that begins with an id and its end.
fn prefix_range(first: &str) -> KeyRange {
    let mut end = prefixed(first, &[]);
    end.pop();
    end.push(END_OF_ID + 1);
    (Bound::Included(prefixed(first, &[])), Bound::Excluded(end))
}

/// The key of `messages` and of `changes`.
pub(crate) fn message(conversation: &ConversationId, seq: Seq) -> Vec<u8> {
    prefixed(conversation.as_str(), &seq.0.to_be_bytes())
}

pub(crate) fn seq_of(key: &[u8]) -> Option<Seq> {
    Some(Seq(u64::from_be_bytes(*key.last_chunk()?)))
}

/// A conversation's messages between two seqs, both included.
pub(crate) fn messages(conversation: &ConversationId, from: Seq, to: Seq) -> KeyRange {
    (Bound::Included(message(conversation, from)), Bound::Included(message(conversation, to)))
}

/// All of a conversation's messages or changes.
pub(crate) fn messages_of(conversation: &ConversationId) -> KeyRange {
    prefix_range(conversation.as_str())
}

/// A conversation's changes after a change seq.
pub(crate) fn changes_after(conversation: &ConversationId, after: Seq) -> KeyRange {
    let (_, end) = prefix_range(conversation.as_str());
    (Bound::Excluded(message(conversation, after)), end)
}

/// The key of `lost`, of messages or of changes.
pub(crate) fn lost(of: Keyspace, conversation: &ConversationId, first: Seq) -> Vec<u8> {
    prefixed(&lost_prefix(of, conversation), &first.0.to_be_bytes())
}

/// All of a conversation's keys in `lost`, of messages or of changes.
pub(crate) fn lost_of(of: Keyspace, conversation: &ConversationId) -> KeyRange {
    prefix_range(&lost_prefix(of, conversation))
}

fn lost_prefix(of: Keyspace, conversation: &ConversationId) -> String {
    let kind = if of == Keyspace::Messages { 'm' } else { 'c' };
    format!("{kind}{conversation}")
}

/// Stands for all members in a key of `mentions`: no user id has an `@`.
pub(crate) const MENTION_ALL: &str = "@all";

/// The key of `quiet` and of `mentions`.
pub(crate) fn message_mark(who: &str, conversation: &ConversationId, seq: Seq) -> Vec<u8> {
    let mut key = prefixed(who, conversation.as_str().as_bytes());
    key.push(END_OF_ID);
    key.extend_from_slice(&seq.0.to_be_bytes());
    key
}

/// A range of these, both ends included.
pub(crate) fn message_marks(
    who: &str,
    conversation: &ConversationId,
    range: &RangeInclusive<Seq>,
) -> KeyRange {
    let end = |seq| Bound::Included(message_mark(who, conversation, seq));
    (end(*range.start()), end(*range.end()))
}

/// The key of `groups`.
pub(crate) fn group(id: &GroupId) -> Vec<u8> {
    id.as_str().as_bytes().to_vec()
}

/// The key of `group_members`, of `requests` and of `mutes`.
pub(crate) fn group_member(group: &GroupId, user: &UserId) -> Vec<u8> {
    prefixed(group.as_str(), user.as_str().as_bytes())
}

/// A group's keys in `group_members` or `requests`, after a given user.
pub(crate) fn group_members(group: &GroupId, after: Option<&UserId>) -> KeyRange {
    let (start, end) = prefix_range(group.as_str());
    (after.map_or(start, |after| Bound::Excluded(group_member(group, after))), end)
}

/// Returns the user in a key of `group_members` or `requests`.
pub(crate) fn user_of<'a>(key: &'a [u8], group: &GroupId) -> Option<&'a str> {
    let rest = key.strip_prefix(group.as_str().as_bytes())?.strip_prefix(&[END_OF_ID])?;
    std::str::from_utf8(rest).ok()
}

/// The key of `members`, of `cursors` and of `settings`.
pub(crate) fn member(user: &UserId, conversation: &ConversationId) -> Vec<u8> {
    prefixed(user.as_str(), conversation.as_str().as_bytes())
}

/// A user's keys in `members`, after a given conversation.
pub(crate) fn members_of(user: &UserId, after: Option<&ConversationId>) -> KeyRange {
    let (start, end) = prefix_range(user.as_str());
    (after.map_or(start, |after| Bound::Excluded(member(user, after))), end)
}

/// Returns the conversation in a key of `members`.
pub(crate) fn conversation_of(key: &[u8], user: &UserId) -> Option<ConversationId> {
    let rest = key.strip_prefix(user.as_str().as_bytes())?.strip_prefix(&[END_OF_ID])?;
    std::str::from_utf8(rest).ok().map(ConversationId::stored)
}

/// Splits a key into the id that it begins with and what follows.
pub(crate) fn split(key: &[u8]) -> Option<(&str, &[u8])> {
    let end = key.iter().position(|byte| *byte == END_OF_ID)?;
    let (first, rest) = key.split_at(end);
    Some((std::str::from_utf8(first).ok()?, &rest[1..]))
}

/// Everything in a keyspace, or what comes after a key.
pub(crate) fn after(key: Option<Vec<u8>>) -> KeyRange {
    (key.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded)
}

pub(crate) fn user(id: &UserId) -> Vec<u8> {
    id.as_str().as_bytes().to_vec()
}

/// The key of `folded`.
pub(crate) fn folded(id: &FoldedId) -> Vec<u8> {
    id.as_str().as_bytes().to_vec()
}

/// A key of `folded` that exists once every account is indexed: no id has a zero byte.
pub(crate) const ALL_IDS_FOLDED: [u8; 1] = [END_OF_ID];

pub(crate) fn used_token(login: LoginId, generation: u64) -> Vec<u8> {
    [&login.0[..], &generation.to_be_bytes()].concat()
}

pub(crate) fn user_login(user: &UserId, login: LoginId) -> Vec<u8> {
    prefixed(user.as_str(), &login.0)
}

/// All of a user's keys in `user_logins`.
pub(crate) fn logins_of(user: &UserId) -> KeyRange {
    prefix_range(user.as_str())
}

pub(crate) fn login_of(key: &[u8]) -> Option<LoginId> {
    key.last_chunk().copied().map(LoginId)
}

/// The key of `documents`.
pub(crate) fn document(id: &DocumentId) -> Vec<u8> {
    prefixed(id.collection.name(), id.key.as_bytes())
}

/// The documents of a collection between two keys.
pub(crate) fn documents(
    collection: Collection,
    (from, to): (Bound<String>, Bound<String>),
) -> KeyRange {
    let (first, end) = prefix_range(collection.name());
    let within = |bound: Bound<String>, edge| match bound {
        Bound::Unbounded => edge,
        bound => bound.map(|key| prefixed(collection.name(), key.as_bytes())),
    };
    (within(from, first), within(to, end))
}

/// Returns the document in a key of `documents`.
pub(crate) fn document_of(key: &[u8]) -> Option<DocumentId> {
    let (collection, key) = split(key)?;
    DocumentId::parse(Collection::parse(collection)?, std::str::from_utf8(key).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_like_what_they_stand_for() {
        let id = ConversationId::stored("sg_1");
        assert!(message(&id, Seq(255)) < message(&id, Seq(256)));
        assert!(message(&id, Seq(u64::MAX)) < message(&ConversationId::stored("sg_1-"), Seq(0)));
        assert_eq!(seq_of(&message(&id, Seq(77))), Some(Seq(77)));
    }

    #[test]
    fn an_id_does_not_run_into_a_longer_one() {
        let (al, alice) = (UserId::parse("al").unwrap(), UserId::parse("al.").unwrap());
        let (Bound::Included(start), Bound::Excluded(end)) = members_of(&al, None) else {
            panic!("a plain range")
        };
        let id = ConversationId::stored("si_a_b");
        assert!((start.clone()..end.clone()).contains(&member(&al, &id)));
        assert!(!(start..end).contains(&member(&alice, &id)));
        assert_eq!(conversation_of(&member(&al, &id), &al), Some(id));
    }
}
