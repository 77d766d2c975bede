//! The contract for hashing passwords.

use crate::{Boxed, Error};

/// Hashes and verifies passwords. Slow on purpose, so an implementation runs on threads of its own and
/// bounds how many run at once.
pub trait Passwords: Send + Sync {
    /// A salted, memory-hard hash in a self-describing text form.
    fn hash(&self, password: String) -> Boxed<'_, Result<String, Error>>;

    /// Whether the password matches the hash. Without a hash it does the same work and returns `false`, so
    /// that an unknown user takes as long as a wrong password. An empty hash is none: no password fits an account
    /// whose owner signs in elsewhere.
    fn verify(&self, password: String, hash: Option<String>) -> Boxed<'_, Result<bool, Error>>;
}
