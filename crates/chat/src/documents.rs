//! Documents as values: reads and changes records of [`crate::store::DocumentStore`] as JSON.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::reason::{Error, Reason};
use crate::store::{DocumentId, DocumentPage, DocumentWrite, Store, StoreError, StoreFuture};

/// A document, if there is one.
pub(crate) async fn get<D: DeserializeOwned>(
    store: &dyn Store,
    id: &DocumentId,
) -> Result<Option<D>, Error> {
    let bytes = store.document(id).await?;
    Ok(bytes.as_deref().map(|bytes| decode(&id.key, bytes)).transpose()?)
}

/// A page of documents with their keys.
pub(crate) async fn list<D: DeserializeOwned>(
    store: &dyn Store,
    page: DocumentPage,
) -> Result<Vec<(String, D)>, Error> {
    let found = store.documents(page).await?;
    let decoded = found.into_iter().map(|(key, bytes)| {
        let document = decode(&key, &bytes)?;
        Ok((key, document))
    });
    Ok(decoded.collect::<Result<_, StoreError>>()?)
}

/// Changes a document in one atomic operation: `decide` gets it as it is now and returns what it should be
/// (`None`: deleted) with a result, or refuses. It may be called more than once.
pub(crate) async fn change<D, T>(
    store: &dyn Store,
    id: &DocumentId,
    decide: impl Fn(Option<D>) -> Result<(Option<D>, T), Reason> + Send + Sync + 'static,
) -> Result<T, Error>
where
    D: Serialize + DeserializeOwned,
    T: Send + 'static,
{
    let outcome: Arc<Mutex<Option<Result<T, Error>>>> = Arc::default();
    let decided = Arc::clone(&outcome);
    let guard = id.clone();
    let decide = move |bytes: Option<&[u8]>| {
        let (writes, result) = match decide_bytes(&guard, bytes, &decide) {
            Ok((write, result)) => (vec![write], Ok(result)),
            Err(error) => (Vec::new(), Err(error)),
        };
        // The last call counts, as its writes do.
        *decided.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        writes
    };
    store.change_documents(id, Box::new(decide)).await?;
    let outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
    outcome.unwrap_or_else(|| Err(Error::Internal("the store decided nothing".into())))
}

fn decide_bytes<D: Serialize + DeserializeOwned, T>(
    id: &DocumentId,
    bytes: Option<&[u8]>,
    decide: impl Fn(Option<D>) -> Result<(Option<D>, T), Reason>,
) -> Result<(DocumentWrite, T), Error> {
    let document = bytes.map(|bytes| decode(&id.key, bytes)).transpose()?;
    let (changed, result) = decide(document)?;
    let body = changed.as_ref().map(encode).transpose()?;
    Ok((DocumentWrite { id: id.clone(), body }, result))
}

/// Queues a change that nobody waits for. A document that is missing or cannot be read is left alone.
pub(crate) fn change_soon<'a, D: Serialize + DeserializeOwned>(
    store: &'a dyn Store,
    id: &DocumentId,
    change: impl Fn(Option<D>) -> Option<D> + Send + Sync + 'static,
) -> StoreFuture<'a, ()> {
    let guard = id.clone();
    store.change_documents(
        id,
        Box::new(move |bytes| {
            let Some(Ok(document)) = bytes.map(|bytes| decode(&guard.key, bytes)) else {
                return Vec::new();
            };
            let body = change(Some(document)).and_then(|changed| encode(&changed).ok());
            let write = |body| DocumentWrite { id: guard.clone(), body: Some(body) };
            body.map(write).into_iter().collect()
        }),
    )
}

fn encode<D: Serialize>(document: &D) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(document).map_err(|error| Error::Internal(error.into()))
}

fn decode<D: DeserializeOwned>(key: &str, bytes: &[u8]) -> Result<D, StoreError> {
    serde_json::from_slice(bytes)
        .map_err(|_| StoreError::Damaged(format!("the document {key} makes no sense")))
}
