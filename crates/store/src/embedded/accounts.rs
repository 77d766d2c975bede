//! Accounts: changed by the committer, read through a cache, since every send asks for one.

use std::sync::Arc;

use nexo_chat::ids::UserId;
use nexo_chat::model::{Profile, ProfileChange, User};

use super::engine::Engine;
use super::keys::{self, Space};
use super::logins;
use super::pending::Pending;
use super::poison::Fault;
use super::record::{self, UserRecord};
use super::shards::Shards;

/// The accounts in memory.
pub(crate) struct Users(Shards<UserId, Arc<User>>);

impl Users {
    pub(crate) fn new(max: usize) -> Self {
        Self(Shards::new(max))
    }

    /// The account, if there is one.
    pub(crate) fn get(&self, engine: &Engine, id: &UserId) -> Result<Option<Arc<User>>, Fault> {
        let mut part = self.0.lock(id);
        if let Some(user) = part.get(id) {
            return Ok(Some(Arc::clone(user)));
        }
        let key = keys::user(id);
        let Some(bytes) = engine.get(Space::Users, &key)? else { return Ok(None) };
        let record: UserRecord<'_> = record::decode(Space::Users, &key, &bytes)?;
        let user = Arc::new(record.user(id));
        self.0.insert(&mut part, id.clone(), Arc::clone(&user), |_| true);
        Ok(Some(user))
    }

    /// Takes over an account that became durable.
    pub(crate) fn publish(&self, id: UserId, user: Arc<User>) {
        let mut part = self.0.lock(&id);
        self.0.insert(&mut part, id, user, |_| true);
    }
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
    Ok(pending.core.users.get(&pending.core.engine, id)?.map(|user| User::clone(&user)))
}

fn put(pending: &mut Pending<'_>, user: User) -> Result<(), Fault> {
    pending.set(Space::Users, keys::user(&user.id), &UserRecord::from(&user))?;
    pending.decided().users.insert(user.id.clone(), Arc::new(user));
    Ok(())
}
