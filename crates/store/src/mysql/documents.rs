//! Documents, changed under the lock of their guard.

use std::collections::BTreeMap;
use std::ops::Bound;

use nexo_chat::store::{
    DecideDocuments, DocumentId, DocumentPage, DocumentStore, DocumentWrite, StoreError,
    StoreFuture,
};

use super::MySql;
use super::core::Core;
use super::fault::SqlFault;
use super::fields::Fields;
use super::row::DOCUMENT;
use super::sql::values;
use super::transaction::with_retries;
use crate::document_range;

/// Selects one document by its collection and key.
const BODY: &str = "SELECT body FROM documents WHERE collection = ? AND id = ?";

impl DocumentStore for MySql {
    fn document(&self, id: &DocumentId) -> StoreFuture<'_, Option<Vec<u8>>> {
        let id = id.clone();
        self.spawn_read(async move |core| {
            let rows = core.rows(BODY, values![id.collection.name(), &id.key]).await?;
            Ok(rows.into_iter().next().map(|row| Fields::from(row).bytes()).transpose()?)
        })
    }

    fn documents(&self, page: DocumentPage) -> StoreFuture<'_, Vec<(String, Vec<u8>)>> {
        self.spawn_read(async move |core| read_documents(&core, &page).await)
    }

    fn change_documents(&self, guard: &DocumentId, decide: DecideDocuments) -> StoreFuture<'_, ()> {
        let guard = guard.clone();
        self.spawn_write(async move |core| with_retries!(core, try_change(&core, &guard, &*decide)))
    }
}

async fn read_documents(
    core: &Core,
    page: &DocumentPage,
) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
    let Some((from, to)) = document_range::bounds(page) else { return Ok(Vec::new()) };
    let mut sql = "SELECT id, body FROM documents WHERE collection = ?".to_owned();
    let mut params = values![page.collection.name()];
    let ends = [(from, " AND id >= ?", " AND id > ?"), (to, " AND id <= ?", " AND id < ?")];
    for (end, included, excluded) in ends {
        let (condition, key) = match end {
            Bound::Included(key) => (included, key),
            Bound::Excluded(key) => (excluded, key),
            Bound::Unbounded => continue,
        };
        sql += condition;
        params.extend(values![key]);
    }
    sql += if page.backwards { " ORDER BY id DESC LIMIT ?" } else { " ORDER BY id LIMIT ?" };
    params.extend(values![page.limit as u64]);
    let rows = core.rows(&sql, params).await?;
    let documents = rows.into_iter().map(|row| {
        let mut fields = Fields::from(row);
        Ok((fields.text()?, fields.bytes()?))
    });
    Ok(documents.collect::<Result<_, SqlFault>>()?)
}

async fn try_change(
    core: &Core,
    guard: &DocumentId,
    decide: &(dyn Fn(Option<&[u8]>) -> Vec<DocumentWrite> + Send + Sync),
) -> Result<(), SqlFault> {
    let mut transaction = core.begin().await?;
    let key = values![guard.collection.name(), &guard.key];
    let before = transaction.rows(format!("{BODY} FOR UPDATE"), key).await?.into_iter().next();
    let before = before.map(|row| Fields::from(row).bytes()).transpose()?;
    // In one order, so that changes of the same documents do not deadlock.
    let writes: BTreeMap<DocumentId, Option<Vec<u8>>> =
        decide(before.as_deref()).into_iter().map(|write| (write.id, write.body)).collect();
    if writes.is_empty() {
        return transaction.roll_back().await;
    }
    for (id, body) in writes {
        let key = values![id.collection.name(), &id.key];
        let Some(body) = body else {
            transaction.run("DELETE FROM documents WHERE collection = ? AND id = ?", key).await?;
            continue;
        };
        // A row that is absent cannot be locked. Whoever inserts the guard first is first, and the
        // others decide again.
        let verb = if before.is_none() && id == *guard { "INSERT" } else { "REPLACE" };
        let sql = format!("{verb} INTO documents ({DOCUMENT}) VALUES (?, ?, ?)");
        let row = [key, values![body]].concat();
        match transaction.run(sql, row).await {
            Err(fault @ SqlFault::DuplicateKey(_)) => {
                transaction.roll_back().await?;
                return Err(fault);
            }
            Err(fault) => return Err(fault),
            Ok(_) => {}
        }
    }
    transaction.commit().await
}
