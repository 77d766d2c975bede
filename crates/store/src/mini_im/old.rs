//! The connection, and what can be in a cell.

use std::collections::{BTreeMap, BTreeSet};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Row, Value};
use nexo_chat::ids::Millis;
use nexo_chat::reason::BoxError;
use nexo_chat::store::StoreError;

use crate::mysql::fault::Fault;
use crate::mysql::{MySqlOptions, opts};

/// An id. They are numbers, but somebody may have made texts of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    Number(i64),
    Text(String),
}

impl Key {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }

    pub(super) fn value(&self) -> Value {
        match self {
            Self::Number(number) => Value::from(*number),
            Self::Text(text) => Value::from(text),
        }
    }
}

/// The cells of a row, one after the other. Nothing in them is an error: what makes no sense is not
/// there.
pub(super) struct Cells(std::vec::IntoIter<Value>);

impl Cells {
    pub(super) fn key(&mut self) -> Option<Key> {
        match self.0.next()? {
            Value::Int(number) => Some(Key::Number(number)),
            Value::UInt(number) => Some(match i64::try_from(number) {
                Ok(number) => Key::Number(number),
                Err(_) => Key::Text(number.to_string()),
            }),
            Value::Bytes(text) => Some(Key::Text(String::from_utf8_lossy(&text).into_owned())),
            _ => None,
        }
    }

    pub(super) fn bytes(&mut self) -> Option<Vec<u8>> {
        match self.0.next()? {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub(super) fn text(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(&self.bytes()?).into_owned())
    }

    pub(super) fn number(&mut self) -> Option<i64> {
        match self.key()? {
            Key::Number(number) => Some(number),
            Key::Text(text) => text.parse().ok(),
        }
    }

    /// A time, or 1970 if there is none.
    pub(super) fn millis(&mut self) -> Millis {
        Millis(self.number().and_then(|number| u64::try_from(number).ok()).unwrap_or_default())
    }
}

/// The database in one snapshot.
pub(super) struct Old {
    conn: Conn,
    columns: BTreeMap<String, BTreeSet<String>>,
}

impl Old {
    pub(super) async fn open(
        options: &MySqlOptions,
        time_zone: Option<&str>,
    ) -> Result<Self, StoreError> {
        let conn = async {
            let opts = opts(options).map_err(BoxError::from)?;
            let conn = tokio::time::timeout(options.patience, Conn::new(opts)).await;
            let mut conn = conn.map_err(BoxError::from)?.map_err(Fault::away)?;
            if let Some(zone) = time_zone {
                conn.exec_drop("SET time_zone = ?", (zone,)).await?;
            }
            conn.query_drop("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ").await?;
            conn.query_drop("START TRANSACTION WITH CONSISTENT SNAPSHOT").await?;
            Ok(conn)
        };
        let conn: Result<Conn, BoxError> = conn.await;
        let conn = conn.map_err(StoreError::Unavailable)?;
        let mut old = Self { conn, columns: BTreeMap::new() };
        let sql = "SELECT table_name, column_name FROM information_schema.columns \
             WHERE table_schema = DATABASE()";
        for mut row in old.rows(sql, Vec::new()).await? {
            if let (Some(table), Some(column)) = (row.text(), row.text()) {
                old.columns.entry(table).or_default().insert(column);
            }
        }
        Ok(old)
    }

    pub(super) fn has(&self, table: &str) -> bool {
        self.columns.contains_key(table)
    }

    /// Its tables, as it calls them.
    pub(super) fn tables(&self) -> Vec<String> {
        self.columns.keys().filter(|table| table.starts_with("t_")).cloned().collect()
    }

    /// A column, or nothing in its place if it came with a later version.
    pub(super) fn column<'a>(&self, table: &str, column: &'a str) -> &'a str {
        let is_there = self.columns.get(table).is_some_and(|known| known.contains(column));
        if is_there { column } else { "NULL" }
    }

    /// A column with a time, as milliseconds since 1970.
    pub(super) fn time(&self, table: &str, column: &str) -> String {
        let column = self.column(table, column);
        format!("CAST(UNIX_TIMESTAMP({column}) * 1000 AS UNSIGNED)")
    }

    pub(super) async fn rows(
        &mut self,
        sql: impl AsRef<str>,
        params: Vec<Value>,
    ) -> Result<Vec<Cells>, StoreError> {
        let params = if params.is_empty() { Params::Empty } else { Params::Positional(params) };
        let rows: Result<Vec<Row>, _> = self.conn.exec(sql.as_ref(), params).await;
        let rows = rows.map_err(Fault::away)?;
        Ok(rows.into_iter().map(|row| Cells(row.unwrap().into_iter())).collect())
    }

    /// How many rows a table has.
    pub(super) async fn count(&mut self, table: &str) -> Result<u64, StoreError> {
        let rows = self.rows(format!("SELECT COUNT(*) FROM {table}"), Vec::new()).await?;
        let count = rows.into_iter().next().and_then(|mut row| row.number());
        Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or_default())
    }
}
