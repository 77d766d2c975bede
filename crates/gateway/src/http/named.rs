//! Whom and what a request names.

use nexo_chat::ids::{GroupId, UserId};
use nexo_chat::model::Caller;
use nexo_chat::{Chat, Error, Reason, group};

/// The group a request names.
pub(super) fn group_id(given: Option<&str>) -> Result<GroupId, Reason> {
    let given = given.filter(|id| !id.is_empty());
    GroupId::parse(given.ok_or(Reason::MissingGroupId)?)
}

/// A person a request names. An id of a form that no user can have belongs to nobody.
pub(super) fn user_id(given: &str) -> Result<UserId, Reason> {
    UserId::parse(given).map_err(|_| Reason::UserNotFound)
}

/// The people a request names.
pub(super) fn user_ids(given: &[String]) -> Result<Vec<UserId>, Reason> {
    given.iter().map(|id| user_id(id)).collect()
}

/// Where a page begins. What no page ended with is a mistake, not somebody unknown.
pub(super) fn cursor<T>(
    given: Option<&str>,
    parse: impl FnOnce(&str) -> Result<T, Reason>,
) -> Result<Option<T>, Reason> {
    given.map(parse).transpose().map_err(|_| Reason::InvalidParam)
}

/// A group by its id, or by the code that leads to it.
pub(super) async fn by_id_or_code(
    chat: &Chat,
    caller: &Caller,
    id: Option<&str>,
    code: Option<&str>,
) -> Result<GroupId, Error> {
    match (id.filter(|id| !id.is_empty()), code) {
        (None, Some(code)) => group::by_code(chat, caller, code).await,
        (id, _) => Ok(group_id(id)?),
    }
}
