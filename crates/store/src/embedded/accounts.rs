//! Accounts: changed by the committer, read through a cache, since every send asks for one.

use std::sync::Arc;

use nexo_chat::ids::{Millis, UserId};
use nexo_chat::model::{Profile, ProfileChange, User};

use super::core::Core;
use super::keys::{self, Space};
use super::logins;
use super::pending::Pending;
use super::poison::Fault;
use super::record::{self, UserRecord};

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

/// Creates an account; `false` if the id is taken.
pub(crate) fn create(pending: &mut Pending<'_>, user: User) -> Result<bool, Fault> {
    if current(pending, &user.id)?.is_some() {
        return Ok(false);
    }
    put(pending, user)?;
    Ok(true)
}

/// Changes a profile.
pub(crate) fn update_profile(
    pending: &mut Pending<'_>,
    id: &UserId,
    change: ProfileChange,
) -> Result<Option<Profile>, Fault> {
    let Some(mut user) = current(pending, id)? else { return Ok(None) };
    user.profile.apply(change);
    let profile = user.profile.clone();
    put(pending, user)?;
    Ok(Some(profile))
}

/// Replaces the password, raises the session version and ends all sign-ins.
pub(crate) fn change_password(
    pending: &mut Pending<'_>,
    id: &UserId,
    session_version: u64,
    hash: String,
) -> Result<Option<u64>, Fault> {
    let user = current(pending, id)?.filter(|user| user.session_version == session_version);
    let Some(mut user) = user else { return Ok(None) };
    user.password_hash = hash;
    user.session_version += 1;
    let version = user.session_version;
    put(pending, user)?;
    logins::end(pending, id, &|_| true)?;
    Ok(Some(version))
}

/// The account as it will be after the batch.
pub(crate) fn current(pending: &mut Pending<'_>, id: &UserId) -> Result<Option<User>, Fault> {
    if let Some(user) = pending.decided().users.get(id) {
        return Ok(Some(User::clone(user)));
    }
    Ok(get(pending.core, id)?.map(|user| User::clone(&user)))
}

fn put(pending: &mut Pending<'_>, user: User) -> Result<(), Fault> {
    pending.set(Space::Users, keys::user(&user.id), &UserRecord::from(&user))?;
    pending.decided().users.insert(user.id.clone(), Arc::new(user));
    Ok(())
}
