//! Damage that the trees' own checksums do not show: intact values under wrong keys, and holes.

use std::sync::Arc;

use nexo_chat::ids::{ClientMsgId, ConversationId, Millis, Seq, UserId};
use nexo_chat::model::{Content, Draft};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{Appended, Limit, MessageStore, Order, Store, StoreError};

use super::batch::Batch;
use super::core::Core;
use super::keys::{self, Keyspace};
use super::{Embedded, Options};

fn pair() -> ConversationId {
    ConversationId::stored("si_alice_bob")
}

fn draft(n: u64) -> Draft {
    Draft {
        conversation: pair(),
        sender: UserId::parse("alice").unwrap(),
        client_id: ClientMsgId::parse(&n.to_string()).unwrap(),
        content: Content::text("hi"),
        sent_at: Millis(n),
        cleaned: None,
        origin: None,
        marks_read: true,
    }
}

async fn send(store: &Arc<Embedded>, n: u64) -> Result<Appended, StoreError> {
    store.append(Permit::for_tests(), draft(n)).await
}

/// Reads a page: the seqs of its messages, and those that are damaged.
async fn read(store: &Arc<Embedded>, order: Order) -> (Vec<u64>, Vec<u64>) {
    let page = store.messages(&pair(), Seq(1)..=Seq(9), Limit::of(9), order).await.unwrap();
    let damaged = page.damaged.iter().flat_map(|range| range.start().0..=range.end().0);
    (page.messages.iter().map(|message| message.seq.0).collect(), damaged.collect())
}

/// Writes records that no decision made.
async fn write(store: &Arc<Embedded>, damage: impl FnOnce(&Core, &mut Batch) + Send + 'static) {
    let act = |pending: &mut super::Pending<'_>| {
        damage(pending.core, &mut pending.effects().batch);
        Ok(())
    };
    store.submit(1, act).await.unwrap();
}

/// Stores three messages, lets `damage` change the disk, and reads after a restart: everything but this
/// seq is served, and the conversation goes on.
async fn check(lost: u64, damage: impl FnOnce(&Core, &mut Batch) + Send + 'static) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { cache_bytes: 1 << 20, ..Options::default() };
    let store = Embedded::open(folder.path(), &options).unwrap();
    for n in 1..=3 {
        send(&store, n).await.unwrap();
    }
    write(&store, damage).await;
    store.close().await.unwrap();
    drop(store);

    let store = Embedded::open(folder.path(), &options).unwrap();
    let mut readable: Vec<u64> = (1..=3).filter(|seq| *seq != lost).collect();
    assert_eq!(read(&store, Order::Ascending).await, (readable.clone(), vec![lost]));
    assert!(store.health().is_ok(), "everything else goes on");
    assert_eq!(store.known_damage().places, 1);
    let Appended::Stored(message) = send(&store, 4).await.unwrap() else { panic!("it is new") };
    assert_eq!(message.seq, Seq(4));
    readable.push(4);
    readable.reverse();
    assert_eq!(read(&store, Order::Descending).await, (readable, vec![lost]));
}

#[tokio::test]
async fn a_value_under_a_wrong_key_is_not_served() {
    check(2, |core, batch| {
        let third = core.engine.get(Keyspace::Messages, &keys::message(&pair(), Seq(3)));
        let value = third.unwrap().unwrap();
        batch.put(Keyspace::Messages, &keys::message(&pair(), Seq(2)), &value);
    })
    .await;
}

#[tokio::test]
async fn a_hole_is_not_served() {
    check(2, |_, batch| batch.delete(Keyspace::Messages, &keys::message(&pair(), Seq(2)))).await;
    check(1, |_, batch| batch.delete(Keyspace::Messages, &keys::message(&pair(), Seq(1)))).await;
}

#[tokio::test]
async fn a_record_that_is_no_record_is_not_served() {
    check(2, |_, batch| {
        batch.put(Keyspace::Messages, &keys::message(&pair(), Seq(2)), b"nonsense");
    })
    .await;
}

#[tokio::test]
async fn an_id_without_its_message_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(folder.path(), &Options::default()).unwrap();
    let Appended::Stored(message) = send(&store, 1).await.unwrap() else { panic!("it is new") };
    write(&store, |_, batch| batch.delete(Keyspace::Messages, &keys::message(&pair(), Seq(1))))
        .await;
    drop(store);
    let store = Embedded::open(folder.path(), &Options::default());
    // The sender's cursors are replayed at open, which does not read the message.
    let store = store.unwrap();
    assert!(matches!(store.message(message.id).await, Err(StoreError::Damaged(_))));
    // It was stored once, so a retry may not store it again.
    assert!(matches!(send(&store, 1).await, Err(StoreError::Damaged(_))));
    assert!(matches!(send(&store, 2).await, Ok(Appended::Stored(_))));
}

#[tokio::test]
async fn a_write_that_meets_damage_is_refused_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(folder.path(), &Options::default()).unwrap();
    for n in 1..=3 {
        send(&store, n).await.unwrap();
    }
    let second = keys::message(&pair(), Seq(2));
    write(&store, move |_, batch| batch.put(Keyspace::Messages, &second, b"nonsense")).await;
    store.close().await.unwrap();
    drop(store);
    let store = Embedded::open(folder.path(), &Options::default()).unwrap();
    // All of them wait together, so they are of one batch or of few.
    let sends: Vec<_> =
        [4, 2, 5].into_iter().map(|n| store.append(Permit::for_tests(), draft(n))).collect();
    let mut outcomes = Vec::new();
    for outcome in sends {
        outcomes.push(match outcome.await {
            Ok(Appended::Stored(message)) => message.seq.0,
            Err(StoreError::Damaged(_)) => 0,
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(outcomes, [4, 0, 5], "no seq is used up");
    // Of a run either all are stored or none.
    let run = vec![draft(6), draft(2), draft(7)];
    let refused = store.append_run(Permit::for_tests(), run).await;
    assert!(matches!(refused, Err(StoreError::Damaged(_))), "{refused:?}");
    let Appended::Stored(next) = send(&store, 6).await.unwrap() else { panic!("it is new") };
    assert_eq!(next.seq, Seq(6));
}
