//! Data that is copied from one engine to another is the same there: every read has the same result
//! as before, and every further write has the same outcome.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod calls;
mod folder;

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use nexo_chat::store::Store;
use nexo_sim::MariaDb;
use nexo_store::archive::{ArchiveError, Export, Import, ItemKind, Tally, copy, survey};
use nexo_store::{Embedded, Memory, MySql, MySqlOptions, OpenError};

use self::calls::everything::everything;
use self::calls::{Call, Names, calls, make};

fn open(path: &Path) -> Arc<Embedded> {
    Embedded::open(path, &folder::options()).unwrap()
}

fn database() -> MySqlOptions {
    MySqlOptions::new(MariaDb::shared().fresh_database())
}

/// Copies a store, and checks that the target has what was exported.
async fn moved(from: &dyn Export, to: &(impl Import + Export)) -> Tally {
    let given = copy(from, to, &mut |_| {}).await.unwrap();
    let found = survey(to, &mut |_| {}).await.unwrap();
    assert_eq!(given.differences(&found), Vec::<String>::new());
    to.finish().await.unwrap();
    given
}

/// A store in a folder, copied into a database and from there into another folder.
struct Journey {
    folders: [tempfile::TempDir; 2],
    database: MySqlOptions,
}

impl Journey {
    fn new() -> Self {
        Self {
            folders: [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()],
            database: database(),
        }
    }

    /// Copies there and back; returns the tally.
    async fn go(&self) -> Tally {
        let from = Embedded::open_to_read(self.folders[0].path(), &folder::options()).unwrap();
        let to = MySql::open_to_fill(&self.database).await.unwrap();
        let there = moved(&*from, &*to).await;
        to.close().await.unwrap();
        let from = MySql::open_to_read(&self.database).await.unwrap();
        let to = Embedded::open_to_fill(self.folders[1].path(), &folder::options()).unwrap();
        let back = moved(&*from, &*to).await;
        from.close().await.unwrap();
        assert_eq!(there.differences(&back), Vec::<String>::new());
        back
    }

    /// Opens all three.
    async fn stores(&self) -> [Arc<dyn Store>; 3] {
        let database = MySql::open(&self.database).await.unwrap();
        [open(self.folders[0].path()), database, open(self.folders[1].path())]
    }
}

/// Makes some calls, copies, and compares reads and the outcomes of further calls.
async fn check(before: Vec<Call>, after: Vec<Call>) -> Tally {
    let journey = Journey::new();
    let mut names = Names::default();
    let reference: Arc<dyn Store> = Memory::new();
    {
        let store: Arc<dyn Store> = open(journey.folders[0].path());
        let mut given = Names::default();
        for call in &before {
            let expect = make(&reference, call, &mut names).await;
            assert_eq!(make(&store, call, &mut given).await, expect, "{call:?}");
        }
    }
    let tally = Box::pin(journey.go()).await;
    let stores = journey.stores().await;
    let expect = everything(&reference).await;
    for store in &stores {
        let found = everything(store).await;
        for (line, expect) in found.lines().zip(expect.lines()) {
            assert_eq!(line, expect);
        }
        assert_eq!(found, expect);
    }
    for call in &after {
        let mut next = names;
        let expect = make(&reference, call, &mut next).await;
        for store in &stores {
            let mut given = names;
            assert_eq!(make(store, call, &mut given).await, expect, "{call:?}");
        }
        names = next;
    }
    tally
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 8,
        failure_persistence: None,
        max_shrink_iters: 64,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_was_done_is_moved(
        before in proptest::collection::vec(calls(), 1..120),
        after in proptest::collection::vec(calls(), 1..40),
    ) {
        run(check(before, after));
    }
}

