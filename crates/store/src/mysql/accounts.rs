//! Accounts and sign-ins. What belongs to one user is changed under the lock of their row.

use std::sync::Arc;

use mysql_async::Value;
use nexo_chat::ids::{FoldedId, LoginId, Millis, UserId};
use nexo_chat::model::{Login, Profile, ProfileChange, ResetCode, User};
use nexo_chat::store::{Rotated, SignedIn, StoreError};

use super::act::Act;
use super::core::Core;
use super::fault::Fault;
use super::row::{self, Fields, LOGIN, RESET, USER};
use super::sql::{looking, values};
use crate::sign_ins::{self, LIVE_MAX, USED_MAX};

/// Does something in a transaction until it is done.
macro_rules! settle {
    ($core:expr, $attempt:expr) => {{
        let mut tries = $core.tries();
        loop {
            match $attempt.await {
                Ok(done) => return Ok(done),
                Err(fault) => tries.again(fault).await?,
            }
        }
    }};
}

/// The account, if there is one.
pub(crate) async fn get(core: &Core, id: &UserId) -> Result<Option<Arc<User>>, StoreError> {
    let sql = format!("SELECT {USER} FROM users WHERE id = ?");
    let rows = core.rows(&sql, values![id.as_str()]).await?;
    Ok(rows.into_iter().next().map(row::user).transpose()?.map(Arc::new))
}

/// When a user was last seen.
pub(crate) async fn last_seen(core: &Core, id: &UserId) -> Result<Option<Millis>, StoreError> {
    let rows =
        core.rows("SELECT at FROM last_seen WHERE user_id = ?", values![id.as_str()]).await?;
    Ok(rows.into_iter().next().map(|row| Fields::from(row).millis()).transpose()?)
}

/// Who holds a folded id.
pub(crate) async fn holder(core: &Core, id: &FoldedId) -> Result<Option<UserId>, StoreError> {
    let sql = "SELECT user_id FROM folded_ids WHERE folded = ?";
    let rows = core.rows(sql, values![id.as_str()]).await?;
    Ok(rows.into_iter().next().map(|row| Fields::from(row).user()).transpose()?)
}

/// Creates an account; `false` if the id is taken, or one that looks like it.
pub(crate) async fn create(core: &Core, user: User) -> Result<bool, StoreError> {
    settle!(core, try_create(core, &user))
}

