//! Gives everything that is kept, page by page in the order of the keys.

use std::sync::Arc;

use mysql_async::{Row, Value};
use nexo_chat::ids::LoginId;
use nexo_chat::membership::JoinCode;
use nexo_chat::store::{StoreError, Stored};

use super::append::EVERYBODY;
use super::core::Core;
use super::fault::{Fault, damaged};
use super::nodes::{self, Role};
use super::options::MySqlOptions;
use super::row::{self, CHANGE, Fields, LOGIN, MESSAGE, RESET, USER};
use super::{MySql, cursors, groups, schema};
use crate::archive::{ArchiveError, Export, Item, Lots};

/// A table on its way out. The columns of its key come first.
struct Table {
    select: String,
    key: &'static [&'static str],
    read: fn(Row) -> Result<Item, Fault>,
}

/// Rows read at a time; messages may be large.
const PAGE: u64 = 1024;

impl MySql {
    /// Opens a database to take data out of it. It must be there, and no server may use it.
    pub async fn open_to_read(options: &MySqlOptions) -> Result<Arc<Self>, ArchiveError> {
        let core = Self::reach(options)?;
        if !schema::is_there(&core.pool).await.map_err(StoreError::from)? {
            return Err(ArchiveError::Missing);
        }
        schema::migrate(&core.pool).await.map_err(StoreError::from)?;
        Self::start(core, Role::Read, options).await
    }

    /// Whether a server uses the database now, which nobody may while data is moved.
    pub async fn is_served(&self) -> Result<bool, StoreError> {
        Ok(nodes::is_served(&self.core).await?)
    }
}

impl Export for MySql {
    fn export(&self, lots: Lots) -> Stored<'static, ()> {
        self.ask(async move |core| all(&core, lots).await)
    }

    fn about(&self) -> Stored<'_, u64> {
        self.ask(async move |core| {
            // An estimate that costs nothing, unlike a count.
            let sql = "SELECT CAST(SUM(table_rows) AS UNSIGNED) FROM information_schema.tables \
                 WHERE table_schema = DATABASE() AND table_name <> 'acts'";
            let row = core.rows(sql, ()).await?.into_iter().next();
            Ok(row.and_then(|row| Fields::from(row).maybe_u64().transpose()).unwrap_or(Ok(0))?)
        })
    }
}

async fn all(core: &Core, mut lots: Lots) -> Result<(), StoreError> {
    for table in tables() {
        let mut last: Option<Vec<Value>> = None;
        loop {
            let (sql, params) = table.page(last.as_deref());
            let rows = core.rows(&sql, params).await?;
            let is_last = (rows.len() as u64) < PAGE;
            last = rows.last().map(|row| table.key_of(row)).transpose()?;
            for row in rows {
                lots.give((table.read)(row)?).await?;
            }
            if is_last {
                break;
            }
        }
    }
    Ok(lots.end().await?)
}

impl Table {
    /// The statement for the page after a key.
    fn page(&self, after: Option<&[Value]>) -> (String, Vec<Value>) {
        let mut params = Vec::new();
        let mut places = Vec::new();
        for (length, column) in self.key.iter().enumerate() {
            let Some(after) = after else { break };
            // Spelled out, since databases do not look up (a, b) > (?, ?) in an index.
            let mut place: Vec<String> =
                self.key[..length].iter().map(|same| format!("{same} = ?")).collect();
            place.push(format!("{column} > ?"));
            places.push(format!("({})", place.join(" AND ")));
            params.extend_from_slice(&after[..=length]);
        }
        let place = if places.is_empty() { String::new() } else { places.join(" OR ") };
        let place = if place.is_empty() { place } else { format!(" WHERE {place}") };
        let sql = format!("{}{place} ORDER BY {} LIMIT {PAGE}", self.select, self.key.join(", "));
        (sql, params)
    }

    fn key_of(&self, row: &Row) -> Result<Vec<Value>, Fault> {
        let columns = (0..self.key.len()).map(|at| row.as_ref(at).cloned());
        columns.collect::<Option<_>>().ok_or_else(|| damaged("a key is missing"))
    }
}

