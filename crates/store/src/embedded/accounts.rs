//! Accounts: changed by the committer, read through a cache, since every send reads one.

use std::sync::Arc;

use nexo_chat::ids::{FoldedId, Millis, UserId};
use nexo_chat::model::{ProfileChange, ResetCode, User};
use nexo_chat::store::{AccountStore, ChangeAccount, Order, StoreFuture};

use super::core::Core;
use super::keys::Keyspace;
use super::pending::Pending;
use super::poison::EngineFault;
use super::record::{ResetRecord, UserRecord, impossible, user_id};
use super::{CHANGE_BYTES, Embedded, folded_ids, keys, logins, record};
use crate::account_rules;

impl AccountStore for Embedded {
    fn record_seen(&self, user: &UserId, at: Millis) -> StoreFuture<'_, ()> {
        let user = user.clone();
        self.submit(CHANGE_BYTES, move |pending| {
            pending.set(Keyspace::LastSeen, keys::user(&user), &at.0)
        })
    }

    fn last_seen(&self, user: &UserId) -> StoreFuture<'_, Option<Millis>> {
        self.read_now(|core| find_last_seen(core, user))
    }

    fn create_user(&self, user: User) -> StoreFuture<'_, bool> {
        self.submit(CHANGE_BYTES, |pending| create_user(pending, user))
    }

    fn user_by_folded_id<'a>(&'a self, folded: &'a FoldedId) -> StoreFuture<'a, Option<UserId>> {
        self.read_now(|core| folded_ids::holder(core, folded))
    }

    fn user(&self, id: &UserId) -> StoreFuture<'_, Option<Arc<User>>> {
        self.read_now(|core| find_user(core, id))
    }

    fn users(&self, after: Option<&UserId>, limit: usize) -> StoreFuture<'_, Vec<Arc<User>>> {
        let after = after.cloned();
        self.read_blocking(move |core| read_users(core, after.as_ref(), limit))
    }

    fn change_account(
        &self,
        id: &UserId,
        change: ChangeAccount,
    ) -> StoreFuture<'_, Option<Arc<User>>> {
        let id = id.clone();
        self.submit(CHANGE_BYTES, move |pending| change_account(pending, &id, &change))
    }

    fn update_profile(
        &self,
        id: &UserId,
        change: ProfileChange,
        at: Millis,
    ) -> StoreFuture<'_, Option<Arc<User>>> {
        let id = id.clone();
        self.submit(CHANGE_BYTES, move |pending| {
            let Some(mut user) = current_user(pending, &id)? else { return Ok(None) };
            user.update(change, at);
            put_user(pending, user).map(Some)
        })
    }

    fn change_password(
        &self,
        id: &UserId,
        session_version: u64,
        hash: String,
    ) -> StoreFuture<'_, Option<u64>> {
        let id = id.clone();
        self.submit(CHANGE_BYTES, move |pending| {
            change_password(pending, &id, session_version, hash)
        })
    }

    fn put_reset_code(&self, id: &UserId, code: ResetCode) -> StoreFuture<'_, bool> {
        let id = id.clone();
        self.submit(CHANGE_BYTES, move |pending| put_reset_code(pending, &id, code))
    }

    fn reset_code(&self, id: &UserId) -> StoreFuture<'_, Option<ResetCode>> {
        self.read_now(|core| find_reset_code(core, id))
    }

    fn reset_password(
        &self,
        id: &UserId,
        code_hash: [u8; 32],
        now: Millis,
        hash: String,
    ) -> StoreFuture<'_, Option<u64>> {
        let id = id.clone();
        self.submit(CHANGE_BYTES, move |pending| reset_password(pending, &id, code_hash, now, hash))
    }
}

fn find_user(core: &Core, id: &UserId) -> Result<Option<Arc<User>>, EngineFault> {
    core.users.get(id, || {
        let key = keys::user(id);
        let Some(bytes) = core.engine.get(Keyspace::Users, &key)? else { return Ok(None) };
        let record: UserRecord<'_> = record::decode(Keyspace::Users, &key, &bytes)?;
        record.user(id).map(Some)
    })
}

fn read_users(
    core: &Core,
    after: Option<&UserId>,
    limit: usize,
) -> Result<Vec<Arc<User>>, EngineFault> {
    let keyspace = Keyspace::Users;
    let range = keys::after(after.map(keys::user));
    let found = core.engine.scan(keyspace, range, limit, Order::Ascending, usize::MAX)?;
    let users = found.iter().map(|(key, value)| {
        let id = std::str::from_utf8(key).map_err(|_| impossible(keyspace, "not a user id"))?;
        let record: UserRecord<'_> = record::decode(keyspace, key, value)?;
        record.user(&user_id(id)?).map(Arc::new)
    });
    users.collect()
}

