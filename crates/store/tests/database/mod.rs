//! Databases for tests, all in one MariaDB.

use std::sync::Arc;

use nexo_chat::store::Store;
use nexo_sim::MariaDb;
use nexo_store::conformance::Opener;
use nexo_store::{MySql, MySqlOptions};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

pub(crate) struct Database {
    url: String,
}

impl Database {
    /// Creates an empty one.
    pub(crate) fn fresh() -> Arc<Self> {
        Arc::new(Self { url: MariaDb::shared().fresh_database() })
    }
}

impl Opener for Database {
    fn open(&self) -> Arc<dyn Store> {
        let options = MySqlOptions::new(self.url.clone());
        block_in_place(|| Handle::current().block_on(MySql::open(&options))).expect("it opens")
    }

    fn open_after_crash(&self) -> Arc<dyn Store> {
        self.open() // as another node would
    }
}
