//! Invite links.

use nexo_chat::invites::{Invite, NewInvite};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({ "uses": 5, "expires_in": 604_800 }))]
pub struct NewInviteBody {
    /// How many accounts it makes: 1, the default, to 10,000.
    pub uses: Option<u32>,
    /// Seconds until it expires: a week by default, a year at most.
    pub expires_in: Option<u64>,
}

impl From<NewInviteBody> for NewInvite {
    fn from(body: NewInviteBody) -> Self {
        let expires_in_ms = body.expires_in.map(|seconds| seconds.saturating_mul(1000));
        Self { uses: body.uses, expires_in_ms }
    }
}

/// A link without its code.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct InviteInfo {
    pub invite_id: String,
    /// `user:alice`, or the name of the operator's key.
    pub created_by: String,
    pub created_at: u64,
    pub expires_at: u64,
    pub uses_max: u32,
    pub uses: u32,
    /// Who came by it, up to a hundred.
    pub user_ids: Vec<String>,
}

impl From<&Invite> for InviteInfo {
    fn from(invite: &Invite) -> Self {
        Self {
            invite_id: invite.id.clone(),
            created_by: invite.created_by.clone(),
            created_at: invite.created_at.0,
            expires_at: invite.expires_at.0,
            uses_max: invite.uses_max,
            uses: invite.uses,
            user_ids: invite.users.clone(),
        }
    }
}

/// A new link. The code is shown this once; only its hash is stored.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct CreatedInvite {
    /// For `invite` of `POST /user/register`.
    pub code: String,
    /// The path of the web client that asks for an account with this code; put your server's address before it.
    pub path: String,
    #[serde(flatten)]
    pub info: InviteInfo,
}

impl CreatedInvite {
    pub fn new(invite: &Invite, code: String) -> Self {
        let path = format!("/#/invite/{code}");
        Self { code, path, info: invite.into() }
    }
}