fn find_last_seen(core: &Core, id: &UserId) -> Result<Option<Millis>, EngineFault> {
    let key = keys::user(id);
    let Some(bytes) = core.engine.get(Keyspace::LastSeen, &key)? else { return Ok(None) };
    Ok(Some(Millis(record::decode(Keyspace::LastSeen, &key, &bytes)?)))
}

fn find_reset_code(core: &Core, id: &UserId) -> Result<Option<ResetCode>, EngineFault> {
    let key = keys::user(id);
    let Some(bytes) = core.engine.get(Keyspace::ResetCodes, &key)? else { return Ok(None) };
    let record: ResetRecord = record::decode(Keyspace::ResetCodes, &key, &bytes)?;
    Ok(Some(record.into()))
}

/// Creates an account; `false` if the id is taken, or one that folds to the same.
fn create_user(pending: &mut Pending<'_>, user: User) -> Result<bool, EngineFault> {
    if folded_ids::current(pending, &user.id.folded())?.is_some() {
        return Ok(false);
    }
    folded_ids::put(pending, &user.id)?;
    put_user(pending, user)?;
    Ok(true)
}

fn change_account(
    pending: &mut Pending<'_>,
    id: &UserId,
    change: &ChangeAccount,
) -> Result<Option<Arc<User>>, EngineFault> {
    let Some(before) = current_user(pending, id)? else { return Ok(None) };
    let Some(changed) = account_rules::apply(&before, &**change) else {
        return Ok(Some(Arc::new(before)));
    };
    if changed.ends_logins {
        end_all_logins(pending, id)?;
    }
    put_user(pending, changed.user).map(Some)
}

fn change_password(
    pending: &mut Pending<'_>,
    id: &UserId,
    session_version: u64,
    hash: String,
) -> Result<Option<u64>, EngineFault> {
    let user = current_user(pending, id)?.filter(|user| user.session_version == session_version);
    let Some(user) = user else { return Ok(None) };
    set_password(pending, user, hash).map(Some)
}

fn put_reset_code(
    pending: &mut Pending<'_>,
    id: &UserId,
    code: ResetCode,
) -> Result<bool, EngineFault> {
    if current_user(pending, id)?.is_none() {
        return Ok(false);
    }
    pending.set(Keyspace::ResetCodes, keys::user(id), &ResetRecord::from(code))?;
    Ok(true)
}

fn reset_password(
    pending: &mut Pending<'_>,
    id: &UserId,
    code_hash: [u8; 32],
    now: Millis,
    hash: String,
) -> Result<Option<u64>, EngineFault> {
    let key = keys::user(id);
    let Some(bytes) = pending.get(Keyspace::ResetCodes, &key)? else { return Ok(None) };
    let record: ResetRecord = record::decode(Keyspace::ResetCodes, &key, &bytes)?;
    let user =
        current_user(pending, id)?.filter(|_| ResetCode::from(record).matches(code_hash, now));
    let Some(user) = user else { return Ok(None) };
    set_password(pending, user, hash).map(Some)
}

fn set_password(
    pending: &mut Pending<'_>,
    mut user: User,
    hash: String,
) -> Result<u64, EngineFault> {
    user.password_hash = hash;
    user.session_version += 1;
    let version = user.session_version;
    end_all_logins(pending, &user.id)?;
    put_user(pending, user)?;
    Ok(version)
}

/// Ends the logins of a user whose session version is raised, and deletes the reset code. Comes first
/// in a change: it reads all it needs before it adds anything.
fn end_all_logins(pending: &mut Pending<'_>, id: &UserId) -> Result<(), EngineFault> {
    let has_code = pending.get(Keyspace::ResetCodes, &keys::user(id))?.is_some();
    logins::end_logins(pending, id, &|_| true)?;
    if has_code {
        pending.delete(Keyspace::ResetCodes, keys::user(id));
    }
    Ok(())
}

/// Returns the account as it will be after the batch.
pub(crate) fn current_user(
    pending: &mut Pending<'_>,
    id: &UserId,
) -> Result<Option<User>, EngineFault> {
    if let Some(user) = pending.effects().users.get(id) {
        return Ok(Some(User::clone(user)));
    }
    Ok(find_user(pending.core, id)?.map(|user| User::clone(&user)))
}

fn put_user(pending: &mut Pending<'_>, user: User) -> Result<Arc<User>, EngineFault> {
    pending.set(Keyspace::Users, keys::user(&user.id), &UserRecord::from(&user))?;
    let user = Arc::new(user);
    pending.effects().users.insert(user.id.clone(), Arc::clone(&user));
    Ok(user)
}
