//! Everything that is done to groups.
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::Error;
use crate::http::{Ask, fields};
use crate::tokens::SignIn;

/// What one may say about a group; what is `None` stays or is the default.
#[derive(Debug, Clone, Default, Serialize)]
pub struct GroupProfile {
    /// What it is called; a new one needs it.
    pub name: Option<String>,
    /// What it is about.
    pub introduction: Option<String>,
    /// What everybody should know.
    pub announcement: Option<String>,
    /// Its picture.
    pub avatar: Option<String>,
    /// What the app keeps about it.
    pub extra: Option<String>,
    /// `open`, `approval` or `invite`.
    pub join_type: Option<String>,
    /// What new members see: what came since they `joined`, or `all`.
    pub history: Option<String>,
}

impl GroupProfile {
    /// A group of this name.
    pub fn named(name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..Self::default() }
    }
}

/// A group; the last fields only for its members.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[derive(Default)]
pub struct Group {
    /// Its id.
    pub group_id: String,
    /// The id of its conversation.
    pub conversation_id: String,
    /// What it is called.
    pub name: String,
    /// What it is about.
    pub introduction: String,
    /// What everybody should know.
    pub announcement: String,
    /// Its picture.
    pub avatar: String,
    /// What the app keeps about it.
    pub extra: String,
    /// `open`, `approval` or `invite`.
    pub join_type: String,
    /// `joined` or `all`.
    pub history: String,
    /// Who made it.
    pub creator_user_id: String,
    /// Whose it is.
    pub owner_user_id: String,
    /// How many are in it.
    pub member_count: u64,
    /// Whether only owner and admins may speak.
    pub is_muted: bool,
    /// 0 normal, 1 ended.
    pub status: u8,
    /// When it was made.
    pub created_at: u64,
    /// When it was changed.
    pub updated_at: u64,
    /// What to join with.
    pub group_code: Option<String>,
    /// How many wait; only for those who decide.
    pub join_request_count: Option<u64>,
    /// The first message you see.
    pub join_seq: Option<u64>,
    /// 0 member, 1 admin, 2 owner.
    pub my_role: Option<u8>,
    /// Until when you may not speak.
    pub muted_until: Option<i64>,
}

/// Somebody in a group.
#[derive(Debug, Clone, Deserialize)]
pub struct Member {
    /// Which group.
    pub group_id: String,
    /// Who.
    pub user_id: String,
    /// What to call them.
    pub nickname: String,
    /// Their picture.
    pub avatar: String,
    /// 0 member, 1 admin, 2 owner.
    pub role_level: u8,
    /// Since when.
    pub joined_at: u64,
    /// Until when they may not speak.
    #[serde(default)]
    pub muted_until: i64,
    /// Who brought them.
    pub inviter_user_id: Option<String>,
}

/// Somebody who wants into a group.
#[derive(Debug, Clone, Deserialize)]
pub struct JoinRequest {
    /// What to give to `decide`.
    pub request_id: String,
    /// Which group.
    pub group_id: String,
    /// Who.
    pub user_id: String,
    /// What they say about it.
    pub message: String,
    /// Since when they wait.
    pub created_at: u64,
}

/// What became of joining.
#[derive(Debug, Clone, Deserialize)]
pub struct Joined {
    /// Which group.
    pub group_id: String,
    /// `joined`, or `pending` until somebody decides.
    pub status: String,
    /// The request, if somebody has to decide.
    pub request_id: Option<String>,
}

/// A page of a list; give `next_cursor` to get the next one.
#[derive(Debug, Clone, Deserialize)]
pub struct Page<Item> {
    /// What is on it.
    pub list: Vec<Item>,
    /// Whether there is another one.
    #[serde(default)]
    pub has_more: bool,
    /// What that begins with.
    pub next_cursor: Option<String>,
    /// How many there are in all.
    pub total: Option<u64>,
}

/// Everything that is done to groups. Members hear of it as `Event::Change`.
pub struct Groups(pub(crate) SignIn);

impl Groups {
    /// Makes one with these people in it.
    pub async fn create(&self, profile: &GroupProfile, members: &[&str]) -> Result<Group, Error> {
        let mut body = fields(profile);
        body["member_ids"] = json!(members);
        self.post("/group/create", body).await
    }

    /// A group.
    pub async fn info(&self, group_id: &str) -> Result<Group, Error> {
        self.0.ask(Ask::get("/group/info", &[("group_id", group_id)])).await
    }

    /// The group that a code leads to.
    pub async fn by_code(&self, code: &str) -> Result<Group, Error> {
        self.0.ask(Ask::get("/group/info", &[("group_code", code)])).await
    }

    /// Changes what it says about itself.
    pub async fn update(&self, group_id: &str, profile: &GroupProfile) -> Result<Group, Error> {
        let mut body = fields(profile);
        body["group_id"] = json!(group_id);
        self.0.ask(Ask::put("/group/update", body)).await
    }

