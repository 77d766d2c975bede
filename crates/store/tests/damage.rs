//! A damaged folder is reported, or the damage has no effect. It is never served as another
//! history.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod folder;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nexo_chat::ids::{ClientMsgId, ConversationId, Millis, Seq, UserId};
use nexo_chat::model::{Content, Draft, Message, Profile, ProfileChange, User};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{
    AccountStore, ConversationStore, Limit, MessageStore, Order, Store, StoreError,
};
use nexo_store::embedded::FaultKind;
use nexo_store::{Embedded, OpenError};

const PEERS: [&str; 3] = ["bob", "carol", "dave"];

fn user(id: &str) -> UserId {
    UserId::parse(id).unwrap()
}

fn draft(to: &str, n: u64, bytes: usize) -> Draft {
    Draft {
        conversation: ConversationId::private(&user("alice"), &user(to)),
        sender: user("alice"),
        client_id: ClientMsgId::parse(&format!("{to}{n}")).unwrap(),
        content: Content::text(format!("{n:0>bytes$}")),
        sent_at: Millis(n),
        cleaned: None,
        origin: None,
        marks_read: true,
    }
}

/// Everything a reader can see.
#[derive(PartialEq)]
struct Seen {
    messages: Vec<Vec<Arc<Message>>>,
    account: Option<Arc<User>>,
    unread: Vec<u64>,
}

async fn look(store: &Arc<Embedded>) -> Result<Seen, StoreError> {
    let mut seen = Seen { messages: Vec::new(), account: None, unread: Vec::new() };
    for peer in PEERS {
        let id = ConversationId::private(&user("alice"), &user(peer));
        let range = Seq::ZERO..=Seq(u64::MAX);
        let messages = store.messages(&id, range, Limit::of(usize::MAX), Order::Ascending).await?;
        for message in messages.iter().step_by(97) {
            assert_eq!(store.message(message.id).await?.as_ref(), Some(message));
        }
        seen.messages.push(messages);
        for who in ["alice", peer] {
            seen.unread.extend(store.standing(&user(who), &id).await?.map(|it| it.unread()));
        }
    }
    seen.account = store.user(&user("alice")).await?;
    Ok(seen)
}

/// Creates a closed folder with tables and a log, and returns its content.
async fn sound_folder(messages: u64, bytes: usize) -> (tempfile::TempDir, Seen) {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(folder.path(), &folder::options()).unwrap();
    let alice = User {
        id: user("alice"),
        profile: Profile::default(),
        created_at: Millis(0),
        updated_at: Millis(0),
        password_hash: "first".into(),
        session_version: 1,
    };
    store.create_user(alice).await.unwrap();
    for n in 0..messages {
        let answers: Vec<_> = PEERS
            .iter()
            .map(|peer| store.append(Permit::for_tests(), draft(peer, n, bytes)))
            .collect();
        for answer in answers {
            answer.await.unwrap();
        }
    }
    for n in 0..5 {
        let change = ProfileChange { nickname: Some(n.to_string()), ..ProfileChange::default() };
        store.update_profile(&user("alice"), change, Millis(0)).await.unwrap();
    }
    let seen = look(&store).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    (folder, seen)
}

/// Returns the oldest segment of the log.
fn log_of(folder: &Path) -> PathBuf {
    files(&folder.join("log")).remove(0)
}

