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

/// A request to replace a refresh token by the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RotateRequest {
    pub old_hash: [u8; 32],
    pub new_hash: [u8; 32],
    /// When the next token expires.
    pub expires_at: Millis,
    /// The time, by which the login may have expired.
    pub now: Millis,
    /// A time that does not go back on its node, from which the grace period is counted.
    pub at: Millis,
    pub grace_ms: u64,
}

/// The outcome of rotating a refresh token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// The new token is valid from now on, the old one no longer.
    Done(Login),
    /// The same call was made just now: the new token is valid, and nothing was changed.
    Again(Login),
    /// Unknown, expired, ended, rotated away just now by a call with another new token, or rotated away
    /// at a time that is still to come.
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

    /// Returns all stored logins of a user that have not ended, newest first. Some may have expired.
    fn logins(&self, user: &UserId) -> StoreFuture<'_, Vec<Login>>;

    /// Replaces a refresh token by the next one, once: of two calls with one token, one wins. The
    /// other changes nothing within `grace_ms`, and succeeds if it is the same call; later it ends
    /// the login. A clock that went back to before the first call gives no new grace period, beyond
    /// the two seconds by which the clocks of nodes may differ: the other call is refused and changes
    /// nothing.
    fn rotate_refresh_token(&self, request: RotateRequest) -> StoreFuture<'_, Rotation>;

    /// Ends those of a user's live logins that `which` picks, and returns their ids in order. For
    /// good: an ended login never becomes live again.
    fn end_logins(
        &self,
        user: &UserId,
        which: Box<dyn Fn(&Login) -> bool + Send + Sync>,
    ) -> StoreFuture<'_, Vec<LoginId>>;
}
