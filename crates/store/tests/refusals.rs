//! When the engine refuses: at open, when the disk fails, when too many writes wait.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod folder;

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nexo_chat::event::Event;
use nexo_chat::ids::{ClientMsgId, ConversationId, Millis, Seq, UserId};
use nexo_chat::invariants;
use nexo_chat::model::{AccountDetails, Content, CursorKind, Draft, Profile, User};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{
    AccountStore, Appended, CommitListener, ConversationStore, Limit, MessageStore, Order, Store,
    StoreError, StoreFuture,
};
use nexo_store::embedded::FaultKind;
use nexo_store::{Embedded, OpenError, Options};

fn pair() -> ConversationId {
    ConversationId::parse("si_alice_bob").unwrap()
}

fn append(store: &Arc<Embedded>, n: u64) -> StoreFuture<'static, Appended> {
    let draft = Draft {
        conversation: pair(),
        sender: UserId::parse("alice").unwrap(),
        client_id: ClientMsgId::parse(&n.to_string()).unwrap(),
        content: Content::text(format!("message {n}")),
        sent_at: Millis(n),
        cleaned: None,
        origin: None,
        marks_read: true,
    };
    store.append(Permit::for_tests(), draft)
}

async fn history(store: &Arc<Embedded>) -> Vec<Seq> {
    let range = Seq::ZERO..=Seq(u64::MAX);
    let read =
        store.messages(&pair(), range, Limit::of(9999), Order::Ascending).await.unwrap().messages;
    read.iter().map(|message| message.seq).collect()
}

#[test]
fn a_folder_in_use_is_not_opened_twice() {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(folder.path(), &folder::options()).unwrap();
    let second = Embedded::open(folder.path(), &folder::options());
    assert!(matches!(second, Err(OpenError::Locked(_))));
    drop(store);
    for _ in 0..3 {
        drop(Embedded::open(folder.path(), &folder::options()).unwrap());
    }
}

#[test]
fn a_newer_format_is_refused_with_both_numbers() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("FORMAT"), "nexo store format 5\n").unwrap();
    let error = Embedded::open(folder.path(), &folder::options()).err().unwrap();
    assert!(matches!(error, OpenError::Newer { found: 5, known: 4, .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains("newer") && said.contains("format 5"), "{said}");
}

#[test]
fn an_unknown_format_is_refused() {
    for text in ["", "nexo store format x", "nexo store format 0", "\u{0}\u{0}\u{0}", "hello"] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("FORMAT"), text).unwrap();
        let error = Embedded::open(folder.path(), &folder::options()).err().unwrap();
        assert!(matches!(error, OpenError::Unknown { .. }), "{text:?}: {error}");
    }
}

#[test]
fn parts_that_are_missing_are_noticed() {
    for part in [
        "FORMAT",
        "trees",
        "trees/users",
        "trees/ids/current",
        "log",
        "log/0000000001.log",
        "witness",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::open(folder.path(), &folder::options()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(append(&store, 1)).unwrap();
        drop(store);
        let path = folder.path().join(part);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        let error = Embedded::open(folder.path(), &folder::options()).err();
        assert!(error.is_some(), "{part} is gone, and it opened");
    }
}

#[test]
fn a_creation_cut_short_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("FORMAT"), "nexo store format 1\n").unwrap();
    fs::create_dir(folder.path().join("trees.new")).unwrap();
    fs::write(folder.path().join("trees.new/messages"), "half").unwrap();
    drop(Embedded::open(folder.path(), &folder::options()).unwrap());
}

#[test]
fn only_the_owner_may_look_into_the_folder() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    drop(Embedded::open(&path, &folder::options()).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
}

