//! Where a device keeps what must survive a restart.
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Error;
use crate::events::Ears;

/// Where a device keeps what must survive a restart: its sign-in and what it has not sent yet.
/// Values are plain data. Called in the client's own task, so it should be quick.
pub trait Store: Send + Sync {
    /// What is kept under this key.
    fn get(&self, key: &str) -> io::Result<Option<Value>>;
    /// Keeps a value in place of what was there.
    fn set(&self, key: &str, value: &Value) -> io::Result<()>;
    /// Forgets a value; one that is not there is forgotten already.
    fn delete(&self, key: &str) -> io::Result<()>;
    /// Everything whose key begins so, in the order of the keys.
    fn list(&self, prefix: &str) -> io::Result<Vec<(String, Value)>>;
}

/// Forgets everything when the process ends.
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
        Ok(beginning_with(&self.values(), prefix))
    }
}

pub(crate) fn beginning_with(
    values: &BTreeMap<String, Value>,
    prefix: &str,
) -> Vec<(String, Value)> {
    let from = values.range(prefix.to_owned()..);
    let found = from.take_while(|(key, _)| key.starts_with(prefix));
    found.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// A store that fails (full, forbidden) costs the restart, not the conversation: the app hears of it
/// and everything goes on.
#[derive(Clone)]
pub(crate) struct Keeper {
    store: Arc<dyn Store>,
    ears: Ears,
}

impl Keeper {
    pub(crate) fn new(store: Arc<dyn Store>, ears: Ears) -> Self {
        Self { store, ears }
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let value = self.forgive(self.store.get(key))??;
        self.forgive(serde_json::from_value(value).map_err(io::Error::from))
    }

    pub(crate) fn set<T: Serialize>(&self, key: &str, value: &T) {
        let value = serde_json::to_value(value).map_err(io::Error::from);
        self.forgive(value.and_then(|value| self.store.set(key, &value)));
    }

    pub(crate) fn delete(&self, key: &str) {
        self.forgive(self.store.delete(key));
    }

    pub(crate) fn list<T: DeserializeOwned>(&self, prefix: &str) -> Vec<(String, T)> {
        let found = self.forgive(self.store.list(prefix)).unwrap_or_default();
        let read = |(key, value)| {
            let value = serde_json::from_value(value).map_err(io::Error::from);
            Some((key, self.forgive(value)?))
        };
        found.into_iter().filter_map(read).collect()
    }

    fn forgive<T>(&self, outcome: io::Result<T>) -> Option<T> {
        outcome.inspect_err(|error| self.ears.problem(Error::Store(error.to_string()))).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Event;

    struct Full;

    impl Store for Full {
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
        let ears = Ears::default();
        let mut events = ears.listen();
        let keeper = Keeper::new(Arc::new(Full), ears);
        keeper.set("a", &1);
        assert_eq!(keeper.get::<u8>("a"), None);
        assert_eq!(keeper.list::<u8>(""), []);
        assert!(matches!(events.next().await, Some(Event::Problem(Error::Store(_)))));
    }
}
