//! Damage is refused as damage, or has no effect, and everything else goes on. Nothing is ever served as
//! another history.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod folder;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nexo_chat::ids::{ClientMsgId, ConversationId, MessageId, Millis, Seq, UserId};
use nexo_chat::model::{AccountDetails, Content, Draft, Message, Profile, ProfileChange, User};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{
    AccountStore, Actor, Appended, ConversationStore, Limit, MessageStore, Order, Store, StoreError,
};
use nexo_store::embedded::FaultKind;
use nexo_store::{Embedded, OpenError};

const PEERS: [&str; 3] = ["bob", "carol", "dave"];

fn user(id: &str) -> UserId {
    UserId::parse(id).unwrap()
}

fn draft(to: &str, n: u64, bytes: usize) -> Draft {
    Draft {
        conversation: conversation(to),
        sender: user("alice"),
        client_id: ClientMsgId::parse(&format!("{to}{n}")).unwrap(),
        content: Content::text(format!("{n:0>bytes$}")),
        sent_at: Millis(n),
        cleaned: None,
        origin: None,
        marks_read: true,
    }
}

fn conversation(peer: &str) -> ConversationId {
    ConversationId::private(&user("alice"), &user(peer))
}

/// What a reader can see; `None` is damaged.
#[derive(Clone, PartialEq)]
struct Seen {
    /// By conversation and seq.
    messages: Vec<Vec<Option<Arc<Message>>>>,
    account: Option<Arc<User>>,
    unread: Vec<Option<u64>>,
}

impl Seen {
    fn damaged(&self) -> usize {
        let messages = self.messages.iter().flatten().filter(|message| message.is_none()).count();
        let unread = self.unread.iter().filter(|unread| unread.is_none()).count();
        messages + unread + usize::from(self.account.is_none())
    }

    /// Whether all that can be seen is what was stored.
    fn is_part_of(&self, truth: &Self) -> bool {
        let mut pairs = self.messages.iter().zip(&truth.messages);
        let are_same = |(now, then): (&Option<Arc<Message>>, &Option<Arc<Message>>)| {
            now.is_none() || now == then
        };
        self.messages.len() == truth.messages.len()
            && pairs
                .all(|(now, then)| now.len() == then.len() && now.iter().zip(then).all(are_same))
            && self.unread.iter().zip(&truth.unread).all(|(now, then)| now.is_none() || now == then)
            && (self.account.is_none() || self.account == truth.account)
    }
}

/// Returns a result; damage is `None`, and nothing else may go wrong.
fn unless_damaged<T>(result: Result<T, StoreError>) -> Option<T> {
    match result {
        Ok(found) => Some(found),
        Err(StoreError::Damaged(_)) => None,
        Err(other) => panic!("{other}"),
    }
}

async fn look(store: &Arc<Embedded>, count: u64) -> Seen {
    let mut seen = Seen { messages: Vec::new(), account: None, unread: Vec::new() };
    for peer in PEERS {
        let id = conversation(peer);
        let mut found = vec![None; usize::try_from(count).unwrap()];
        for order in [Order::Ascending, Order::Descending] {
            let range = Seq::ZERO..=Seq(count);
            let page = store.messages(&id, range, Limit::of(usize::MAX), order).await.unwrap();
            assert_eq!(page.covered(), count, "each seq is there or damaged, once");
            found.fill(None);
            for message in &page.messages {
                found[usize::try_from(message.seq.0).unwrap() - 1] = Some(Arc::clone(message));
            }
            let damaged = page.damaged.iter().flat_map(|it| it.start().0..=it.end().0);
            assert!(
                damaged.into_iter().all(|seq| found[usize::try_from(seq).unwrap() - 1].is_none())
            );
        }
        for message in found.iter().flatten().step_by(97) {
            let by_id = unless_damaged(store.message(message.id).await);
            assert!(by_id.is_none_or(|by_id| by_id.as_ref() == Some(message)));
        }
        seen.messages.push(found);
        for who in ["alice", peer] {
            let standing = unless_damaged(store.standing(&user(who), &id).await);
            seen.unread.push(standing.map(|it| it.unwrap().unread()));
        }
    }
    seen.account = unless_damaged(store.user(&user("alice")).await).map(|user| user.unwrap());
    seen
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
        details: AccountDetails::default(),
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
        if n == messages / 2 {
            // Its text must never come back, whatever is damaged.
            let id = MessageId::of(&user("alice"), &draft("bob", n / 2, bytes).client_id);
            let asker = Actor { user: user("alice"), at: Millis(n), origin: None };
            store.recall(id, asker, Box::new(|_| Ok(()))).await.unwrap().unwrap();
        }
    }
    for n in 0..5 {
        let change = ProfileChange { nickname: Some(n.to_string()), ..ProfileChange::default() };
        store.update_profile(&user("alice"), change, Millis(0)).await.unwrap();
    }
    let seen = look(&store, messages).await;
    assert_eq!(seen.damaged(), 0);
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
    /// So many things cannot be seen.
    Damaged(usize),
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
    let outcome = check_open(&store, seen, file).await;
    drop(store);
    let store = Embedded::open(copy.path(), &folder::options()).unwrap();
    assert_eq!(check_open(&store, seen, file).await, outcome, "after a restart");
    outcome
}

