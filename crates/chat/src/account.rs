//! Accounts, sign-ins and the caller of a request.

use std::fmt;

use serde::{Deserialize, Serialize};

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
    pub details: AccountDetails,
}

/// What most accounts have none of. Stored as JSON: a field that an older record does not have gets
/// its default, so the default must mean what was true before the field existed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountDetails {
    pub status: AccountStatus,
    /// Whether a program uses the account.
    pub is_bot: bool,
    pub consent: Consent,
    pub totp: Option<Totp>,
    /// When the user last set the password; `None` if that was not recorded.
    pub password_changed_at: Option<Millis>,
}

/// Whether an account can be used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountStatus {
    #[default]
    Active,
    Disabled {
        reason: String,
        at: Millis,
        /// When it is active again by itself; `None` is never.
        until: Option<Millis>,
    },
    /// The record stays, so that nobody else gets the id.
    Deleted { at: Millis },
}

impl AccountStatus {
    /// Whether the account can be used at this time: a disabled one can from `until` on.
    pub fn is_active_at(&self, now: Millis) -> bool {
        match self {
            Self::Active => true,
            Self::Disabled { until, .. } => until.is_some_and(|until| until <= now),
            Self::Deleted { .. } => false,
        }
    }

    pub fn is_deleted(&self) -> bool {
        matches!(self, Self::Deleted { .. })
    }
}

/// What a user lets others do and see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Consent {
    /// Write private messages to them.
    pub write: Audience,
    /// Invite them to groups.
    pub invite: Audience,
    /// See whether they are online.
    pub online: Audience,
    /// See when they were last online.
    pub last_seen: Audience,
}

/// To whom a user consents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    #[default]
    Everybody,
    /// Members of a group that the user is in.
    SharedGroup,
    Contacts,
    Nobody,
}

/// Time-based one-time passwords as a second factor.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totp {
    /// The key that the authenticator app shares.
    pub secret: Vec<u8>,
    /// Whether the user has proved that the app has it. Until then it is not asked for.
    pub confirmed: bool,
    /// The time step of the last code that was accepted: a code is accepted once.
    pub last_step: u64,
    /// Hashes of the recovery codes that were not used yet.
    pub recovery: Vec<[u8; 32]>,
}

impl fmt::Debug for Totp {
    /// Leaves the secret out: what is printed may be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Totp")
            .field("confirmed", &self.confirmed)
            .field("last_step", &self.last_step)
            .field("recovery", &self.recovery.len())
            .finish_non_exhaustive()
    }
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
    /// When the refresh token was last rotated, so when the sign-in was last used.
    pub rotated_at: Millis,
    pub ended: bool,
    pub device: LoginDevice,
}

/// What is known about the device of a sign-in. Stored as JSON, like [`AccountDetails`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoginDevice {
    /// The address it signed in from.
    pub address: String,
    /// The client's name for it.
    pub name: String,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disabled_account_is_active_again_when_its_time_is_over() {
        let disabled = |until: Option<u64>| AccountStatus::Disabled {
            reason: "spam".into(),
            at: Millis(5),
            until: until.map(Millis),
        };
        for (status, now, expect) in [
            (AccountStatus::Active, 0, true),
            (disabled(None), u64::MAX, false),
            (disabled(Some(9)), 8, false),
            (disabled(Some(9)), 9, true),
            (AccountStatus::Deleted { at: Millis(5) }, u64::MAX, false),
        ] {
            assert_eq!(status.is_active_at(Millis(now)), expect, "{status:?} at {now}");
        }
    }

    #[test]
    fn details_are_read_from_records_that_lack_fields() {
        let read = |text| serde_json::from_str::<AccountDetails>(text).unwrap();
        assert_eq!(read("{}"), AccountDetails::default());
        let some = read(r#"{"consent":{"write":"contacts"},"totp":{"secret":[1,2]}}"#);
        let consent = Consent { write: Audience::Contacts, ..Consent::default() };
        let totp = Some(Totp { secret: vec![1, 2], ..Totp::default() });
        assert_eq!(some, AccountDetails { consent, totp, ..AccountDetails::default() });
    }

    #[test]
    fn a_secret_is_not_printed() {
        let totp = Totp { secret: b"wxyz".to_vec(), ..Totp::default() };
        let text = format!("{totp:?}");
        assert!(!text.contains("119") && !text.contains("secret"), "{text}");
    }
}
