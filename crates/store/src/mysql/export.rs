//! Exports everything, page by page in the order of the keys.

use std::sync::Arc;

use mysql_async::{Row, Value};
use nexo_chat::ids::LoginId;
use nexo_chat::membership::JoinCode;
use nexo_chat::store::{StoreError, StoreFuture};

use super::append::MENTION_ALL;
use super::core::Core;
use super::fault::{SqlFault, damaged};
use super::fields::Fields;
use super::nodes::{self, NodeRole};
use super::options::MySqlOptions;
use super::row::{self, CHANGE, DOCUMENT, LOGIN, MESSAGE, RESET, USER};
use super::{MySql, group_rows, members, schema};
use crate::archive::{ArchiveError, Export, Item, ItemSender};

/// A table to export. The columns of its key come first.
struct ExportTable {
    select: String,
    key: &'static [&'static str],
    read: fn(Row) -> Result<Item, SqlFault>,
}

/// Rows read at a time; messages may be large.
const PAGE: u64 = 1024;

impl MySql {
    /// Opens a database to export it. It must have our tables, and no server may use it.
    pub async fn open_to_read(options: &MySqlOptions) -> Result<Arc<Self>, ArchiveError> {
        let core = Self::connect(options)?;
        if !schema::is_there(&core.pool).await.map_err(StoreError::from)? {
            return Err(ArchiveError::Missing);
        }
        schema::migrate(&core.pool).await.map_err(StoreError::from)?;
        Self::start(core, NodeRole::Read, options).await
    }

    /// Whether a server uses the database now; none may during a migration.
    pub async fn is_served(&self) -> Result<bool, StoreError> {
        Ok(nodes::is_served(&self.core).await?)
    }
}

impl Export for MySql {
    fn export(&self, items: ItemSender) -> StoreFuture<'static, ()> {
        self.spawn_read(async move |core| all(&core, items).await)
    }

    fn approximate_len(&self) -> StoreFuture<'_, u64> {
        self.spawn_read(async move |core| {
            // An estimate that costs nothing, unlike a count.
            let sql = "SELECT CAST(SUM(table_rows) AS UNSIGNED) FROM information_schema.tables \
                 WHERE table_schema = DATABASE() AND table_name <> 'acts'";
            let row = core.rows(sql, ()).await?.into_iter().next();
            Ok(row.and_then(|row| Fields::from(row).maybe_u64().transpose()).unwrap_or(Ok(0))?)
        })
    }
}

async fn all(core: &Core, mut items: ItemSender) -> Result<(), StoreError> {
    for table in tables() {
        let mut last: Option<Vec<Value>> = None;
        loop {
            let (sql, params) = table.page(last.as_deref());
            let rows = core.rows(&sql, params).await?;
            let is_last = (rows.len() as u64) < PAGE;
            last = rows.last().map(|row| table.key_of(row)).transpose()?;
            for row in rows {
                items.send((table.read)(row)?).await?;
            }
            if is_last {
                break;
            }
        }
    }
    Ok(items.finish().await?)
}

impl ExportTable {
    /// Returns the statement for the page after a key.
    fn page(&self, after: Option<&[Value]>) -> (String, Vec<Value>) {
        let mut params = Vec::new();
        let mut member_keys = Vec::new();
        for (length, column) in self.key.iter().enumerate() {
            let Some(after) = after else { break };
            // Spelled out, since databases do not use an index for (a, b) > (?, ?).
            let mut condition: Vec<String> =
                self.key[..length].iter().map(|same| format!("{same} = ?")).collect();
            condition.push(format!("{column} > ?"));
            member_keys.push(format!("({})", condition.join(" AND ")));
            params.extend_from_slice(&after[..=length]);
        }
        let condition =
            if member_keys.is_empty() { String::new() } else { member_keys.join(" OR ") };
        let condition =
            if condition.is_empty() { condition } else { format!(" WHERE {condition}") };
        let sql =
            format!("{}{condition} ORDER BY {} LIMIT {PAGE}", self.select, self.key.join(", "));
        (sql, params)
    }

    fn key_of(&self, row: &Row) -> Result<Vec<Value>, SqlFault> {
        let columns = (0..self.key.len()).map(|at| row.as_ref(at).cloned());
        columns.collect::<Option<_>>().ok_or_else(|| damaged("a key is missing"))
    }
}

