//! User profiles and presence.
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::Error;
use crate::http::{ApiRequest, fields};
use crate::tokens::SignIn;

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct User {
    pub user_id: String,
    pub nickname: String,
    pub avatar: String,
    /// A field of the app.
    pub extra: String,
    /// Milliseconds since 1970.
    pub created_at: u64,
    /// When the profile last changed; milliseconds since 1970.
    pub updated_at: u64,
}

/// A user to register.
#[derive(Debug, Clone, Default, Serialize)]
pub struct NewUser {
    /// Optional: the server generates one.
    pub user_id: Option<String>,
    pub nickname: String,
    /// At least eight characters.
    pub password: String,
    pub avatar: Option<String>,
    /// A field of the app.
    pub extra: Option<String>,
    /// The code of an invite link, where the server asks for one.
    pub invite: Option<String>,
}

impl NewUser {
    /// A user whose nickname is the id.
    pub fn new(user_id: &str, password: &str) -> Self {
        let (nickname, password) = (user_id.to_owned(), password.to_owned());
        Self { user_id: Some(user_id.to_owned()), nickname, password, ..Self::default() }
    }
}

/// The fields of your own profile; `None` leaves one as it is.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Profile {
    pub nickname: Option<String>,
    pub avatar: Option<String>,
    /// A field of the app.
    pub extra: Option<String>,
}

/// The presence of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presence {
    pub user_id: String,
    pub is_online: bool,
    pub platforms: Vec<String>,
    /// Milliseconds since 1970.
    pub last_seen_at: Option<u64>,
}

#[derive(Deserialize)]
struct OnlineStatus {
    user_id: String,
    status: u8,
    #[serde(default)]
    detail_platform_status: Vec<PlatformStatus>,
    last_seen_at: Option<u64>,
}

#[derive(Deserialize)]
struct PlatformStatus {
    platform_name: String,
}

/// User profiles and presence.
pub struct People(pub(crate) SignIn);

impl People {
    /// Your own profile.
    pub async fn me(&self) -> Result<User, Error> {
        self.0.fetch(ApiRequest::get("/user/info", &[])).await
    }

    /// A user.
    pub async fn get(&self, user_id: &str) -> Result<User, Error> {
        self.0.fetch(ApiRequest::get("/user/info", &[("user_id", user_id)])).await
    }

    /// Changes your own profile.
    pub async fn update(&self, profile: &Profile) -> Result<User, Error> {
        self.0.fetch(ApiRequest::put("/user/update", fields(profile))).await
    }

    /// The presence of up to 100 users, as far as you may see it.
    pub async fn presence(&self, user_ids: &[&str]) -> Result<Vec<Presence>, Error> {
        let body = json!({ "user_ids": user_ids });
        let found: Vec<OnlineStatus> =
            self.0.fetch(ApiRequest::post("/user/get_users_online_status", body)).await?;
        let presence = |one: OnlineStatus| Presence {
            user_id: one.user_id,
            is_online: one.status == 1,
            platforms: one.detail_platform_status.into_iter().map(|on| on.platform_name).collect(),
            last_seen_at: one.last_seen_at,
        };
        Ok(found.into_iter().map(presence).collect())
    }
}