async fn try_create(core: &Core, user: &User) -> Result<bool, Fault> {
    let mut act = core.begin().await?;
    let account = format!("INSERT INTO users ({USER}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
    let folded = "INSERT INTO folded_ids (folded, user_id) VALUES (?, ?)".to_owned();
    let holds = values![user.id.folded().as_str(), user.id.as_str()];
    for (sql, values) in [(folded, holds), (account, row::user_values(user))] {
        match act.run(sql, values).await {
            Err(Fault::Taken(_)) => {
                act.roll_back().await?;
                return Ok(false);
            }
            done => done?,
        };
    }
    act.commit().await?;
    Ok(true)
}

/// The account, locked.
async fn lock(act: &mut Act, id: &UserId) -> Result<Option<User>, Fault> {
    let sql = format!("SELECT {USER} FROM users WHERE id = ? FOR UPDATE");
    act.rows(sql, values![id.as_str()]).await?.into_iter().next().map(row::user).transpose()
}

/// Changes a profile.
pub(crate) async fn update_profile(
    core: &Core,
    id: &UserId,
    change: ProfileChange,
    at: Millis,
) -> Result<Option<Arc<User>>, StoreError> {
    settle!(core, try_update_profile(core, id, &change, at))
}

async fn try_update_profile(
    core: &Core,
    id: &UserId,
    change: &ProfileChange,
    at: Millis,
) -> Result<Option<Arc<User>>, Fault> {
    let mut act = core.begin().await?;
    let Some(mut user) = lock(&mut act, id).await? else {
        act.roll_back().await?;
        return Ok(None);
    };
    user.update(change.clone(), at);
    let Profile { nickname, avatar, extra } = &user.profile;
    let sql = "UPDATE users SET nickname = ?, avatar = ?, extra = ?, updated_at = ? WHERE id = ?";
    act.run(sql, values![nickname, avatar, extra, user.updated_at.0, id.as_str()]).await?;
    act.commit().await?;
    Ok(Some(Arc::new(user)))
}

/// Replaces the password, raises the session version and ends all sign-ins.
pub(crate) async fn change_password(
    core: &Core,
    id: &UserId,
    session_version: u64,
    hash: &str,
) -> Result<Option<u64>, StoreError> {
    settle!(core, try_change_password(core, id, session_version, hash))
}

async fn try_change_password(
    core: &Core,
    id: &UserId,
    session_version: u64,
    hash: &str,
) -> Result<Option<u64>, Fault> {
    let mut act = core.begin().await?;
    let user = lock(&mut act, id).await?;
    let user = user.filter(|user| user.session_version == session_version);
    set_password(act, user, hash).await
}

/// Replaces the password of somebody whose row is locked, if it is to be, and ends the act.
async fn set_password(mut act: Act, user: Option<User>, hash: &str) -> Result<Option<u64>, Fault> {
    let Some(User { id, session_version, .. }) = user else {
        act.roll_back().await?;
        return Ok(None);
    };
    let version = session_version + 1;
    let sql = "UPDATE users SET password_hash = ?, session_version = ? WHERE id = ?";
    act.run(sql, values![hash, version, id.as_str()]).await?;
    act.run("DELETE FROM reset_codes WHERE user_id = ?", values![id.as_str()]).await?;
    act.run("UPDATE logins SET ended = 1 WHERE user_id = ?", values![id.as_str()]).await?;
    act.commit().await?;
    Ok(Some(version))
}

/// Keeps a one-time code; `false` without such a user.
pub(crate) async fn put_reset(
    core: &Core,
    id: &UserId,
    kept: ResetCode,
) -> Result<bool, StoreError> {
    settle!(core, try_put_reset(core, id, kept))
}

async fn try_put_reset(core: &Core, id: &UserId, kept: ResetCode) -> Result<bool, Fault> {
    let mut act = core.begin().await?;
    if lock(&mut act, id).await?.is_none() {
        act.roll_back().await?;
        return Ok(false);
    }
    let sql = format!("REPLACE INTO reset_codes ({RESET}) VALUES (?, ?, ?)");
    act.run(sql, row::reset_values(id, kept)).await?;
    act.commit().await?;
    Ok(true)
}

/// The one-time code of a user.
pub(crate) async fn reset(core: &Core, id: &UserId) -> Result<Option<ResetCode>, StoreError> {
    let sql = format!("SELECT {RESET} FROM reset_codes WHERE user_id = ?");
    let rows = core.rows(&sql, values![id.as_str()]).await?;
    Ok(rows.into_iter().next().map(row::reset).transpose()?.map(|(_, code)| code))
}

/// Replaces the password by a one-time code.
pub(crate) async fn reset_password(
    core: &Core,
    id: &UserId,
    code_hash: [u8; 32],
    now: Millis,
    hash: &str,
) -> Result<Option<u64>, StoreError> {
    settle!(core, try_reset_password(core, id, code_hash, now, hash))
}

async fn try_reset_password(
    core: &Core,
    id: &UserId,
    code_hash: [u8; 32],
    now: Millis,
    hash: &str,
) -> Result<Option<u64>, Fault> {
    let mut act = core.begin().await?;
    let user = lock(&mut act, id).await?;
    // Under the lock of the user's row, which whoever changes the code has too.
    let sql = format!("SELECT {RESET} FROM reset_codes WHERE user_id = ? FOR UPDATE");
    let kept = act.rows(sql, values![id.as_str()]).await?.into_iter().next();
    let kept = kept.map(row::reset).transpose()?;
    let is_right = kept.is_some_and(|(_, code)| code.is(code_hash, now));
    set_password(act, user.filter(|_| is_right), hash).await
}

/// A sign-in, ended or not.
pub(crate) async fn login(core: &Core, id: LoginId) -> Result<Option<Login>, StoreError> {
    let sql = format!("SELECT {LOGIN} FROM logins WHERE id = ?");
    let rows = core.rows(&sql, values![&id.0[..]]).await?;
    Ok(rows.into_iter().next().map(row::login).transpose()?)
}

/// All remembered sign-ins of a user, by id, locked.
async fn logins_of(act: &mut Act, user: &UserId) -> Result<Vec<Login>, Fault> {
    let sql = format!("SELECT {LOGIN} FROM logins WHERE user_id = ? ORDER BY id FOR UPDATE");
    let rows = act.rows(sql, values![user.as_str()]).await?;
    rows.into_iter().map(row::login).collect()
}

/// Keeps a new sign-in, forgets what is over, and ends the oldest beyond the bound.
pub(crate) async fn create_login(
    core: &Core,
    login: Login,
    session_version: u64,
    now: Millis,
) -> Result<Option<SignedIn>, StoreError> {
    settle!(core, try_create_login(core, login.clone(), session_version, now))
}

async fn try_create_login(
    core: &Core,
    mut login: Login,
    session_version: u64,
    now: Millis,
) -> Result<Option<SignedIn>, Fault> {
    let mut act = core.begin().await?;
    let user = lock(&mut act, &login.user).await?;
    if user.is_none_or(|user| user.session_version != session_version) {
        act.roll_back().await?;
        return Ok(None);
    }
    let others = logins_of(&mut act, &login.user).await?;
    login.created_at = sign_ins::begin(login.created_at, others.iter());
    let (live, over): (Vec<Login>, Vec<Login>) =
        others.into_iter().partition(|old| sign_ins::is_live(old, now));
    let over = keys(over.iter().map(|old| old.id));
    each(&mut act, "DELETE FROM refresh_hashes WHERE login_id IN {}", &over).await?;
    each(&mut act, "DELETE FROM logins WHERE id IN {}", &over).await?;
    let ended = sign_ins::too_many(live.iter(), LIVE_MAX - 1);
    end_these(&mut act, &ended).await?;
    let sql = format!("INSERT INTO logins ({LOGIN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
    act.run(sql, row::login_values(&login)).await?;
    remember(&mut act, &login).await?;
    act.commit().await?;
    Ok(Some(SignedIn { login, ended }))
}

fn keys(ids: impl Iterator<Item = LoginId>) -> Vec<Vec<Value>> {
    ids.map(|id| values![&id.0[..]]).collect()
}

async fn each(act: &mut Act, sql: &str, keys: &[Vec<Value>]) -> Result<(), Fault> {
    for (sql, params) in looking(sql, &[], keys) {
        act.run(sql, params).await?;
    }
    Ok(())
}

async fn end_these(act: &mut Act, ids: &[LoginId]) -> Result<(), Fault> {
    each(act, "UPDATE logins SET ended = 1 WHERE id IN {}", &keys(ids.iter().copied())).await
}

/// Lets the refresh token be found.
async fn remember(act: &mut Act, login: &Login) -> Result<(), Fault> {
    let sql = "INSERT INTO refresh_hashes (refresh_hash, login_id, generation) VALUES (?, ?, ?)";
    let row = values![&login.refresh_hash[..], &login.id.0[..], login.generation];
    act.run(sql, row).await?;
    Ok(())
}

/// A rotation as it was asked for.
#[derive(Clone, Copy)]
pub(crate) struct Rotation {
    pub(crate) old_hash: [u8; 32],
    pub(crate) new_hash: [u8; 32],
    pub(crate) expires_at: Millis,
    pub(crate) now: Millis,
    pub(crate) grace_ms: u64,
}

/// Replaces a refresh token by the next one.
pub(crate) async fn rotate(core: &Core, it: Rotation) -> Result<Rotated, StoreError> {
    settle!(core, try_rotate(core, it))
}

async fn try_rotate(core: &Core, it: Rotation) -> Result<Rotated, Fault> {
    let Rotation { old_hash, new_hash, expires_at, now, grace_ms } = it;
    let mut act = core.begin().await?;
    // The token leads to its sign-in for as long as that is remembered, so it need not be locked.
    let sql = "SELECT login_id FROM refresh_hashes WHERE refresh_hash = ?";
    let found = act.rows(sql, values![&old_hash[..]]).await?.into_iter().next();
    let mut found = match found {
        Some(row) => {
            let sql = format!("SELECT {LOGIN} FROM logins WHERE id = ? FOR UPDATE");
            let id: [u8; 16] = Fields::from(row).array()?;
            act.rows(sql, values![&id[..]]).await?.into_iter().next().map(row::login).transpose()?
        }
        None => None,
    };
    let Some(login) = &mut found else {
        act.roll_back().await?;
        return Ok(Rotated::Unknown);
    };
    let rotated = sign_ins::rotate(login, old_hash, new_hash, expires_at, now, grace_ms);
    match rotated {
        Rotated::Unknown | Rotated::Again(_) => {
            act.roll_back().await?;
            return Ok(rotated);
        }
        Rotated::Reused(_) => end_these(&mut act, &[login.id]).await?,
        Rotated::Done(_) => {
            let sql = "UPDATE logins SET refresh_hash = ?, generation = ?, rotated_at = ?, \
                 expires_at = ? WHERE id = ?";
            let row = values![
                &login.refresh_hash[..],
                login.generation,
                login.rotated_at.0,
                login.expires_at.0,
                &login.id.0[..],
            ];
            act.run(sql, row).await?;
            remember(&mut act, login).await?;
            if let Some(oldest) = login.generation.checked_sub(USED_MAX + 1) {
                let sql = "DELETE FROM refresh_hashes WHERE login_id = ? AND generation <= ?";
                act.run(sql, values![&login.id.0[..], oldest]).await?;
            }
        }
    }
    act.commit().await?;
    Ok(rotated)
}

/// Ends those of a user's live sign-ins that `which` picks.
pub(crate) async fn end_logins(
    core: &Core,
    user: &UserId,
    which: &(dyn Fn(&Login) -> bool + Send + Sync),
) -> Result<Vec<LoginId>, StoreError> {
    settle!(core, try_end_logins(core, user, which))
}

async fn try_end_logins(
    core: &Core,
    user: &UserId,
    which: &(dyn Fn(&Login) -> bool + Send + Sync),
) -> Result<Vec<LoginId>, Fault> {
    let mut act = core.begin().await?;
    let logins = logins_of(&mut act, user).await?;
    let picked = logins.iter().filter(|login| !login.ended && which(login));
    let ended: Vec<LoginId> = picked.map(|login| login.id).collect();
    if ended.is_empty() {
        act.roll_back().await?;
        return Ok(ended);
    }
    end_these(&mut act, &ended).await?;
    act.commit().await?;
    Ok(ended)
}
