//! The doctor names each kind of damage, and salvaging keeps what is readable and makes nothing up.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod folder;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nexo_chat::ids::{ClientMsgId, ConversationId, MessageId, Millis, Seq, UserId};
use nexo_chat::model::{AccountDetails, Content, Draft, Message, Profile, User};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{
    AccountStore, Actor, Appended, ConversationStore, Limit, MessageStore, Order, Store,
};
use nexo_store::Embedded;
use nexo_store::embedded::doctor::{self, Report, SalvageReport};

const PEERS: [&str; 3] = ["bob", "carol", "dave"];
const COUNT: u64 = 300;

fn user(id: &str) -> UserId {
    UserId::parse(id).unwrap()
}

fn conversation(peer: &str) -> ConversationId {
    ConversationId::private(&user("alice"), &user(peer))
}

fn draft(to: &str, n: u64) -> Draft {
    Draft {
        conversation: conversation(to),
        sender: user("alice"),
        client_id: ClientMsgId::parse(&format!("{to}{n}")).unwrap(),
        content: Content::text(format!("{n:0>4000}")),
        sent_at: Millis(n),
        cleaned: None,
        origin: None,
        marks_read: true,
    }
}

fn account(id: &str) -> User {
    User {
        id: user(id),
        profile: Profile::default(),
        created_at: Millis(0),
        updated_at: Millis(0),
        password_hash: "hash".into(),
        session_version: 1,
        details: AccountDetails::default(),
    }
}

/// A closed folder with tables and a log, and its messages.
async fn sound_folder() -> (tempfile::TempDir, Vec<Vec<Arc<Message>>>) {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(folder.path(), &folder::options()).unwrap();
    for id in ["alice", "bob", "carol", "dave"] {
        store.create_user(account(id)).await.unwrap();
    }
    for n in 1..=COUNT {
        let answers = PEERS.map(|peer| store.append(Permit::for_tests(), draft(peer, n)));
        for answer in answers {
            answer.await.unwrap();
        }
        if n == COUNT / 2 {
            let id = MessageId::of(&user("alice"), &draft("bob", n / 2).client_id);
            let asker = Actor { user: user("alice"), at: Millis(n), origin: None };
            store.recall(id, asker, Box::new(|_| Ok(()))).await.unwrap().unwrap();
        }
    }
    let mut truth = Vec::new();
    for peer in PEERS {
        let range = Seq(1)..=Seq(COUNT);
        let all = Limit::of(usize::MAX);
        let page = store.messages(&conversation(peer), range, all, Order::Ascending).await;
        truth.push(page.unwrap().messages);
    }
    store.close().await.unwrap();
    (folder, truth)
}

fn tables(folder: &Path, keyspace: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("trees").join(keyspace).join("tables")).unwrap();
    let mut tables: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    tables.sort_by_key(|path| fs::metadata(path).unwrap().len());
    tables
}

fn largest(folder: &Path, keyspace: &str) -> PathBuf {
    tables(folder, keyspace).pop().unwrap()
}

fn flip(file: &Path, place: impl FnOnce(usize) -> usize) {
    let mut bytes = fs::read(file).unwrap();
    let place = place(bytes.len());
    bytes[place] ^= 1;
    fs::write(file, bytes).unwrap();
}

fn list_of(folder: &Path, keyspace: &str) -> PathBuf {
    let entries = fs::read_dir(folder.join("trees").join(keyspace)).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    paths.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with('v')).unwrap()
}

/// The first segment of the log, and how much of it is written.
fn log_of(folder: &Path) -> (PathBuf, usize) {
    let entries = fs::read_dir(folder.join("log")).unwrap();
    let mut logs: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    logs.retain(|path| path.extension().is_some_and(|it| it == "log"));
    logs.sort();
    let log = logs.remove(0);
    let written = fs::read(&log).unwrap().iter().rposition(|byte| *byte != 0).unwrap();
    (log, written)
}

/// What may be missing after salvaging.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    Nothing,
    /// So many messages at most, somewhere.
    Messages(u64),
    /// The newest ones.
    Tail,
}

