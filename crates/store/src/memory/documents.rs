//! Documents of the reference engine.

use nexo_chat::store::{
    DecideDocuments, DocumentId, DocumentPage, DocumentStore, DocumentWrite, StoreFuture,
};

use super::{Memory, MemoryState};

impl DocumentStore for Memory {
    fn document(&self, id: &DocumentId) -> StoreFuture<'_, Option<Vec<u8>>> {
        self.read(|state| state.documents.get(id).cloned())
    }

    fn documents(&self, page: DocumentPage) -> StoreFuture<'_, Vec<(String, Vec<u8>)>> {
        self.read(|state| state.documents(&page))
    }

    fn change_documents(&self, guard: &DocumentId, decide: DecideDocuments) -> StoreFuture<'_, ()> {
        self.write(|state| {
            let writes = decide(state.documents.get(guard).map(Vec::as_slice));
            for DocumentWrite { id, body } in writes {
                match body {
                    Some(body) => drop(state.documents.insert(id, body)),
                    None => drop(state.documents.remove(&id)),
                }
            }
        })
    }
}

impl MemoryState {
    fn documents(&self, page: &DocumentPage) -> Vec<(String, Vec<u8>)> {
        let DocumentPage { collection, prefix, after, backwards, limit } = page;
        if !after.as_ref().is_none_or(|after| DocumentId::may_begin_key(after)) {
            return Vec::new();
        }
        let is_asked_for = |id: &DocumentId| {
            let follows = after.as_ref().is_none_or(|after| match backwards {
                false => id.key > *after,
                true => id.key < *after,
            });
            id.collection == *collection && id.key.starts_with(prefix) && follows
        };
        let found = self.documents.iter().filter(|(id, _)| is_asked_for(id));
        let found = found.map(|(id, body)| (id.key.clone(), body.clone()));
        if *backwards { found.rev().take(*limit).collect() } else { found.take(*limit).collect() }
    }
}
