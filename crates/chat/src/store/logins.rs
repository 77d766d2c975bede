//! Logins and their refresh tokens.

use super::StoreFuture;
use crate::ids::{LoginId, Millis, UserId};
use crate::model::Login;

/// A login that was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedLogin {
    pub login: Login,
    /// Older logins that ended because the user had too many.
    pub ended: Vec<LoginId>,
}

/// The outcome of rotating a refresh token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// The new token is valid from now on, the old one no longer.
    Done(Login),
    /// The same call was made just now: the new token is valid, and nothing was changed.
    Again(Login),
    /// Unknown, expired, ended, or rotated away just now by a call with another new token.
    Unknown,
    /// The token had been rotated away before: it was copied. The login is ended now.
    Reused(Login),
}

/// Creates, rotates and ends logins.
pub trait LoginStore: Send + Sync {
    /// Stores a new login, unless the user's session version is no longer the given one (then
    /// `None`): a password that was changed meanwhile does not log in. The login's creation time is
    /// later than that of every login the user had, whatever the clock says. Deletes the user's
    /// logins that ended or expired (`expires_at <= now`), and ends the oldest live ones beyond 64.
    fn create_login(
        &self,
        login: Login,
        session_version: u64,
        now: Millis,
    ) -> StoreFuture<'_, Option<CreatedLogin>>;

    /// Returns a login, ended or not, as long as it is stored.
    fn login(&self, id: LoginId) -> StoreFuture<'_, Option<Login>>;

    /// Replaces a refresh token by the next one, once: of two calls with one token, one wins. The
    /// other changes nothing within `grace_ms`, and succeeds if it is the same call; later it ends
    /// the login.
    fn rotate_refresh_token(
        &self,
        old_hash: [u8; 32],
        new_hash: [u8; 32],
        expires_at: Millis,
        now: Millis,
        grace_ms: u64,
    ) -> StoreFuture<'_, Rotation>;

    /// Ends those of a user's live logins that `which` picks, and returns their ids in order. For
    /// good: an ended login never becomes live again.
    fn end_logins(
        &self,
        user: &UserId,
        which: Box<dyn Fn(&Login) -> bool + Send + Sync>,
    ) -> StoreFuture<'_, Vec<LoginId>>;
}
