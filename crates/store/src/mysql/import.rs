//! Imports everything from another store, into an empty database.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use mysql_async::Value;
use nexo_chat::ids::{ConversationId, Millis, Seq, UserId};
use nexo_chat::model::WindowEnd;
use nexo_chat::store::{StoreError, StoreFuture};

use super::append::MENTION_ALL;
use super::core::Core;
use super::fault::SqlFault;
use super::nodes::{self, NodeRole};
use super::options::MySqlOptions;
use super::row::{self, CHANGE, DOCUMENT, LOGIN, MESSAGE, RESET, USER};
use super::sql::values;
use super::transaction::Transaction;
use super::{MySql, group_rows, members, schema};
use crate::archive::{ArchiveError, Import, Item, ItemBatch};

impl MySql {
    /// Opens a database without data, to import into it. Until [`Import::finish`] no server starts
    /// on it, also after a crash.
    pub async fn open_to_fill(options: &MySqlOptions) -> Result<Arc<Self>, ArchiveError> {
        let core = Self::connect(options)?;
        schema::migrate(&core.pool).await.map_err(StoreError::from)?;
        if let Some(table) = content(&core).await? {
            // A database whose import did not finish has its own error.
            let filling = nodes::filling_conflict(&core).await.map_err(StoreError::from)?;
            return Err(filling.unwrap_or(ArchiveError::NotEmpty(table)));
        }
        let store = Self::start(core, NodeRole::Fill, options).await?;
        // Checked again, now that the lease excludes everybody else.
        if let Some(table) = content(&store.core).await? {
            store.finish().await?;
            return Err(ArchiveError::NotEmpty(table));
        }
        Ok(store)
    }
}

/// Returns a table that is not empty, if there is one.
async fn content(core: &Core) -> Result<Option<String>, StoreError> {
    for (table, _) in tables() {
        let sql = format!("SELECT 1 FROM {table} LIMIT 1");
        if !core.rows(&sql, ()).await?.is_empty() {
            return Ok(Some(table.replace("chat_", "").replace('_', " ")));
        }
    }
    Ok(None)
}

impl Import for MySql {
    fn import(&self, batch: ItemBatch) -> StoreFuture<'static, ()> {
        self.spawn_write(async move |core| import(&core, &batch).await)
    }

    fn finish(&self) -> StoreFuture<'_, ()> {
        self.spawn_read(async move |core| {
            schema::index_folded_ids(&core.pool).await?;
            Ok(nodes::end_filling(&core).await?)
        })
    }
}

/// Imports a batch in one transaction.
async fn import(core: &Core, batch: &[Item]) -> Result<(), StoreError> {
    let mut retry = core.retry_policy();
    loop {
        let attempt = async {
            let mut transaction = core.begin().await?;
            ImportRows::of(batch).write(&mut transaction).await?;
            transaction.commit().await
        };
        match attempt.await {
            Ok(()) => return Ok(()),
            Err(fault) => retry.wait(fault).await?,
        }
    }
}

