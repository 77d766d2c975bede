//! Coming into a group by oneself: at once, or after somebody decided.

use std::sync::Arc;

use axum::extract::State;
use nexo_chat::ids::{GroupId, UserId};
use nexo_chat::membership::GroupAct;
use nexo_chat::{Error, Reason, group};
use nexo_wire::groups::{GroupPage, JoinDecided, JoinRequestInfo, Joined, read_request_id};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::answer::{Answer, Asked};
use super::groups::ACTING;
use super::named::{by_id_or_code, cursor, group_id, user_id};
use super::paths::{Paths, paths};
use super::reading::limit;
use super::taken::{Authenticated, Body, Params};
use crate::gateway::Gateway;

type Shared = State<Arc<Gateway>>;

/// What asking to come in may be refused for.
const JOINING: [Reason; 9] = [
    Reason::BadUserId,
    Reason::MissingGroupId,
    Reason::GroupNotFound,
    Reason::GroupDissolved,
    Reason::AlreadyMember,
    Reason::JoinNotAllowed,
    Reason::BodyTooLong,
    Reason::TooManyJoinRequests,
    Reason::GroupFull,
];

/// The paths of coming in.
pub(super) fn paths(paths: &mut Paths) {
    paths! { paths:
        POST "/group/join" join, "Joins a group, or asks to be let in.", JOINING []
        POST "/group/join_request" join, "Joins a group, or asks to be let in, as `/group/join`.", JOINING []
        GET "/group/join_requests" requests, "Lists who waits to be let in. For owner and admins.",
            ACTING [NotGroupAdmin]
        POST "/group/join_decide" decide, "Lets somebody in, or not. For owner and admins.",
            ACTING [InvalidParam UserNotFound JoinRequestNotFound NotGroupAdmin GroupFull]
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct JoinBody {
    /// The group, or else its code.
    group_id: Option<String>,
    group_code: Option<String>,
    /// What those read who decide.
    #[serde(default)]
    #[schema(max_length = 256)]
    message: String,
    /// Who brought you, if they are in it.
    inviter_id: Option<String>,
}

async fn join(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<JoinBody>,
) -> Answer<Joined> {
    let joined = async {
        let (id, code) = (body.group_id.as_deref(), body.group_code.as_deref());
        let id = by_id_or_code(&gateway.chat, &caller, id, code).await?;
        let inviter = body.inviter_id.as_deref().filter(|id| !id.is_empty());
        let inviter = inviter.map(UserId::parse).transpose()?;
        let act = GroupAct::Join { message: body.message, inviter };
        let decided = group::act(&gateway.chat, &caller, &id, act).await?;
        let is_in = decided.joined.contains(&caller.user);
        Ok::<_, Error>(Joined::new(&id, &caller.user, is_in))
    };
    asked.answer(joined.await)
}

#[derive(Deserialize, IntoParams)]
struct RequestsParams {
    #[param(value_type = String)]
    group_id: Option<String>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many at most: up to 1,000, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 100)]
    limit: Option<usize>,
}

async fn requests(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<RequestsParams>,
) -> Answer<GroupPage<JoinRequestInfo>> {
    let found = async {
        let id = group_id(params.group_id.as_deref())?;
        let limit = limit(params.limit, 100, 1000);
        let after = cursor(params.cursor.as_deref(), UserId::parse)?;
        let page = group::requests(&gateway.chat, &caller, &id, after.as_ref(), limit).await?;
        let last = page.items.last().map(|request| request.user.to_string());
        Ok::<_, Error>(GroupPage {
            list: page.items.iter().map(JoinRequestInfo::from).collect(),
            has_more: page.has_more,
            next_cursor: last.filter(|_| page.has_more),
            total: None,
        })
    };
    asked.answer(found.await)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DecideBody {
    /// The request, or else the group and who waits.
    request_id: Option<String>,
    group_id: Option<String>,
    user_id: Option<String>,
    accept: Option<bool>,
    /// `accept` or `reject`, for those who do not say `accept: true` or `false`.
    action: Option<String>,
}

impl DecideBody {
    /// The request by its name, or by the two that make it.
    fn request(&self) -> Result<(GroupId, UserId), Reason> {
        if let Some(id) = &self.request_id {
            return read_request_id(id);
        }
        let group = group_id(self.group_id.as_deref())?;
        Ok((group, user_id(self.user_id.as_deref().ok_or(Reason::InvalidParam)?)?))
    }

    fn accept(&self) -> Result<bool, Reason> {
        match (self.accept, self.action.as_deref()) {
            (Some(accept), None) => Ok(accept),
            (None, Some("accept")) => Ok(true),
            (None, Some("reject")) => Ok(false),
            _ => Err(Reason::InvalidParam),
        }
    }
}

async fn decide(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<DecideBody>,
) -> Answer<JoinDecided> {
    let decided = async {
        let ((id, user), accept) = (body.request()?, body.accept()?);
        let act = GroupAct::Answer { user: user.clone(), accept };
        group::act(&gateway.chat, &caller, &id, act).await?;
        Ok::<_, Error>(JoinDecided::new(&id, &user, accept))
    };
    asked.answer(decided.await)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expect: Result<(&str, &str, bool), Reason>) {
        let body: DecideBody = serde_json::from_str(body).unwrap();
        let read = body.request().and_then(|(group, user)| Ok((group, user, body.accept()?)));
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
