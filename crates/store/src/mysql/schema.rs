//! The tables and their migrations. A released version never changes; a new one is added.
//!
//! Ids are ASCII and compared by their bytes, like everywhere else. Times are milliseconds since
//! 1970. Everything here works on MariaDB 10.6, MySQL 8 and TiDB.

use std::sync::Arc;
use std::time::Duration;

use super::fault::{SqlFault, damaged};
use super::fields::Fields;
use super::pool::{Pool, PooledConnection};
use super::sql::values;

/// The statements of each version.
const VERSIONS: &[&[&str]] = &[VERSION_1, VERSION_2, VERSION_3, VERSION_4, VERSION_5];

/// Details of accounts and of logins, and documents.
const VERSION_5: &[&str] = &[
    "ALTER TABLE users ADD COLUMN details MEDIUMBLOB NULL",
    "ALTER TABLE logins ADD COLUMN details MEDIUMBLOB NULL",
    "CREATE TABLE documents (
        collection VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        id VARCHAR(191) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        body MEDIUMBLOB NOT NULL,
        PRIMARY KEY (collection, id))",
];

/// The index of folded user ids, and reset codes.
const VERSION_4: &[&str] = &[
    "CREATE TABLE folded_ids (
        folded VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        user_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        PRIMARY KEY (folded))",
    INDEX_FOLDED_IDS,
    "CREATE TABLE reset_codes (
        user_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        code_hash BINARY(32) NOT NULL,
        expires_at BIGINT UNSIGNED NOT NULL,
        PRIMARY KEY (user_id))",
    "ALTER TABLE users ADD COLUMN updated_at BIGINT UNSIGNED NOT NULL DEFAULT 0",
];

/// Indexes every account, folded as [`nexo_chat::ids::UserId::folded`] does. Of those that fold to
/// the same id the oldest holds it.
const INDEX_FOLDED_IDS: &str = "INSERT IGNORE INTO folded_ids (folded, user_id) \
     SELECT REPLACE(REPLACE(REPLACE(LOWER(id), 'i', 'l'), '1', 'l'), '0', 'o'), id \
     FROM users ORDER BY created_at, id";

/// Hidden conversations, the type of a group, and profiles of members within a group.
const VERSION_3: &[&str] = &[
    "ALTER TABLE members
        ADD COLUMN hidden_seq BIGINT UNSIGNED NULL,
        ADD COLUMN hidden_since BIGINT UNSIGNED NULL,
        ADD COLUMN extra MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL",
    "ALTER TABLE chat_groups ADD COLUMN group_type INT NOT NULL DEFAULT 0",
    "ALTER TABLE group_members
        ADD COLUMN nickname MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
        ADD COLUMN avatar MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
        ADD COLUMN extra MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL",
];

/// Which processes use the database: see `nodes`.
const VERSION_2: &[&str] = &[
    "CREATE TABLE nodes (
        id BINARY(16) NOT NULL,
        at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
        PRIMARY KEY (id))",
    "CREATE TABLE migrations (
        role VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
        PRIMARY KEY (role))",
];

