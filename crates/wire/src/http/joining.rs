//! Requests to join a group, and the decisions about them.

use nexo_chat::ids::{GroupId, UserId};
use nexo_chat::membership::JoinRequest;
use nexo_chat::{DetailedReason, Reason};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::parse_ids::{group_id, user_id};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinBody {
    /// The group, or else its code.
    pub group_id: Option<String>,
    pub group_code: Option<String>,
    /// What those read who decide.
    #[serde(default)]
    #[schema(max_length = 256)]
    pub message: String,
    /// Who brought you, if they are in it.
    pub inviter_id: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecideBody {
    /// The request, or else the group and who waits.
    pub request_id: Option<String>,
    pub group_id: Option<String>,
    pub user_id: Option<String>,
    pub accept: Option<bool>,
    /// `accept` or `reject`, for those who do not say `accept: true` or `false`.
    pub action: Option<String>,
}

impl DecideBody {
    /// The join request, by its id or by its group and user.
    pub fn request(&self) -> Result<(GroupId, UserId), DetailedReason> {
        if let Some(id) = &self.request_id {
            return Ok(parse_request_id(id)?);
        }
        let group = group_id(self.group_id.as_deref())?;
        let user = self.user_id.as_deref().ok_or_else(|| DetailedReason::field("user_id"))?;
        Ok((group, user_id(user)?))
    }

    pub fn accept(&self) -> Result<bool, DetailedReason> {
        match (self.accept, self.action.as_deref()) {
            (Some(accept), None) => Ok(accept),
            (None, Some("accept")) => Ok(true),
            (None, Some("reject")) => Ok(false),
            (_, Some(_)) => Err(DetailedReason::field("action")),
            (None, None) => Err(DetailedReason::field("accept")),
        }
    }
}

/// Somebody who waits to be let in.
#[derive(Debug, Serialize, ToSchema)]
pub struct JoinRequestInfo {
    request_id: String,
    group_id: String,
    user_id: String,
    message: String,
    created_at: u64,
}

impl From<&JoinRequest> for JoinRequestInfo {
    fn from(request: &JoinRequest) -> Self {
        Self {
            request_id: request_id(&request.group, &request.user),
            group_id: request.group.to_string(),
            user_id: request.user.to_string(),
            message: request.message.clone(),
            created_at: request.at.0,
        }
    }
}

/// The id of a join request: group and user, since there is one per pair.
pub fn request_id(group: &GroupId, user: &UserId) -> String {
    format!("{group}_{user}")
}

pub fn parse_request_id(id: &str) -> Result<(GroupId, UserId), Reason> {
    let parts = id.split_once('_'); // which no id of either kind has
    let parsed =
        parts.map(|(group, user)| Ok::<_, Reason>((GroupId::parse(group)?, UserId::parse(user)?)));
    parsed.and_then(Result::ok).ok_or(Reason::JoinRequestNotFound)
}

/// What became of the wish to join.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Joined)]
pub struct JoinResult {
    /// `joined`, or `pending` until somebody decides.
    status: &'static str,
    group_id: String,
    /// The request, while it is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

impl JoinResult {
    pub fn new(group: &GroupId, user: &UserId, is_in: bool) -> Self {
        Self {
            status: if is_in { "joined" } else { "pending" },
            group_id: group.to_string(),
            request_id: (!is_in).then(|| request_id(group, user)),
        }
    }
}

/// What was decided about the wish to join.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = JoinDecided)]
pub struct JoinDecision {
    request_id: String,
    group_id: String,
    /// `accepted` or `rejected`.
    status: &'static str,
}

impl JoinDecision {
    pub fn new(group: &GroupId, user: &UserId, accepted: bool) -> Self {
        Self {
            request_id: request_id(group, user),
            group_id: group.to_string(),
            status: if accepted { "accepted" } else { "rejected" },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_named_by_group_and_person() {
        let (group, user) = (GroupId::parse("g1").unwrap(), UserId::parse("bob").unwrap());
        assert_eq!(request_id(&group, &user), "g1_bob");
        assert_eq!(parse_request_id("g1_bob"), Ok((group, user)));
        for bad in ["", "g1", "_", "g1_", "_bob", "g1_bob_x", "g 1_bob"] {
            assert_eq!(parse_request_id(bad), Err(Reason::JoinRequestNotFound), "{bad}");
        }
    }

    fn check(body: &str, expect: Result<(&str, &str, bool), Reason>) {
        let body: DecideBody = serde_json::from_str(body).unwrap();
        let read = body.request().and_then(|(group, user)| Ok((group, user, body.accept()?)));
        let read = read.map_err(Reason::from);
        let read = read.as_ref().map(|(group, user, it)| (group.as_str(), user.as_str(), *it));
        assert_eq!(read, expect.as_ref().map(|it| *it));
    }

    #[test]
    fn a_decision_names_its_request_and_one_answer() {
        check(r#"{"request_id":"g_bob","accept":true}"#, Ok(("g", "bob", true)));
        let reject = r#"{"group_id":"g","user_id":"bob","action":"reject"}"#;
        check(reject, Ok(("g", "bob", false)));
        check(r#"{"request_id":"g","accept":true}"#, Err(Reason::JoinRequestNotFound));
        check(r#"{"user_id":"bob","accept":true}"#, Err(Reason::MissingGroupId));
        check(r#"{"group_id":"g","accept":true}"#, Err(Reason::InvalidParam));
        check(r#"{"request_id":"g_bob"}"#, Err(Reason::InvalidParam));
        check(r#"{"request_id":"g_bob","action":"dance"}"#, Err(Reason::InvalidParam));
        let both = r#"{"request_id":"g_bob","accept":true,"action":"reject"}"#;
        check(both, Err(Reason::InvalidParam));
    }
}
