//! Documents: changed by the committer, read from the trees.

use nexo_chat::store::{
    DecideDocuments, DocumentId, DocumentPage, DocumentStore, DocumentWrite, Order, StoreFuture,
};

use super::core::Core;
use super::keys::Keyspace;
use super::pending::Pending;
use super::poison::EngineFault;
use super::{CHANGE_BYTES, Embedded, keys, record};
use crate::document_range;

impl DocumentStore for Embedded {
    fn document(&self, id: &DocumentId) -> StoreFuture<'_, Option<Vec<u8>>> {
        self.read_now(|core| find_document(core, id))
    }

    fn documents(&self, page: DocumentPage) -> StoreFuture<'_, Vec<(String, Vec<u8>)>> {
        self.read_blocking(move |core| read_documents(core, &page))
    }

    fn change_documents(&self, guard: &DocumentId, decide: DecideDocuments) -> StoreFuture<'_, ()> {
        let guard = guard.clone();
        self.submit(CHANGE_BYTES, move |pending| change_documents(pending, &guard, &decide))
    }
}

fn find_document(core: &Core, id: &DocumentId) -> Result<Option<Vec<u8>>, EngineFault> {
    let key = keys::document(id);
    let found = core.engine.get(Keyspace::Documents, &key)?;
    found.map(|bytes| body(&key, &bytes)).transpose()
}

fn read_documents(core: &Core, page: &DocumentPage) -> Result<Vec<(String, Vec<u8>)>, EngineFault> {
    let Some(bounds) = document_range::bounds(page) else { return Ok(Vec::new()) };
    let range = keys::documents(page.collection, bounds);
    let order = if page.backwards { Order::Descending } else { Order::Ascending };
    let found = core.engine.scan(Keyspace::Documents, range, page.limit, order, usize::MAX)?;
    let documents = found.iter().map(|(key, bytes)| {
        let id = keys::document_of(key)
            .ok_or_else(|| record::impossible(Keyspace::Documents, "no document id"))?;
        Ok((id.key, body(key, bytes)?))
    });
    documents.collect()
}

/// All calls pass through the one committer, so that nothing comes between reading the guard and the
/// writes.
fn change_documents(
    pending: &mut Pending<'_>,
    guard: &DocumentId,
    decide: &DecideDocuments,
) -> Result<(), EngineFault> {
    let key = keys::document(guard);
    let before = pending.get(Keyspace::Documents, &key)?;
    let before = before.map(|bytes| body(&key, &bytes)).transpose()?;
    for DocumentWrite { id, body } in decide(before.as_deref()) {
        let key = keys::document(&id);
        match body {
            Some(body) => pending.set(Keyspace::Documents, key, &body.as_slice())?,
            None => pending.delete(Keyspace::Documents, key),
        }
    }
    Ok(())
}

fn body(key: &[u8], bytes: &[u8]) -> Result<Vec<u8>, EngineFault> {
    Ok(record::decode::<&[u8]>(Keyspace::Documents, key, bytes)?.to_vec())
}
