//! Logins and their refresh tokens, changed under the locks of the user's row and the logins' rows.

use mysql_async::Value;
use nexo_chat::ids::{LoginId, Millis, UserId};
use nexo_chat::model::Login;
use nexo_chat::store::{CreatedLogin, LoginStore, RotateRequest, Rotation, StoreFuture};

use super::core::Core;
use super::fault::SqlFault;
use super::fields::Fields;
use super::row::LOGIN;
use super::sql::{select_in, values};
use super::transaction::{Transaction, with_retries};
use super::{MySql, change_account, row};
use crate::login_rules;
use crate::login_rules::{LIVE_LOGINS_MAX, USED_TOKENS_MAX};

impl LoginStore for MySql {
    fn create_login(
        &self,
        login: Login,
        session_version: u64,
        now: Millis,
    ) -> StoreFuture<'_, Option<CreatedLogin>> {
        self.spawn_write(async move |core| {
            with_retries!(core, try_create(&core, login.clone(), session_version, now))
        })
    }

    fn login(&self, id: LoginId) -> StoreFuture<'_, Option<Login>> {
        self.spawn_read(async move |core| {
            let sql = format!("SELECT {LOGIN} FROM logins WHERE id = ?");
            let rows = core.rows(&sql, values![&id.0[..]]).await?;
            Ok(rows.into_iter().next().map(row::login).transpose()?)
        })
    }

    fn logins(&self, user: &UserId) -> StoreFuture<'_, Vec<Login>> {
        let user = user.clone();
        self.spawn_read(async move |core| {
            let sql = format!("SELECT {LOGIN} FROM logins WHERE user_id = ?");
            let rows = core.rows(&sql, values![user.as_str()]).await?;
            let logins = rows.into_iter().map(row::login).collect::<Result<_, SqlFault>>()?;
            Ok(login_rules::newest_first(logins))
        })
    }

    fn rotate_refresh_token(&self, request: RotateRequest) -> StoreFuture<'_, Rotation> {
        self.spawn_write(async move |core| with_retries!(core, try_rotate(&core, &request)))
    }

    fn end_logins(
        &self,
        user: &UserId,
        which: Box<dyn Fn(&Login) -> bool + Send + Sync>,
    ) -> StoreFuture<'_, Vec<LoginId>> {
        let user = user.clone();
        self.spawn_write(async move |core| with_retries!(core, try_end(&core, &user, &*which)))
    }
}

