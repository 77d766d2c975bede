//! Ids of messages: the sender's and the server's.

use std::fmt;
use std::sync::{Arc, LazyLock};

use blake3::hazmat::{ContextKey, HasherExt, hash_derive_key_context};
use data_encoding::BASE32_NOPAD;
use serde::{Deserialize, Serialize};

use super::{UserId, base32_16, first_16_bytes};
use crate::reason::Reason;

/// The id that the sending client gave to a message. A retry repeats it, which is how duplicates are found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClientMsgId(Arc<str>);

impl ClientMsgId {
    /// The longest a client message id may be, in bytes.
    pub const LEN_MAX: usize = 128;

    /// Validates an id from a client.
    pub fn parse(text: &str) -> Result<Self, Reason> {
        if text.is_empty() {
            return Err(Reason::MissingMsgId);
        }
        if text.len() > Self::LEN_MAX || text.chars().any(char::is_control) {
            return Err(Reason::BadMsgId);
        }
        Ok(Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The server's id of a message: a hash of (sender, client id), so that every node and every retry
/// computes the same one without a lookup.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub [u8; 16]);

impl MessageId {
    pub fn of(sender: &UserId, client_id: &ClientMsgId) -> Self {
        /// Hashed once instead of for every message.
        static CONTEXT: LazyLock<ContextKey> =
            LazyLock::new(|| hash_derive_key_context("nexo message id v1"));
        let mut hasher = blake3::Hasher::new_from_context_key(&CONTEXT);
        hasher.update(sender.as_str().as_bytes());
        hasher.update(&[0]); // cannot occur in a user id, so no two pairs hash alike
        hasher.update(client_id.as_str().as_bytes());
        Self(first_16_bytes(&hasher.finalize()))
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
