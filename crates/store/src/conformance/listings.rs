//! What lists of everything promise.

use std::sync::Arc;

use nexo_chat::membership::GroupAction;
use nexo_chat::store::Rotation;

use super::Opener;
use super::fixtures::{NOW, account, done, group, group_id, login, rotation, sign_in, user};

/// Ids in the order of their bytes, which is not that of a dictionary.
const IDS: [&str; 6] = ["-", "10", "9", "Zed", "a", "a.b"];

pub(super) async fn users(opener: Arc<dyn Opener>) {
    let store = opener.open();
    assert!(store.users(None, 9).await.unwrap().is_empty());
    for id in [4, 1, 5, 0, 3, 2] {
        assert!(store.create_user(account(IDS[id])).await.unwrap());
    }
    let page = async |after: Option<&str>, limit| {
        let after = after.map(user);
        let users = store.users(after.as_ref(), limit).await.unwrap();
        users.iter().map(|user| user.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(page(None, 99).await, IDS);
    assert_eq!(page(None, 2).await, IDS[..2]);
    assert_eq!(page(Some("9"), 2).await, IDS[3..5]);
    assert_eq!(page(Some("Yes"), 9).await, IDS[3..], "after one that is not there");
    assert!(page(Some("a.b"), 9).await.is_empty());
    assert!(page(None, 0).await.is_empty());
    let all = store.users(None, 99).await.unwrap();
    for found in all {
        assert_eq!(*found, account(found.id.as_str()));
    }
}

pub(super) async fn logins(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let alice = user("alice");
    assert!(store.logins(&alice).await.unwrap().is_empty());
    let mut signed_in = Vec::new();
    // The later a login the lower its id.
    for n in [5, 3, 1] {
        signed_in.push(sign_in(&*store, login("alice", n)).await.login);
    }
    sign_in(&*store, login("alice.", 7)).await;
    signed_in.reverse();
    assert_eq!(store.logins(&alice).await.unwrap(), signed_in);
    store.end_logins(&alice, Box::new(|login| login.id.0[0] == 3)).await.unwrap();
    signed_in.remove(1);
    assert_eq!(store.logins(&alice).await.unwrap(), signed_in, "without the one that ended");
    let rotated = store.rotate_refresh_token(rotation(5, 50, NOW.plus(1000))).await.unwrap();
    let Rotation::Done(rotated) = rotated else { panic!("{rotated:?}") };
    assert_eq!(rotated.device, login("alice", 5).device, "a rotation keeps the device");
    let used = store.logins(&alice).await.unwrap();
    assert_eq!(used.last(), Some(&rotated), "by their beginnings, not their last use");
    store.change_password(&alice, 1, "new".into()).await.unwrap();
    assert!(store.logins(&alice).await.unwrap().is_empty());
}

pub(super) async fn groups(opener: Arc<dyn Opener>) {
    let store = opener.open();
    assert!(store.groups(None, 9).await.unwrap().is_empty());
    let ids = ["10", "9", "Zed", "a", "b"];
    for id in ["b", "a", "9", "Zed", "10"] {
        group(&store, id, &["olga", "bob"]).await;
    }
    done(&store, "olga", "a", GroupAction::Dissolve).await;
    let page = async |after: Option<&str>, limit| {
        let after = after.map(group_id);
        let groups = store.groups(after.as_ref(), limit).await.unwrap();
        groups.iter().map(|group| group.id.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(page(None, 99).await, ids, "ended ones too");
    assert_eq!(page(None, 2).await, ids[..2]);
    assert_eq!(page(Some("9"), 2).await, ids[2..4]);
    assert_eq!(page(Some("Yes"), 9).await, ids[2..], "after one that is not there");
    assert!(page(Some("b"), 9).await.is_empty());
    assert!(page(None, 0).await.is_empty());
    for found in store.groups(None, 99).await.unwrap() {
        assert_eq!(store.group(&found.id).await.unwrap(), Some(Arc::clone(&found)));
        assert_eq!(found.ended.is_some(), found.id == group_id("a"));
    }
}
