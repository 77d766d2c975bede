//! Accounts. A user's data is changed under the lock of their row.

use std::future::ready;
use std::sync::Arc;

use nexo_chat::ids::{FoldedId, Millis, UserId};
use nexo_chat::model::{Profile, ProfileChange, ResetCode, User};
use nexo_chat::store::{AccountStore, StoreFuture};

use super::core::Core;
use super::cursor_writer::CursorRequest;
use super::fault::SqlFault;
use super::fields::Fields;
use super::row::{RESET, USER};
use super::sql::values;
use super::transaction::{Transaction, with_retries};
use super::{MySql, row};

impl AccountStore for MySql {
    fn record_seen(&self, user: &UserId, at: Millis) -> StoreFuture<'_, ()> {
        let user = user.clone();
        self.submit_cursor(|answer| CursorRequest::Seen { user, at, answer })
    }

    fn last_seen(&self, user: &UserId) -> StoreFuture<'_, Option<Millis>> {
        let user = user.clone();
        self.spawn_read(async move |core| {
            let rows = core
                .rows("SELECT at FROM last_seen WHERE user_id = ?", values![user.as_str()])
                .await?;
            Ok(rows.into_iter().next().map(|row| Fields::from(row).millis()).transpose()?)
        })
    }

    fn create_user(&self, user: User) -> StoreFuture<'_, bool> {
        self.spawn_write(async move |core| with_retries!(core, try_create(&core, &user)))
    }

    fn user_by_folded_id<'a>(&'a self, folded: &'a FoldedId) -> StoreFuture<'a, Option<UserId>> {
        let folded = folded.clone();
        self.spawn_read(async move |core| {
            let sql = "SELECT user_id FROM folded_ids WHERE folded = ?";
            let rows = core.rows(sql, values![folded.as_str()]).await?;
            Ok(rows.into_iter().next().map(|row| Fields::from(row).user()).transpose()?)
        })
    }

    fn user(&self, id: &UserId) -> StoreFuture<'_, Option<Arc<User>>> {
        let id = id.clone();
        self.spawn_read(async move |core| {
            let sql = format!("SELECT {USER} FROM users WHERE id = ?");
            let rows = core.rows(&sql, values![id.as_str()]).await?;
            Ok(rows.into_iter().next().map(row::user).transpose()?.map(Arc::new))
        })
    }

    fn user_exists<'a>(&'a self, id: &'a UserId) -> StoreFuture<'a, bool> {
        if self.core.known_users.get(id).is_some() {
            return Box::pin(ready(Ok(true)));
        }
        Box::pin(async move {
            let exists = self.user(id).await?.is_some();
            if exists {
                self.core.known_users.insert(id.clone(), ());
            }
            Ok(exists)
        })
    }

    fn update_profile(
        &self,
        id: &UserId,
        change: ProfileChange,
        at: Millis,
    ) -> StoreFuture<'_, Option<Arc<User>>> {
        let id = id.clone();
        self.spawn_write(async move |core| {
            with_retries!(core, try_update_profile(&core, &id, &change, at))
        })
    }

    fn change_password(
        &self,
        id: &UserId,
        session_version: u64,
        hash: String,
    ) -> StoreFuture<'_, Option<u64>> {
        let id = id.clone();
        self.spawn_write(async move |core| {
            with_retries!(core, try_change_password(&core, &id, session_version, &hash))
        })
    }

    fn put_reset_code(&self, id: &UserId, code: ResetCode) -> StoreFuture<'_, bool> {
        let id = id.clone();
        self.spawn_write(async move |core| with_retries!(core, try_put_reset(&core, &id, code)))
    }

    fn reset_code(&self, id: &UserId) -> StoreFuture<'_, Option<ResetCode>> {
        let id = id.clone();
        self.spawn_read(async move |core| {
            let sql = format!("SELECT {RESET} FROM reset_codes WHERE user_id = ?");
            let rows = core.rows(&sql, values![id.as_str()]).await?;
            Ok(rows.into_iter().next().map(row::reset).transpose()?.map(|(_, code)| code))
        })
    }

    fn reset_password(
        &self,
        id: &UserId,
        code_hash: [u8; 32],
        now: Millis,
        hash: String,
    ) -> StoreFuture<'_, Option<u64>> {
        let id = id.clone();
        self.spawn_write(async move |core| {
            with_retries!(core, try_reset_password(&core, &id, code_hash, now, &hash))
        })
    }
}

async fn try_create(core: &Core, user: &User) -> Result<bool, SqlFault> {
    let mut transaction = core.begin().await?;
    let account = format!("INSERT INTO users ({USER}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
    let folded = "INSERT INTO folded_ids (folded, user_id) VALUES (?, ?)".to_owned();
    let holds = values![user.id.folded().as_str(), user.id.as_str()];
    for (sql, values) in [(folded, holds), (account, row::user_values(user))] {
        match transaction.run(sql, values).await {
            Err(SqlFault::DuplicateKey(_)) => {
                transaction.roll_back().await?;
                return Ok(false);
            }
            done => done?,
        };
    }
    transaction.commit().await?;
    Ok(true)
}

async fn try_update_profile(
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
    let Profile { nickname, avatar, extra } = &user.profile;
    let sql = "UPDATE users SET nickname = ?, avatar = ?, extra = ?, updated_at = ? WHERE id = ?";
    transaction.run(sql, values![nickname, avatar, extra, user.updated_at.0, id.as_str()]).await?;
    transaction.commit().await?;
    Ok(Some(Arc::new(user)))
}

async fn try_change_password(
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
    let Some(User { id, session_version, .. }) = user else {
        transaction.roll_back().await?;
        return Ok(None);
    };
    let version = session_version + 1;
    let sql = "UPDATE users SET password_hash = ?, session_version = ? WHERE id = ?";
    transaction.run(sql, values![hash, version, id.as_str()]).await?;
    transaction.run("DELETE FROM reset_codes WHERE user_id = ?", values![id.as_str()]).await?;
    transaction.run("UPDATE logins SET ended = 1 WHERE user_id = ?", values![id.as_str()]).await?;
    transaction.commit().await?;
    Ok(Some(version))
}

async fn try_put_reset(core: &Core, id: &UserId, reset: ResetCode) -> Result<bool, SqlFault> {
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

async fn try_reset_password(
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
