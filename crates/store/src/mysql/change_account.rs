//! Changes of an account, its password and its reset code, under the lock of the user's row.

use std::sync::Arc;

use nexo_chat::ids::{Millis, UserId};
use nexo_chat::model::{Profile, ProfileChange, ResetCode, User};
use nexo_chat::store::StoreError;

use super::core::Core;
use super::fault::SqlFault;
use super::row::{self, RESET, USER};
use super::sql::values;
use super::transaction::{Transaction, with_retries};
use crate::{account_rules, details};

pub(crate) async fn update_profile(
    core: &Core,
    id: &UserId,
    change: &ProfileChange,
    at: Millis,
) -> Result<Option<Arc<User>>, SqlFault> {
    let mut transaction = core.begin().await?;
    let Some(mut user) = lock(&mut transaction, id).await? else {
        transaction.roll_back().await?;
        return Ok(None);
    };
    user.update(change.clone(), at);
    update(&mut transaction, &user).await?;
    transaction.commit().await?;
    Ok(Some(Arc::new(user)))
}

/// Changes an account, and tries again while others are in the way.
pub(crate) async fn change(
    core: &Core,
    id: &UserId,
    change: &(dyn Fn(&User) -> Option<User> + Send + Sync),
) -> Result<Option<Arc<User>>, StoreError> {
    with_retries!(core, try_change(core, id, change))
}

async fn try_change(
    core: &Core,
    id: &UserId,
    change: &(dyn Fn(&User) -> Option<User> + Send + Sync),
) -> Result<Option<Arc<User>>, SqlFault> {
    let mut transaction = core.begin().await?;
    let before = lock(&mut transaction, id).await?;
    let changed = before.as_ref().and_then(|before| account_rules::apply(before, change));
    let Some(changed) = changed else {
        transaction.roll_back().await?;
        return Ok(before.map(Arc::new));
    };
    update(&mut transaction, &changed.user).await?;
    if changed.ends_logins {
        end_all_logins(&mut transaction, id).await?;
    }
    transaction.commit().await?;
    Ok(Some(Arc::new(changed.user)))
}

/// Writes an account whose row is locked.
async fn update(transaction: &mut Transaction, user: &User) -> Result<(), SqlFault> {
    let sql = "UPDATE users SET nickname = ?, avatar = ?, extra = ?, updated_at = ?, \
         password_hash = ?, session_version = ?, details = ? WHERE id = ?";
    let Profile { nickname, avatar, extra } = &user.profile;
    let row = values![
        nickname,
        avatar,
        extra,
        user.updated_at.0,
        &user.password_hash,
        user.session_version,
        row::maybe_bytes(details::encode(&user.details)),
        user.id.as_str(),
    ];
    transaction.run(sql, row).await?;
    Ok(())
}

/// Ends the logins of a user whose session version is raised, and deletes the reset code.
async fn end_all_logins(transaction: &mut Transaction, id: &UserId) -> Result<(), SqlFault> {
    transaction.run("DELETE FROM reset_codes WHERE user_id = ?", values![id.as_str()]).await?;
    transaction.run("UPDATE logins SET ended = 1 WHERE user_id = ?", values![id.as_str()]).await?;
    Ok(())
}

pub(crate) async fn change_password(
    core: &Core,
    id: &UserId,
    session_version: u64,
    hash: &str,
) -> Result<Option<u64>, SqlFault> {
    let mut transaction = core.begin().await?;
    let user = lock(&mut transaction, id).await?;
    let user = user.filter(|user| user.session_version == session_version);
    set_password(transaction, user, hash).await
}

/// Replaces the password of a user whose row is locked, or rolls back if there is none.
async fn set_password(
    mut transaction: Transaction,
    user: Option<User>,
    hash: &str,
) -> Result<Option<u64>, SqlFault> {
    let Some(mut user) = user else {
        transaction.roll_back().await?;
        return Ok(None);
    };
    hash.clone_into(&mut user.password_hash);
    user.session_version += 1;
    update(&mut transaction, &user).await?;
    end_all_logins(&mut transaction, &user.id).await?;
    transaction.commit().await?;
    Ok(Some(user.session_version))
}

pub(crate) async fn put_reset_code(
    core: &Core,
    id: &UserId,
    reset: ResetCode,
) -> Result<bool, SqlFault> {
    let mut transaction = core.begin().await?;
    if lock(&mut transaction, id).await?.is_none() {
        transaction.roll_back().await?;
        return Ok(false);
    }
    let sql = format!("REPLACE INTO reset_codes ({RESET}) VALUES (?, ?, ?)");
    transaction.run(sql, row::reset_values(id, reset)).await?;
    transaction.commit().await?;
    Ok(true)
}

pub(crate) async fn reset_password(
    core: &Core,
    id: &UserId,
    code_hash: [u8; 32],
    now: Millis,
    hash: &str,
) -> Result<Option<u64>, SqlFault> {
    let mut transaction = core.begin().await?;
    let user = lock(&mut transaction, id).await?;
    // Every change of a reset code holds the lock of the user's row.
    let sql = format!("SELECT {RESET} FROM reset_codes WHERE user_id = ? FOR UPDATE");
    let stored = transaction.rows(sql, values![id.as_str()]).await?.into_iter().next();
    let stored = stored.map(row::reset).transpose()?;
    let is_right = stored.is_some_and(|(_, code)| code.matches(code_hash, now));
    set_password(transaction, user.filter(|_| is_right), hash).await
}

/// Reads and locks an account.
pub(crate) async fn lock(
    transaction: &mut Transaction,
    id: &UserId,
) -> Result<Option<User>, SqlFault> {
    let sql = format!("SELECT {USER} FROM users WHERE id = ? FOR UPDATE");
    transaction.rows(sql, values![id.as_str()]).await?.into_iter().next().map(row::user).transpose()
}
