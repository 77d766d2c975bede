//! What recalls and changes promise.

use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::ids::{ConnectionId, MessageId, Seq};
use nexo_chat::model::{Change, ChangeKind, Message};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{Actor, Appended, Limit, Order, RecallFacts, Store};

use super::Opener;
use super::fixtures::{NOW, RecordingListener, append, draft, pair, send, standing, user};

async fn recall(store: &Arc<dyn Store>, id: MessageId) -> Result<Arc<Message>, Reason> {
    let asker = Actor { user: user("alice"), at: NOW.plus(5), origin: Some(ConnectionId(8)) };
    store.recall(id, asker, Box::new(|_| Ok(()))).await.unwrap()
}

async fn changes(store: &Arc<dyn Store>, after: u64, limit: usize) -> Vec<Arc<Change>> {
    store.changes(&pair("alice", "bob"), Seq(after), limit).await.unwrap()
}

fn check_recalled(found: &Message, original: &Message) {
    assert!(found.content.body.is_empty(), "the content is gone");
    let recall = found.recalled.as_ref().expect("it says so");
    assert_eq!((&recall.by, recall.at), (&user("alice"), NOW.plus(5)));
    let rest = Message { content: original.content.clone(), recalled: None, ..found.clone() };
    assert_eq!(rest, *original, "nothing else changed");
}

pub(super) async fn content_is_gone(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let kept = send(&store, "alice", "bob", "stays").await;
    let gone = send(&store, "alice", "bob", "goes").await;
    check_recalled(&recall(&store, gone.id).await.unwrap(), &gone);
    check_recalled(&store.message(gone.id).await.unwrap().unwrap(), &gone);
    let all = Seq(0)..=Seq(9);
    let read = store
        .messages(&pair("alice", "bob"), all, Limit::of(9), Order::Ascending)
        .await
        .unwrap()
        .messages;
    assert_eq!(read[0], kept);
    check_recalled(&read[1], &gone);
    // A retry of the send finds the recalled one; the id stays taken.
    let retry = append(&store, draft("alice", "bob", "goes", "goes")).await.unwrap();
    let Appended::Duplicate(found) = retry else { panic!("{retry:?}") };
    check_recalled(&found, &gone);
    let other = append(&store, draft("alice", "bob", "goes", "other")).await.unwrap();
    assert_eq!(other, Appended::Conflict);
}

pub(super) async fn dense_and_heard(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let listener = Arc::new(RecordingListener::default());
    store.set_commit_listener(Arc::clone(&listener) as _);
    let mut ids = Vec::new();
    for i in 0..5 {
        ids.push(send(&store, "alice", "bob", &format!("m{i}")).await.id);
    }
    for id in ids.iter().rev() {
        recall(&store, *id).await.unwrap();
    }
    let received = listener.changes();
    assert_eq!(received, changes(&store, 0, 99).await);
    assert_eq!(received.iter().map(|change| change.seq.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    let kind = ChangeKind::Recalled { message: ids[4], seq: Seq(5), sender: user("alice") };
    assert_eq!(received[0].kind, kind);
    assert_eq!(standing(&store, "bob", "alice").await.change_seq, Seq(5));
    assert_eq!(standing(&store, "bob", "alice").await.unread(), 5, "recalled ones still count");
    assert_eq!(changes(&store, 3, 1).await, received[3..4]);
    assert!(changes(&store, 5, 9).await.is_empty());
    assert!(changes(&store, u64::MAX, 9).await.is_empty());
}

pub(super) async fn repeated(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let sent = send(&store, "alice", "bob", "m").await;
    let first = recall(&store, sent.id).await.unwrap();
    assert_eq!(recall(&store, sent.id).await.unwrap(), first);
    assert_eq!(changes(&store, 0, 9).await.len(), 1);
}

pub(super) async fn refused(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let sent = send(&store, "alice", "bob", "m").await;
    let asker = Actor { user: user("bob"), at: NOW, origin: None };
    let may = Box::new(|_: RecallFacts<'_>| Err(Reason::NotMessageSender));
    let refused = store.recall(sent.id, asker, may).await.unwrap();
    assert_eq!(refused, Err(Reason::NotMessageSender));
    assert_eq!(recall(&store, MessageId([9; 16])).await, Err(Reason::MessageNotFound));
    assert_eq!(store.message(sent.id).await.unwrap(), Some(sent));
    assert!(changes(&store, 0, 9).await.is_empty());
}

pub(super) async fn right_after_the_send(opener: Arc<dyn Opener>) {
    let store = opener.open();
    for i in 0..20 {
        let draft = draft("alice", "bob", &format!("m{i}"), "oops");
        let id = MessageId::of(&draft.sender, &draft.client_id);
        // Both are called before either is done, so they may well share a batch.
        let sending = store.append(Permit::for_tests(), draft);
        let recalled = recall(&store, id).await.unwrap();
        assert!(recalled.content.body.is_empty());
        assert!(matches!(sending.await.unwrap(), Appended::Stored(_)));
        let found = store.message(id).await.unwrap().unwrap();
        assert_eq!(found, recalled);
    }
    assert_eq!(changes(&store, 0, 99).await.len(), 20);
}

pub(super) async fn survives_crash(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let sent = send(&store, "alice", "bob", "m").await;
    recall(&store, sent.id).await.unwrap();
    let before = changes(&store, 0, 9).await;
    let found = opener.open_after_crash();
    check_recalled(&found.message(sent.id).await.unwrap().unwrap(), &sent);
    assert_eq!(changes(&found, 0, 9).await, before);
    assert_eq!(standing(&found, "bob", "alice").await.change_seq, Seq(1));
    let next = send(&found, "alice", "bob", "n").await;
    recall(&found, next.id).await.unwrap();
    assert_eq!(changes(&found, 1, 9).await[0].seq, Seq(2));
}
