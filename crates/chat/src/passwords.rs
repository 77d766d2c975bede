//! The contract for keeping passwords.

use crate::{Boxed, Error};

/// Turns passwords into something safe to keep. Slow on purpose, so an implementation runs off the
/// async threads and bounds how many run at once.
pub trait Passwords: Send + Sync {
    /// A salted, memory-hard hash in a self-describing text form.
    fn hash(&self, password: String) -> Boxed<'_, Result<String, Error>>;

    /// Whether the password fits the hash. Without a hash it does the same work and says no, so
    /// that an unknown user takes as long as a wrong password.
    fn verify(&self, password: String, hash: Option<String>) -> Boxed<'_, Result<bool, Error>>;
}