/// Returns all tables, in the order of the item kinds.
fn tables() -> Vec<ExportTable> {
    let table = |columns: &str, from: &str, key, read| ExportTable {
        select: format!("SELECT {columns} FROM {from}"),
        key,
        read,
    };
    let used =
        "refresh_hashes r JOIN logins l ON l.id = r.login_id AND r.generation < l.generation";
    let member = format!("group_id, {}", group_rows::MEMBER);
    let change = format!("conversation_id, {CHANGE}");
    let condition = format!("{}, {}", members::MEMBER, row::SETTINGS);
    vec![
        table(USER, "users", &["id"], |row| row::user(row).map(Item::User)),
        table("user_id, at", "last_seen", &["user_id"], seen),
        table(LOGIN, "logins", &["id"], |row| row::login(row).map(Item::Login)),
        table(
            "r.login_id, r.generation, r.refresh_hash",
            used,
            &["r.login_id", "r.generation"],
            replaced,
        ),
        table(RESET, "reset_codes", &["user_id"], |row| {
            row::reset(row).map(|(user, code)| Item::ResetCode { user, code })
        }),
        ExportTable {
            select: group_rows::GROUP.to_owned(),
            key: &["g.id"],
            read: |row| group_rows::group(row).map(Box::new).map(Item::Group),
        },
        table("code, group_id", "join_codes", &["code"], code),
        table(&member, "group_members", &["group_id", "user_id"], group_member),
        table("group_id, user_id, muted_until", "mutes", &["group_id", "user_id"], mute),
        table("group_id, user_id, message, at", "join_requests", &["group_id", "user_id"], request),
        table(MESSAGE, "messages", &["conversation_id", "seq"], message),
        table(&change, "changes", &["conversation_id", "seq"], changed),
        table(&condition, "members", &["user_id", "conversation_id"], placed),
        table(
            "user_id, conversation_id, seq, total",
            "quiet_messages",
            &["user_id", "conversation_id", "seq"],
            quiet,
        ),
        table(
            "user_id, conversation_id, seq, sender",
            "mentions",
            &["user_id", "conversation_id", "seq"],
            mention,
        ),
        table(DOCUMENT, "documents", &["collection", "id"], |row| {
            row::document(row).map(|(id, body)| Item::Document { id, body })
        }),
    ]
}

fn seen(row: Row) -> Result<Item, SqlFault> {
    let mut fields = Fields::from(row);
    Ok(Item::LastSeen { user: fields.user()?, at: fields.millis()? })
}

fn replaced(row: Row) -> Result<Item, SqlFault> {
    let mut fields = Fields::from(row);
    let (login, generation) = (LoginId(fields.array()?), fields.u64()?);
    Ok(Item::UsedToken { login, generation, hash: fields.array()? })
}

fn code(row: Row) -> Result<Item, SqlFault> {
    let mut fields = Fields::from(row);
    let code = JoinCode::parse(&fields.text()?).ok_or_else(|| damaged("not a join code"))?;
    Ok(Item::JoinCode { code, group: fields.group()? })
}

fn group_member(row: Row) -> Result<Item, SqlFault> {
    let mut fields = Fields::from(row);
    Ok(Item::GroupMember { group: fields.group()?, member: group_rows::member(&mut fields)? })
}

fn mute(row: Row) -> Result<Item, SqlFault> {
    let mut fields = Fields::from(row);
    Ok(Item::Mute { group: fields.group()?, user: fields.user()?, until: fields.millis()? })
}

fn request(row: Row) -> Result<Item, SqlFault> {
    let mut fields = Fields::from(row);
    let group = fields.group()?;
    group_rows::request(&mut fields, group).map(Item::JoinRequest)
}

fn message(row: Row) -> Result<Item, SqlFault> {
    let (message, fingerprint) = row::message(row)?;
    Ok(Item::Message { message: Box::new(message), fingerprint })
}

fn changed(row: Row) -> Result<Item, SqlFault> {
    let mut fields = Fields::from(row);
    let conversation = fields.conversation()?;
    Ok(Item::Change(Box::new(row::change(&mut fields, conversation)?)))
}

fn placed(row: Row) -> Result<Item, SqlFault> {
    let mut fields = Fields::from(row);
    Ok(Item::Member {
        user: fields.user()?,
        conversation: fields.conversation()?,
        window: fields.window()?,
        progress: fields.progress()?,
        settings: fields.settings()?,
    })
}

fn quiet(row: Row) -> Result<Item, SqlFault> {
    let mut fields = Fields::from(row);
    let (user, conversation) = (fields.user()?, fields.conversation()?);
    Ok(Item::SentWithoutRead { user, conversation, seq: fields.seq()?, total: fields.u64()? })
}

fn mention(row: Row) -> Result<Item, SqlFault> {
    let mut fields = Fields::from(row);
    let is_all =
        matches!(fields.peek(), Some(Value::Bytes(whom)) if whom == MENTION_ALL.as_bytes());
    let whom = if is_all { fields.bytes().map(|_| None) } else { fields.user().map(Some) };
    let (whom, conversation) = (whom?, fields.conversation()?);
    Ok(Item::Mention { whom, conversation, seq: fields.seq()?, sender: fields.user()? })
}

#[cfg(test)]
mod tests {
    use super::super::sql::values;
    use super::*;

    #[test]
    fn a_page_begins_after_the_last_key() {
        let table = ExportTable {
            select: "SELECT a, b FROM t".into(),
            key: &["a", "b"],
            read: |_| Err(damaged("never read")),
        };
        let first = format!("SELECT a, b FROM t ORDER BY a, b LIMIT {PAGE}");
        assert_eq!(table.page(None), (first, vec![]));
        let (sql, params) = table.page(Some(&["x".into(), 7.into()]));
        let next = "SELECT a, b FROM t WHERE (a > ?) OR (a = ? AND b > ?) ORDER BY a, b LIMIT";
        assert!(sql.starts_with(next), "{sql}");
        assert_eq!(params, values!["x", "x", 7]);
    }
}
