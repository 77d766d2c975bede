//! Accounts and their sign-ins, as operators and backends see them.

use nexo_chat::admin::sessions::Device;
use nexo_chat::admin::users::{MessagesOfDeleted, StatusFilter, UserFilter, UserUpsert};
use nexo_chat::ids::{LoginId, Millis};
use nexo_chat::model::{AccountStatus, ProfileChange, User};
use nexo_chat::{DetailedReason, Reason};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

#[derive(Deserialize, IntoParams)]
pub struct UsersParams {
    /// Only those with this text in their id or nickname, in any case.
    pub search: Option<String>,
    /// `active`, `disabled` or `deleted`.
    pub status: Option<String>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// How many at most: up to 1,000, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 100)]
    pub limit: Option<usize>,
}

impl UsersParams {
    pub fn filter(&self) -> Result<UserFilter, DetailedReason> {
        let status = match self.status.as_deref() {
            None | Some("") => None,
            Some("active") => Some(StatusFilter::Active),
            Some("disabled") => Some(StatusFilter::Disabled),
            Some("deleted") => Some(StatusFilter::Deleted),
            Some(_) => return Err(DetailedReason::field("status")),
        };
        Ok(UserFilter { text: self.search.clone().unwrap_or_default(), status })
    }
}

/// An account as the operator sees it.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct AdminUser {
    pub user_id: String,
    pub nickname: String,
    pub avatar: String,
    pub extra: String,
    pub created_at: u64,
    pub updated_at: u64,
    /// `active`, `disabled` or `deleted`.
    pub status: String,
    /// Why it is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<String>,
    /// When it is enabled by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_until: Option<u64>,
    pub is_bot: bool,
    /// Whether it can sign in by password.
    pub has_password: bool,
}

impl AdminUser {
    pub fn new(user: &User, now: Millis) -> Self {
        let (mut reason, mut until) = (None, None);
        let status = match &user.details.status {
            AccountStatus::Deleted { .. } => "deleted",
            status if status.is_active_at(now) => "active",
            AccountStatus::Disabled { reason: why, until: end, .. } => {
                (reason, until) = (Some(why.clone()), end.map(|end| end.0));
                "disabled"
            }
            AccountStatus::Active => "active",
        };
        Self {
            user_id: user.id.to_string(),
            nickname: user.profile.nickname.clone(),
            avatar: user.profile.avatar.clone(),
            extra: user.profile.extra.clone(),
            created_at: user.created_at.0,
            updated_at: user.updated_at.0,
            status: status.to_owned(),
            disabled_reason: reason,
            disabled_until: until,
            is_bot: user.details.is_bot,
            has_password: !user.password_hash.is_empty(),
        }
    }
}

#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct AdminUserPage {
    pub users: Vec<AdminUser>,
    pub has_more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What an account should be; what is left out stays as it is.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "nickname": "Alice" }))]
pub struct UserBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nickname: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avatar: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra: Option<String>,
    /// A new password ends every sign-in. An account without one signs in by key or token alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_bot: Option<bool>,
}

impl From<UserBody> for UserUpsert {
    fn from(body: UserBody) -> Self {
        let UserBody { nickname, avatar, extra, password, is_bot } = body;
        Self { profile: ProfileChange { nickname, avatar, extra }, password, is_bot }
    }
}

#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct UpsertedUser {
    pub user: AdminUser,
    /// Whether the account is new.
    pub created: bool,
}

/// A line of an import.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ImportLine {
    pub user_id: String,
    #[serde(flatten)]
    pub user: ImportedUser,
}

/// The fields of [`UserBody`]; a line may have others, which are left out.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ImportedUser {
    pub nickname: Option<String>,
    pub avatar: Option<String>,
    pub extra: Option<String>,
    pub password: Option<String>,
    pub is_bot: Option<bool>,
}

impl From<ImportedUser> for UserUpsert {
    fn from(user: ImportedUser) -> Self {
        let ImportedUser { nickname, avatar, extra, password, is_bot } = user;
        UserBody { nickname, avatar, extra, password, is_bot }.into()
    }
}

/// What an import did. Lines that failed changed nothing; the others are stored.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct ImportResult {
    pub created: u64,
    pub changed: u64,
    pub failed: u64,
    /// The first hundred failures.
    pub failures: Vec<ImportFailure>,
}

#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct ImportFailure {
    /// From 1.
    pub line: u64,
    pub user_id: String,
    pub reason: String,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({ "platform_id": 5, "create": true, "nickname": "Alice" }))]
pub struct BackendLoginBody {
    /// 1 iOS, 2 Android, 3 Windows, 4 macOS, 5 Web; anything else is a device without a name.
    pub platform_id: i32,
    /// Shown to the user in the list of their devices.
    pub device_name: String,
    /// Make the account if there is none.
    pub create: bool,
    /// The nickname of an account that is made.
    pub nickname: Option<String>,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({ "reason": "spam", "seconds": 86400 }))]
pub struct DisableBody {
    /// For the operator; the user is not shown it. Up to 500 characters.
    pub reason: String,
    /// Seconds until it is enabled by itself; without, until somebody enables it.
    #[schema(minimum = 1)]
    pub seconds: Option<u64>,
}

#[derive(Deserialize, IntoParams)]
pub struct DeleteUserParams {
    /// What happens to their messages: `keep` (the default) or `remove`, which unsends them all.
    pub messages: Option<String>,
}

impl DeleteUserParams {
    pub fn messages(&self) -> Result<MessagesOfDeleted, DetailedReason> {
        match self.messages.as_deref() {
            None | Some("" | "keep") => Ok(MessagesOfDeleted::Keep),
            Some("remove") => Ok(MessagesOfDeleted::Remove),
            Some(_) => Err(DetailedReason::field("messages")),
        }
    }
}

/// A one-time code that sets a password. It is shown this once.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct IssuedResetCode {
    pub user_id: String,
    pub code: String,
    pub expires_at: u64,
}

/// A sign-in on a device.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct DeviceInfo {
    pub login_id: String,
    pub platform_id: i32,
    /// What the client called the device; often empty.
    pub device_name: String,
    /// Where it signed in from.
    pub address: String,
    pub created_at: u64,
    /// When it last renewed its token.
    pub last_used_at: u64,
    /// Whether the request comes from it.
    pub is_current: bool,
    /// Whether it is connected now.
    pub is_online: bool,
}

impl DeviceInfo {
    pub fn new(device: &Device, current: Option<LoginId>) -> Self {
        let Device { login, is_online } = device;
        Self {
            login_id: login.id.to_string(),
            platform_id: login.platform.0,
            device_name: login.device.name.clone(),
            address: login.device.address.clone(),
            created_at: login.created_at.0,
            last_used_at: login.rotated_at.0,
            is_current: current == Some(login.id),
            is_online: *is_online,
        }
    }
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EndSessionsBody {
    /// One of them; without, all.
    pub login_id: Option<String>,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({ "others": true }))]
pub struct EndDevicesBody {
    /// One of your sign-ins.
    pub login_id: Option<String>,
    /// All but this one.
    pub others: bool,
}

pub fn login_id(given: &str) -> Result<LoginId, Reason> {
    LoginId::parse(given).ok_or(Reason::NotFound)
}

#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct EndedSessions {
    pub ended: u64,
}
