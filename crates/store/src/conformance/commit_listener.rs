//! What `on_committed` promises.

use std::sync::Arc;

use nexo_chat::ids::ConnectionId;
use nexo_chat::invariants;
use nexo_chat::policy::send::Permit;

use super::Opener;
use super::fixtures::{RecordingListener, append, draft, send};

pub(super) async fn once_and_in_order(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let listener = Arc::new(RecordingListener::default());
    store.set_commit_listener(Arc::clone(&listener) as _);
    let mut answers = Vec::new();
    for i in 0..100 {
        let to = if i % 2 == 0 { "bob" } else { "carol" };
        let draft = draft("alice", to, &format!("m{i}"), "hi");
        answers.push(store.append(Permit::for_tests(), draft));
    }
    for answer in answers {
        answer.await.unwrap();
    }
    let received = listener.messages();
    assert_eq!(received.len(), 100);
    assert!(received.iter().all(|(_, origin)| *origin == Some(ConnectionId(7))));
    for who in ["si_alice_bob", "si_alice_carol"] {
        let theirs = received.iter().filter(|(message, _)| message.conversation.as_str() == who);
        assert!(invariants::is_dense(theirs.map(|(message, _)| message.seq)), "{who}");
    }
}

pub(super) async fn before_the_answer(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let listener = Arc::new(RecordingListener::default());
    store.set_commit_listener(Arc::clone(&listener) as _);
    for i in 0..20 {
        let message = send(&store, "alice", "bob", &format!("m{i}")).await;
        assert_eq!(listener.messages().pop().map(|(received, _)| received), Some(message));
    }
}

pub(super) async fn duplicates_are_not_heard(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let listener = Arc::new(RecordingListener::default());
    store.set_commit_listener(Arc::clone(&listener) as _);
    send(&store, "alice", "bob", "one").await;
    for text in ["one", "other", "one"] {
        append(&store, draft("alice", "bob", "one", text)).await.unwrap();
    }
    send(&store, "alice", "bob", "two").await;
    assert_eq!(listener.0.lock().unwrap().len(), 2);
}
