//! Names of things, each its own type, so that a seq is never taken for a time.

use std::fmt;
use std::sync::Arc;

use data_encoding::BASE32_NOPAD;
use serde::{Deserialize, Serialize};

use crate::reason::Reason;

/// Milliseconds since 1970 by the server's clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Millis(pub u64);

impl Millis {
    /// This moment plus some milliseconds, never wrapping.
    #[must_use]
    pub fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this moment, zero if the clock went back.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A place in a conversation: 1, 2, 3 … without a hole. Zero is "before the first".
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Seq(pub u64);

impl Seq {
    /// Before the first message.
    pub const ZERO: Self = Self(0);

    /// The place after this one. A conversation never reaches 2⁶⁴ messages.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The place before this one; zero stays zero.
    #[must_use]
    pub fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A person: 1–64 of `A-Z a-z 0-9 . -`. No `_` or `:`, so that pair ids cannot collide.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UserId(Arc<str>);

impl UserId {
    /// The longest a user id may be, in bytes.
    pub const LEN_MAX: usize = 64;

    /// Checks the form of an id that came from outside.
    pub fn parse(text: &str) -> Result<Self, Reason> {
        let fits = (1..=Self::LEN_MAX).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-');
        if fits { Ok(Self(text.into())) } else { Err(Reason::BadUserId) }
    }

    /// The operator's own voice. Nobody can register it.
    pub fn system() -> Self {
        Self(SYSTEM.into())
    }

    /// Whether this is the operator's own voice.
    pub fn is_system(&self) -> bool {
        &*self.0 == SYSTEM
    }

    /// The form in which ids that people take for each other are the same: without case, and with
    /// one letter for `i l 1` and one for `o 0`. Nobody registers an id whose folded form is taken.
    pub fn folded(&self) -> FoldedId {
        let fold = |byte: u8| match byte.to_ascii_lowercase() {
            b'i' | b'1' => 'l',
            b'0' => 'o',
            other => char::from(other),
        };
        FoldedId(self.0.bytes().map(fold).collect::<String>().into())
    }