/// Checks that an open store serves nothing but the truth, stores nothing twice, and goes on for others.
async fn check_open(store: &Arc<Embedded>, seen: &Seen, file: &Path) -> Outcome {
    let count = seen.messages[0].len() as u64;
    let now = look(store, count).await;
    assert!(now.is_part_of(seen), "another history after damage to {}", file.display());
    for (peer, messages) in PEERS.iter().zip(&seen.messages) {
        for message in messages.iter().flatten().step_by(61) {
            let again = draft(peer, message.seq.0 - 1, message.content.body.len());
            // The content of the recalled one is gone, so its retry cannot be built from it.
            if message.recalled.is_none()
                && let Some(appended) =
                    unless_damaged(store.append(Permit::for_tests(), again).await)
            {
                assert_eq!(appended, Appended::Duplicate(Arc::clone(message)), "stored twice");
            }
        }
    }
    // An id that falls into a damaged block cannot be looked up; its neighbours can.
    let mut stored = 0;
    for n in 0..20 {
        let sent = store.append(Permit::for_tests(), draft("erin", n, 10)).await;
        stored += usize::from(unless_damaged(sent).is_some());
    }
    assert!(stored > 10, "only {stored} sends of another conversation after {}", file.display());
    assert!(store.health().is_ok());
    match now.damaged() {
        0 => Outcome::NoConsequence,
        damaged => {
            assert!(store.known_damage().places > 0);
            Outcome::Damaged(damaged)
        }
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
    let (mut refused, mut damaged, mut harmless) = (0, 0, 0);
    for file in files(sound.path()) {
        let length = written(&file);
        let count = if length > 1000 { 8 } else { 2 };
        for place in places(length, count) {
            match check(sound.path(), &seen, &file, |bytes| bytes[place] ^= 0x41).await {
                Outcome::NoConsequence => harmless += 1,
                Outcome::RefusedToOpen => refused += 1,
                Outcome::Damaged(_) => damaged += 1,
            }
        }
    }
    println!("{refused} refused to open, {damaged} damaged, {harmless} without consequence");
    assert!(refused + damaged > harmless, "{refused} refused, {damaged} damaged, {harmless} not");
    assert!(damaged > 0);
}

/// Returns the largest table of a keyspace.
fn table_of(folder: &Path, keyspace: &str) -> PathBuf {
    let tables = files(&folder.join("trees").join(keyspace).join("tables"));
    tables.into_iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_block_of_messages_costs_only_its_own_messages() {
    let (sound, seen) = sound_folder(250, 4000).await;
    let table = table_of(sound.path(), "messages");
    let length = fs::metadata(&table).unwrap().len();
    for place in [length / 5, length / 3, length / 2] {
        let place = usize::try_from(place).unwrap();
        let outcome = check(sound.path(), &seen, &table, |bytes| bytes[place] ^= 1).await;
        // A block has about one message of this size.
        assert!(matches!(outcome, Outcome::Damaged(1..=4)), "{outcome:?} at {place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_goes_on_writing_and_merging_around_damage() {
    let (sound, seen) = sound_folder(250, 4000).await;
    let table = table_of(sound.path(), "messages");
    let mut bytes = fs::read(&table).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&table, bytes).unwrap();
    let store = Embedded::open(sound.path(), &folder::options()).unwrap();
    // Thirty times the memtables, so that everything wants to be merged with everything.
    for n in 250..2750 {
        let answers = PEERS.map(|peer| store.append(Permit::for_tests(), draft(peer, n, 4000)));
        for answer in answers {
            answer.await.unwrap();
        }
    }
    assert!(store.health().is_ok());
    // The compactor comes after the flusher.
    let since = Instant::now();
    while !store.known_damage().examples.iter().any(|place| place.contains("cannot be merged")) {
        assert!(since.elapsed() < Duration::from_mins(2), "nothing met the damaged table");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(store.health().is_ok());
    store.close().await.unwrap();
    drop(store);
    let store = Embedded::open(sound.path(), &folder::options()).unwrap();
    let now = look(&store, 2750).await;
    let mut before = now.clone();
    before.messages.iter_mut().for_each(|messages| messages.truncate(250));
    before.unread.clone_from(&seen.unread); // it has grown
    assert!(before.is_part_of(&seen), "another history");
    assert!((1..=4).contains(&now.damaged()), "{} of what was sound is lost", now.damaged());
    let tables = files(&sound.path().join("trees/messages/tables")).len();
    assert!(tables < 100, "{tables} tables: nothing is merged any more");
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
    find(text, file).unwrap()
}

fn find(text: &str, file: &Path) -> Option<usize> {
    let bytes = fs::read(file).unwrap();
    bytes.windows(text.len()).position(|window| window == text.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_torn_inside_a_value_is_forgiven_if_nobody_was_told_of_it() {
    let (folder, seen) = sound_folder(3, 10).await;
    let options = folder::options();
    let store = Embedded::open(folder.path(), &options).unwrap();
    options.faults.set(FaultKind::Sync);
    let text = format!("a torn write {}", "x".repeat(9000));
    let torn = Draft { content: Content::text(text), ..draft("bob", 9, 10) };
    assert!(store.append(Permit::for_tests(), torn).await.is_err());
    drop(store);
    let mut logs = files(&folder.path().join("log")).into_iter();
    let log = logs.find(|log| find("a torn write", log).is_some()).unwrap();
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
