//! How people are seen.

use std::sync::Arc;

use crate::chat::Chat;
use crate::ids::UserId;
use crate::model::{Caller, ProfileChange, User};
use crate::policy::account;
use crate::reason::{Error, Reason};

/// An account's public side.
pub async fn profile(chat: &Chat, id: &UserId) -> Result<Arc<User>, Error> {
    Ok(chat.store.user(id).await?.ok_or(Reason::UserNotFound)?)
}

/// Changes the caller's own profile.
pub async fn update(chat: &Chat, caller: &Caller, change: ProfileChange) -> Result<User, Error> {
    let mut user = User::clone(&*profile(chat, &caller.user).await?);
    let mut wanted = user.profile.clone();
    wanted.apply(change.clone());
    account::good_profile(&wanted)?;
    user.profile =
        chat.store.update_profile(&caller.user, change).await?.ok_or(Reason::UserNotFound)?;
    Ok(user)
}