const VERSION_1: &[&str] = &[
    "CREATE TABLE conversations (
        id VARCHAR(132) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        max_seq BIGINT UNSIGNED NOT NULL,
        change_seq BIGINT UNSIGNED NOT NULL,
        newest_at BIGINT UNSIGNED NOT NULL,
        end_seq BIGINT UNSIGNED NULL,
        end_change_seq BIGINT UNSIGNED NULL,
        end_at BIGINT UNSIGNED NULL,
        PRIMARY KEY (id))",
    "CREATE TABLE messages (
        conversation_id VARCHAR(132) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        seq BIGINT UNSIGNED NOT NULL,
        id BINARY(16) NOT NULL,
        sender VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        client_id VARBINARY(128) NOT NULL,
        sent_at BIGINT UNSIGNED NOT NULL,
        kind INT NOT NULL,
        body MEDIUMBLOB NOT NULL,
        details MEDIUMBLOB NULL,
        fingerprint BINARY(16) NOT NULL,
        recalled_by VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
        recalled_at BIGINT UNSIGNED NULL,
        PRIMARY KEY (conversation_id, seq),
        UNIQUE KEY by_id (id))",
    "CREATE TABLE changes (
        conversation_id VARCHAR(132) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        seq BIGINT UNSIGNED NOT NULL,
        by_user VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        at BIGINT UNSIGNED NOT NULL,
        what MEDIUMBLOB NOT NULL,
        PRIMARY KEY (conversation_id, seq))",
    "CREATE TABLE members (
        user_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        conversation_id VARCHAR(132) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        min_seq BIGINT UNSIGNED NOT NULL,
        min_change_seq BIGINT UNSIGNED NOT NULL,
        since BIGINT UNSIGNED NOT NULL,
        end_seq BIGINT UNSIGNED NULL,
        end_change_seq BIGINT UNSIGNED NULL,
        end_at BIGINT UNSIGNED NULL,
        delivered_seq BIGINT UNSIGNED NOT NULL,
        read_seq BIGINT UNSIGNED NOT NULL,
        own_first BIGINT UNSIGNED NOT NULL,
        own_last BIGINT UNSIGNED NOT NULL,
        quiet_seq BIGINT UNSIGNED NOT NULL,
        pinned TINYINT NOT NULL DEFAULT 0,
        receive TINYINT NOT NULL DEFAULT 0,
        PRIMARY KEY (user_id, conversation_id))",
    "CREATE TABLE quiet_messages (
        user_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        conversation_id VARCHAR(132) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        seq BIGINT UNSIGNED NOT NULL,
        total BIGINT UNSIGNED NOT NULL,
        PRIMARY KEY (user_id, conversation_id, seq))",
    "CREATE TABLE mentions (
        user_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        conversation_id VARCHAR(132) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        seq BIGINT UNSIGNED NOT NULL,
        sender VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        PRIMARY KEY (user_id, conversation_id, seq))",
    "CREATE TABLE chat_groups (
        id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        name MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        introduction MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        announcement MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        avatar MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        extra MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        creator VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        owner VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        admins MEDIUMBLOB NOT NULL,
        joining TINYINT NOT NULL,
        history TINYINT NOT NULL,
        is_muted TINYINT NOT NULL,
        members INT UNSIGNED NOT NULL,
        requests INT UNSIGNED NOT NULL,
        code CHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        code_at BIGINT UNSIGNED NOT NULL,
        created_at BIGINT UNSIGNED NOT NULL,
        updated_at BIGINT UNSIGNED NOT NULL,
        is_dismissed TINYINT NOT NULL,
        PRIMARY KEY (id))",
    "CREATE TABLE join_codes (
        code CHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        group_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        PRIMARY KEY (code))",
    "CREATE TABLE group_members (
        group_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        user_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        joined_at BIGINT UNSIGNED NOT NULL,
        join_seq BIGINT UNSIGNED NOT NULL,
        came_after BIGINT UNSIGNED NOT NULL,
        inviter VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
        muted_until BIGINT UNSIGNED NOT NULL,
        PRIMARY KEY (group_id, user_id),
        KEY by_user (user_id))",
    "CREATE TABLE mutes (
        group_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        user_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        muted_until BIGINT UNSIGNED NOT NULL,
        PRIMARY KEY (group_id, user_id))",
    "CREATE TABLE join_requests (
        group_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        user_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        message MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        at BIGINT UNSIGNED NOT NULL,
        PRIMARY KEY (group_id, user_id))",
    "CREATE TABLE users (
        id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        nickname MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        avatar MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        extra MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        created_at BIGINT UNSIGNED NOT NULL,
        password_hash VARCHAR(512) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        session_version BIGINT UNSIGNED NOT NULL,
        PRIMARY KEY (id))",
    "CREATE TABLE last_seen (
        user_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        at BIGINT UNSIGNED NOT NULL,
        PRIMARY KEY (user_id))",
    "CREATE TABLE logins (
        id BINARY(16) NOT NULL,
        user_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        platform INT NOT NULL,
        created_at BIGINT UNSIGNED NOT NULL,
        expires_at BIGINT UNSIGNED NOT NULL,
        refresh_hash BINARY(32) NOT NULL,
        generation BIGINT UNSIGNED NOT NULL,
        rotated_at BIGINT UNSIGNED NOT NULL,
        ended TINYINT NOT NULL,
        PRIMARY KEY (id),
        KEY by_user (user_id))",
    "CREATE TABLE refresh_hashes (
        refresh_hash BINARY(32) NOT NULL,
        login_id BINARY(16) NOT NULL,
        generation BIGINT UNSIGNED NOT NULL,
        PRIMARY KEY (refresh_hash),
        KEY by_login (login_id, generation))",
    "CREATE TABLE acts (
        id BINARY(16) NOT NULL,
        is_void TINYINT NOT NULL,
        at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
        PRIMARY KEY (id),
        KEY by_time (at))",
];