/// Calls that create an item of every kind.
fn story() -> Vec<Call> {
    let group = |by, what, at| Call::Group { by, whom: (by + 1) % 4, what, at };
    let say = |from, to, client_id, at| Call::Append { from, to, client_id, text: 0, at };
    let mut calls = vec![
        Call::CreateUser { user: 0, hash: 7 },
        Call::CreateUser { user: 1, hash: 9 },
        Call::Account { user: 1, what: 2 },
        Call::Reset { user: 0, code: 2, now: 5 },
        Call::Seen { user: 0, at: 40 },
        Call::Documents { guard: 0, also: 2, what: 4 },
        Call::Documents { guard: 3, also: 2, what: 5 },
        Call::CreateLogin { user: 0, created: 2, lives: 90, now: 3 },
        Call::Rotate { hash: 0, now: 20 },
        Call::Rotate { hash: 1, now: 21 },
        group(0, 0, 5),                                   // created, by approval
        group(2, 4, 6),                                   // a user requests to join
        Call::Group { by: 0, whom: 1, what: 19, at: 60 }, // a member is muted,
        group(1, 11, 7),                                  // and leaves
        Call::Choose { user: 0, a: 0, b: 1, pinned: Some(true), blocked: true },
        // Chosen before the first message, which never comes.
        Call::Choose { user: 2, a: 2, b: 3, pinned: Some(true), blocked: true },
    ];
    for client_id in 0..12 {
        calls.push(say(0, 1, client_id, 28 + u64::from(client_id)));
        calls.push(say(1, 0, client_id, 28 + u64::from(client_id)));
        calls.push(say(0, 0, client_id + 12, u64::from(client_id)));
    }
    calls.extend([
        Call::Recall { by: 0, of: 0, client_id: 3, at: 50 },
        Call::Choose { user: 0, a: 0, b: 1, pinned: Some(true), blocked: true },
        Call::Advance { user: 1, a: 0, b: 1, read: true, seq: 3 },
    ]);
    calls
}

#[test]
fn every_kind_of_thing_is_moved() {
    // The same calls again: retries are duplicates, other contents conflicts, used tokens known.
    let mut after = story();
    let again = story().into_iter().map(|call| match call {
        Call::Append { from, to, client_id, at, .. } => {
            Call::Append { from, to, client_id, at, text: 1 }
        }
        Call::Rotate { hash, now } => Call::Rotate { hash, now: now + 25 },
        other => other,
    });
    after.extend(again);
    let tally = run(check(story(), after));
    for kind in ItemKind::ALL {
        assert!(tally.count(kind) > 0, "{kind:?}");
    }
}

#[test]
fn cursors_that_only_the_log_knows_are_moved() {
    run(async {
        let journey = Journey::new();
        let running = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = open(running.path());
        let says = story().into_iter().filter(|call| matches!(call, Call::Append { .. }));
        for call in says {
            make(&store, &call, &mut Names::default()).await;
        }
        // What a crash would leave: its cursors are in memory and are replayed from the log.
        folder::copy(running.path(), journey.folders[0].path());
        Box::pin(journey.go()).await;
        let expect = everything(&store).await;
        for moved in journey.stores().await {
            assert_eq!(everything(&moved).await, expect);
        }
    });
}

#[test]
fn nothing_is_moved_too() {
    assert_eq!(run(check(Vec::new(), story())).total(), 0);
}

#[test]
fn a_folder_with_data_is_not_filled() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let fill = || Embedded::open_to_fill(folder.path(), &folder::options());
        let store: Arc<dyn Store> = open(folder.path());
        assert!(matches!(fill(), Err(ArchiveError::Open(OpenError::Locked(_)))));
        make(&store, &Call::CreateUser { user: 0, hash: 1 }, &mut Names::default()).await;
        drop(store);
        assert!(matches!(fill(), Err(ArchiveError::NotEmpty(what)) if what == "users"));
        // The server is unaffected.
        open(folder.path());
        let strange = tempfile::tempdir().unwrap();
        std::fs::write(strange.path().join("letter.txt"), "dear").unwrap();
        let refused = Embedded::open_to_fill(strange.path(), &folder::options());
        assert!(matches!(refused, Err(ArchiveError::NotEmpty(what)) if what == "letter.txt"));
        assert_eq!(std::fs::read_dir(strange.path()).unwrap().count(), 1);
        let nowhere = strange.path().join("nowhere");
        let refused = Embedded::open_to_read(&nowhere, &folder::options());
        assert!(matches!(refused, Err(ArchiveError::Missing)));
        assert!(!nowhere.exists(), "looking makes nothing");
    });
}

