//! Ids, sequence numbers and times, each its own type, so that a seq is never taken for a time.

mod conversation_id;
mod message_id;
mod user_id;

use std::fmt;

use data_encoding::BASE32_NOPAD;
use serde::{Deserialize, Serialize};

pub use conversation_id::{ConversationId, ConversationKind, GroupId};
pub use message_id::{ClientMsgId, MessageId};
pub use user_id::{FoldedId, UserId};

/// Milliseconds since 1970 by the server's clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Millis(pub u64);

impl Millis {
    /// Saturates instead of wrapping.
    #[must_use]
    pub fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this moment, zero if the clock went back.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The position of a message in its conversation: 1, 2, 3 … without gaps. Zero is "before the first".
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Seq(pub u64);

impl Seq {
    pub const ZERO: Self = Self(0);

    /// The following seq. Saturates: a conversation never reaches 2⁶⁴ messages.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The preceding seq; zero stays zero.
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

/// One open socket. Unique over all nodes: each node picks a random upper half when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConnectionId(pub u64);

/// The kind of device, by number: 1 iOS, 2 Android, 3 Windows, 4 macOS, 5 Web.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Platform(pub i32);

/// Serializes a 16-byte id as base32 in human-readable formats such as JSON, and as raw bytes in binary ones.
macro_rules! serialize_as_base32 {
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

serialize_as_base32!(MessageId, LoginId);

fn base32_16(text: &str) -> Option<[u8; 16]> {
    BASE32_NOPAD.decode(text.as_bytes()).ok()?.try_into().ok()
}

pub(crate) fn first_16_bytes(hash: &blake3::Hash) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&hash.as_bytes()[..16]);
    half
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::Reason;

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
        assert!(user("Bob").eq_ignore_case(&user("bOB")));
        assert!(!user("b0b").eq_ignore_case(&user("bob")));
    }

    proptest::proptest! {
        #[test]
        fn folding_again_changes_nothing(id in "[A-Za-z0-9.-]{1,64}") {
            let folded = user(&id).folded();
            let again = user(folded.as_str()).folded();
            proptest::prop_assert_eq!(again, folded.clone());
            // Ids that differ only in case fold to the same id.
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
