//! Persistent storage of a device.
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Error;
use crate::events::Listeners;

/// Persists the sign-in and unsent messages across restarts. Values are plain data. The client's
/// task calls it, so it should be quick.
pub trait Store: Send + Sync {
    /// The value of this key.
    fn get(&self, key: &str) -> io::Result<Option<Value>>;
    /// Sets the value of this key.
    fn set(&self, key: &str, value: &Value) -> io::Result<()>;
    /// Deletes a key; a missing key is no error.
    fn delete(&self, key: &str) -> io::Result<()>;
    /// All entries whose key starts with `prefix`, ordered by key.
    fn list(&self, prefix: &str) -> io::Result<Vec<(String, Value)>>;
}

/// A store in memory: it is lost when the process ends.
#[derive(Default)]
pub struct MemoryStore(Mutex<BTreeMap<String, Value>>);

impl MemoryStore {
    fn values(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn get(&self, key: &str) -> io::Result<Option<Value>> {
        Ok(self.values().get(key).cloned())
    }

    fn set(&self, key: &str, value: &Value) -> io::Result<()> {
        self.values().insert(key.to_owned(), value.clone());
        Ok(())
    }

    fn delete(&self, key: &str) -> io::Result<()> {
        self.values().remove(key);
        Ok(())
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<(String, Value)>> {
        Ok(with_prefix(&self.values(), prefix))
    }
}

pub(crate) fn with_prefix(values: &BTreeMap<String, Value>, prefix: &str) -> Vec<(String, Value)> {
    let from = values.range(prefix.to_owned()..);
    let found = from.take_while(|(key, _)| key.starts_with(prefix));
    found.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Wraps a store whose failures (full, forbidden) are reported and otherwise ignored: the client
/// goes on, only a restart loses data.
#[derive(Clone)]
pub(crate) struct BestEffortStore {
    store: Arc<dyn Store>,
    listeners: Listeners,
}

impl BestEffortStore {
    pub(crate) fn new(store: Arc<dyn Store>, listeners: Listeners) -> Self {
        Self { store, listeners }
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let value = self.report(self.store.get(key))??;
        self.report(serde_json::from_value(value).map_err(io::Error::from))
    }

    pub(crate) fn set<T: Serialize>(&self, key: &str, value: &T) {
        let value = serde_json::to_value(value).map_err(io::Error::from);
        self.report(value.and_then(|value| self.store.set(key, &value)));
    }

    pub(crate) fn delete(&self, key: &str) {
        self.report(self.store.delete(key));
    }

    pub(crate) fn list<T: DeserializeOwned>(&self, prefix: &str) -> Vec<(String, T)> {
        let found = self.report(self.store.list(prefix)).unwrap_or_default();
        let parse = |(key, value)| {
            let value = serde_json::from_value(value).map_err(io::Error::from);
            Some((key, self.report(value)?))
        };
        found.into_iter().filter_map(parse).collect()
    }

    fn report<T>(&self, outcome: io::Result<T>) -> Option<T> {
        outcome
            .inspect_err(|error| self.listeners.emit_problem(Error::Store(error.to_string())))
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Event;

    struct FailingStore;

    impl Store for FailingStore {
        fn get(&self, _: &str) -> io::Result<Option<Value>> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn set(&self, _: &str, _: &Value) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn delete(&self, _: &str) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn list(&self, _: &str) -> io::Result<Vec<(String, Value)>> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    #[tokio::test]
    async fn a_store_that_fails_is_told_of_and_forgiven() {
        let listeners = Listeners::default();
        let mut events = listeners.subscribe();
        let store = BestEffortStore::new(Arc::new(FailingStore), listeners);
        store.set("a", &1);
        assert_eq!(store.get::<u8>("a"), None);
        assert_eq!(store.list::<u8>(""), []);
        assert!(matches!(events.next().await, Some(Event::Problem(Error::Store(_)))));
    }
}
