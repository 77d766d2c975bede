//! The tables of mini-im (before it had `msg_seq`), as things that a store can take.
//!
//! There a message's global id was its place: cursors name ids, and ids have holes. Here every
//! conversation is counted anew from 1 in the order of the ids, and cursors are led over. All is
//! read in one snapshot, so it fits together also if somebody writes meanwhile. In reading order:
//!
//! - `old`: the connection, and what can be in a cell
//! - `report`: what was changed or left out on the way, and why
//! - `people`: accounts, and what they are called here
//! - `talk`: the messages of one conversation
//! - `chats`, `groups`: whose they are

mod chats;
mod groups;
mod old;
mod people;
mod report;
mod talk;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use nexo_chat::clock::Dice;
use nexo_chat::ids::Millis;
use nexo_chat::reset::Issued;
use nexo_chat::store::{StoreError, Stored};

use self::old::{Key, Old};
use self::people::People;
pub use self::report::{Note, Report};
use crate::archive::{ArchiveError, Export, Item, Lots};
use crate::mysql::MySqlOptions;

/// What its accounts are called here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UserIds {
    /// By their numbers, as its clients know them.
    #[default]
    Number,
    /// By the names with which people signed in.
    Username,
}

/// How it is read.
#[derive(Clone)]
pub struct MiniImOptions {
    /// Where it is.
    pub database: MySqlOptions,
    /// What the times in it mean, such as `+08:00`; else what the database says.
    pub time_zone: Option<String>,
    /// What its accounts are called here.
    pub user_ids: UserIds,
    /// A kept password that nobody knows, for accounts whose own cannot be used.
    pub unusable_password: String,
    /// Whether a kept password can be used here.
    pub is_usable: fn(&str) -> bool,
    /// For the join codes of groups that have none, and for reset codes.
    pub dice: Arc<dyn Dice>,
    /// When reset codes begin to age.
    pub now: Millis,
}

/// A database of mini-im.
pub struct MiniIm {
    old: Mutex<Option<Old>>,
    options: MiniImOptions,
    about: u64,
    report: Arc<Mutex<Report>>,
    codes: Arc<Mutex<Vec<Issued>>>,
}

/// What there must be; the rest came with later versions.
const TABLES: [&str; 5] = ["t_user", "t_single_chat", "t_group", "t_group_member", "t_message"];

impl MiniIm {
    /// Reaches the database, and looks whether it is one.
    pub async fn open(options: MiniImOptions) -> Result<Self, ArchiveError> {
        let mut old = Old::open(&options.database, options.time_zone.as_deref()).await?;
        if let Some(missing) = TABLES.into_iter().find(|table| !old.has(table)) {
            return Err(ArchiveError::NotMiniIm(missing.to_owned()));
        }
        let mut about = 0;
        for table in TABLES {
            about += old.count(table).await?;
        }
        let (report, codes) = (Arc::default(), Arc::default());
        Ok(Self { old: Mutex::new(Some(old)), options, about, report, codes })
    }

    /// Reset codes for those whose password could not be kept. They are told once.
    pub fn take_codes(&self) -> Vec<Issued> {
        std::mem::take(&mut *self.codes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was changed and left out so far.
    pub fn report(&self) -> Report {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Export for MiniIm {
    fn export(&self, lots: Lots) -> Stored<'static, ()> {
        let old = self.old.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (options, report) = (self.options.clone(), Arc::clone(&self.report));
        let codes = Arc::clone(&self.codes);
        Box::pin(async move {
            let old = old.ok_or_else(|| StoreError::Unavailable("it is read only once".into()))?;
            let people = People::new(options.user_ids);
            let (repeated, told) = (HashMap::new(), Report::default());
            let mut reader = Reader {
                old,
                options,
                people,
                repeated,
                lots,
                report: told,
                codes: Vec::new(),
                visited: 0,
            };
            let read = reader.all().await;
            *codes.lock().unwrap_or_else(PoisonError::into_inner) = reader.codes;
            *report.lock().unwrap_or_else(PoisonError::into_inner) = reader.report;
            read?;
            Ok(reader.lots.end().await?)
        })
    }

    fn about(&self) -> Stored<'_, u64> {
        Box::pin(std::future::ready(Ok(self.about)))
    }
}

/// A database on its way over.
struct Reader {
    old: Old,
    options: MiniImOptions,
    people: People,
    /// Client ids that somebody used for several messages, and the first of these.
    repeated: HashMap<(Key, Vec<u8>), Key>,
    lots: Lots,
    report: Report,
    codes: Vec<Issued>,
    /// Messages seen so far.
    visited: u64,
}

impl Reader {
    async fn all(&mut self) -> Result<(), StoreError> {
        self.accounts().await?;
        self.find_repeated().await?;
        self.chats().await?;
        self.groups().await?;
        let messages = self.old.count("t_message").await?;
        self.report.note_many(Note::NoConversation, messages.saturating_sub(self.visited));
        self.count_the_rest().await
    }

    async fn give(&mut self, item: Item) -> Result<(), StoreError> {
        Ok(self.lots.give(item).await?)
    }

    async fn find_repeated(&mut self) -> Result<(), StoreError> {
        let sql = "SELECT from_user_id, CAST(client_msg_id AS BINARY) AS client, MIN(id) \
             FROM t_message WHERE client_msg_id IS NOT NULL \
             GROUP BY from_user_id, client HAVING COUNT(*) > 1";
        for mut row in self.old.rows(sql, Vec::new()).await? {
            if let (Some(sender), Some(client), Some(first)) = (row.key(), row.bytes(), row.key()) {
                self.repeated.insert((sender, client), first);
            }
        }
        Ok(())
    }

    /// What there is no place for here.
    async fn count_the_rest(&mut self) -> Result<(), StoreError> {
        let known = ["t_single_chat_member", "t_message_mention", "t_group_join_request"];
        for table in self.old.tables() {
            if TABLES.contains(&&*table) || known.contains(&&*table) {
                continue;
            }
            let rows = self.old.count(&table).await?;
            self.report.leave_table(&table, rows);
        }
        Ok(())
    }
}
