//! What changing an account as a whole promises.

use std::sync::Arc;

use nexo_chat::ids::{Millis, UserId};
use nexo_chat::model::{
    AccountDetails, AccountStatus, Audience, Consent, ProfileChange, ResetCode, Totp, User,
};
use nexo_chat::store::Store;

use super::Opener;
use super::fixtures::{NOW, account, login, sign_in, user};

/// Details of which no field has its default.
fn details() -> AccountDetails {
    AccountDetails {
        status: AccountStatus::Disabled {
            reason: "“spam”".into(),
            at: NOW,
            until: Some(NOW.plus(1000)),
        },
        is_bot: true,
        consent: Consent {
            write: Audience::Contacts,
            invite: Audience::SharedGroup,
            online: Audience::Nobody,
            last_seen: Audience::Nobody,
        },
        totp: Some(Totp {
            secret: vec![0, 1, 255],
            confirmed: true,
            last_step: u64::MAX,
            recovery: vec![[0; 32], [255; 32]],
        }),
        password_changed_at: Some(NOW),
    }
}

async fn set_details(store: &Arc<dyn Store>, who: &str, details: AccountDetails) -> Arc<User> {
    let change = move |user: &User| Some(User { details: details.clone(), ..user.clone() });
    store.change_account(&user(who), Box::new(change)).await.unwrap().unwrap()
}

async fn delete(store: &Arc<dyn Store>, who: &str) -> Arc<User> {
    let status = AccountStatus::Deleted { at: NOW };
    set_details(store, who, AccountDetails { status, ..AccountDetails::default() }).await
}

async fn stored(store: &Arc<dyn Store>, who: &UserId) -> Arc<User> {
    store.user(who).await.unwrap().unwrap()
}

pub(super) async fn as_a_whole(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let alice = user("alice");
    store.create_user(account("alice")).await.unwrap();
    let changed = store.change_account(
        &alice,
        Box::new(|before| {
            assert_eq!(*before, account("alice"), "as it is now");
            let mut user = account("mallory");
            user.password_hash = "new".into();
            user.created_at = Millis(1);
            user.updated_at = NOW.plus(5);
            user.details = details();
            Some(user)
        }),
    );
    let changed = changed.await.unwrap().unwrap();
    let expect = User {
        profile: account("mallory").profile,
        password_hash: "new".into(),
        updated_at: NOW.plus(5),
        details: details(),
        ..account("alice")
    };
    assert_eq!(*changed, expect, "the id and the creation time stay");
    assert_eq!(*stored(&store, &alice).await, expect);
    assert_eq!(store.user(&user("mallory")).await.unwrap(), None);

    let left = store.change_account(&alice, Box::new(|_| None)).await.unwrap();
    assert_eq!(left.as_deref(), Some(&expect), "left as it is");
    let older =
        |before: &User| Some(User { session_version: 0, updated_at: Millis(1), ..before.clone() });
    let left = store.change_account(&alice, Box::new(older)).await.unwrap();
    assert_eq!(left.as_deref(), Some(&expect), "neither goes back");

    // The other ways to change an account leave the details alone.
    store.update_profile(&alice, ProfileChange::default(), NOW).await.unwrap();
    store.change_password(&alice, 1, "newer".into()).await.unwrap();
    assert_eq!(stored(&store, &alice).await.details, details());
    let plain = set_details(&store, "alice", AccountDetails::default()).await;
    assert_eq!(plain.details, AccountDetails::default());
    assert_eq!(stored(&store, &alice).await, plain);

    let nobody = Box::new(|user: &User| Some(user.clone()));
    assert_eq!(store.change_account(&user("nobody"), nobody).await.unwrap(), None);
}

pub(super) async fn created_with_details(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let robot = User { details: details(), ..account("robot") };
    assert!(store.create_user(robot.clone()).await.unwrap());
    assert_eq!(*stored(&store, &user("robot")).await, robot);
}

pub(super) async fn all_count(opener: Arc<dyn Opener>) {
    let store = opener.open();
    store.create_user(account("alice")).await.unwrap();
    let calls: Vec<_> = (0..16)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let count = |before: &User| {
                    let mut user = before.clone();
                    user.details.totp.get_or_insert_default().last_step += 1;
                    Some(user)
                };
                store.change_account(&user("alice"), Box::new(count)).await.unwrap().unwrap()
            })
        })
        .collect();
    let step = |user: &User| user.details.totp.as_ref().unwrap().last_step;
    let mut steps = Vec::new();
    for call in calls {
        steps.push(step(&call.await.unwrap()));
    }
    steps.sort_unstable();
    assert!(steps.iter().copied().eq(1..=16), "each saw the one before");
    assert_eq!(step(&*stored(&store, &user("alice")).await), 16);
}

pub(super) async fn raised_version(opener: Arc<dyn Opener>) {
    let store = opener.open();
    for (who, n) in [("alice", 1), ("alice", 2), ("bob", 9)] {
        sign_in(&*store, login(who, n)).await;
    }
    let alice = user("alice");
    let code = ResetCode { hash: [1; 32], expires_at: NOW.plus(1000) };
    assert!(store.put_reset_code(&alice, code).await.unwrap());
    let has_ended = async |who, n| store.login(login(who, n).id).await.unwrap().unwrap().ended;

    set_details(&store, "alice", details()).await;
    assert!(!has_ended("alice", 1).await, "the version is the same");
    assert_eq!(store.reset_code(&alice).await.unwrap(), Some(code));

    let raise = |before: &User| Some(User { session_version: 7, ..before.clone() });
    let raised = store.change_account(&alice, Box::new(raise)).await.unwrap().unwrap();
    assert_eq!(raised.session_version, 7);
    for n in [1, 2] {
        assert!(has_ended("alice", n).await);
    }
    assert!(!has_ended("bob", 9).await);
    assert_eq!(store.reset_code(&alice).await.unwrap(), None);
    assert_eq!(store.create_login(login("alice", 3), 1, NOW).await.unwrap(), None);
    assert!(store.create_login(login("alice", 3), 7, NOW).await.unwrap().is_some());
}

pub(super) async fn deleted(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let alice = user("alice");
    assert!(!store.user_exists(&alice).await.unwrap());
    store.create_user(account("alice")).await.unwrap();
    assert!(store.user_exists(&alice).await.unwrap());
    set_details(&store, "alice", details()).await;
    assert!(store.user_exists(&alice).await.unwrap(), "a disabled account is there");

    let tombstone = delete(&store, "alice").await;
    assert!(!store.user_exists(&alice).await.unwrap());
    assert_eq!(store.user(&alice).await.unwrap(), Some(tombstone), "the record stays");
    assert_eq!(store.user_by_folded_id(&alice.folded()).await.unwrap(), Some(alice));
    for taken in ["alice", "A1ice"] {
        assert!(!store.create_user(account(taken)).await.unwrap(), "{taken} is never free again");
    }

    // An account that is brought back is there again.
    set_details(&store, "alice", AccountDetails::default()).await;
    store.forget_user(&user("alice"));
    assert!(store.user_exists(&user("alice")).await.unwrap());
}

pub(super) async fn survive_crash(opener: Arc<dyn Opener>) {
    let store = opener.open();
    for name in ["alice", "bob"] {
        store.create_user(account(name)).await.unwrap();
    }
    let alice = set_details(&store, "alice", details()).await;
    delete(&store, "bob").await;
    let found = opener.open_after_crash();
    assert_eq!(stored(&found, &user("alice")).await, alice);
    assert!(!found.user_exists(&user("bob")).await.unwrap());
    assert!(!found.create_user(account("bob")).await.unwrap());
}
