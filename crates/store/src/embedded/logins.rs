//! Logins: the record by its id, a list per user, and the refresh hashes it has and had.

use std::collections::HashMap;

use nexo_chat::ids::{LoginId, Millis, UserId};
use nexo_chat::model::Login;
use nexo_chat::store::{CreatedLogin, LoginStore, Order, RotateRequest, Rotation, StoreFuture};

use super::engine::Engine;
use super::keys::Keyspace;
use super::pending::Pending;
use super::poison::EngineFault;
use super::record::LoginRecord;
use super::{CHANGE_BYTES, Embedded, accounts, keys, record};
use crate::login_rules;
use crate::login_rules::{LIVE_LOGINS_MAX, USED_TOKENS_MAX};

impl LoginStore for Embedded {
    fn create_login(
        &self,
        login: Login,
        session_version: u64,
        now: Millis,
    ) -> StoreFuture<'_, Option<CreatedLogin>> {
        self.submit(CHANGE_BYTES, move |pending| create_login(pending, login, session_version, now))
    }

    fn login(&self, id: LoginId) -> StoreFuture<'_, Option<Login>> {
        self.read_now(|core| find_login(&core.engine, id))
    }

    fn logins(&self, user: &UserId) -> StoreFuture<'_, Vec<Login>> {
        let user = user.clone();
        self.read_blocking(move |core| read_logins(&core.engine, &user))
    }

    fn rotate_refresh_token(&self, request: RotateRequest) -> StoreFuture<'_, Rotation> {
        self.submit(CHANGE_BYTES, move |pending| rotate_refresh_token(pending, &request))
    }

    fn end_logins(
        &self,
        user: &UserId,
        which: Box<dyn Fn(&Login) -> bool + Send + Sync>,
    ) -> StoreFuture<'_, Vec<LoginId>> {
        let user = user.clone();
        self.submit(CHANGE_BYTES, move |pending| end_logins(pending, &user, &which))
    }
}

fn find_login(engine: &Engine, id: LoginId) -> Result<Option<Login>, EngineFault> {
    engine.get(Keyspace::Logins, &id.0)?.map(|bytes| decode(id, &bytes)).transpose()
}

/// Reads the logins of a user that have not ended, newest first.
fn read_logins(engine: &Engine, user: &UserId) -> Result<Vec<Login>, EngineFault> {
    let range = keys::logins_of(user);
    let listed =
        engine.scan(Keyspace::UserLogins, range, usize::MAX, Order::Ascending, usize::MAX)?;
    let mut logins = Vec::with_capacity(listed.len());
    for (key, _) in listed {
        // One that is gone was deleted after the list was read: it had ended or expired.
        logins.extend(find_login(engine, listed_login(&key)?)?);
    }
    Ok(login_rules::newest_first(logins))
}

/// Returns the login in a key of `user_logins`.
fn listed_login(key: &[u8]) -> Result<LoginId, EngineFault> {
    keys::login_of(key).ok_or_else(|| record::impossible(Keyspace::UserLogins, "no login id"))
}

/// Stores a new login, deletes those that ended or expired, and ends the oldest beyond the limit.
fn create_login(
    pending: &mut Pending<'_>,
    mut login: Login,
    session_version: u64,
    now: Millis,
) -> Result<Option<CreatedLogin>, EngineFault> {
    let user = accounts::current_user(pending, &login.user)?;
    if user.is_none_or(|user| user.session_version != session_version) {
        return Ok(None);
    }
    let others = of_user(pending, &login.user)?;
    // Read before anything is added.
    let mut replaced = HashMap::new();
    for old in others.iter().filter(|old| !login_rules::is_live(old, now)) {
        replaced.insert(old.id, used_hashes(pending, old)?);
    }
    login.created_at = login_rules::created_after(login.created_at, others.iter());
    let mut live = Vec::new();
    for old in others {
        if login_rules::is_live(&old, now) {
            live.push(old);
        } else {
            delete_login(pending, &old, replaced.remove(&old.id).unwrap_or_default());
        }
    }
    let ended = login_rules::oldest_beyond(live.iter(), LIVE_LOGINS_MAX - 1);
    for mut old in live.into_iter().filter(|old| ended.contains(&old.id)) {
        old.ended = true;
        put(pending, &old)?;
    }
    put(pending, &login)?;
    pending.set(Keyspace::UserLogins, keys::user_login(&login.user, login.id), &())?;
    pending.set(Keyspace::RefreshTokens, login.refresh_hash.to_vec(), &login.id.0)?;
    Ok(Some(CreatedLogin { login, ended }))
}

