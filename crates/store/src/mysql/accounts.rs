//! Accounts: changed in transactions, read from the tables.

use std::future::ready;
use std::sync::Arc;

use nexo_chat::ids::{FoldedId, Millis, UserId};
use nexo_chat::model::{ProfileChange, ResetCode, User};
use nexo_chat::store::{AccountStore, ChangeAccount, StoreFuture};

use super::core::Core;
use super::cursor_writer::CursorRequest;
use super::fault::SqlFault;
use super::fields::Fields;
use super::row::{RESET, USER};
use super::sql::values;
use super::transaction::with_retries;
use super::{MySql, change_account, row};

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
        let known = &self.core.known_users;
        if known.contains(id) {
            return Box::pin(ready(Ok(true)));
        }
        Box::pin(async move {
            let start = known.begin_lookup();
            let user = self.user(id).await?;
            let exists = user.is_some_and(|user| !user.details.status.is_deleted());
            if exists {
                known.remember(id, start);
            }
            Ok(exists)
        })
    }

    fn forget_user(&self, id: &UserId) {
        self.core.known_users.forget(id);
    }

    fn users(&self, after: Option<&UserId>, limit: usize) -> StoreFuture<'_, Vec<Arc<User>>> {
        let after = after.cloned();
        self.spawn_read(async move |core| {
            let after = after.as_ref().map_or("", UserId::as_str);
            let sql = format!("SELECT {USER} FROM users WHERE id > ? ORDER BY id LIMIT ?");
            let rows = core.rows(&sql, values![after, limit as u64]).await?;
            let users = rows.into_iter().map(|row| row::user(row).map(Arc::new));
            Ok(users.collect::<Result<_, SqlFault>>()?)
        })
    }

    fn change_account(
        &self,
        id: &UserId,
        change: ChangeAccount,
    ) -> StoreFuture<'_, Option<Arc<User>>> {
        let id = id.clone();
        self.spawn_write(async move |core| {
            let changed = change_account::change(&core, &id, &*change).await;
            // Also after an error: the change may have been committed.
            core.known_users.forget(&id);
            changed
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
            with_retries!(core, change_account::update_profile(&core, &id, &change, at))
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
            with_retries!(core, change_account::change_password(&core, &id, session_version, &hash))
        })
    }

    fn put_reset_code(&self, id: &UserId, code: ResetCode) -> StoreFuture<'_, bool> {
        let id = id.clone();
        self.spawn_write(async move |core| {
            with_retries!(core, change_account::put_reset_code(&core, &id, code))
        })
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
            with_retries!(core, change_account::reset_password(&core, &id, code_hash, now, &hash))
        })
    }
}

async fn try_create(core: &Core, user: &User) -> Result<bool, SqlFault> {
    let mut transaction = core.begin().await?;
    let account = format!("INSERT INTO users ({USER}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
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
