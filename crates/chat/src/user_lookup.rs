//! Finds the account for a typed user id: for sign-ins, receivers, profiles, groups and history.
//!
//! An exact match comes first, at the cost of one lookup. Without one, an id that differs only in case
//! matches: `Bob` finds `bob`. An id that merely looks alike never matches: `b0b` does not find `bob`.

use std::sync::Arc;

use crate::chat::Chat;
use crate::command::Target;
use crate::ids::UserId;
use crate::model::User;
use crate::reason::Error;
use crate::store::{Store, StoreError};

/// The account for a typed id.
pub async fn find_account(
    store: &dyn Store,
    typed: &UserId,
) -> Result<Option<Arc<User>>, StoreError> {
    if let Some(user) = store.user(typed).await? {
        return Ok(Some(user));
    }
    match find_ignoring_case(store, typed).await? {
        Some(id) => store.user(&id).await,
        None => Ok(None),
    }
}

/// The id of the account for a typed id; the typed id itself if there is none.
pub async fn resolve_id(chat: &Chat, typed: UserId) -> Result<UserId, Error> {
    let system = UserId::system(); // sends messages, but has no account
    let found = find_id(chat, &typed).await?;
    Ok(found.unwrap_or(if typed.eq_ignore_case(&system) { system } else { typed }))
}

/// The target with its user id resolved.
pub async fn resolve_target(chat: &Chat, typed: Target) -> Result<Target, Error> {
    match typed {
        Target::User(user) => Ok(Target::User(resolve_id(chat, user).await?)),
        Target::Group(group) => Ok(Target::Group(group)),
    }
}

/// The id of the account for a typed id; `None` if there is no account.
pub(crate) async fn find_id(chat: &Chat, typed: &UserId) -> Result<Option<UserId>, Error> {
    if account_exists(chat, typed).await? {
        return Ok(Some(typed.clone()));
    }
    // A deleted account still holds its id.
    match find_ignoring_case(&*chat.store, typed).await?.filter(|id| id != typed) {
        Some(id) if account_exists(chat, &id).await? => Ok(Some(id)),
        _ => Ok(None),
    }
}

/// Whether an account has exactly this id. With two-phase acknowledgement, sending must work while the
/// store is unavailable: then a user who has a connection counts as existing.
async fn account_exists(chat: &Chat, user: &UserId) -> Result<bool, Error> {
    let exists = chat.store.user_exists(user).await;
    if exists.is_err() && chat.two_phase.is_some() && !chat.bus.registrations(user).await.is_empty()
    {
        return Ok(true);
    }
    Ok(exists?)
}

async fn find_ignoring_case(
    store: &dyn Store,
    typed: &UserId,
) -> Result<Option<UserId>, StoreError> {
    let holder = store.user_by_folded_id(&typed.folded()).await?;
    Ok(holder.filter(|id| id.eq_ignore_case(typed)))
}