/// Damages a copy, checks it, salvages it, and compares with the truth.
async fn check(
    (sound, truth): &(tempfile::TempDir, Vec<Vec<Arc<Message>>>),
    name: &str,
    damage: impl FnOnce(&Path),
    says: &str,
    allowed: Loss,
) -> (Report, SalvageReport) {
    let (copy, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    folder::copy(sound.path(), copy.path());
    damage(copy.path());
    let before = contents(copy.path());
    let report = doctor::check(copy.path(), &mut |_| {}).unwrap();
    let all: Vec<&str> = report.problems.iter().map(|problem| &*problem.what).collect();
    assert!(all.iter().any(|what| what.contains(says)), "{name}: {says:?} is not in {all:#?}");
    let options = folder::options();
    let salvaged = doctor::salvage(copy.path(), new.path(), &options, &mut |_| {}).await.unwrap();
    assert!(contents(copy.path()) == before, "{name}: the old folder was changed");

    let healthy = doctor::check(new.path(), &mut |_| {}).unwrap();
    assert!(healthy.is_healthy(), "{name}: {:#?}", healthy.problems);
    let store = Embedded::open(new.path(), &options).unwrap();
    let mut lost = 0;
    for (peer, truth) in PEERS.iter().zip(truth) {
        let (range, all) = (Seq(1)..=Seq(COUNT), Limit::of(usize::MAX));
        let id = conversation(peer);
        let page = store.messages(&id, range, all, Order::Ascending).await.unwrap();
        for message in &page.messages {
            let seq = usize::try_from(message.seq.0).unwrap();
            assert_eq!(message, &truth[seq - 1], "{name}: made up");
            assert_eq!(store.message(message.id).await.unwrap().as_ref(), Some(message));
        }
        let damaged = page.damaged.iter().map(|range| range.end().0 - range.start().0 + 1);
        lost += damaged.sum::<u64>();
        let head = page.covered();
        if allowed != Loss::Tail {
            assert_eq!(head, COUNT, "{name}: each message of {peer} is there or known to be lost");
        }
        // A seq that was given once is not given again.
        let next = store.append(Permit::for_tests(), draft(peer, 1000)).await.unwrap();
        let Appended::Stored(next) = next else { panic!("{name}: {next:?}") };
        assert_eq!(next.seq, Seq(head + 1), "{name}");
    }
    let listed: u64 = salvaged.lost_messages.iter().map(|it| it.to - it.from + 1).sum();
    assert_eq!(listed, lost, "{name}: what is lost is listed");
    match allowed {
        Loss::Nothing => assert_eq!(lost, 0, "{name}"),
        Loss::Messages(most) => assert!((1..=most).contains(&lost), "{name}: {lost} lost"),
        Loss::Tail => assert!(salvaged.is_log_short, "{name}"),
    }
    assert!(store.health().is_ok());
    assert_eq!(store.known_damage().places, 0, "{name}: what is known to be lost is no damage");
    (report, salvaged)
}

/// Every file with its bytes.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_folder_is_healthy() {
    let (sound, _) = sound_folder().await;
    let report = doctor::check(sound.path(), &mut |_| {}).unwrap();
    assert!(report.is_healthy(), "{:#?}", report.problems);
    assert_eq!((report.messages, report.conversations), (3 * COUNT, 3));
    let store = Embedded::open(sound.path(), &folder::options()).unwrap();
    let busy = doctor::check(sound.path(), &mut |_| {}).unwrap_err();
    assert!(busy.to_string().contains("in use"), "{busy}");
    drop(store);
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_tables_are_named_and_the_rest_is_salvaged() {
    let sound = &sound_folder().await;
    let wrong = "its checksum is wrong";
    let block = |folder: &Path| flip(&largest(folder, "messages"), |length| length / 2);
    let (report, _) = check(sound, "a block of messages", block, wrong, Loss::Messages(4)).await;
    let named = report.problems.iter().any(|it| it.what.contains("cannot be read"));
    assert!(named, "the seqs are named: {:#?}", report.problems);

    let ids = |folder: &Path| flip(&largest(folder, "ids"), |length| length / 3);
    let (report, _) = check(sound, "a block of ids", ids, wrong, Loss::Nothing).await;
    let index = report.problems.iter().find(|it| it.what.contains("index of message ids"));
    assert!(index.is_some_and(|it| it.can_repair), "{:#?}", report.problems);

    let members = |folder: &Path| flip(&largest(folder, "members"), |_| 50);
    check(sound, "a block of members", members, wrong, Loss::Nothing).await;

    let users = |folder: &Path| flip(&largest(folder, "users"), |_| 50);
    let (_, salvaged) = check(sound, "a block of accounts", users, wrong, Loss::Nothing).await;
    assert!(!salvaged.copied.iter().any(|(kind, _)| *kind == "users"), "{:?}", salvaged.copied);

    let index = |folder: &Path| flip(&largest(folder, "messages"), |length| length - 100);
    check(sound, "the end of a table", index, wrong, Loss::Nothing).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_and_missing_files_are_named_and_the_rest_is_salvaged() {
    let sound = &sound_folder().await;
    let cut = |folder: &Path| {
        let table = largest(folder, "messages");
        let bytes = fs::read(&table).unwrap();
        fs::write(table, &bytes[..bytes.len() / 2]).unwrap();
    };
    check(sound, "a cut table", cut, "its checksum is wrong", Loss::Messages(3 * COUNT)).await;

    let gone = |folder: &Path| fs::remove_file(largest(folder, "messages")).unwrap();
    check(sound, "a missing table", gone, "is missing", Loss::Messages(3 * COUNT)).await;

    let list = |folder: &Path| flip(&list_of(folder, "messages"), |length| length / 2);
    check(sound, "a damaged list", list, "The list of the tables", Loss::Nothing).await;

    let current = |folder: &Path| fs::remove_file(folder.join("trees/messages/current")).unwrap();
    check(sound, "a missing list", current, "The list of the tables", Loss::Nothing).await;

    let format = |folder: &Path| fs::remove_file(folder.join("FORMAT")).unwrap();
    check(sound, "no FORMAT", format, "FORMAT is missing", Loss::Nothing).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_log_is_salvaged_up_to_the_damage() {
    let sound = &sound_folder().await;
    let middle = |folder: &Path| {
        let (log, written) = log_of(folder);
        flip(&log, |_| written / 2);
    };
    check(sound, "a bit in the log", middle, "The log ends at batch", Loss::Tail).await;

    let cut = |folder: &Path| {
        let (log, written) = log_of(folder);
        let bytes = fs::read(&log).unwrap();
        fs::write(log, &bytes[..written / 2]).unwrap();
    };
    check(sound, "a cut log", cut, "The log ends at batch", Loss::Tail).await;

    let witness = |folder: &Path| flip(&folder.join("witness"), |_| 3);
    check(sound, "a damaged witness", witness, "`witness` cannot be read", Loss::Tail).await;

    let none = |folder: &Path| fs::remove_file(folder.join("witness")).unwrap();
    check(sound, "no witness", none, "`witness` is missing", Loss::Tail).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_and_places_come_along() {
    let (sound, _) = sound_folder().await;
    flip(&largest(sound.path(), "messages"), |length| length / 2);
    let new = tempfile::tempdir().unwrap();
    let options = folder::options();
    doctor::salvage(sound.path(), new.path(), &options, &mut |_| {}).await.unwrap();
    let store = Embedded::open(new.path(), &options).unwrap();
    for id in ["alice", "bob", "carol", "dave"] {
        assert!(store.user(&user(id)).await.unwrap().is_some(), "{id}");
    }
    for peer in PEERS {
        let standing = store.standing(&user(peer), &conversation(peer)).await.unwrap().unwrap();
        assert_eq!((standing.max_seq, standing.unread()), (Seq(COUNT), COUNT));
    }
    assert!(new.path().join("SALVAGED.json").exists());
}
