//! Damage that the tree's own checksums do not see: whole values in wrong places, and holes.

use std::sync::Arc;

use nexo_chat::ids::{ClientMsgId, ConversationId, Millis, Seq, UserId};
use nexo_chat::model::{Content, Draft, Message};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{Appended, Limit, Order, Store, StoreError};

use super::engine::{Batch, Durability};
use super::keys::{self, Space};
use super::{Embedded, Options};

fn pair() -> ConversationId {
    ConversationId::stored("si_alice_bob")
}

async fn send(store: &Arc<Embedded>, n: u64) -> Result<Appended, StoreError> {
    let draft = Draft {
        conversation: pair(),
        sender: UserId::parse("alice").unwrap(),
        client_id: ClientMsgId::parse(&n.to_string()).unwrap(),
        content: Content::text("hi"),
        sent_at: Millis(n),
        cleaned: None,
        origin: None,
        marks_read: true,
    };
    store.append(Permit::for_tests(), draft).await
}

async fn read(store: &Arc<Embedded>) -> Result<Vec<Arc<Message>>, StoreError> {
    store.messages(&pair(), Seq(1)..=Seq(9), Limit::of(9), Order::Ascending).await
}

/// Stores three messages, lets `damage` change the disk, and reads after a restart.
async fn check(damage: impl FnOnce(&Embedded, &mut Batch)) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { cache_bytes: 1 << 20, ..Options::default() };
    let store = Embedded::open(folder.path(), &options).unwrap();
    for n in 1..=3 {
        send(&store, n).await.unwrap();
    }
    let mut batch = Batch::default();
    damage(&store, &mut batch);
    store.core.engine.commit(batch, Durability::Synced).unwrap();
    store.close().await.unwrap();
    drop(store);

    let store = Embedded::open(folder.path(), &options).unwrap();
    assert!(matches!(read(&store).await, Err(StoreError::Poisoned(_))));
    assert!(matches!(store.health(), Err(StoreError::Poisoned(_))), "it stays so");
    assert!(matches!(send(&store, 4).await, Err(StoreError::Poisoned(_))));
}

#[tokio::test]
async fn a_value_under_a_wrong_key_is_not_served() {
    check(|store, batch| {
        let third = store.core.engine.get(Space::Messages, &keys::message(&pair(), Seq(3)));
        let value = third.unwrap().unwrap().to_vec();
        batch.put(Space::Messages, keys::message(&pair(), Seq(2)), value);
    })
    .await;
}

#[tokio::test]
async fn a_hole_is_not_served() {
    check(|_, batch| batch.delete(Space::Messages, keys::message(&pair(), Seq(2)))).await;
    check(|_, batch| batch.delete(Space::Messages, keys::message(&pair(), Seq(1)))).await;
}

#[tokio::test]
async fn a_record_that_is_no_record_is_not_served() {
    check(|_, batch| {
        batch.put(Space::Messages, keys::message(&pair(), Seq(2)), b"nonsense".to_vec());
    })
    .await;
}

#[tokio::test]
async fn an_id_without_its_message_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(folder.path(), &Options::default()).unwrap();
    let Appended::Stored(message) = send(&store, 1).await.unwrap() else { panic!("it is new") };
    let mut batch = Batch::default();
    batch.delete(Space::Messages, keys::message(&pair(), Seq(1)));
    store.core.engine.commit(batch, Durability::Synced).unwrap();
    drop(store);
    let store = Embedded::open(folder.path(), &Options::default());
    // The sender's standing is done again at open, which does not look at the message.
    let store = store.unwrap();
    assert!(matches!(store.message(message.id).await, Err(StoreError::Poisoned(_))));
    assert!(matches!(send(&store, 1).await, Err(StoreError::Poisoned(_))));
}

#[tokio::test]
async fn a_missing_batch_in_the_tail_is_noticed_at_open() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        Options { cursors_every: std::time::Duration::from_hours(1), ..Options::default() };
    let store = Embedded::open(folder.path(), &options).unwrap();
    for n in 1..=4 {
        send(&store, n).await.unwrap();
    }
    let mut batch = Batch::default();
    batch.delete(Space::Tail, keys::tail(2));
    store.core.engine.commit(batch, Durability::Synced).unwrap();
    // As after a crash: the cursors were not written, so the tail was not cut.
    store.core.poison.set(&super::Fault::new("this process is to be forgotten"));
    drop(store);
    let error = Embedded::open(folder.path(), &options).err().unwrap();
    assert!(error.to_string().contains("1 acknowledged batches are missing"), "{error}");
}
