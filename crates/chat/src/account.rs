//! Accounts, sign-ins and the caller of a request.

use crate::ids::{ConnectionId, LoginId, Millis, Platform, UserId};

/// A user's account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    pub profile: Profile,
    pub created_at: Millis,
    /// When the profile last changed.
    pub updated_at: Millis,
    /// A self-describing hash, see [`crate::passwords`]. Empty: the account has no password.
    pub password_hash: String,
    /// A password change raises it. Access tokens of an older version are invalid.
    pub session_version: u64,
}

/// What others see of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    pub nickname: String,
    /// A URL or key, opaque to the server.
    pub avatar: String,
    /// The app's own data, opaque to the server.
    pub extra: String,
}

/// A change to a profile; `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileChange {
    pub nickname: Option<String>,
    pub avatar: Option<String>,
    pub extra: Option<String>,
}

impl User {
    /// Applies a profile change. `updated_at` never goes back.
    pub fn update(&mut self, change: ProfileChange, at: Millis) {
        self.profile.apply(change);
        self.updated_at = self.updated_at.max(at);
    }
}

impl Profile {
    /// Sets the fields that the change contains.
    pub fn apply(&mut self, change: ProfileChange) {
        self.nickname = change.nickname.unwrap_or(std::mem::take(&mut self.nickname));
        self.avatar = change.avatar.unwrap_or(std::mem::take(&mut self.avatar));
        self.extra = change.extra.unwrap_or(std::mem::take(&mut self.extra));
    }
}

/// One sign-in on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    pub id: LoginId,
    pub user: UserId,
    pub platform: Platform,
    pub created_at: Millis,
    /// When its refresh token expires.
    pub expires_at: Millis,
    /// BLAKE3 of the current refresh token. The token itself is not stored.
    pub refresh_hash: [u8; 32],
    /// How often the refresh token was rotated. Old hashes are remembered: a client that presents an
    /// old token holds a copy, which ends the sign-in.
    pub generation: u64,
    /// When the refresh token was last rotated.
    pub rotated_at: Millis,
    pub ended: bool,
}

/// A one-time code that sets a user's password. The code itself is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetCode {
    /// A hash of user id and code.
    pub hash: [u8; 32],
    pub expires_at: Millis,
}

impl ResetCode {
    /// Whether a code with this hash is valid now. Compares in constant time.
    pub fn matches(&self, hash: [u8; 32], now: Millis) -> bool {
        blake3::Hash::from(self.hash) == blake3::Hash::from(hash) && now < self.expires_at
    }
}

/// The authenticated user behind a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The token's user. A sender named in a frame is never used instead.
    pub user: UserId,
    pub login: LoginId,
    pub platform: Platform,
    pub signed_in_at: Millis,
    /// When the access token expires.
    pub expires_at: Millis,
    /// The socket of the request; `None` over HTTP.
    pub connection: Option<ConnectionId>,
}