#[test]
fn a_half_filled_folder_is_known() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        drop(Embedded::open_to_fill(folder.path(), &folder::options()).unwrap());
        let unfinished = |error| matches!(error, OpenError::Unfinished(_));
        assert!(unfinished(Embedded::open(folder.path(), &folder::options()).err().unwrap()));
        let again = Embedded::open_to_fill(folder.path(), &folder::options());
        assert!(matches!(again, Err(ArchiveError::Open(OpenError::Unfinished(_)))));
        let store = Embedded::open_filled(folder.path(), &folder::options()).unwrap();
        store.finish().await.unwrap();
        drop(store);
        open(folder.path());
    });
}

#[test]
fn a_database_in_use_is_left_alone() {
    run(async {
        let options = database();
        let read = MySql::open_to_read(&options).await;
        assert!(matches!(read, Err(ArchiveError::Missing)));
        let server = MySql::open(&options).await.unwrap();
        let read = MySql::open_to_read(&options).await;
        assert!(matches!(read, Err(ArchiveError::InUse)));
        let fill = MySql::open_to_fill(&options).await;
        assert!(matches!(fill, Err(ArchiveError::InUse)));
        // A server that closed is recognized at once.
        server.close().await.unwrap();
        let reading = MySql::open_to_read(&options).await.unwrap();
        let refused = MySql::open(&options).await.err().unwrap().to_string();
        assert!(refused.contains("a migration is using it"), "{refused}");
        reading.close().await.unwrap();
        let server: Arc<dyn Store> = MySql::open(&options).await.unwrap();
        make(&server, &Call::CreateUser { user: 0, hash: 1 }, &mut Names::default()).await;
        server.close().await.unwrap();
        let fill = MySql::open_to_fill(&options).await;
        assert!(matches!(fill, Err(ArchiveError::NotEmpty(what)) if what == "users"));
        MySql::open(&options).await.unwrap();
    });
}

#[test]
fn a_server_that_was_killed_counts_as_gone_after_a_while() {
    run(async {
        let options = database();
        drop(MySql::open(&options).await.unwrap()); // without releasing its lease, as if killed
        let read = MySql::open_to_read(&options).await;
        assert!(matches!(read, Err(ArchiveError::InUse)));
        let name = options.url.rsplit('/').next().unwrap();
        MariaDb::shared().sql(name, "UPDATE nodes SET at = at - INTERVAL 11 SECOND");
        MySql::open_to_read(&options).await.unwrap();
    });
}

#[test]
fn a_server_that_lives_stays_known() {
    run(async {
        let options = database();
        let server = MySql::open(&options).await.unwrap();
        let name = options.url.rsplit('/').next().unwrap();
        MariaDb::shared().sql(name, "UPDATE nodes SET at = at - INTERVAL 1 MINUTE");
        tokio::time::sleep(std::time::Duration::from_secs(4)).await;
        let read = MySql::open_to_read(&options).await;
        assert!(matches!(read, Err(ArchiveError::InUse)));
        assert!(server.is_served().await.unwrap());
    });
}

#[test]
fn a_half_filled_database_is_known() {
    run(async {
        let options = database();
        let filling = MySql::open_to_fill(&options).await.unwrap();
        let twice = MySql::open_to_fill(&options).await;
        assert!(matches!(twice, Err(ArchiveError::Migrating)));
        let refused = MySql::open(&options).await.err().unwrap().to_string();
        assert!(refused.contains("a migration is using it"), "{refused}");
        drop(filling); // as if killed
        let name = options.url.rsplit('/').next().unwrap();
        MariaDb::shared().sql(name, "UPDATE migrations SET at = at - INTERVAL 11 SECOND");
        let refused = MySql::open(&options).await.err().unwrap().to_string();
        assert!(refused.contains("did not finish"), "{refused}");
        for refused in [MySql::open_to_fill(&options).await, MySql::open_to_read(&options).await] {
            assert!(matches!(refused, Err(ArchiveError::Unfinished)));
        }
    });
}
