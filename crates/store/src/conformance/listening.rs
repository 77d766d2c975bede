//! What `on_commit` promises.

use std::sync::Arc;

use nexo_chat::ids::ConnectionId;
use nexo_chat::invariants;
use nexo_chat::policy::send::Permit;

use super::Opener;
use super::given::{Ear, append, draft, send};

pub(super) async fn once_and_in_order(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let ear = Arc::new(Ear::default());
    store.on_commit(Arc::clone(&ear) as _);
    let mut answers = Vec::new();
    for i in 0..100 {
        let to = if i % 2 == 0 { "bob" } else { "carol" };
        let draft = draft("alice", to, &format!("m{i}"), "hi");
        answers.push(store.append(Permit::for_tests(), draft));
    }
    for answer in answers {
        answer.await.unwrap();
    }
    let heard = ear.messages();
    assert_eq!(heard.len(), 100);
    assert!(heard.iter().all(|(_, origin)| *origin == Some(ConnectionId(7))));
    for who in ["si_alice_bob", "si_alice_carol"] {
        let theirs = heard.iter().filter(|(message, _)| message.conversation.as_str() == who);
        assert!(invariants::dense(theirs.map(|(message, _)| message.seq)), "{who}");
    }
}

pub(super) async fn before_the_answer(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let ear = Arc::new(Ear::default());
    store.on_commit(Arc::clone(&ear) as _);
    for i in 0..20 {
        let message = send(&store, "alice", "bob", &format!("m{i}")).await;
        assert_eq!(ear.messages().pop().map(|(heard, _)| heard), Some(message));
    }
}

pub(super) async fn duplicates_are_not_heard(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let ear = Arc::new(Ear::default());
    store.on_commit(Arc::clone(&ear) as _);
    send(&store, "alice", "bob", "one").await;
    for text in ["one", "other", "one"] {
        append(&store, draft("alice", "bob", "one", text)).await.unwrap();
    }
    send(&store, "alice", "bob", "two").await;
    assert_eq!(ear.0.lock().unwrap().len(), 2);
}
