//! Who people are, and whether they are there.
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::Error;
use crate::http::{Ask, fields};
use crate::tokens::SignIn;

/// Somebody.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct User {
    /// Their id.
    pub user_id: String,
    /// What to call them.
    pub nickname: String,
    /// Their picture.
    pub avatar: String,
    /// What the app keeps about them.
    pub extra: String,
    /// Since when they are here.
    pub created_at: u64,
}

/// Somebody who comes.
#[derive(Debug, Clone, Default, Serialize)]
pub struct NewUser {
    /// Without one the server makes it.
    pub user_id: Option<String>,
    /// What to call them.
    pub nickname: String,
    /// At least eight characters.
    pub password: String,
    /// Their picture.
    pub avatar: Option<String>,
    /// What the app keeps about them.
    pub extra: Option<String>,
}

impl NewUser {
    /// Somebody who is called like their id.
    pub fn new(user_id: &str, password: &str) -> Self {
        let (nickname, password) = (user_id.to_owned(), password.to_owned());
        Self { user_id: Some(user_id.to_owned()), nickname, password, ..Self::default() }
    }
}

/// What you may change about yourself; what is `None` stays.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Profile {
    /// What to call you.
    pub nickname: Option<String>,
    /// Your picture.
    pub avatar: Option<String>,
    /// What the app keeps about you.
    pub extra: Option<String>,
}

/// Whether somebody is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presence {
    /// Who.
    pub user_id: String,
    /// Whether they are there, as far as you may know.
    pub online: bool,
    /// On what kinds of devices.
    pub platforms: Vec<String>,
    /// When they were there, in milliseconds since 1970.
    pub last_seen_at: Option<u64>,
}

#[derive(Deserialize)]
struct Seen {
    user_id: String,
    status: u8,
    #[serde(default)]
    detail_platform_status: Vec<Device>,
    last_seen_at: Option<u64>,
}

#[derive(Deserialize)]
struct Device {
    platform_name: String,
}

/// Who people are, and whether they are there.
pub struct People(pub(crate) SignIn);

impl People {
    /// You.
    pub async fn me(&self) -> Result<User, Error> {
        self.0.ask(Ask::get("/user/info", &[])).await
    }

    /// Somebody.
    pub async fn get(&self, user_id: &str) -> Result<User, Error> {
        self.0.ask(Ask::get("/user/info", &[("user_id", user_id)])).await
    }

    /// Changes your own profile.
    pub async fn update(&self, profile: &Profile) -> Result<User, Error> {
        self.0.ask(Ask::put("/user/update", fields(profile))).await
    }

    /// Who is online, of up to 100 people whom you may know about.
    pub async fn presence(&self, user_ids: &[&str]) -> Result<Vec<Presence>, Error> {
        let body = json!({ "user_ids": user_ids });
        let found: Vec<Seen> = self.0.ask(Ask::post("/user/get_users_online_status", body)).await?;
        let presence = |one: Seen| Presence {
            user_id: one.user_id,
            online: one.status == 1,
            platforms: one.detail_platform_status.into_iter().map(|on| on.platform_name).collect(),
            last_seen_at: one.last_seen_at,
        };
        Ok(found.into_iter().map(presence).collect())
    }
}
