//! What accounts promise.

use std::sync::Arc;

use nexo_chat::model::{ProfileChange, ResetCode};

use super::Opener;
use super::fixtures::{NOW, account, login, sign_in, user};

pub(super) async fn taken_once(opener: Arc<dyn Opener>) {
    let store = opener.open();
    assert_eq!(store.user(&user("alice")).await.unwrap(), None);
    assert!(store.create_user(account("alice")).await.unwrap());
    let mut impostor = account("alice");
    impostor.password_hash = "other".into();
    assert!(!store.create_user(impostor).await.unwrap());
    assert_eq!(store.user(&user("alice")).await.unwrap(), Some(Arc::new(account("alice"))));
}

pub(super) async fn taken_whatever_its_look(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let holder = async |id: &str| store.user_by_folded_id(&user(id).folded()).await.unwrap();
    assert_eq!(holder("Bill0").await, None);
    assert!(store.create_user(account("Bill0")).await.unwrap());
    for alike in ["bill0", "BILL0", "Billo", "B1LLO", "bi11o"] {
        assert!(!store.create_user(account(alike)).await.unwrap(), "{alike} looks like Bill0");
        assert_eq!(store.user(&user(alike)).await.unwrap(), None, "{alike}");
        assert_eq!(holder(alike).await, Some(user("Bill0")), "kept as it was given");
    }
    for other in ["Bill-0", "Bi0", "Bill00", "Bell0"] {
        assert!(store.create_user(account(other)).await.unwrap(), "{other}");
    }
}

pub(super) async fn one_look_wins(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let looks = ["oil", "Oil", "0il", "o1l", "OIL", "0i1", "olI", "Ol1"];
    let calls: Vec<_> = looks
        .map(|id| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { (store.create_user(account(id)).await, id) })
        })
        .into();
    let mut winners = Vec::new();
    for call in calls {
        if let (Ok(true), id) = call.await.unwrap() {
            winners.push(user(id));
        }
    }
    assert_eq!(winners.len(), 1, "{winners:?}");
    assert_eq!(store.user_by_folded_id(&user("oil").folded()).await.unwrap(), winners.pop());
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
    let update = async |change, at| {
        let updated = store.update_profile(&user("alice"), change, at).await.unwrap().unwrap();
        assert_eq!(store.user(&user("alice")).await.unwrap(), Some(Arc::clone(&updated)));
        updated
    };
    let change = ProfileChange { avatar: Some("a.png".into()), ..ProfileChange::default() };
    let alice = update(change, NOW.plus(5)).await;
    assert_eq!((&*alice.profile.nickname, &*alice.profile.avatar), ("ALICE", "a.png"));
    assert_eq!((alice.created_at, alice.updated_at), (NOW, NOW.plus(5)));
    let change = ProfileChange { nickname: Some("Al".into()), ..ProfileChange::default() };
    let alice = update(change, NOW.plus(2)).await;
    assert_eq!((&*alice.profile.nickname, &*alice.profile.avatar), ("Al", "a.png"));
    assert_eq!(alice.updated_at, NOW.plus(5), "it never goes back");
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

fn code(n: u8) -> ResetCode {
    ResetCode { hash: [n; 32], expires_at: NOW.plus(1000) }
}

pub(super) async fn reset_once(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let (alice, bob) = (user("alice"), user("bob"));
    for name in ["alice", "bob"] {
        sign_in(&*store, login(name, name.len().try_into().unwrap())).await;
    }
    let reset = async |who, n, now, hash: &str| {
        store.reset_password(who, [n; 32], now, hash.to_owned()).await.unwrap()
    };
    assert_eq!(reset(&alice, 1, NOW, "none was given").await, None);
    assert!(store.put_reset_code(&alice, code(1)).await.unwrap());
    assert!(store.put_reset_code(&alice, code(2)).await.unwrap());
    assert_eq!(store.reset_code(&alice).await.unwrap(), Some(code(2)));
    assert_eq!(reset(&alice, 1, NOW, "it was replaced").await, None);
    assert_eq!(reset(&bob, 2, NOW, "it is somebody else's").await, None);
    assert_eq!(reset(&alice, 2, NOW.plus(1000), "it is too old").await, None);
    assert_eq!(store.user(&alice).await.unwrap().unwrap().session_version, 1);
    assert!(!store.login(login("alice", 5).id).await.unwrap().unwrap().ended);

    assert_eq!(reset(&alice, 2, NOW.plus(999), "new").await, Some(2));
    let kept = store.user(&alice).await.unwrap().unwrap();
    assert_eq!((&*kept.password_hash, kept.session_version), ("new", 2));
    assert!(store.login(login("alice", 5).id).await.unwrap().unwrap().ended);
    assert!(!store.login(login("bob", 3).id).await.unwrap().unwrap().ended);
    assert_eq!(reset(&alice, 2, NOW, "it was used").await, None);
    assert_eq!(store.reset_code(&alice).await.unwrap(), None);

    // A user who changed the password needs no code any more.
    assert!(store.put_reset_code(&alice, code(3)).await.unwrap());
    assert_eq!(store.change_password(&alice, 2, "newer".into()).await.unwrap(), Some(3));
    assert_eq!(reset(&alice, 3, NOW, "it is over").await, None);
}

pub(super) async fn resets_survive(opener: Arc<dyn Opener>) {
    let store = opener.open();
    for name in ["alice", "bob"] {
        store.create_user(account(name)).await.unwrap();
        assert!(store.put_reset_code(&user(name), code(1)).await.unwrap());
    }
    store.reset_password(&user("bob"), [1; 32], NOW, "new".into()).await.unwrap();
    let found = opener.open_after_crash();
    assert_eq!(found.reset_code(&user("alice")).await.unwrap(), Some(code(1)));
    let used = found.reset_password(&user("bob"), [1; 32], NOW, "again".into()).await.unwrap();
    assert_eq!(used, None);
}

pub(super) async fn nobody(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let change = ProfileChange::default();
    let updated = store.update_profile(&user("nobody"), change, NOW).await.unwrap();
    assert_eq!(updated, None);
    assert!(!store.put_reset_code(&user("nobody"), code(1)).await.unwrap());
    assert_eq!(store.reset_code(&user("nobody")).await.unwrap(), None);
    assert_eq!(store.change_password(&user("nobody"), 1, "x".into()).await.unwrap(), None);
    assert_eq!(store.user(&user("nobody")).await.unwrap(), None);
}
