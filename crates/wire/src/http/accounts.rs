//! Accounts, sign-ins and presence.

use nexo_chat::auth::Tokens;
use nexo_chat::model::User;
use nexo_chat::presence::Presence;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "user_id": "alice", "nickname": "Alice", "password": "correct horse" }))]
pub struct RegisterBody {
    /// The wanted id; without one the server makes it.
    #[schema(pattern = "^[A-Za-z0-9.-]{1,64}$")]
    pub user_id: Option<String>,
    #[serde(default)]
    #[schema(required, min_length = 1, max_length = 128)]
    pub nickname: String,
    #[schema(min_length = 8, max_length = 128)]
    pub password: String,
    #[serde(default)]
    pub avatar: String,
    #[serde(default)]
    pub extra: String,
    /// The code of an invite link, where accounts are made by invitation.
    pub invite: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "user_id": "alice", "password": "correct horse", "platform_id": 5 }))]
pub struct LoginBody {
    pub user_id: String,
    pub password: String,
    /// 1 iOS, 2 Android, 3 Windows, 4 macOS, 5 Web; anything else is a device without a name.
    #[serde(default)]
    pub platform_id: i32,
    /// Shown in the list of your devices; cut after 64 characters.
    #[serde(default)]
    pub device_name: String,
    /// The code of your authenticator app, or a recovery code, if you turned that on.
    pub totp_code: Option<String>,
}

/// The start of a second factor.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginTotpBody {
    pub password: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfirmTotpBody {
    /// What the app shows.
    pub code: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveTotpBody {
    pub password: String,
    /// Of the app, or a recovery code.
    pub code: String,
}

/// What your authenticator app needs.
#[derive(Serialize, ToSchema)]
pub struct TotpSecret {
    /// To type into the app.
    pub secret: String,
    /// To show as a QR code.
    pub uri: String,
}

/// Each works once instead of a code of the app. They are shown this once.
#[derive(Serialize, ToSchema)]
pub struct RecoveryCodes {
    pub recovery_codes: Vec<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "token": "eyJhbGciOiJFUzI1NiJ9.e30.c2ln", "platform_id": 1 }))]
pub struct TokenBody {
    /// A JWT of the identity provider that the operator has set.
    #[schema(max_length = 8192)]
    pub token: String,
    /// As for signing in with a password.
    #[serde(default)]
    pub platform_id: i32,
    /// What the device is called, for the list of devices.
    #[serde(default)]
    #[schema(max_length = 128)]
    pub device_name: String,
}

#[derive(Deserialize)]
pub struct OidcStartParams {
    pub return_to: Option<String>,
}

/// What a provider adds to the address that it sends browsers back to. It may add more, which is not needed.
#[derive(Deserialize)]
pub struct OidcCallbackParams {
    pub code: Option<String>,
    pub state: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OidcFinishBody {
    /// What stood behind `#oidc=`. Works once, for a minute.
    pub code: String,
    /// As for signing in with a password.
    #[serde(default)]
    pub platform_id: i32,
    /// What the device is called, for the list of devices.
    #[serde(default)]
    #[schema(max_length = 128)]
    pub device_name: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RefreshBody {
    /// What signing in or the last refresh gave; `refreshToken` is understood too.
    #[serde(alias = "refreshToken")]
    pub refresh_token: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePasswordBody {
    pub old_password: String,
    #[schema(min_length = 8, max_length = 128)]
    pub new_password: String,
}

#[derive(Deserialize, ToSchema)]
#[schema(example = json!({
    "user_id": "alice", "code": "A4DQ-OBYH-A4DQ-OBYH", "new_password": "correct horse",
}))]
#[serde(deny_unknown_fields)]
pub struct ResetPasswordBody {
    pub user_id: String,
    /// Works once. Case, dashes and spaces do not matter.
    pub code: String,
    #[schema(min_length = 8, max_length = 128)]
    pub new_password: String,
}

#[derive(Deserialize, IntoParams)]
pub struct UserInfoParams {
    /// Whom to show.
    pub user_id: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileBody {
    #[schema(min_length = 1, max_length = 128)]
    pub nickname: Option<String>,
    pub avatar: Option<String>,
    pub extra: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OnlineStatusBody {
    #[schema(min_items = 1, max_items = 100)]
    pub user_ids: Vec<String>,
}

/// A person; `user_id` repeats `id` for those who look for that name.
#[derive(Debug, Serialize, ToSchema)]
pub struct UserInfo {
    id: String,
    user_id: String,
    nickname: String,
    avatar: String,
    extra: String,
    created_at: u64,
    /// When the profile last changed.
    updated_at: u64,
}

impl From<&User> for UserInfo {
    fn from(user: &User) -> Self {
        Self {
            id: user.id.to_string(),
            user_id: user.id.to_string(),
            nickname: user.profile.nickname.clone(),
            avatar: user.profile.avatar.clone(),
            extra: user.profile.extra.clone(),
            created_at: user.created_at.0,
            updated_at: user.updated_at.0,
        }
    }
}

/// The answer to signing in and to refreshing.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignedIn {
    token: String,
    refresh_token: String,
    /// Seconds until the token dies.
    expires_in: u64,
    user_info: UserInfo,
}

impl SignedIn {
    pub fn new(tokens: Tokens, user: &User) -> Self {
        Self {
            token: tokens.access,
            refresh_token: tokens.refresh,
            expires_in: tokens.expires_in_ms / 1000,
            user_info: user.into(),
        }
    }
}

/// Whether somebody is online, and on what devices.
#[derive(Debug, Serialize, ToSchema)]
pub struct OnlineStatus {
    user_id: String,
    /// 1 online, 0 not, or not the caller's to know.
    status: i32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    detail_platform_status: Vec<PlatformStatus>,
    /// When they were last here, if they are not and it is the caller's to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seen_at: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
struct PlatformStatus {
    platform_id: i32,
    platform_name: &'static str,
}

impl From<&Presence> for OnlineStatus {
    fn from(presence: &Presence) -> Self {
        let mut platforms: Vec<i32> =
            presence.registrations.iter().map(|place| place.platform.0).collect();
        platforms.sort_unstable();
        platforms.dedup();
        let shown = |platform_id| PlatformStatus {
            platform_id,
            platform_name: match platform_id {
                1 => "iOS",
                2 => "Android",
                3 => "Windows",
                4 => "macOS",
                5 => "Web",
                _ => "unknown",
            },
        };
        Self {
            user_id: presence.user.to_string(),
            status: i32::from(!presence.registrations.is_empty()),
            detail_platform_status: platforms.into_iter().map(shown).collect(),
            last_seen_at: presence.last_seen.map(|at| at.0),
        }
    }
}
