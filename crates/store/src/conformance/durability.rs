//! What outlives a close or a crash, and what a closed store still does.

use std::sync::Arc;

use nexo_chat::ids::Seq;
use nexo_chat::model::{CursorKind, Cursors};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{
    Appended, Collection, DocumentId, DocumentWrite, Limit, Order, Rotation, Store,
};

use super::Opener;
use super::fixtures::{
    NOW, account, all, append, draft, login, pair, rotation, send, send_many, sign_in, standing,
    user,
};

async fn reopen(opener: &Arc<dyn Opener>, store: Arc<dyn Store>) -> Arc<dyn Store> {
    store.close().await.unwrap();
    drop(store);
    opener.open()
}

pub(super) async fn closed_takes_nothing(opener: Arc<dyn Opener>) {
    let store = opener.open();
    send(&store, "alice", "bob", "one").await;
    store.close().await.unwrap();
    assert!(append(&store, draft("alice", "bob", "two", "two")).await.is_err());
    assert!(store.create_user(account("alice")).await.is_err());
    let change = store.change_account(&user("alice"), Box::new(|user| Some(user.clone())));
    assert!(change.await.is_err());
    let guard = DocumentId::new(Collection::Settings, "a");
    let write = DocumentWrite::put(guard.clone(), Vec::new());
    let change = store.change_documents(&guard, Box::new(move |_| vec![write.clone()]));
    assert!(change.await.is_err());
}

pub(super) async fn closing_twice(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let answer = store.append(Permit::for_tests(), draft("alice", "bob", "one", "one"));
    store.close().await.unwrap();
    store.close().await.unwrap();
    assert!(matches!(answer.await.unwrap(), Appended::Stored(_)), "what was called before counts");
}

pub(super) async fn survives_reopen(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let mut sent = Vec::new();
    for i in 0..50 {
        sent.push(send(&store, "alice", "bob", &format!("m{i}")).await);
    }
    let store = reopen(&opener, store).await;
    let read = store
        .messages(&pair("alice", "bob"), all(), Limit::of(99), Order::Ascending)
        .await
        .unwrap()
        .messages;
    assert_eq!(read, sent);
    for message in sent {
        assert_eq!(store.message(message.id).await.unwrap(), Some(message));
    }
}

pub(super) async fn survives_crash(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let mut sent = Vec::new();
    for i in 0..50 {
        sent.push(send(&store, "alice", "bob", &format!("m{i}")).await);
    }
    let found = opener.open_after_crash();
    let read = found
        .messages(&pair("alice", "bob"), all(), Limit::of(99), Order::Ascending)
        .await
        .unwrap()
        .messages;
    assert_eq!(read, sent);
}

pub(super) async fn same_client_id(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let first = send(&store, "alice", "bob", "one").await;
    let store = reopen(&opener, store).await;
    let retry = append(&store, draft("alice", "bob", "one", "one")).await.unwrap();
    assert_eq!(retry, Appended::Duplicate(first));
    let other = append(&store, draft("alice", "bob", "one", "other")).await.unwrap();
    assert_eq!(other, Appended::Conflict);
}

pub(super) async fn seqs_go_on(opener: Arc<dyn Opener>) {
    let mut store = opener.open();
    for round in 0..3 {
        for i in 1..=4 {
            let message = send(&store, "alice", "bob", &format!("{round}-{i}")).await;
            assert_eq!(message.seq, Seq(round * 4 + i));
        }
        store = reopen(&opener, store).await;
    }
    assert_eq!(standing(&store, "bob", "alice").await.max_seq, Seq(12));
}

pub(super) async fn cursors_survive(opener: Arc<dyn Opener>) {
    let store = opener.open();
    send_many(&store, "alice", "bob", "m", 5).await;
    let (bob, conversation) = (user("bob"), pair("alice", "bob"));
    store.advance_cursor(&bob, &conversation, CursorKind::Read, Seq(2)).await.unwrap();
    store.advance_cursor(&bob, &conversation, CursorKind::Delivered, Seq(4)).await.unwrap();
    let before = standing(&store, "bob", "alice").await;
    let store = reopen(&opener, store).await;
    assert_eq!(standing(&store, "bob", "alice").await, before);
    assert_eq!(before.cursors, Cursors { delivered: Seq(4), read: Seq(2) });
    assert_eq!(standing(&store, "alice", "bob").await.unread(), 0);
}

pub(super) async fn own_messages_after_crash(opener: Arc<dyn Opener>) {
    let store = opener.open();
    send_many(&store, "alice", "bob", "a", 3).await;
    send_many(&store, "bob", "alice", "b", 2).await;
    send_many(&store, "bob", "carol", "c", 4).await;
    let found = opener.open_after_crash();
    assert_eq!(standing(&found, "bob", "alice").await.unread(), 0);
    assert_eq!(standing(&found, "bob", "carol").await.unread(), 0);
    assert_eq!(standing(&found, "alice", "bob").await.unread(), 2);
}

pub(super) async fn second_crash(opener: Arc<dyn Opener>) {
    let store = opener.open();
    send_many(&store, "alice", "bob", "a", 3).await;
    // Long enough for the cursors to be written behind.
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    send_many(&store, "bob", "alice", "b", 2).await;
    let found = opener.open_after_crash();
    drop(store);
    assert_eq!(standing(&found, "bob", "alice").await.unread(), 0);
    assert_eq!(standing(&found, "alice", "bob").await.unread(), 2);
    send(&found, "alice", "bob", "again").await;
    let found = opener.open_after_crash();
    assert_eq!(standing(&found, "alice", "bob").await.unread(), 0);
    assert_eq!(standing(&found, "bob", "alice").await.unread(), 1);
}

pub(super) async fn accounts_survive(opener: Arc<dyn Opener>) {
    let store = opener.open();
    store.create_user(account("alice")).await.unwrap();
    store.change_password(&user("alice"), 1, "new".into()).await.unwrap();
    sign_in(&*store, login("alice", 1)).await;
    let alice = store.user(&user("alice")).await.unwrap();
    let found = opener.open_after_crash();
    assert_eq!(found.user(&user("alice")).await.unwrap(), alice);
    assert_eq!(found.login(login("alice", 1).id).await.unwrap(), Some(login("alice", 1)));
    assert!(!found.create_user(account("alice")).await.unwrap());
    assert!(!found.create_user(account("A1ice")).await.unwrap(), "it looks like alice");
    assert_eq!(
        found.user_by_folded_id(&user("A1ice").folded()).await.unwrap(),
        Some(user("alice"))
    );
}

pub(super) async fn ended_stay_ended(opener: Arc<dyn Opener>) {
    let store = opener.open();
    for n in 1..=2 {
        sign_in(&*store, login("alice", n)).await;
    }
    store.rotate_refresh_token(rotation(2, 20, NOW)).await.unwrap();
    store.end_logins(&user("alice"), Box::new(|login| login.id.0[0] == 1)).await.unwrap();
    let found = opener.open_after_crash();
    assert!(found.login(login("alice", 1).id).await.unwrap().unwrap().ended);
    let rotated = found.rotate_refresh_token(rotation(1, 9, NOW)).await.unwrap();
    assert_eq!(rotated, Rotation::Unknown);
    let reused = found.rotate_refresh_token(rotation(2, 9, NOW)).await.unwrap();
    assert!(matches!(reused, Rotation::Reused(_)));
}