/// The tables that items are imported into, with their columns.
fn tables() -> [(&'static str, String); 16] {
    [
        ("users", USER.to_owned()),
        ("last_seen", "user_id, at".to_owned()),
        ("logins", LOGIN.to_owned()),
        ("refresh_hashes", "refresh_hash, login_id, generation".to_owned()),
        ("reset_codes", RESET.to_owned()),
        ("chat_groups", group_rows::GROUP_COLUMNS.to_owned()),
        ("join_codes", "code, group_id".to_owned()),
        ("group_members", format!("group_id, {}", group_rows::MEMBER)),
        ("mutes", "group_id, user_id, muted_until".to_owned()),
        ("join_requests", "group_id, user_id, message, at".to_owned()),
        ("messages", MESSAGE.to_owned()),
        ("changes", format!("conversation_id, {CHANGE}")),
        ("members", format!("{}, {}", members::MEMBER, row::SETTINGS)),
        ("quiet_messages", "user_id, conversation_id, seq, total".to_owned()),
        ("mentions", "user_id, conversation_id, seq, sender".to_owned()),
        ("documents", DOCUMENT.to_owned()),
    ]
}

/// What a batch has of a conversation.
#[derive(Default)]
struct ImportedHead {
    seq: Seq,
    change_seq: Seq,
    newest_at: Millis,
    end: Option<WindowEnd>,
}

/// Several batches may have parts of a conversation: the newest values win.
const UPSERT_HEADS: &str = "INSERT INTO conversations \
     (id, max_seq, change_seq, newest_at, end_seq, end_change_seq, end_at) VALUES {} \
     ON DUPLICATE KEY UPDATE \
     newest_at = IF(VALUES(max_seq) > max_seq, VALUES(newest_at), newest_at), \
     max_seq = GREATEST(max_seq, VALUES(max_seq)), \
     change_seq = GREATEST(change_seq, VALUES(change_seq)), \
     end_seq = COALESCE(VALUES(end_seq), end_seq), \
     end_change_seq = COALESCE(VALUES(end_change_seq), end_change_seq), \
     end_at = COALESCE(VALUES(end_at), end_at)";

/// The rows of a batch, by table.
#[derive(Default)]
struct ImportRows {
    of: HashMap<&'static str, Vec<Vec<Value>>>,
    heads: BTreeMap<ConversationId, ImportedHead>,
}

impl ImportRows {
    fn of(batch: &[Item]) -> Self {
        let mut rows = Self::default();
        for item in batch {
            rows.add(item);
        }
        rows
    }

    async fn write(mut self, transaction: &mut Transaction) -> Result<(), SqlFault> {
        for (table, columns) in tables() {
            if let Some(rows) = self.of.remove(table) {
                let sql = format!("INSERT INTO {table} ({columns}) VALUES {{}}");
                transaction.write(&sql, rows).await?;
            }
        }
        // Last, so that rows that other batches lock too are not locked for long.
        let heads = self.heads.into_iter().map(|(id, head)| {
            let ImportedHead { seq, change_seq, newest_at, end } = head;
            let mut row = values![id.as_str(), seq.0, change_seq.0, newest_at.0];
            row.extend(row::window_end_values(end));
            row
        });
        transaction.write(UPSERT_HEADS, heads.collect()).await
    }

    fn put(&mut self, table: &'static str, row: Vec<Value>) {
        self.of.entry(table).or_default().push(row);
    }

    fn head(&mut self, conversation: &ConversationId) -> &mut ImportedHead {
        self.heads.entry(conversation.clone()).or_default()
    }

    fn add(&mut self, item: &Item) {
        match item {
            Item::User(user) => self.put("users", row::user_values(user)),
            Item::LastSeen { user, at } => self.put("last_seen", values![user.as_str(), at.0]),
            Item::Login(login) => {
                self.put("logins", row::login_values(login));
                let hash = values![&login.refresh_hash[..], &login.id.0[..], login.generation];
                self.put("refresh_hashes", hash);
            }
            Item::UsedToken { login, generation, hash } => {
                self.put("refresh_hashes", values![&hash[..], &login.0[..], *generation]);
            }
            Item::ResetCode { user, code } => {
                self.put("reset_codes", row::reset_values(user, *code));
            }
            Item::Group(group) => {
                self.put("chat_groups", group_rows::group_values(group));
                self.head(&group.id.conversation()).end = group.ended.map(|ended| ended.window_end);
            }
            Item::JoinCode { code, group } => {
                self.put("join_codes", values![code.as_str(), group.as_str()]);
            }
            Item::GroupMember { group, member } => {
                self.put("group_members", group_rows::member_values(group, member));
            }
            Item::Mute { group, user, until } => {
                self.put("mutes", values![group.as_str(), user.as_str(), until.0]);
            }
            Item::JoinRequest(it) => {
                let row = values![it.group.as_str(), it.user.as_str(), &it.message, it.at.0];
                self.put("join_requests", row);
            }
            Item::Message { message, fingerprint } => {
                self.put("messages", row::message_values(message, *fingerprint));
                let head = self.head(&message.conversation);
                if message.seq > head.seq {
                    (head.seq, head.newest_at) = (message.seq, message.sent_at);
                }
            }
            Item::Change(change) => {
                self.put("changes", row::change_values(change));
                let head = self.head(&change.conversation);
                head.change_seq = head.change_seq.max(change.seq);
            }
            Item::Member { user, conversation, window, progress, settings } => {
                let mut row = row::member_values(user, conversation, *window, *progress);
                row.extend(row::settings_values(settings));
                self.put("members", row);
                // Settings chosen before the first message: no message brings the conversation.
                if conversation.group().is_none() && progress.cursors.delivered == Seq::ZERO {
                    self.head(conversation);
                }
            }
            Item::SentWithoutRead { user, conversation, seq, total } => {
                let row = values![user.as_str(), conversation.as_str(), seq.0, *total];
                self.put("quiet_messages", row);
            }
            Item::Mention { whom, conversation, seq, sender } => {
                let whom = whom.as_ref().map_or(MENTION_ALL, UserId::as_str);
                let row = values![whom, conversation.as_str(), seq.0, sender.as_str()];
                self.put("mentions", row);
            }
            Item::Document { id, body } => {
                self.put("documents", values![id.collection.name(), &id.key, &body[..]]);
            }
        }
    }
}
