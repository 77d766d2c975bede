//! Repairs: what can be derived is written again, and nothing else changes.

use std::sync::Arc;

use nexo_chat::ids::{ClientMsgId, ConversationId, MessageId, Millis, Seq, UserId};
use nexo_chat::model::{AccountDetails, Content, Cursors, Draft, Profile, User};
use nexo_chat::policy::send::Permit;
use nexo_chat::progress::Progress;
use nexo_chat::store::{
    AccountStore, Appended, Collection, DocumentId, DocumentStore, DocumentWrite, MessageStore,
    Store,
};

use crate::embedded::keys::{self, Keyspace};
use crate::embedded::record::{self, CursorRecord};
use crate::embedded::{Embedded, Options};

fn user(id: &str) -> UserId {
    UserId::parse(id).unwrap()
}

fn pair() -> ConversationId {
    ConversationId::private(&user("alice"), &user("bob"))
}

fn draft(n: u64) -> Draft {
    Draft {
        conversation: pair(),
        sender: user("alice"),
        client_id: ClientMsgId::parse(&n.to_string()).unwrap(),
        content: Content::text(n.to_string()),
        sent_at: Millis(n),
        cleaned: None,
        origin: None,
        marks_read: true,
    }
}

async fn open_with_messages(path: &std::path::Path) -> Arc<Embedded> {
    let store = Embedded::open(path, &Options::default()).unwrap();
    let alice = User {
        id: user("alice"),
        profile: Profile::default(),
        created_at: Millis(0),
        updated_at: Millis(0),
        password_hash: String::new(),
        session_version: 1,
        details: AccountDetails::default(),
    };
    store.create_user(alice).await.unwrap();
    for n in 1..=3 {
        store.append(Permit::for_tests(), draft(n)).await.unwrap();
    }
    store
}

#[tokio::test]
async fn what_can_be_derived_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_with_messages(folder.path()).await;
    let id = MessageId::of(&user("alice"), &draft(2).client_id);
    let broken = store.submit(1, move |pending| {
        let batch = &mut pending.effects().batch;
        // The second message's id leads nowhere, so as if it were not there.
        batch.put(Keyspace::MessageIds, &id.0, b"nonsense");
        batch.delete(Keyspace::FoldedIds, &keys::folded(&user("alice").folded()));
        let key = keys::member(&user("bob"), &pair());
        let cursors = Cursors { delivered: Seq(9), read: Seq(9) };
        let progress = Progress { cursors, ..Progress::default() };
        let value = record::encode(Keyspace::Cursors, &key, &CursorRecord::from(progress))?;
        batch.put(Keyspace::Cursors, &key, &value);
        Ok(())
    });
    broken.await.unwrap();
    store.close().await.unwrap();
    drop(store);
    std::fs::write(folder.path().join("FORMAT.new"), "left behind").unwrap();

    let report = super::check(folder.path(), &mut |_| {}).unwrap();
    assert!(report.problems.iter().all(|problem| problem.can_repair), "{:#?}", report.problems);
    assert_eq!(report.problems.len(), 4, "{:#?}", report.problems);
    let done = super::repair(folder.path(), &Options::default(), &mut |_| {}).await.unwrap();
    assert_eq!(done.len(), 4, "{done:?}");
    let report = super::check(folder.path(), &mut |_| {}).unwrap();
    assert!(report.is_healthy(), "{:#?}", report.problems);

    let store = Embedded::open(folder.path(), &Options::default()).unwrap();
    let again = store.append(Permit::for_tests(), draft(2)).await.unwrap();
    assert!(matches!(again, Appended::Duplicate(message) if message.seq == Seq(2)));
    let holder = store.user_by_folded_id(&user("ALICE").folded()).await.unwrap();
    assert_eq!(holder, Some(user("alice")));
}

#[tokio::test]
async fn a_damaged_document_is_reported_without_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_with_messages(folder.path()).await;
    let invite = |key: &str| DocumentId::new(Collection::Invites, key);
    for key in ["sound", "broken"] {
        let write = DocumentWrite::put(invite(key), vec![1]);
        let decide = Box::new(move |_: Option<&[u8]>| vec![write.clone()]);
        store.change_documents(&invite(key), decide).await.unwrap();
    }
    assert!(check_closed(store, folder.path()).await.is_healthy());
    let store = Embedded::open(folder.path(), &Options::default()).unwrap();
    let broken = store.submit(1, move |pending| {
        let key = keys::document(&invite("broken"));
        pending.effects().batch.put(Keyspace::Documents, &key, b"nonsense");
        Ok(())
    });
    broken.await.unwrap();
    let report = check_closed(store, folder.path()).await;
    assert_eq!(report.problems.len(), 1, "{:#?}", report.problems);
    let what = &report.problems[0].what;
    assert!(what.contains("invites") && what.contains("documents"), "{what}");
    assert!(!what.contains("broken"), "{what}");

    let new = tempfile::tempdir().unwrap();
    let target = new.path().join("data");
    let options = Options::default();
    super::salvage(folder.path(), &target, &options, &mut |_| {}).await.unwrap();
    let store = Embedded::open(&target, &options).unwrap();
    assert_eq!(store.document(&invite("sound")).await.unwrap(), Some(vec![1]));
    assert_eq!(store.document(&invite("broken")).await.unwrap(), None);
}

/// Closes a store and checks its folder.
async fn check_closed(store: Arc<Embedded>, folder: &std::path::Path) -> super::Report {
    store.close().await.unwrap();
    drop(store);
    super::check(folder, &mut |_| {}).unwrap()
}
