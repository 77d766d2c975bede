//! Accounts: changed by the committer, read through a cache, since every send asks for one.

use std::sync::Arc;

use nexo_chat::ids::{Millis, UserId};
use nexo_chat::model::{ProfileChange, ResetCode, User};

use super::core::Core;
use super::keys::{self, Space};
use super::pending::Pending;
use super::poison::Fault;
use super::record::{self, ResetRecord, UserRecord};
use super::{folded, logins};

/// The account, if there is one.
pub(crate) fn get(core: &Core, id: &UserId) -> Result<Option<Arc<User>>, Fault> {
    core.users.get(id, || {
        let key = keys::user(id);
        let Some(bytes) = core.engine.get(Space::Users, &key)? else { return Ok(None) };
        let record: UserRecord<'_> = record::decode(Space::Users, &key, &bytes)?;
        Ok(Some(record.user(id)))
    })
}

/// Notes that a user was seen.
pub(crate) fn seen(pending: &mut Pending<'_>, id: &UserId, at: Millis) -> Result<(), Fault> {
    pending.set(Space::Seen, keys::user(id), &at.0)
}

/// When a user was last seen.
pub(crate) fn last_seen(core: &Core, id: &UserId) -> Result<Option<Millis>, Fault> {
    let key = keys::user(id);
    let Some(bytes) = core.engine.get(Space::Seen, &key)? else { return Ok(None) };
    Ok(Some(Millis(record::decode(Space::Seen, &key, &bytes)?)))
}

/// Creates an account; `false` if the id is taken, or one that looks like it.
pub(crate) fn create(pending: &mut Pending<'_>, user: User) -> Result<bool, Fault> {
    if folded::current(pending, &user.id.folded())?.is_some() {
        return Ok(false);
    }
    folded::hold(pending, &user.id)?;
    put(pending, user)?;
    Ok(true)
}

/// Changes a profile.
pub(crate) fn update_profile(
    pending: &mut Pending<'_>,
    id: &UserId,
    change: ProfileChange,
    at: Millis,
) -> Result<Option<Arc<User>>, Fault> {
    let Some(mut user) = current(pending, id)? else { return Ok(None) };
    user.update(change, at);
    put(pending, user).map(Some)
}

/// Replaces the password, raises the session version and ends all sign-ins.
pub(crate) fn change_password(
    pending: &mut Pending<'_>,
    id: &UserId,
    session_version: u64,
    hash: String,
) -> Result<Option<u64>, Fault> {
    let user = current(pending, id)?.filter(|user| user.session_version == session_version);
    let Some(user) = user else { return Ok(None) };
    set_password(pending, user, hash).map(Some)
}

fn set_password(pending: &mut Pending<'_>, mut user: User, hash: String) -> Result<u64, Fault> {
    user.password_hash = hash;
    user.session_version += 1;
    let (id, version) = (user.id.clone(), user.session_version);
    put(pending, user)?;
    if pending.get(Space::Resets, &keys::user(&id))?.is_some() {
        pending.delete(Space::Resets, keys::user(&id));
    }
    logins::end(pending, &id, &|_| true)?;
    Ok(version)
}

/// Keeps a one-time code; `false` without such a user.
pub(crate) fn put_reset(
    pending: &mut Pending<'_>,
    id: &UserId,
    code: ResetCode,
) -> Result<bool, Fault> {
    if current(pending, id)?.is_none() {
        return Ok(false);
    }
    pending.set(Space::Resets, keys::user(id), &ResetRecord::from(code))?;
    Ok(true)
}

/// The one-time code of a user.
pub(crate) fn reset(core: &Core, id: &UserId) -> Result<Option<ResetCode>, Fault> {
    let key = keys::user(id);
    let Some(bytes) = core.engine.get(Space::Resets, &key)? else { return Ok(None) };
    let record: ResetRecord = record::decode(Space::Resets, &key, &bytes)?;
    Ok(Some(record.into()))
}

/// Replaces the password by a one-time code.
pub(crate) fn reset_password(
    pending: &mut Pending<'_>,
    id: &UserId,
    code_hash: [u8; 32],
    now: Millis,
    hash: String,
) -> Result<Option<u64>, Fault> {
    let key = keys::user(id);
    let Some(bytes) = pending.get(Space::Resets, &key)? else { return Ok(None) };
    let record: ResetRecord = record::decode(Space::Resets, &key, &bytes)?;
    let user = current(pending, id)?.filter(|_| ResetCode::from(record).is(code_hash, now));
    let Some(user) = user else { return Ok(None) };
    set_password(pending, user, hash).map(Some)
}

/// The account as it will be after the batch.
pub(crate) fn current(pending: &mut Pending<'_>, id: &UserId) -> Result<Option<User>, Fault> {
    if let Some(user) = pending.decided().users.get(id) {
        return Ok(Some(User::clone(user)));
    }
    Ok(get(pending.core, id)?.map(|user| User::clone(&user)))
}

fn put(pending: &mut Pending<'_>, user: User) -> Result<Arc<User>, Fault> {
    pending.set(Space::Users, keys::user(&user.id), &UserRecord::from(&user))?;
    let user = Arc::new(user);
    pending.decided().users.insert(user.id.clone(), Arc::clone(&user));
    Ok(user)
}