    /// The groups you are in.
    pub async fn joined(&self, cursor: Option<&str>) -> Result<Page<Group>, Error> {
        self.page("/group/joined", &[], cursor).await
    }

    /// Who is in it.
    pub async fn members(
        &self,
        group_id: &str,
        cursor: Option<&str>,
    ) -> Result<Page<Member>, Error> {
        self.page("/group/members", &[("group_id", group_id)], cursor).await
    }

    /// One of them.
    pub async fn member(&self, group_id: &str, user_id: &str) -> Result<Member, Error> {
        let query = [("group_id", group_id), ("user_id", user_id)];
        self.0.ask(Ask::get("/group/member", &query)).await
    }

    /// Joins by its id.
    pub async fn join(&self, group_id: &str, message: &str) -> Result<Joined, Error> {
        self.post("/group/join", json!({ "group_id": group_id, "message": message })).await
    }

    /// Joins by its code.
    pub async fn join_by_code(&self, code: &str, message: &str) -> Result<Joined, Error> {
        self.post("/group/join", json!({ "group_code": code, "message": message })).await
    }

    /// Who waits to be let in.
    pub async fn requests(
        &self,
        group_id: &str,
        cursor: Option<&str>,
    ) -> Result<Page<JoinRequest>, Error> {
        self.page("/group/join_requests", &[("group_id", group_id)], cursor).await
    }

    /// Lets somebody in, or not.
    pub async fn decide(&self, request_id: &str, accept: bool) -> Result<(), Error> {
        let body = json!({ "request_id": request_id, "accept": accept });
        self.done("/group/join_decide", body).await
    }

    /// Brings people in; those who were not in yet.
    pub async fn invite(&self, group_id: &str, user_ids: &[&str]) -> Result<Vec<String>, Error> {
        #[derive(Deserialize)]
        struct Invited {
            joined: Vec<String>,
        }
        let body = json!({ "group_id": group_id, "user_ids": user_ids });
        Ok(self.post::<Invited>("/group/invite", body).await?.joined)
    }

    /// Goes out; not the owner.
    pub async fn leave(&self, group_id: &str) -> Result<(), Error> {
        self.done("/group/leave", json!({ "group_id": group_id })).await
    }

    /// Puts somebody out.
    pub async fn kick(&self, group_id: &str, user_id: &str) -> Result<(), Error> {
        self.done("/group/kick", json!({ "group_id": group_id, "user_id": user_id })).await
    }

    /// Makes somebody an admin, or a member again.
    pub async fn set_admin(
        &self,
        group_id: &str,
        user_id: &str,
        is_admin: bool,
    ) -> Result<(), Error> {
        let role = u8::from(is_admin);
        let body = json!({ "group_id": group_id, "user_id": user_id, "role": role });
        self.done("/group/set_role", body).await
    }

    /// Gives it to somebody else.
    pub async fn transfer(&self, group_id: &str, user_id: &str) -> Result<(), Error> {
        self.done("/group/transfer", json!({ "group_id": group_id, "user_id": user_id })).await
    }

    /// Somebody may not speak for so many seconds: -1 for ever, 0 ends it.
    pub async fn mute(&self, group_id: &str, user_id: &str, seconds: i64) -> Result<(), Error> {
        let body = json!({ "group_id": group_id, "user_id": user_id, "seconds": seconds });
        self.done("/group/mute", body).await
    }

    /// Only owner and admins may speak, or everybody again.
    pub async fn mute_all(&self, group_id: &str, on: bool) -> Result<(), Error> {
        self.done("/group/mute_all", json!({ "group_id": group_id, "on": on })).await
    }

    /// The new code.
    pub async fn reset_code(&self, group_id: &str) -> Result<String, Error> {
        #[derive(Deserialize)]
        struct Code {
            group_code: String,
        }
        let body = json!({ "group_id": group_id });
        Ok(self.post::<Code>("/group/reset_code", body).await?.group_code)
    }

    /// Ends it; what was said stays.
    pub async fn dissolve(&self, group_id: &str) -> Result<(), Error> {
        self.done("/group/dissolve", json!({ "group_id": group_id })).await
    }

    /// Ends it and forgets its profile.
    pub async fn dismiss(&self, group_id: &str) -> Result<(), Error> {
        self.done("/group/dismiss", json!({ "group_id": group_id })).await
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: Value) -> Result<T, Error> {
        self.0.ask(Ask::post(path, body)).await
    }

    async fn done(&self, path: &str, body: Value) -> Result<(), Error> {
        self.post::<Value>(path, body).await.map(drop)
    }

    async fn page<Item: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        cursor: Option<&str>,
    ) -> Result<Page<Item>, Error> {
        let mut query = query.to_vec();
        query.extend(cursor.map(|cursor| ("cursor", cursor)));
        self.0.ask(Ask::get(path, &query)).await
    }
}