async fn try_create(
    core: &Core,
    mut login: Login,
    session_version: u64,
    now: Millis,
) -> Result<Option<CreatedLogin>, SqlFault> {
    let mut transaction = core.begin().await?;
    let user = change_account::lock(&mut transaction, &login.user).await?;
    if user.is_none_or(|user| user.session_version != session_version) {
        transaction.roll_back().await?;
        return Ok(None);
    }
    let others = logins_of(&mut transaction, &login.user).await?;
    login.created_at = login_rules::created_after(login.created_at, others.iter());
    let (live, over): (Vec<Login>, Vec<Login>) =
        others.into_iter().partition(|old| login_rules::is_live(old, now));
    let over = keys(over.iter().map(|old| old.id));
    run_for_keys(&mut transaction, "DELETE FROM refresh_hashes WHERE login_id IN {}", &over)
        .await?;
    run_for_keys(&mut transaction, "DELETE FROM logins WHERE id IN {}", &over).await?;
    let ended = login_rules::oldest_beyond(live.iter(), LIVE_LOGINS_MAX - 1);
    end_these(&mut transaction, &ended).await?;
    let sql = format!("INSERT INTO logins ({LOGIN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    transaction.run(sql, row::login_values(&login)).await?;
    insert_refresh_hash(&mut transaction, &login).await?;
    transaction.commit().await?;
    Ok(Some(CreatedLogin { login, ended }))
}

async fn try_rotate(core: &Core, request: &RotateRequest) -> Result<Rotation, SqlFault> {
    let mut transaction = core.begin().await?;
    // Not locked: a stored refresh hash belongs to one login for as long as it is stored.
    let sql = "SELECT login_id FROM refresh_hashes WHERE refresh_hash = ?";
    let found = transaction.rows(sql, values![&request.old_hash[..]]).await?.into_iter().next();
    let mut found = match found {
        Some(row) => {
            let sql = format!("SELECT {LOGIN} FROM logins WHERE id = ? FOR UPDATE");
            let id: [u8; 16] = Fields::from(row).array()?;
            transaction
                .rows(sql, values![&id[..]])
                .await?
                .into_iter()
                .next()
                .map(row::login)
                .transpose()?
        }
        None => None,
    };
    let Some(login) = &mut found else {
        transaction.roll_back().await?;
        return Ok(Rotation::Unknown);
    };
    let rotated = login_rules::rotate(login, request);
    match rotated {
        Rotation::Unknown | Rotation::Again(_) => {
            transaction.roll_back().await?;
            return Ok(rotated);
        }
        Rotation::Reused(_) => end_these(&mut transaction, &[login.id]).await?,
        Rotation::Done(_) => {
            let sql = "UPDATE logins SET refresh_hash = ?, generation = ?, rotated_at = ?, \
                 expires_at = ? WHERE id = ?";
            let row = values![
                &login.refresh_hash[..],
                login.generation,
                login.rotated_at.0,
                login.expires_at.0,
                &login.id.0[..],
            ];
            transaction.run(sql, row).await?;
            insert_refresh_hash(&mut transaction, login).await?;
            if let Some(oldest) = login.generation.checked_sub(USED_TOKENS_MAX + 1) {
                let sql = "DELETE FROM refresh_hashes WHERE login_id = ? AND generation <= ?";
                transaction.run(sql, values![&login.id.0[..], oldest]).await?;
            }
        }
    }
    transaction.commit().await?;
    Ok(rotated)
}

async fn try_end(
    core: &Core,
    user: &UserId,
    which: &(dyn Fn(&Login) -> bool + Send + Sync),
) -> Result<Vec<LoginId>, SqlFault> {
    let mut transaction = core.begin().await?;
    let logins = logins_of(&mut transaction, user).await?;
    let picked = logins.iter().filter(|login| !login.ended && which(login));
    let ended: Vec<LoginId> = picked.map(|login| login.id).collect();
    if ended.is_empty() {
        transaction.roll_back().await?;
        return Ok(ended);
    }
    end_these(&mut transaction, &ended).await?;
    transaction.commit().await?;
    Ok(ended)
}

/// Reads and locks all stored logins of a user, by id.
pub(crate) async fn logins_of(
    transaction: &mut Transaction,
    user: &UserId,
) -> Result<Vec<Login>, SqlFault> {
    let sql = format!("SELECT {LOGIN} FROM logins WHERE user_id = ? ORDER BY id FOR UPDATE");
    let rows = transaction.rows(sql, values![user.as_str()]).await?;
    rows.into_iter().map(row::login).collect()
}

fn keys(ids: impl Iterator<Item = LoginId>) -> Vec<Vec<Value>> {
    ids.map(|id| values![&id.0[..]]).collect()
}

async fn run_for_keys(
    transaction: &mut Transaction,
    sql: &str,
    keys: &[Vec<Value>],
) -> Result<(), SqlFault> {
    for (sql, params) in select_in(sql, &[], keys) {
        transaction.run(sql, params).await?;
    }
    Ok(())
}

pub(crate) async fn end_these(
    transaction: &mut Transaction,
    ids: &[LoginId],
) -> Result<(), SqlFault> {
    run_for_keys(
        transaction,
        "UPDATE logins SET ended = 1 WHERE id IN {}",
        &keys(ids.iter().copied()),
    )
    .await
}

async fn insert_refresh_hash(transaction: &mut Transaction, login: &Login) -> Result<(), SqlFault> {
    let sql = "INSERT INTO refresh_hashes (refresh_hash, login_id, generation) VALUES (?, ?, ?)";
    let row = values![&login.refresh_hash[..], &login.id.0[..], login.generation];
    transaction.run(sql, row).await?;
    Ok(())
}
