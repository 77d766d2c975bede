//! Operations on groups.
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::Error;
use crate::group::{
    Group, GroupProfile, JoinRequest, Joined, Member, MemberProfile, MemberReadState, Page, Role,
};
use crate::http::{ApiRequest, fields};
use crate::tokens::SignIn;

/// Operations on groups. Members are notified by `Event::Change`.
pub struct Groups(pub(crate) SignIn);

impl Groups {
    /// Creates a group with these members.
    pub async fn create(&self, profile: &GroupProfile, members: &[&str]) -> Result<Group, Error> {
        let mut body = fields(profile);
        body["member_ids"] = json!(members);
        self.post("/group/create", body).await
    }

    /// A group.
    pub async fn get(&self, group_id: &str) -> Result<Group, Error> {
        self.0.fetch(ApiRequest::get("/group/info", &[("group_id", group_id)])).await
    }

    /// The group with this join code.
    pub async fn get_by_code(&self, code: &str) -> Result<Group, Error> {
        self.0.fetch(ApiRequest::get("/group/info", &[("group_code", code)])).await
    }

    /// Changes the profile of a group.
    pub async fn update(&self, group_id: &str, profile: &GroupProfile) -> Result<Group, Error> {
        let mut body = fields(profile);
        body["group_id"] = json!(group_id);
        self.0.fetch(ApiRequest::put("/group/update", body)).await
    }

    /// The groups you are in.
    pub async fn joined(&self, cursor: Option<&str>) -> Result<Page<Group>, Error> {
        self.page("/group/joined", &[], cursor).await
    }

    /// The members of a group.
    pub async fn members(
        &self,
        group_id: &str,
        cursor: Option<&str>,
    ) -> Result<Page<Member>, Error> {
        self.page("/group/members", &[("group_id", group_id)], cursor).await
    }

    /// One member.
    pub async fn member(&self, group_id: &str, user_id: &str) -> Result<Member, Error> {
        let query = [("group_id", group_id), ("user_id", user_id)];
        self.0.fetch(ApiRequest::get("/group/member", &query)).await
    }

    /// Changes your own profile in this group.
    pub async fn set_member_info(
        &self,
        group_id: &str,
        profile: &MemberProfile,
    ) -> Result<Member, Error> {
        let mut body = fields(profile);
        body["group_id"] = json!(group_id);
        self.0.fetch(ApiRequest::put("/group/member_info", body)).await
    }

    /// The cursors of all members; `None` if the group is too large for receipts.
    pub async fn read_state(&self, group_id: &str) -> Result<Option<Vec<MemberReadState>>, Error> {
        #[derive(Deserialize)]
        struct ReadState {
            too_large: bool,
            members: Vec<MemberReadState>,
        }
        let ask = ApiRequest::get("/group/read_state", &[("group_id", group_id)]);
        let state: ReadState = self.0.fetch(ask).await?;
        Ok((!state.too_large).then_some(state.members))
    }

    /// Joins by id.
    pub async fn join(&self, group_id: &str, message: &str) -> Result<Joined, Error> {
        self.post("/group/join", json!({ "group_id": group_id, "message": message })).await
    }

    /// Joins by code.
    pub async fn join_by_code(&self, code: &str, message: &str) -> Result<Joined, Error> {
        self.post("/group/join", json!({ "group_code": code, "message": message })).await
    }

    /// The pending join requests.
    pub async fn requests(
        &self,
        group_id: &str,
        cursor: Option<&str>,
    ) -> Result<Page<JoinRequest>, Error> {
        self.page("/group/join_requests", &[("group_id", group_id)], cursor).await
    }

    /// Accepts or rejects a join request.
    pub async fn decide(&self, request_id: &str, is_accepted: bool) -> Result<(), Error> {
        let body = json!({ "request_id": request_id, "accept": is_accepted });
        self.done("/group/join_decide", body).await
    }

    /// Adds users; returns those who were not members before.
    pub async fn invite(&self, group_id: &str, user_ids: &[&str]) -> Result<Vec<String>, Error> {
        #[derive(Deserialize)]
        struct Invited {
            joined: Vec<String>,
        }
        let body = json!({ "group_id": group_id, "user_ids": user_ids });
        Ok(self.post::<Invited>("/group/invite", body).await?.joined)
    }

    /// Leaves the group; the owner must transfer it first.
    pub async fn leave(&self, group_id: &str) -> Result<(), Error> {
        self.done("/group/leave", json!({ "group_id": group_id })).await
    }

    /// Removes a member.
    pub async fn kick(&self, group_id: &str, user_id: &str) -> Result<(), Error> {
        self.done("/group/kick", json!({ "group_id": group_id, "user_id": user_id })).await
    }

    /// Makes a member an admin, or a member again; [`Self::transfer`] makes an owner.
    pub async fn set_role(&self, group_id: &str, user_id: &str, role: Role) -> Result<(), Error> {
        let body = json!({ "group_id": group_id, "user_id": user_id, "role": role as u8 });
        self.done("/group/set_role", body).await
    }

    /// Transfers ownership to another member.
    pub async fn transfer(&self, group_id: &str, user_id: &str) -> Result<(), Error> {
        self.done("/group/transfer", json!({ "group_id": group_id, "user_id": user_id })).await
    }

    /// Mutes a member for `seconds`: -1 for ever, 0 unmutes.
    pub async fn mute(&self, group_id: &str, user_id: &str, seconds: i64) -> Result<(), Error> {
        let body = json!({ "group_id": group_id, "user_id": user_id, "seconds": seconds });
        self.done("/group/mute", body).await
    }

    /// Lets only the owner and admins post, or everyone again.
    pub async fn mute_all(&self, group_id: &str, is_muted: bool) -> Result<(), Error> {
        self.done("/group/mute_all", json!({ "group_id": group_id, "on": is_muted })).await
    }

    /// Replaces the join code; returns the new one.
    pub async fn reset_code(&self, group_id: &str) -> Result<String, Error> {
        #[derive(Deserialize)]
        struct Code {
            group_code: String,
        }
        let body = json!({ "group_id": group_id });
        Ok(self.post::<Code>("/group/reset_code", body).await?.group_code)
    }

    /// Dissolves the group; members keep its messages.
    pub async fn dissolve(&self, group_id: &str) -> Result<(), Error> {
        self.done("/group/dissolve", json!({ "group_id": group_id })).await
    }

    /// Dissolves the group and deletes its profile.
    pub async fn dismiss(&self, group_id: &str) -> Result<(), Error> {
        self.done("/group/dismiss", json!({ "group_id": group_id })).await
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: Value) -> Result<T, Error> {
        self.0.fetch(ApiRequest::post(path, body)).await
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
        self.0.fetch(ApiRequest::get(path, &query)).await
    }
}