/// Returns how much of a file is used: segments are preallocated.
fn written(file: &Path) -> usize {
    fs::read(file).unwrap().iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(self::files(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

#[derive(Debug, PartialEq)]
enum Outcome {
    RefusedToOpen,
    RefusedToRead,
    NoConsequence,
}

/// Changes a file of a copy and checks the outcome.
async fn check(
    sound: &Path,
    seen: &Seen,
    file: &Path,
    damage: impl FnOnce(&mut Vec<u8>),
) -> Outcome {
    let copy = tempfile::tempdir().unwrap();
    folder::copy(sound, copy.path());
    let path = copy.path().join(file.strip_prefix(sound).unwrap());
    let mut bytes = fs::read(&path).unwrap();
    damage(&mut bytes);
    fs::write(&path, bytes).unwrap();
    let Ok(store) = Embedded::open(copy.path(), &folder::options()) else {
        return Outcome::RefusedToOpen;
    };
    match look(&store).await {
        Ok(now) => {
            assert!(now == *seen, "another history after damage to {}", file.display());
            Outcome::NoConsequence
        }
        Err(StoreError::Poisoned(_)) => {
            assert!(store.health().is_err());
            Outcome::RefusedToRead
        }
        Err(other) => panic!("{other}"),
    }
}

/// Returns a few offsets spread over a file, including the first and the last.
fn places(length: usize, count: usize) -> Vec<usize> {
    let last = length.saturating_sub(1);
    let mut places: Vec<_> = (0..count).map(|i| last * i / (count - 1)).collect();
    places.dedup();
    places.truncate(length);
    places
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_byte_is_reported_or_without_consequence() {
    let (sound, seen) = sound_folder(250, 4000).await;
    let (mut refused, mut harmless) = (0, 0);
    for file in files(sound.path()) {
        let length = written(&file);
        let count = if length > 1000 { 8 } else { 2 };
        for place in places(length, count) {
            match check(sound.path(), &seen, &file, |bytes| bytes[place] ^= 0x41).await {
                Outcome::NoConsequence => harmless += 1,
                Outcome::RefusedToOpen | Outcome::RefusedToRead => refused += 1,
            }
        }
    }
    println!("{refused} reported, {harmless} without consequence");
    assert!(refused > harmless, "{refused} reported, {harmless} not");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_in_the_log_changes_no_history() {
    let (sound, seen) = sound_folder(3, 10).await;
    let log = log_of(sound.path());
    let length = written(&log);
    for (i, place) in places(length, 64).into_iter().enumerate() {
        let bit = 1 << (i % 8);
        let outcome = check(sound.path(), &seen, &log, |bytes| bytes[place] ^= bit).await;
        println!("{place}: {outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_cut_short_is_noticed() {
    let (sound, seen) = sound_folder(20, 100).await;
    let log = log_of(sound.path());
    let length = written(&log);
    for cut in [1, length / 4, length / 3, length / 2] {
        let outcome = check(sound.path(), &seen, &log, |bytes| bytes.truncate(cut)).await;
        assert_eq!(outcome, Outcome::RefusedToOpen, "cut at {cut} of {length}");
    }
    // Zeros instead of an end, as after a power cut that lost acknowledged pages.
    let zeros = |bytes: &mut Vec<u8>| bytes[length / 2..].fill(0);
    assert_eq!(check(sound.path(), &seen, &log, zeros).await, Outcome::RefusedToOpen);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_batches_are_counted_again_at_every_try() {
    let (sound, _) = sound_folder(20, 100).await;
    let log = log_of(sound.path());
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..written(&log) / 2]).unwrap();
    for _ in 0..3 {
        let error = Embedded::open(sound.path(), &folder::options()).err().unwrap();
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
        assert!(
            error.to_string().contains("acknowledged batches are missing or damaged"),
            "{error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_write_that_nobody_was_told_of_is_forgiven() {
    let (sound, seen) = sound_folder(5, 100).await;
    let log = log_of(sound.path());
    let end = written(&log) + 8; // the last entry may end in zeros
    let torn = |bytes: &mut Vec<u8>| bytes[end..end + 9].copy_from_slice(b"entr\0\0\0\x05\0");
    assert_eq!(check(sound.path(), &seen, &log, torn).await, Outcome::NoConsequence);
}

/// Returns the offset of a text in a file.
fn place_of(text: &str, file: &Path) -> usize {
    let bytes = fs::read(file).unwrap();
    bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_torn_inside_a_value_is_forgiven_if_nobody_was_told_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let options = folder::options();
    let store = Embedded::open(folder.path(), &options).unwrap();
    for n in 0..3 {
        store.append(Permit::for_tests(), draft("bob", n, 10)).await.unwrap();
    }
    let seen = look(&store).await.unwrap();
    options.faults.set(FaultKind::Sync);
    let text = format!("a torn write {}", "x".repeat(9000));
    let torn = Draft { content: Content::text(text), ..draft("bob", 9, 10) };
    assert!(store.append(Permit::for_tests(), torn).await.is_err());
    drop(store);
    let log = log_of(folder.path());
    let place = place_of("a torn write", &log);
    let lost_page = |bytes: &mut Vec<u8>| bytes[place + 100..place + 4196].fill(0);
    let outcome = check(folder.path(), &seen, &log, lost_page).await;
    assert_eq!(outcome, Outcome::NoConsequence);
}

#[tokio::test(flavor = "multi_thread")]
async fn reporting_damage_leaves_everything_as_it_was() {
    let (sound, _) = sound_folder(5, 100).await;
    let log = log_of(sound.path());
    let mut bytes = fs::read(&log).unwrap();
    bytes[place_of("0000003", &log)] ^= 1;
    fs::write(&log, &bytes).unwrap();
    for _ in 0..2 {
        let error = Embedded::open(sound.path(), &folder::options()).err().unwrap();
        assert!(
            error.to_string().contains("acknowledged batches are missing or damaged"),
            "{error}"
        );
        assert!(fs::read(&log).unwrap() == bytes, "the log was changed");
    }
}