/// All of them, in the order of their kinds.
fn tables() -> Vec<Table> {
    let table = |columns: &str, from: &str, key, read| Table {
        select: format!("SELECT {columns} FROM {from}"),
        key,
        read,
    };
    let used =
        "refresh_hashes r JOIN logins l ON l.id = r.login_id AND r.generation < l.generation";
    let member = format!("group_id, {}", groups::MEMBER);
    let change = format!("conversation_id, {CHANGE}");
    let place = format!("{}, {}", cursors::MEMBER, row::SETTINGS);
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
            row::reset(row).map(|(user, code)| Item::Reset { user, code })
        }),
        Table {
            select: groups::GROUP.to_owned(),
            key: &["g.id"],
            read: |row| groups::group(row).map(Box::new).map(Item::Group),
        },
        table("code, group_id", "join_codes", &["code"], code),
        table(&member, "group_members", &["group_id", "user_id"], group_member),
        table("group_id, user_id, muted_until", "mutes", &["group_id", "user_id"], mute),
        table("group_id, user_id, message, at", "join_requests", &["group_id", "user_id"], request),
        table(MESSAGE, "messages", &["conversation_id", "seq"], message),
        table(&change, "changes", &["conversation_id", "seq"], changed),
        table(&place, "members", &["user_id", "conversation_id"], placed),
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
    ]
}

fn seen(row: Row) -> Result<Item, Fault> {
    let mut fields = Fields::from(row);
    Ok(Item::Seen { user: fields.user()?, at: fields.millis()? })
}

fn replaced(row: Row) -> Result<Item, Fault> {
    let mut fields = Fields::from(row);
    let (login, generation) = (LoginId(fields.array()?), fields.u64()?);
    Ok(Item::Used { login, generation, hash: fields.array()? })
}

fn code(row: Row) -> Result<Item, Fault> {
    let mut fields = Fields::from(row);
    let code = JoinCode::parse(&fields.text()?).ok_or_else(|| damaged("not a join code"))?;
    Ok(Item::Code { code, group: fields.group()? })
}

fn group_member(row: Row) -> Result<Item, Fault> {
    let mut fields = Fields::from(row);
    Ok(Item::GroupMember { group: fields.group()?, member: groups::member(&mut fields)? })
}

fn mute(row: Row) -> Result<Item, Fault> {
    let mut fields = Fields::from(row);
    Ok(Item::Mute { group: fields.group()?, user: fields.user()?, until: fields.millis()? })
}

fn request(row: Row) -> Result<Item, Fault> {
    let mut fields = Fields::from(row);
    let group = fields.group()?;
    groups::request(&mut fields, group).map(Item::Request)
}

fn message(row: Row) -> Result<Item, Fault> {
    let (message, fingerprint) = row::message(row)?;
    Ok(Item::Message { message: Box::new(message), fingerprint })
}

fn changed(row: Row) -> Result<Item, Fault> {
    let mut fields = Fields::from(row);
    let conversation = fields.conversation()?;
    Ok(Item::Change(Box::new(row::change(&mut fields, conversation)?)))
}

fn placed(row: Row) -> Result<Item, Fault> {
    let mut fields = Fields::from(row);
    Ok(Item::Member {
        user: fields.user()?,
        conversation: fields.conversation()?,
        window: fields.window()?,
        progress: fields.progress()?,
        settings: fields.settings()?,
    })
}

fn quiet(row: Row) -> Result<Item, Fault> {
    let mut fields = Fields::from(row);
    let (user, conversation) = (fields.user()?, fields.conversation()?);
    Ok(Item::Quiet { user, conversation, seq: fields.seq()?, total: fields.u64()? })
}

fn mention(row: Row) -> Result<Item, Fault> {
    let mut fields = Fields::from(row);
    let is_all = matches!(fields.peek(), Some(Value::Bytes(whom)) if whom == EVERYBODY.as_bytes());
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
        let table = Table {
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
