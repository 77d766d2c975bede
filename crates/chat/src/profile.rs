//! How people are seen.

use std::sync::Arc;

use crate::chat::Chat;
use crate::ids::UserId;
use crate::model::{Caller, ProfileChange, User};
use crate::people;
use crate::policy::account;
use crate::reason::{Error, Reason};

/// The public side of the account that a name means.
pub async fn profile(chat: &Chat, named: &UserId) -> Result<Arc<User>, Error> {
    Ok(people::account(&*chat.store, named).await?.ok_or(Reason::UserNotFound)?)
}

/// Changes the caller's own profile.
pub async fn update(
    chat: &Chat,
    caller: &Caller,
    mut change: ProfileChange,
) -> Result<Arc<User>, Error> {
    if let Some(nickname) = &mut change.nickname {
        *nickname = account::good_nickname(nickname)?;
    }
    let user = chat.store.user(&caller.user).await?.ok_or(Reason::UserNotFound)?;
    let mut wanted = user.profile.clone();
    wanted.apply(change.clone());
    account::good_profile(&wanted)?;
    let updated = chat.store.update_profile(&caller.user, change, chat.clock.now()).await?;
    Ok(updated.ok_or(Reason::UserNotFound)?)
}
