//! Blocking people. A block is the setting of the private conversation with them, so it needs no list of its own: it is
//! on every device of the user, and stays when the conversation has not begun. A blocked user's messages are stored but
//! neither pushed nor resent to who blocked them; they see neither when that user is online nor what they have read, and
//! cannot add them to a group.

use crate::chat::Chat;
use crate::conversations;
use crate::ids::{ConversationId, UserId};
use crate::model::{Caller, Receive, SettingsChange};
use crate::read::Page;
use crate::reason::{Error, Reason};
use crate::sync;
use crate::user_lookup;

/// Users that one user can block.
pub const BLOCKS_MAX: usize = 5000;

/// Blocks a user. Repeating it changes nothing.
pub async fn block(chat: &Chat, caller: &Caller, typed: &UserId) -> Result<UserId, Error> {
    let user = other_account(chat, caller, typed).await?;
    if blocked_by(chat, &caller.user).await?.len() >= BLOCKS_MAX {
        return Err(Reason::TooManyUsers.into());
    }
    set(chat, caller, &user, Receive::Blocked).await?;
    Ok(user)
}

/// Ends a block. Without one it changes nothing.
pub async fn unblock(chat: &Chat, caller: &Caller, typed: &UserId) -> Result<UserId, Error> {
    let user = other_account(chat, caller, typed).await?;
    if has_blocked(chat, &caller.user, &user).await? {
        set(chat, caller, &user, Receive::Normal).await?;
    }
    Ok(user)
}

async fn other_account(chat: &Chat, caller: &Caller, typed: &UserId) -> Result<UserId, Error> {
    let user = user_lookup::find_account(&*chat.store, typed).await?.ok_or(Reason::UserNotFound)?;
    if user.id == caller.user {
        return Err(Reason::TargetIsSelf.into());
    }
    Ok(user.id.clone())
}

async fn set(chat: &Chat, caller: &Caller, user: &UserId, to: Receive) -> Result<(), Error> {
    let conversation = ConversationId::private(&caller.user, user);
    let change = SettingsChange { receive: Some(to), ..SettingsChange::default() };
    conversations::update_settings(chat, caller, &conversation, change).await?;
    Ok(())
}

/// A page of the users that the caller has blocked, in the order of their ids.
pub async fn list(
    chat: &Chat,
    caller: &Caller,
    after: Option<&UserId>,
    limit: usize,
) -> Result<Page<UserId>, Error> {
    let mut users = blocked_by(chat, &caller.user).await?;
    users.retain(|user| after.is_none_or(|after| user > after));
    users.sort();
    Ok(Page::cut(users, limit))
}

async fn blocked_by(chat: &Chat, user: &UserId) -> Result<Vec<UserId>, Error> {
    let standings = sync::standings(chat, user).await?;
    let blocked = standings.iter().filter(|standing| standing.settings.receive == Receive::Blocked);
    Ok(blocked.filter_map(|standing| standing.conversation.peer_of(user)).collect())
}

/// Whether `user` has blocked `other`.
pub(crate) async fn has_blocked(chat: &Chat, user: &UserId, other: &UserId) -> Result<bool, Error> {
    let conversation = ConversationId::private(user, other);
    let standing = chat.store.standing(user, &conversation).await?;
    Ok(standing.is_some_and(|standing| standing.settings.receive == Receive::Blocked))
}
