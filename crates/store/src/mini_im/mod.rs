//! Imports the tables of mini-im (before it had `msg_seq`).
//!
//! There a message's global id was its position: cursors name ids, and ids have gaps. Here the
//! messages of each conversation are numbered from 1 in the order of the ids, and cursors are
//! converted. Everything is read in one snapshot, so it is consistent while mini-im goes on
//! writing. In reading order:
//!
//! - `source`: the connection and its values
//! - `report`: what was changed or left out, and why
//! - `users`: accounts and their new ids
//! - `history`: the messages of one conversation
//! - `chats`, `groups`: private chats and groups

mod chats;
mod groups;
mod history;
mod report;
mod source;
mod users;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use nexo_chat::clock::Rng;
use nexo_chat::ids::Millis;
use nexo_chat::password_reset::IssuedCode;
use nexo_chat::store::{StoreError, StoreFuture};

pub use self::report::{ImportNote, ImportReport};
use self::source::{SourceDatabase, SourceId};
use self::users::UserMap;
use crate::archive::{ArchiveError, Export, Item, ItemSender};
use crate::mysql::MySqlOptions;

/// Which ids the accounts get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UserIds {
    /// Their numbers, as mini-im's clients know them.
    #[default]
    Number,
    /// The names with which users logged in.
    Username,
}

#[derive(Clone)]
pub struct MiniImOptions {
    pub database: MySqlOptions,
    /// The time zone of the times in it, such as `+08:00`; by default the database's.
    pub time_zone: Option<String>,
    pub user_ids: UserIds,
    /// A password hash that no password matches, for accounts whose own cannot be used.
    pub unusable_password: String,
    /// Whether a password hash can be used here.
    pub is_usable: fn(&str) -> bool,
    /// For the join codes of groups that have none, and for reset codes.
    pub rng: Arc<dyn Rng>,
    /// The time from which reset codes expire.
    pub now: Millis,
}

/// A database of mini-im.
pub struct MiniIm {
    source: Mutex<Option<SourceDatabase>>,
    options: MiniImOptions,
    approximate_len: u64,
    report: Arc<Mutex<ImportReport>>,
    codes: Arc<Mutex<Vec<IssuedCode>>>,
}

/// Tables that must exist; the others came with later versions.
const TABLES: [&str; 5] = ["t_user", "t_single_chat", "t_group", "t_group_member", "t_message"];

impl MiniIm {
    /// Connects to the database, and checks that it is one of mini-im.
    pub async fn open(options: MiniImOptions) -> Result<Self, ArchiveError> {
        let mut source =
            SourceDatabase::open(&options.database, options.time_zone.as_deref()).await?;
        if let Some(missing) = TABLES.into_iter().find(|table| !source.has(table)) {
            return Err(ArchiveError::NotMiniIm(missing.to_owned()));
        }
        let mut about = 0;
        for table in TABLES {
            about += source.count(table).await?;
        }
        let (report, codes) = (Arc::default(), Arc::default());
        Ok(Self {
            source: Mutex::new(Some(source)),
            options,
            approximate_len: about,
            report,
            codes,
        })
    }

    /// Returns, once, the reset codes of users whose password could not be used.
    pub fn take_codes(&self) -> Vec<IssuedCode> {
        std::mem::take(&mut *self.codes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns what was changed and left out so far.
    pub fn report(&self) -> ImportReport {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Export for MiniIm {
    fn export(&self, items: ItemSender) -> StoreFuture<'static, ()> {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (options, report) = (self.options.clone(), Arc::clone(&self.report));
        let codes = Arc::clone(&self.codes);
        Box::pin(async move {
            let source =
                source.ok_or_else(|| StoreError::Unavailable("it is read only once".into()))?;
            let users = UserMap::new(options.user_ids);
            let (repeated_client_ids, report_so_far) = (HashMap::new(), ImportReport::default());
            let mut reader = MiniImReader {
                source,
                options,
                users,
                repeated_client_ids,
                items,
                report: report_so_far,
                codes: Vec::new(),
                visited: 0,
            };
            let read = reader.read_all().await;
            *codes.lock().unwrap_or_else(PoisonError::into_inner) = reader.codes;
            *report.lock().unwrap_or_else(PoisonError::into_inner) = reader.report;
            read?;
            Ok(reader.items.finish().await?)
        })
    }

    fn approximate_len(&self) -> StoreFuture<'_, u64> {
        Box::pin(std::future::ready(Ok(self.approximate_len)))
    }
}

/// The state of a running import.
struct MiniImReader {
    source: SourceDatabase,
    options: MiniImOptions,
    users: UserMap,
    /// Client ids that a sender used for several messages, and the first of these.
    repeated_client_ids: HashMap<(SourceId, Vec<u8>), SourceId>,
    items: ItemSender,
    report: ImportReport,
    codes: Vec<IssuedCode>,
    /// Messages seen so far.
    visited: u64,
}

impl MiniImReader {
    async fn read_all(&mut self) -> Result<(), StoreError> {
        self.accounts().await?;
        self.find_repeated().await?;
        self.chats().await?;
        self.groups().await?;
        let messages = self.source.count("t_message").await?;
        self.report.note_many(ImportNote::NoConversation, messages.saturating_sub(self.visited));
        self.count_other_tables().await
    }

    async fn send(&mut self, item: Item) -> Result<(), StoreError> {
        Ok(self.items.send(item).await?)
    }

    async fn find_repeated(&mut self) -> Result<(), StoreError> {
        let sql = "SELECT from_user_id, CAST(client_msg_id AS BINARY) AS client, MIN(id) \
             FROM t_message WHERE client_msg_id IS NOT NULL \
             GROUP BY from_user_id, client HAVING COUNT(*) > 1";
        for mut row in self.source.rows(sql, Vec::new()).await? {
            if let (Some(sender), Some(client), Some(first)) = (row.key(), row.bytes(), row.key()) {
                self.repeated_client_ids.insert((sender, client), first);
            }
        }
        Ok(())
    }

    /// Reports the rows of tables that are not imported.
    async fn count_other_tables(&mut self) -> Result<(), StoreError> {
        let known = ["t_single_chat_member", "t_message_mention", "t_group_join_request"];
        for table in self.source.tables() {
            if TABLES.contains(&&*table) || known.contains(&&*table) {
                continue;
            }
            let rows = self.source.count(&table).await?;
            self.report.leave_table(&table, rows);
        }
        Ok(())
    }
}
