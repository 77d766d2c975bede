//! The connection to mini-im's database, and its values.

use std::collections::{BTreeMap, BTreeSet};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Row, Value};
use nexo_chat::ids::Millis;
use nexo_chat::reason::BoxError;
use nexo_chat::store::StoreError;

use crate::mysql::fault::SqlFault;
use crate::mysql::{MySqlOptions, opts};

/// An id. They are numbers, but an installation may have changed them to texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum SourceId {
    Number(i64),
    Text(String),
}

impl SourceId {
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

/// The values of a row, read one after the other. No value is an error: what makes no sense is
/// `None`.
pub(super) struct SourceRow(std::vec::IntoIter<Value>);

impl SourceRow {
    pub(super) fn key(&mut self) -> Option<SourceId> {
        match self.0.next()? {
            Value::Int(number) => Some(SourceId::Number(number)),
            Value::UInt(number) => Some(match i64::try_from(number) {
                Ok(number) => SourceId::Number(number),
                Err(_) => SourceId::Text(number.to_string()),
            }),
            Value::Bytes(text) => Some(SourceId::Text(String::from_utf8_lossy(&text).into_owned())),
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
            SourceId::Number(number) => Some(number),
            SourceId::Text(text) => text.parse().ok(),
        }
    }

    /// Reads a time; 1970 if there is none.
    pub(super) fn millis(&mut self) -> Millis {
        Millis(self.number().and_then(|number| u64::try_from(number).ok()).unwrap_or_default())
    }
}

/// The database in one snapshot.
pub(super) struct SourceDatabase {
    conn: Conn,
    columns: BTreeMap<String, BTreeSet<String>>,
}

impl SourceDatabase {
    pub(super) async fn open(
        options: &MySqlOptions,
        time_zone: Option<&str>,
    ) -> Result<Self, StoreError> {
        let conn = async {
            let opts = opts(options).map_err(BoxError::from)?;
            let conn = tokio::time::timeout(options.patience, Conn::new(opts)).await;
            let mut conn = conn.map_err(BoxError::from)?.map_err(SqlFault::unreachable)?;
            if let Some(zone) = time_zone {
                conn.exec_drop("SET time_zone = ?", (zone,)).await?;
            }
            conn.query_drop("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ").await?;
            conn.query_drop("START TRANSACTION WITH CONSISTENT SNAPSHOT").await?;
            Ok(conn)
        };
        let conn: Result<Conn, BoxError> = conn.await;
        let conn = conn.map_err(StoreError::Unavailable)?;
        let mut source = Self { conn, columns: BTreeMap::new() };
        let sql = "SELECT table_name, column_name FROM information_schema.columns \
             WHERE table_schema = DATABASE()";
        for mut row in source.rows(sql, Vec::new()).await? {
            if let (Some(table), Some(column)) = (row.text(), row.text()) {
                source.columns.entry(table).or_default().insert(column);
            }
        }
        Ok(source)
    }

    pub(super) fn has(&self, table: &str) -> bool {
        self.columns.contains_key(table)
    }

    /// Returns the names of all tables of mini-im.
    pub(super) fn tables(&self) -> Vec<String> {
        self.columns.keys().filter(|table| table.starts_with("t_")).cloned().collect()
    }

    /// Returns a column, or `NULL` if it came with a later version.
    pub(super) fn column<'a>(&self, table: &str, column: &'a str) -> &'a str {
        let is_there = self.columns.get(table).is_some_and(|known| known.contains(column));
        if is_there { column } else { "NULL" }
    }

    /// Returns an expression for a time column, as milliseconds since 1970.
    pub(super) fn time(&self, table: &str, column: &str) -> String {
        let column = self.column(table, column);
        format!("CAST(UNIX_TIMESTAMP({column}) * 1000 AS UNSIGNED)")
    }

    pub(super) async fn rows(
        &mut self,
        sql: impl AsRef<str>,
        params: Vec<Value>,
    ) -> Result<Vec<SourceRow>, StoreError> {
        let params = if params.is_empty() { Params::Empty } else { Params::Positional(params) };
        let rows: Result<Vec<Row>, _> = self.conn.exec(sql.as_ref(), params).await;
        let rows = rows.map_err(SqlFault::unreachable)?;
        Ok(rows.into_iter().map(|row| SourceRow(row.unwrap().into_iter())).collect())
    }

    pub(super) async fn count(&mut self, table: &str) -> Result<u64, StoreError> {
        let rows = self.rows(format!("SELECT COUNT(*) FROM {table}"), Vec::new()).await?;
        let count = rows.into_iter().next().and_then(|mut row| row.number());
        Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or_default())
    }
}
