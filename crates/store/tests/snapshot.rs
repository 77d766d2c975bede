//! What a snapshot has stays as it is while the store goes on, and a folder made from it is the store of that
//! moment.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod folder;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nexo_chat::ids::{ClientMsgId, ConversationId, Millis, Seq, UserId};
use nexo_chat::model::{Content, Draft};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{Limit, MessageStore, Order, Store};
use nexo_store::archive::Import;
use nexo_store::embedded::{FileContent, FolderToRestore, Snapshot};
use nexo_store::{Embedded, OpenError, Options};

const WITHIN: Duration = Duration::from_mins(2);

fn options() -> Options {
    Options { memtable_bytes: 64 << 10, ..folder::options() }
}

fn pair() -> ConversationId {
    ConversationId::parse("si_alice_bob").unwrap()
}

/// Appends messages with these numbers.
async fn append(store: &Arc<Embedded>, numbers: std::ops::Range<u64>) {
    let send = |n: u64| {
        let draft = Draft {
            conversation: pair(),
            sender: UserId::parse("alice").unwrap(),
            client_id: ClientMsgId::parse(&n.to_string()).unwrap(),
            content: Content::text(format!("message {n} {}", "x".repeat(1000))),
            sent_at: Millis(n),
            cleaned: None,
            origin: None,
            marks_read: true,
        };
        store.append(Permit::for_tests(), draft)
    };
    for sent in numbers.map(send).collect::<Vec<_>>() {
        sent.await.unwrap();
    }
}

async fn newest(store: &Arc<Embedded>) -> u64 {
    let range = Seq::ZERO..=Seq(u64::MAX);
    let read = store.messages(&pair(), range, Limit::of(99_999), Order::Ascending).await.unwrap();
    let read = read.messages;
    assert!(read.iter().map(|message| message.seq.0).eq(1..=read.len() as u64), "dense");
    read.len() as u64
}

/// The tables and segments of a snapshot.
fn paths(snapshot: &Snapshot) -> Vec<PathBuf> {
    let tables = snapshot.files().into_iter().filter_map(|file| match file.content {
        FileContent::Table(path, _) => Some(path),
        FileContent::Bytes(_) => None,
    });
    tables.chain(snapshot.log.segments.iter().map(|segment| segment.path.clone())).collect()
}

/// The tables and segments of a snapshot, and what is in them.
fn contents(snapshot: &Snapshot) -> Vec<(PathBuf, Vec<u8>)> {
    let tables = snapshot.files().filter_map(|file| match file.content {
        FileContent::Table(path, _) => Some((path.clone(), fs::read(path).unwrap())),
        FileContent::Bytes(_) => None,
    });
    let log = snapshot.log.segments.iter().map(|segment| {
        let mut bytes = fs::read(&segment.path).unwrap();
        bytes.truncate(usize::try_from(segment.bytes).unwrap());
        (segment.path.clone(), bytes)
    });
    tables.chain(log).collect()
}

fn is_as_before(path: &Path, before: &[u8]) -> bool {
    fs::read(path).is_ok_and(|now| now.starts_with(before))
}

/// Puts the files of a snapshot into a new folder.
fn copy(snapshot: &Snapshot, to: &Path) -> FolderToRestore {
    let folder = FolderToRestore::create(to, snapshot.format).unwrap();
    for file in snapshot.files() {
        let path = to.join(&file.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match file.content {
            FileContent::Bytes(bytes) => fs::write(path, bytes).unwrap(),
            FileContent::Table(from, _) => drop(fs::copy(from, path).unwrap()),
        }
    }
    for segment in &snapshot.log.segments {
        let bytes = fs::read(&segment.path).unwrap();
        let kept = &bytes[..usize::try_from(segment.bytes).unwrap()];
        fs::write(to.join("log").join(segment.path.file_name().unwrap()), kept).unwrap();
    }
    folder
}

#[tokio::test]
async fn what_a_snapshot_has_stays_while_the_store_goes_on() {
    let [from, to] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let store = Embedded::open(from.path(), &options()).unwrap();
    let (since, mut next) = (Instant::now(), 0);
    // Until there are tables of ids: they are merged again and again, since ids have no order. Messages of one
    // conversation come in order, so their tables may stay for good.
    let snapshot = loop {
        append(&store, next..next + 200).await;
        next += 200;
        let snapshot = store.snapshot().unwrap();
        let has_ids = paths(&snapshot).iter().any(|path| path.iter().any(|part| part == "ids"));
        if has_ids && !snapshot.log.segments.is_empty() {
            break snapshot;
        }
        assert!(since.elapsed() < WITHIN, "nothing is flushed");
    };
    let (before, stored) = (contents(&snapshot), next);
    // The store goes on until it needs neither some of the tables nor any of the log any more.
    let unused = loop {
        append(&store, next..next + 200).await;
        next += 200;
        let now = store.snapshot().unwrap();
        let used = paths(&now);
        let is_unused = |it: &&(PathBuf, Vec<u8>)| !used.contains(&it.0);
        let unused: Vec<_> = before.iter().filter(is_unused).cloned().collect();
        if now.flushed > snapshot.log.newest && unused.len() > snapshot.log.segments.len() {
            break unused;
        }
        assert!(since.elapsed() < WITHIN, "all files are still used");
    };
    for (path, bytes) in &before {
        assert!(is_as_before(path, bytes), "{} has changed", path.display());
    }
    let folder = copy(&snapshot, to.path());
    let (flushed, newest_entry) = (snapshot.flushed, snapshot.log.newest);
    drop(snapshot);
    // Nobody needs the files any more: the store deletes them.
    while let Some((path, _)) = unused.iter().find(|(path, bytes)| is_as_before(path, bytes)) {
        append(&store, next..next + 200).await;
        next += 200;
        assert!(since.elapsed() < WITHIN, "{} is never deleted", path.display());
    }
    let restored = folder.open(flushed, newest_entry, &options()).unwrap();
    assert_eq!(newest(&restored).await, stored, "all of that moment, and nothing later");
    restored.finish().await.unwrap();
    restored.close().await.unwrap();
    drop(restored);
    let restored = Embedded::open(to.path(), &options()).unwrap();
    append(&restored, stored - 100..stored + 100).await;
    assert_eq!(
        newest(&restored).await,
        stored + 100,
        "messages of that moment are known by their ids"
    );
}

#[tokio::test]
async fn a_restore_that_does_not_finish_leaves_a_folder_that_says_so() {
    let [from, to] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let store = Embedded::open(from.path(), &options()).unwrap();
    append(&store, 0..10).await;
    drop(copy(&store.snapshot().unwrap(), to.path()));
    assert!(matches!(Embedded::open(to.path(), &options()), Err(OpenError::Unfinished(_))));
    assert!(FolderToRestore::create(to.path(), 1).is_err(), "it is not empty");
}