async fn check_poisoned(kind: FaultKind, may_be_there: bool) {
    let folder = tempfile::tempdir().unwrap();
    let options = folder::options();
    let store = Embedded::open(folder.path(), &options).unwrap();
    append(&store, 1).await.unwrap();
    options.faults.set(kind);
    let answers: Vec<_> = (2..5).map(|n| append(&store, n)).collect();
    for answer in answers {
        assert!(matches!(answer.await, Err(StoreError::Poisoned(_))));
    }
    options.faults.set(FaultKind::None);
    assert!(matches!(append(&store, 9).await, Err(StoreError::Poisoned(_))), "it stays so");
    let user = User {
        id: UserId::parse("alice").unwrap(),
        profile: Profile::default(),
        created_at: Millis(0),
        updated_at: Millis(0),
        password_hash: String::new(),
        session_version: 1,
        details: AccountDetails::default(),
    };
    assert!(matches!(store.create_user(user).await, Err(StoreError::Poisoned(_))));
    assert!(matches!(store.health(), Err(StoreError::Poisoned(_))));
    assert_eq!(history(&store).await, [Seq(1)], "what was durable can be read");
    assert!(store.close().await.is_err());
    drop(store);

    let dirty = folder.path().join("DIRTY");
    assert_eq!(dirty.exists(), kind == FaultKind::Sync, "a failed sync is remembered");
    let store = Embedded::open(folder.path(), &options).unwrap();
    assert!(!dirty.exists(), "and forgotten when the log was written again");
    store.health().unwrap();
    let before = history(&store).await.len();
    assert!(before == 1 || may_be_there, "{kind:?}: {before}");
    for n in 1..5 {
        append(&store, n).await.unwrap();
    }
    assert_eq!(history(&store).await, [Seq(1), Seq(2), Seq(3), Seq(4)], "once, whatever was there");
}

#[tokio::test]
async fn a_failed_write_stops_the_store() {
    check_poisoned(FaultKind::Write, false).await;
}

#[tokio::test]
async fn a_failed_sync_stops_the_store() {
    check_poisoned(FaultKind::Sync, true).await;
}

#[tokio::test]
async fn a_disk_without_room_refuses_and_stops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { cursors_every: Duration::from_millis(10), ..folder::options() };
    let store = Embedded::open(folder.path(), &options).unwrap();
    append(&store, 1).await.unwrap();
    let bob = UserId::parse("bob").unwrap();
    options.faults.set(FaultKind::NoRoom);
    // A cursor that moves meanwhile is written when there is room.
    store.advance_cursor(&bob, &pair(), CursorKind::Read, Seq(1)).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let answers: Vec<_> = (2..5).map(|n| append(&store, n)).collect();
    for answer in answers {
        assert!(matches!(answer.await, Err(StoreError::Unavailable(_))));
    }
    let error = store.health().unwrap_err();
    assert!(matches!(&error, StoreError::Unavailable(_)), "{error}");
    assert!(error.to_string().contains("disk is full"), "{error}");
    assert_eq!(history(&store).await, [Seq(1)], "what is durable can be read");
    options.faults.set(FaultKind::None);
    for n in 2..5 {
        append(&store, n).await.unwrap();
    }
    store.health().unwrap();
    let all = [Seq(1), Seq(2), Seq(3), Seq(4)];
    assert_eq!(history(&store).await, all, "what was refused took no place");
    store.close().await.unwrap();
    drop(store);
    let store = Embedded::open(folder.path(), &options).unwrap();
    assert_eq!(history(&store).await, all);
    let standing = store.standing(&bob, &pair()).await.unwrap().unwrap();
    assert_eq!(standing.cursors.read, Seq(1), "the cursor was written");
}

/// A listener that blocks announcements.
struct Gate(Arc<Mutex<()>>);

impl CommitListener for Gate {
    fn on_committed(&self, _batch: &[Event]) {
        drop(self.0.lock().unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_at_once_and_leaves_no_hole() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { queue_max: 4, ..folder::options() };
    let store = Embedded::open(folder.path(), &options).unwrap();
    let gate = Arc::new(Mutex::new(()));
    store.set_commit_listener(Arc::new(Gate(Arc::clone(&gate))));
    let mut answers = Vec::new();
    {
        let _closed = gate.lock().unwrap();
        for n in 0..5_000 {
            answers.push(append(&store, n));
        }
    }
    let (mut stored, mut refused) = (0, 0);
    for answer in answers {
        match answer.await {
            Ok(Appended::Stored(_)) => stored += 1,
            Err(StoreError::Unavailable(_)) => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(refused > 0, "the queue never filled");
    let history = history(&store).await;
    assert_eq!(history.len(), stored);
    assert!(invariants::is_dense(history));
    store.health().unwrap();
}
