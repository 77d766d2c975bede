//! Whom a typed name means. One place for everything that names a person: sign-in, receivers, profiles,
//! groups, history.
//!
//! The exact id comes first and costs what it always did. Only if nobody has it, the id that differs
//! in case alone is meant: `Bob` finds `bob`. One that merely looks alike is never meant, so `b0b` does
//! not find `bob`.

use std::sync::Arc;

use crate::chat::Chat;
use crate::command::Target;
use crate::ids::UserId;
use crate::model::User;
use crate::reason::Error;
use crate::store::{Store, StoreError};

/// The account that a name means.
pub async fn account(store: &dyn Store, named: &UserId) -> Result<Option<Arc<User>>, StoreError> {
    if let Some(user) = store.user(named).await? {
        return Ok(Some(user));
    }
    match by_case(store, named).await? {
        Some(id) => store.user(&id).await,
        None => Ok(None),
    }
}

/// The id that a name means; the name itself if nobody is meant by it.
pub async fn meant(chat: &Chat, named: UserId) -> Result<UserId, Error> {
    let system = UserId::system(); // speaks, but has no account
    let known = known(chat, &named).await?;
    Ok(known.unwrap_or(if named.is_same_but_for_case(&system) { system } else { named }))
}

/// Whom or what somebody speaks to, by its own id.
pub async fn target(chat: &Chat, named: Target) -> Result<Target, Error> {
    match named {
        Target::User(user) => Ok(Target::User(meant(chat, user).await?)),
        Target::Group(group) => Ok(Target::Group(group)),
    }
}

/// The id of the account that a name means.
pub(crate) async fn known(chat: &Chat, named: &UserId) -> Result<Option<UserId>, Error> {
    if exists(chat, named).await? {
        return Ok(Some(named.clone()));
    }
    Ok(by_case(&*chat.store, named).await?)
}

/// Whether somebody has an account under exactly this id. Where messages are taken in without the
/// store, whoever is connected has one too, even if the store cannot be asked.
async fn exists(chat: &Chat, user: &UserId) -> Result<bool, Error> {
    let asked = chat.store.user_exists(user).await;
    if asked.is_err() && chat.intake.is_some() && !chat.bus.places(user).await.is_empty() {
        return Ok(true);
    }
    Ok(asked?)
}

/// The id that differs in case alone.
async fn by_case(store: &dyn Store, named: &UserId) -> Result<Option<UserId>, StoreError> {
    let holder = store.holder(&named.folded()).await?;
    Ok(holder.filter(|id| id.is_same_but_for_case(named)))
}
