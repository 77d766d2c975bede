//! Accounts from before ids were folded: all of them stay, and of those that fold to the same id
//! the oldest holds it.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod folder;

use std::path::Path;
use std::sync::Arc;

use nexo_chat::ids::{Millis, UserId};
use nexo_chat::model::{AccountDetails, Profile, User};
use nexo_chat::store::{AccountStore, Store};
use nexo_sim::MariaDb;
use nexo_store::archive::{Import, Item};
use nexo_store::{Embedded, MySql, MySqlOptions};

fn user(id: &str) -> UserId {
    UserId::parse(id).unwrap()
}

fn account(id: &str, created_at: u64) -> User {
    User {
        id: user(id),
        profile: Profile { nickname: id.into(), ..Profile::default() },
        created_at: Millis(created_at),
        updated_at: Millis(created_at),
        password_hash: String::new(),
        session_version: 1,
        details: AccountDetails::default(),
    }
}

/// Accounts that look alike, the oldest in the middle, and one that is unlike the others.
fn old() -> Vec<User> {
    vec![account("B0B", 3), account("Bob", 1), account("bob", 2), account("carol", 9)]
}

async fn check(store: &dyn Store) {
    for account in old() {
        assert_eq!(store.user(&account.id).await.unwrap().as_deref(), Some(&account));
    }
    assert_eq!(store.user_by_folded_id(&user("b0b").folded()).await.unwrap(), Some(user("Bob")));
    assert_eq!(
        store.user_by_folded_id(&user("Carol").folded()).await.unwrap(),
        Some(user("carol"))
    );
    for alike in ["boB", "Caro1"] {
        assert!(!store.create_user(account(alike, 10)).await.unwrap(), "{alike}");
    }
    assert!(store.create_user(account("dave", 10)).await.unwrap());
}

async fn fill(store: &(impl Import + Store)) {
    let items = old().into_iter().map(Item::User).collect();
    store.import(items).await.unwrap();
    store.finish().await.unwrap();
    store.close().await.unwrap();
}

fn open(path: &Path) -> Arc<Embedded> {
    Embedded::open(path, &folder::options()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filled_folder_has_them_all() {
    let folder = tempfile::tempdir().unwrap();
    // Also if a server was started on the folder before, while it was empty.
    open(folder.path()).close().await.unwrap();
    let store = Embedded::open_to_fill(folder.path(), &folder::options()).unwrap();
    fill(&*store).await;
    drop(store);
    check(&*open(folder.path())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_lost_the_keyspace_gets_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open_to_fill(folder.path(), &folder::options()).unwrap();
    fill(&*store).await;
    drop(store);
    // As in a folder of the first format, which has no index.
    std::fs::remove_dir_all(folder.path().join("trees/folded")).unwrap();
    check(&*open(folder.path())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filled_database_has_them_all() {
    let options = MySqlOptions::new(MariaDb::shared().fresh_database());
    fill(&*MySql::open_to_fill(&options).await.unwrap()).await;
    check(&*MySql::open(&options).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_an_earlier_version_gets_them() {
    let url = MariaDb::shared().fresh_database();
    let options = MySqlOptions::new(url.clone());
    let store = MySql::open_to_fill(&options).await.unwrap();
    fill(&*store).await;
    let back = "DROP TABLE folded_ids; DROP TABLE reset_codes; \
         ALTER TABLE users DROP COLUMN updated_at; DELETE FROM schema_versions WHERE version > 3;";
    MariaDb::shared().sql(url.rsplit('/').next().unwrap(), back);
    let store = MySql::open(&options).await.unwrap();
    check(&*store).await;
    store.close().await.unwrap();
    // A start that was interrupted after it added a column continues.
    let cut = "DELETE FROM schema_versions WHERE version > 3 AND step > 1;";
    MariaDb::shared().sql(url.rsplit('/').next().unwrap(), cut);
    let store = MySql::open(&options).await.unwrap();
    assert!(!store.create_user(account("DAVE", 10)).await.unwrap());
}