    /// Whether this is the same id, typed with other capitals perhaps. Looking alike is not enough.
    pub fn is_same_but_for_case(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What ids that look alike have in common, by [`UserId::folded`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FoldedId(Arc<str>);

impl FoldedId {
    /// The folded form as text, in the alphabet of user ids.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for FoldedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

const SYSTEM: &str = "system";

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A group, in the alphabet of user ids.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupId(Arc<str>);

impl GroupId {
    /// Checks the form of an id that came from outside. One that no group can have belongs to none.
    pub fn parse(text: &str) -> Result<Self, Reason> {
        UserId::parse(text).map(|UserId(id)| Self(id)).map_err(|_| Reason::GroupNotFound)
    }

    /// Makes an id from random bytes.
    pub fn random(bytes: [u8; 16]) -> Self {
        Self(BASE32_NOPAD.encode(&bytes).to_ascii_lowercase().into())
    }

    /// The group's conversation.
    pub fn conversation(&self) -> ConversationId {
        ConversationId(format!("sg_{self}").into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A conversation: `si_{min}_{max}` for two people, `sg_{group}` for a group. Immutable.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConversationId(Arc<str>);

/// What a conversation id says about the conversation.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// Two people, in the order of their ids.
    Private(&'a str, &'a str),
    /// A group by its id.
    Group(&'a str),
}

impl ConversationId {
    /// The conversation of two people, the same whoever asks.
    pub fn private(a: &UserId, b: &UserId) -> Self {
        let (low, high) = if a <= b { (a, b) } else { (b, a) };
        Self(format!("si_{low}_{high}").into())
    }

    /// Checks the form of an id that came from outside.
    pub fn parse(text: &str) -> Result<Self, Reason> {
        let id = Self(text.into());
        let fits = match id.split() {
            Some(Kind::Private(a, b)) => {
                a < b && UserId::parse(a).is_ok() && UserId::parse(b).is_ok()
            }
            Some(Kind::Group(group)) => UserId::parse(group).is_ok(),
            None => false,
        };
        if fits { Ok(id) } else { Err(Reason::ConversationNotFound) }
    }

    /// An id that a store kept: its form was checked when it was made.
    pub fn stored(text: &str) -> Self {
        Self(text.into())
    }

    fn split(&self) -> Option<Kind<'_>> {
        if let Some(pair) = self.0.strip_prefix("si_") {
            let (a, b) = pair.split_once('_')?;
            return Some(Kind::Private(a, b));
        }
        self.0.strip_prefix("sg_").map(Kind::Group)
    }

    /// The two people of a private conversation.
    pub fn pair(&self) -> Option<(UserId, UserId)> {
        match self.split() {
            Some(Kind::Private(a, b)) => Some((UserId(a.into()), UserId(b.into()))),
            _ => None,
        }
    }

    /// The group whose conversation this is.
    pub fn group(&self) -> Option<GroupId> {
        match self.split() {
            Some(Kind::Group(group)) => Some(GroupId(group.into())),
            _ => None,
        }
    }

    /// The other person of a private conversation, if `user` is one of the two.
    pub fn peer_of(&self, user: &UserId) -> Option<UserId> {
        match self.split() {
            Some(Kind::Private(a, b)) if a == user.as_str() => Some(UserId(b.into())),
            Some(Kind::Private(a, b)) if b == user.as_str() => Some(UserId(a.into())),
            _ => None,
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The sender's own name for a message; a retry repeats it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClientMsgId(Arc<str>);

impl ClientMsgId {
    /// The longest a client message id may be, in bytes.
    pub const LEN_MAX: usize = 128;

    /// Checks the form of an id that came from outside.
    pub fn parse(text: &str) -> Result<Self, Reason> {
        if text.is_empty() {
            return Err(Reason::MissingMsgId);
        }
        if text.len() > Self::LEN_MAX || text.chars().any(char::is_control) {
            return Err(Reason::BadMsgId);
        }
        Ok(Self(text.into()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A message's name for everybody: a function of (sender, client id), so that every node and every
/// retry computes the same one without asking.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub [u8; 16]);

impl MessageId {
    /// The id of what `sender` calls `client_id`.
    pub fn of(sender: &UserId, client_id: &ClientMsgId) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("nexo message id v1");
        hasher.update(sender.as_str().as_bytes());
        hasher.update(&[0]); // cannot occur in a user id, so no two pairs run together
        hasher.update(client_id.as_str().as_bytes());
        Self(first_half(&hasher.finalize()))
    }

    /// Reads the 26 characters that [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Result<Self, Reason> {
        base32_16(text).map(Self).ok_or(Reason::BadServerMsgId)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE32_NOPAD.encode(&self.0))
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One sign-in on one device. It lives through refreshes and ends by logout, kick, password change
/// or age.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoginId(pub [u8; 16]);

impl LoginId {
    /// Reads what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        base32_16(text).map(Self)
    }
}

impl fmt::Display for LoginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE32_NOPAD.encode(&self.0))
    }
}

impl fmt::Debug for LoginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One open socket. Unique over all nodes: the upper half is drawn at start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConnectionId(pub u64);

/// The kind of device, by number: 1 iOS, 2 Android, 3 Windows, 4 macOS, 5 Web.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Platform(pub i32);

/// Ids that are bytes are written as people see them where people may read it.
macro_rules! told_as_text {
    ($($id:ident),*) => {$(
        impl Serialize for $id {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                if to.is_human_readable() { to.collect_str(self) } else { self.0.serialize(to) }
            }
        }

        impl<'de> Deserialize<'de> for $id {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                if !from.is_human_readable() {
                    return <[u8; 16]>::deserialize(from).map(Self);
                }
                let text = String::deserialize(from)?;
                let bytes = base32_16(&text).map(Self);
                bytes.ok_or_else(|| serde::de::Error::custom("not 26 characters of base32"))
            }
        }
    )*};
}

told_as_text!(MessageId, LoginId);

fn base32_16(text: &str) -> Option<[u8; 16]> {
    BASE32_NOPAD.decode(text.as_bytes()).ok()?.try_into().ok()
}

pub(crate) fn first_half(hash: &blake3::Hash) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&hash.as_bytes()[..16]);
    half
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(id: &str) -> UserId {
        UserId::parse(id).unwrap()
    }

    #[test]
    fn user_ids_keep_to_their_alphabet() {
        for good in ["a", "Alice", "bob.b-2", &"x".repeat(64)] {
            assert!(UserId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "a_b", "a:b", "a b", "é", "a\0", "__system", &"x".repeat(65)] {
            assert_eq!(UserId::parse(bad), Err(Reason::BadUserId), "{bad}");
        }
    }

    #[test]
    fn ids_that_look_alike_fold_to_one() {
        for (one, other) in
            [("Bob", "bob"), ("b0b", "BOB"), ("Ill", "1lI"), ("o.0-O", "0.o-0"), ("admin", "ADM1N")]
        {
            assert_eq!(user(one).folded(), user(other).folded(), "{one} {other}");
        }
        for (one, other) in [("bob", "bab"), ("a.b", "a-b"), ("a2", "az"), ("5", "s"), ("ab", "a")]
        {
            assert_ne!(user(one).folded(), user(other).folded(), "{one} {other}");
        }
        assert!(user("Bob").is_same_but_for_case(&user("bOB")));
        assert!(!user("b0b").is_same_but_for_case(&user("bob")));
    }

    proptest::proptest! {
        #[test]
        fn folding_again_changes_nothing(id in "[A-Za-z0-9.-]{1,64}") {
            let folded = user(&id).folded();
            let again = user(folded.as_str()).folded();
            proptest::prop_assert_eq!(again, folded.clone());
            // Whatever is the same but for case is the same folded.
            proptest::prop_assert_eq!(user(&id.to_ascii_uppercase()).folded(), folded);
        }
    }

    #[test]
    fn a_pair_has_one_conversation_and_knows_its_people() {
        let (a, b) = (user("alice"), user("bob"));
        let id = ConversationId::private(&b, &a);
        assert_eq!(id, ConversationId::private(&a, &b));
        assert_eq!(id.as_str(), "si_alice_bob");
        assert_eq!(id.peer_of(&a), Some(b));
        assert_eq!(id.peer_of(&user("carol")), None);
    }

    #[test]
    fn conversation_ids_from_outside_are_checked() {
        assert!(ConversationId::parse("si_alice_bob").is_ok());
        assert!(ConversationId::parse("sg_42").is_ok());
        for bad in ["", "si_", "si_bob_alice", "si_a_a", "si_a_b_c", "sg_", "xx_1", "si_a_b\0"] {
            assert!(ConversationId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn message_ids_are_a_function_of_sender_and_client_id() {
        let id = ClientMsgId::parse("c-1").unwrap();
        let one = MessageId::of(&user("alice"), &id);
        assert_eq!(one, MessageId::of(&user("alice"), &id));
        assert_ne!(one, MessageId::of(&user("bob"), &id));
        assert_eq!(one.to_string().len(), 26);
        assert_eq!(MessageId::parse(&one.to_string()), Ok(one));
        assert_eq!(MessageId::parse("nonsense"), Err(Reason::BadServerMsgId));
    }
}