/// Whether the database has any of our tables.
pub(crate) async fn is_there(pool: &Arc<Pool>) -> Result<bool, SqlFault> {
    let sql = "SELECT 1 FROM information_schema.tables \
         WHERE table_schema = DATABASE() AND table_name = 'schema_versions'";
    Ok(!pool.acquire().await?.rows(sql, ()).await?.is_empty())
}

/// The timeout of a migration: a large table takes long to change.
const CHANGE_WITHIN: Duration = Duration::from_hours(1);

/// Migrates the tables to the newest version, one node at a time.
pub(crate) async fn migrate(pool: &Arc<Pool>) -> Result<(), SqlFault> {
    let mut connection = pool.acquire().await?;
    connection.set_statement_timeout(CHANGE_WITHIN);
    let held =
        connection.rows("SELECT GET_LOCK(CONCAT('nexo.', SHA1(DATABASE())), 60)", ()).await?;
    let held = held.into_iter().next().map(|row| Fields::from(row).u64()).transpose()?;
    if held != Some(1) {
        return Err(SqlFault::Unreachable(
            "another node has been changing the tables for a minute".into(),
        ));
    }
    let migrated = upgrade(&mut connection).await;
    connection.rows("SELECT RELEASE_LOCK(CONCAT('nexo.', SHA1(DATABASE())))", ()).await?;
    migrated
}

async fn upgrade(connection: &mut PooledConnection) -> Result<(), SqlFault> {
    connection
        .run_unprepared(
            "CREATE TABLE IF NOT EXISTS schema_versions (
            version INT UNSIGNED NOT NULL,
            step INT UNSIGNED NOT NULL,
            at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
            PRIMARY KEY (version, step))",
        )
        .await?;
    let newest = connection
        .rows(
            "SELECT version, step FROM schema_versions ORDER BY version DESC, step DESC LIMIT 1",
            (),
        )
        .await?;
    let (mut version, mut step) = (0, 0);
    let mut has_folded = false;
    if let Some(row) = newest.into_iter().next() {
        let mut fields = Fields::from(row);
        (version, step) = (fields.size()?, fields.size()?);
    }
    if version > VERSIONS.len() {
        return Err(damaged(format!(
            "the tables are of version {version}, this server knows {}: run a newer one",
            VERSIONS.len(),
        )));
    }
    // A statement that changes tables commits by itself, so each is recorded on its own: a start
    // that was interrupted continues where it was.
    for (at, statements) in VERSIONS.iter().enumerate().skip(version.saturating_sub(1)) {
        let done = if at + 1 == version { step } else { 0 };
        for (number, statement) in statements.iter().enumerate().skip(done) {
            let statement = statement.replacen("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1);
            match connection.run_unprepared(&statement).await {
                // It was done before, and the start was interrupted before it was recorded.
                Ok(()) | Err(SqlFault::DuplicateKey(_)) => {}
                Err(fault) => return Err(fault),
            }
            has_folded |= statement == INDEX_FOLDED_IDS;
            (version, step) = (at + 1, number + 1);
            connection
                .run(
                    "INSERT INTO schema_versions (version, step) VALUES (?, ?)",
                    values![version, step],
                )
                .await?;
        }
    }
    if has_folded { log_lookalikes(connection).await } else { Ok(()) }
}

/// Indexes accounts that were not created by [`nexo_chat::store::AccountStore::create_user`].
pub(crate) async fn index_folded_ids(pool: &Arc<Pool>) -> Result<(), SqlFault> {
    let mut connection = pool.acquire().await?;
    connection.set_statement_timeout(CHANGE_WITHIN);
    connection.run_unprepared(INDEX_FOLDED_IDS).await?;
    log_lookalikes(&mut connection).await
}

/// Logs how many accounts hold no folded id, since an older one folds to the same.
async fn log_lookalikes(connection: &mut PooledConnection) -> Result<(), SqlFault> {
    let sql = "SELECT (SELECT COUNT(*) FROM users) - (SELECT COUNT(*) FROM folded_ids)";
    let counted = connection.rows(sql, ()).await?.into_iter().next();
    let alike = counted.map(|row| Fields::from(row).u64()).transpose()?.unwrap_or_default();
    if alike > 0 {
        tracing::warn!(
            target: "nexo::store",
            accounts = alike,
            "accounts have ids that differ only in case or look from older ones: they stay, and \
             sign in with their exact ids",
        );
    }
    Ok(())
}
