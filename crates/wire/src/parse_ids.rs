//! Ids as requests give them, and the reason to refuse one that cannot be.

use nexo_chat::ids::{GroupId, UserId};
use nexo_chat::{DetailedReason, Reason};

pub fn group_id(given: Option<&str>) -> Result<GroupId, Reason> {
    let given = given.filter(|id| !id.is_empty());
    GroupId::parse(given.ok_or(Reason::MissingGroupId)?)
}

/// An id of a form that no user can have is refused like one that no user has.
pub fn user_id(given: &str) -> Result<UserId, Reason> {
    UserId::parse(given).map_err(|_| Reason::UserNotFound)
}

/// A refusal names the id that is wrong.
pub fn user_ids(given: &[String]) -> Result<Vec<UserId>, DetailedReason> {
    let named =
        |id: &String| user_id(id).map_err(|reason| DetailedReason::new(reason, id.as_str()));
    given.iter().map(named).collect()
}
