//! User ids.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::reason::Reason;

/// A user: 1–64 of `A-Z a-z 0-9 . -`. Neither `_` nor `:` is allowed, so that pair ids cannot collide.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UserId(pub(super) Arc<str>);

impl UserId {
    /// The longest a user id may be, in bytes.
    pub const LEN_MAX: usize = 64;

    /// Validates an id from a client.
    pub fn parse(text: &str) -> Result<Self, Reason> {
        let is_valid = (1..=Self::LEN_MAX).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-');
        if is_valid { Ok(Self(text.into())) } else { Err(Reason::BadUserId) }
    }

    /// The sender of the operator's messages. It has no account, and the id cannot be registered.
    pub fn system() -> Self {
        Self(SYSTEM.into())
    }

    pub fn is_system(&self) -> bool {
        &*self.0 == SYSTEM
    }

    /// The form in which ids that look alike are equal: lower case, one letter for `i l 1` and one for
    /// `o 0`. An id whose folded form is taken cannot be registered.
    pub fn folded(&self) -> FoldedId {
        let fold = |byte: u8| match byte.to_ascii_lowercase() {
            b'i' | b'1' => 'l',
            b'0' => 'o',
            other => char::from(other),
        };
        FoldedId(self.0.bytes().map(fold).collect::<String>().into())
    }

    /// Whether the ids are equal apart from case. Unlike [`Self::folded`], `b0b` does not equal `bob`.
    pub fn eq_ignore_case(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The result of [`UserId::folded`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FoldedId(Arc<str>);

impl FoldedId {
    /// Text in the alphabet of user ids.
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