fn rotate_refresh_token(
    pending: &mut Pending<'_>,
    request: &RotateRequest,
) -> Result<Rotation, EngineFault> {
    let RotateRequest { old_hash, new_hash, .. } = *request;
    let Some(bytes) = pending.get(Keyspace::RefreshTokens, &old_hash)? else {
        return Ok(Rotation::Unknown);
    };
    let id = LoginId(record::decode(Keyspace::RefreshTokens, &old_hash, &bytes)?);
    let mut login = current(pending, id)?;
    let generation = login.generation;
    let oldest = generation.checked_sub(USED_TOKENS_MAX);
    let dropped = match oldest {
        Some(oldest) => used_hash(pending, id, oldest)?, // read before anything is added
        None => None,
    };
    let rotated = login_rules::rotate(&mut login, request);
    match rotated {
        Rotation::Unknown | Rotation::Again(_) => return Ok(rotated),
        Rotation::Reused(_) => {}
        Rotation::Done(_) => {
            pending.set(Keyspace::RefreshTokens, new_hash.to_vec(), &id.0)?;
            pending.set(Keyspace::UsedTokens, keys::used_token(id, generation), &old_hash)?;
            if let (Some(oldest), Some(hash)) = (oldest, dropped) {
                delete_used_token(pending, id, oldest, hash);
            }
        }
    }
    put(pending, &login)?;
    Ok(rotated)
}

/// Ends those of a user's live logins that `which` picks.
pub(crate) fn end_logins(
    pending: &mut Pending<'_>,
    user: &UserId,
    which: &dyn Fn(&Login) -> bool,
) -> Result<Vec<LoginId>, EngineFault> {
    let mut ended = Vec::new();
    for mut login in of_user(pending, user)? {
        if !login.ended && which(&login) {
            login.ended = true;
            put(pending, &login)?;
            ended.push(login.id);
        }
    }
    Ok(ended)
}

/// Returns all stored logins of a user, by id.
fn of_user(pending: &Pending<'_>, user: &UserId) -> Result<Vec<Login>, EngineFault> {
    let keys = pending.keys(Keyspace::UserLogins, keys::logins_of(user))?;
    keys.iter().map(|key| current(pending, listed_login(key)?)).collect()
}

/// Returns a login that must exist, as it will be after the batch.
fn current(pending: &Pending<'_>, id: LoginId) -> Result<Login, EngineFault> {
    match pending.get(Keyspace::Logins, &id.0)? {
        Some(bytes) => decode(id, &bytes),
        None => Err(record::impossible(Keyspace::Logins, "a login is missing")),
    }
}

fn decode(id: LoginId, bytes: &[u8]) -> Result<Login, EngineFault> {
    record::decode::<LoginRecord<'_>>(Keyspace::Logins, &id.0, bytes)?.login(id)
}

fn put(pending: &mut Pending<'_>, login: &Login) -> Result<(), EngineFault> {
    pending.set(Keyspace::Logins, login.id.0.to_vec(), &LoginRecord::from(login))
}

fn delete_login(pending: &mut Pending<'_>, login: &Login, used: Vec<(u64, [u8; 32])>) {
    pending.delete(Keyspace::Logins, login.id.0.to_vec());
    pending.delete(Keyspace::UserLogins, keys::user_login(&login.user, login.id));
    pending.delete(Keyspace::RefreshTokens, login.refresh_hash.to_vec());
    for (generation, hash) in used {
        delete_used_token(pending, login.id, generation, hash);
    }
}

/// Returns the refresh hashes that a login replaced, with their generations.
fn used_hashes(pending: &Pending<'_>, login: &Login) -> Result<Vec<(u64, [u8; 32])>, EngineFault> {
    let mut found = Vec::new();
    for generation in login.generation.saturating_sub(USED_TOKENS_MAX)..login.generation {
        let hash = used_hash(pending, login.id, generation)?;
        found.extend(hash.map(|hash| (generation, hash)));
    }
    Ok(found)
}

fn used_hash(
    pending: &Pending<'_>,
    id: LoginId,
    generation: u64,
) -> Result<Option<[u8; 32]>, EngineFault> {
    let key = keys::used_token(id, generation);
    let Some(bytes) = pending.get(Keyspace::UsedTokens, &key)? else { return Ok(None) };
    record::decode(Keyspace::UsedTokens, &key, &bytes).map(Some)
}

/// Deletes a refresh hash that was replaced.
fn delete_used_token(pending: &mut Pending<'_>, id: LoginId, generation: u64, hash: [u8; 32]) {
    pending.delete(Keyspace::RefreshTokens, hash.to_vec());
    pending.delete(Keyspace::UsedTokens, keys::used_token(id, generation));
}
