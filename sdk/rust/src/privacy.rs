//! Whom a user does not want to hear from, and who may contact and see them.
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::account_state::AccountState;
use crate::client::Client;
use crate::error::Error;
use crate::http::{ApiRequest, fields};
use crate::types::{Receive, Target};

/// Whom you let do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Audience {
    Everybody,
    /// The people you share a group or a conversation with.
    SharedGroup,
    Nobody,
    /// An audience of a newer server.
    #[serde(other)]
    Other,
}

/// Who may contact you and see you. Conversations that have begun go on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Consent {
    /// Who may begin a conversation with you.
    pub write: Audience,
    /// Who may add you to groups.
    pub invite: Audience,
    /// Who sees whether you are online. Only people you share a conversation with can, so
    /// `Everybody` means them.
    pub online: Audience,
    /// Who sees when you were last online; likewise.
    pub last_seen: Audience,
}

/// Choices to change; `None` leaves one as it is.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ConsentChange {
    pub write: Option<Audience>,
    pub invite: Option<Audience>,
    pub online: Option<Audience>,
    pub last_seen: Option<Audience>,
}

impl Client {
    /// Blocks a user: you receive nothing of your private conversation, and they neither see
    /// whether you are online nor can add you to groups. The same as
    /// `receive(Target::to(user_id), Receive::Blocked)`.
    pub async fn block(&self, user_id: &str) -> Result<(), Error> {
        self.post("/user/block", json!({ "user_id": user_id })).await?;
        let target = Target::to(user_id);
        self.with_account(move |account| account.set_blocked(&target, true)).await
    }

    /// Ends a block; what was sent meanwhile arrives.
    pub async fn unblock(&self, user_id: &str) -> Result<(), Error> {
        self.post("/user/unblock", json!({ "user_id": user_id })).await?;
        let target = Target::to(user_id);
        self.with_account(move |account| account.set_blocked(&target, false)).await
    }

    /// The ids of all users you blocked.
    pub async fn blocked(&self) -> Result<Vec<String>, Error> {
        #[derive(Deserialize)]
        struct BlockPage {
            user_ids: Vec<String>,
            next_cursor: Option<String>,
        }
        let (mut user_ids, mut cursor) = (Vec::new(), None);
        loop {
            let mut query = vec![("limit", "1000")];
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let page: BlockPage =
                self.0.sign_in.fetch(ApiRequest::get("/user/blocks", &query)).await?;
            user_ids.extend(page.user_ids);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(user_ids);
            }
        }
    }

    /// Who may contact you and see you.
    pub async fn consent(&self) -> Result<Consent, Error> {
        self.0.sign_in.fetch(ApiRequest::get("/user/consent", &[])).await
    }

    /// Changes who may contact you and see you: the given fields; returns all.
    pub async fn set_consent(&self, change: &ConsentChange) -> Result<Consent, Error> {
        self.0.sign_in.fetch(ApiRequest::put("/user/consent", fields(change))).await
    }
}

impl AccountState {
    /// Applies a block or its end to the private conversation; other devices learn of it from the
    /// server.
    fn set_blocked(&mut self, target: &Target, is_blocked: bool) {
        let is_blocked_now =
            self.find(target).is_some_and(|one| one.details.receive == Receive::Blocked);
        if !is_blocked && !is_blocked_now {
            return; // a silent one stays silent
        }
        let id = target.conversation_id(&self.me);
        let receive = if is_blocked { Receive::Blocked } else { Receive::Normal };
        self.get_or_create(&id).details.receive = receive;
        self.touch(&id);
        self.sync.schedule_heads(self.now); // fetches what came while it was blocked
    }
}
