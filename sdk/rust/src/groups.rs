//! Everything that is done to groups.
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::Error;
use crate::group::{
    Group, GroupProfile, JoinRequest, Joined, Member, MemberProfile, MemberReadState, Page, Role,
};
use crate::http::{Ask, fields};
use crate::tokens::SignIn;

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
    pub async fn get(&self, group_id: &str) -> Result<Group, Error> {
        self.0.ask(Ask::get("/group/info", &[("group_id", group_id)])).await
    }

    /// The group that a code leads to.
    pub async fn get_by_code(&self, code: &str) -> Result<Group, Error> {
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

    /// Says how you want to be seen there.
    pub async fn set_member_info(
        &self,
        group_id: &str,
        profile: &MemberProfile,
    ) -> Result<Member, Error> {
        let mut body = fields(profile);
        body["group_id"] = json!(group_id);
        self.0.ask(Ask::put("/group/member_info", body)).await
    }

    /// How far everybody has received and read; `None` if the group is too large for receipts.
    pub async fn read_state(&self, group_id: &str) -> Result<Option<Vec<MemberReadState>>, Error> {
        #[derive(Deserialize)]
        struct ReadState {
            too_large: bool,
            members: Vec<MemberReadState>,
        }
        let ask = Ask::get("/group/read_state", &[("group_id", group_id)]);
        let state: ReadState = self.0.ask(ask).await?;
        Ok((!state.too_large).then_some(state.members))
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
    pub async fn set_role(&self, group_id: &str, user_id: &str, role: Role) -> Result<(), Error> {
        let body = json!({ "group_id": group_id, "user_id": user_id, "role": role as u8 });
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
