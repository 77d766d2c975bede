//! What accounts promise.

use std::sync::Arc;

use nexo_chat::model::ProfileChange;

use super::Opener;
use super::given::{account, login, sign_in, user};

pub(super) async fn taken_once(opener: Arc<dyn Opener>) {
    let store = opener.open();
    assert_eq!(store.user(&user("alice")).await.unwrap(), None);
    assert!(store.create_user(account("alice")).await.unwrap());
    let mut impostor = account("alice");
    impostor.password_hash = "other".into();
    assert!(!store.create_user(impostor).await.unwrap());
    assert_eq!(store.user(&user("alice")).await.unwrap(), Some(Arc::new(account("alice"))));
    assert!(store.create_user(account("Alice")).await.unwrap(), "ids tell capitals apart");
}

pub(super) async fn one_wins(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let calls: Vec<_> = (0..16)
        .map(|n| {
            let store = Arc::clone(&store);
            let mut wanted = account("alice");
            wanted.password_hash = n.to_string();
            tokio::spawn(async move { (store.create_user(wanted.clone()).await, wanted) })
        })
        .collect();
    let mut winners = Vec::new();
    for call in calls {
        if let (Ok(true), wanted) = call.await.unwrap() {
            winners.push(wanted);
        }
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(store.user(&user("alice")).await.unwrap(), winners.pop().map(Arc::new));
}

pub(super) async fn profile_changes(opener: Arc<dyn Opener>) {
    let store = opener.open();
    store.create_user(account("alice")).await.unwrap();
    let change = ProfileChange { avatar: Some("a.png".into()), ..ProfileChange::default() };
    let profile = store.update_profile(&user("alice"), change).await.unwrap().unwrap();
    assert_eq!((profile.nickname.as_str(), profile.avatar.as_str()), ("ALICE", "a.png"));
    let change = ProfileChange { nickname: Some("Al".into()), ..ProfileChange::default() };
    let profile = store.update_profile(&user("alice"), change).await.unwrap().unwrap();
    assert_eq!((profile.nickname.as_str(), profile.avatar.as_str()), ("Al", "a.png"));
    assert_eq!(store.user(&user("alice")).await.unwrap().unwrap().profile, profile);
}

pub(super) async fn new_password(opener: Arc<dyn Opener>) {
    let store = opener.open();
    store.create_user(account("alice")).await.unwrap();
    for n in 1..=3 {
        sign_in(&*store, login("alice", n)).await;
    }
    sign_in(&*store, login("bob", 9)).await;
    assert_eq!(store.change_password(&user("alice"), 1, "new".into()).await.unwrap(), Some(2));
    let late = store.change_password(&user("alice"), 1, "too late".into()).await.unwrap();
    assert_eq!(late, None, "the password it was verified against is gone");
    let alice = store.user(&user("alice")).await.unwrap().unwrap();
    assert_eq!((alice.password_hash.as_str(), alice.session_version), ("new", 2));
    for n in 1..=3 {
        assert!(store.login(login("alice", n).id).await.unwrap().unwrap().ended);
    }
    assert!(!store.login(login("bob", 9).id).await.unwrap().unwrap().ended);
    assert_eq!(store.change_password(&user("alice"), 2, "newer".into()).await.unwrap(), Some(3));
}

pub(super) async fn nobody(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let profile = store.update_profile(&user("nobody"), ProfileChange::default()).await.unwrap();
    assert_eq!(profile, None);
    assert_eq!(store.change_password(&user("nobody"), 1, "x".into()).await.unwrap(), None);
    assert_eq!(store.user(&user("nobody")).await.unwrap(), None);
}
