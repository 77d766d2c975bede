//! Sign-ins: a person's own devices, and those of anybody for an operator.

use std::collections::BTreeSet;

use crate::audit::{self, Act};
use crate::auth::publish_logins_ended;
use crate::chat::Chat;
use crate::event::Logins;
use crate::ids::{LoginId, UserId};
use crate::keys::{Operator, Scope};
use crate::model::{Caller, Login};
use crate::reason::{Error, Reason};
use crate::user_lookup;

/// A sign-in, and whether a socket of it is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    pub login: Login,
    pub is_online: bool,
}

/// Which sign-ins to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndLogins {
    One(LoginId),
    /// All but this one.
    Others(LoginId),
    All,
}

/// The caller's sign-ins that have not ended, newest first.
pub async fn own(chat: &Chat, caller: &Caller) -> Result<Vec<Device>, Error> {
    devices_of(chat, &caller.user).await
}

/// Ends sign-ins of the caller; their sockets close at once.
pub async fn end_own(chat: &Chat, caller: &Caller, which: EndLogins) -> Result<usize, Error> {
    let ended = end(chat, &caller.user, which).await?;
    for login in &ended {
        let act =
            Act::by_user(&caller.user, "session_ended", None).with("login", login.to_string());
        audit::record_now(chat, &act).await?;
    }
    Ok(ended.len())
}

/// The sign-ins of a user that have not ended, newest first.
pub async fn list(chat: &Chat, operator: &Operator, typed: &UserId) -> Result<Vec<Device>, Error> {
    operator.require(Scope::Admin)?;
    devices_of(chat, &existing(chat, typed).await?).await
}

/// Ends sign-ins of a user; their sockets close at once, on every node.
pub async fn end_of(
    chat: &Chat,
    operator: &Operator,
    typed: &UserId,
    which: EndLogins,
) -> Result<usize, Error> {
    operator.require(Scope::Admin)?;
    let user = existing(chat, typed).await?;
    let ended = end(chat, &user, which).await?;
    let act = Act::by(operator, "sessions_ended", format!("user:{user}"));
    audit::record_now(chat, &act.with("count", ended.len().to_string())).await?;
    Ok(ended.len())
}

async fn existing(chat: &Chat, typed: &UserId) -> Result<UserId, Error> {
    let user = user_lookup::find_account(&*chat.store, typed).await?.ok_or(Reason::UserNotFound)?;
    Ok(user.id.clone())
}

async fn devices_of(chat: &Chat, user: &UserId) -> Result<Vec<Device>, Error> {
    let now = chat.clock.now();
    let mut logins = chat.store.logins(user).await?;
    logins.retain(|login| now < login.expires_at);
    let online: BTreeSet<LoginId> =
        chat.bus.registrations(user).await.into_iter().map(|socket| socket.login).collect();
    let device = |login: Login| Device { is_online: online.contains(&login.id), login };
    Ok(logins.into_iter().map(device).collect())
}

async fn end(chat: &Chat, user: &UserId, which: EndLogins) -> Result<Vec<LoginId>, Error> {
    let is_meant = move |login: &Login| match which {
        EndLogins::One(id) => login.id == id,
        EndLogins::Others(id) => login.id != id,
        EndLogins::All => true,
    };
    let ended = chat.store.end_logins(user, Box::new(is_meant)).await?;
    if ended.is_empty() {
        return match which {
            EndLogins::One(_) => Err(Reason::NotFound.into()),
            EndLogins::Others(_) | EndLogins::All => Ok(ended),
        };
    }
    publish_logins_ended(chat, user, Logins::These(ended.clone()), Reason::SessionInvalid);
    Ok(ended)
}
