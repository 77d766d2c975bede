//! What logins promise.

use std::sync::Arc;

use nexo_chat::ids::{LoginId, Millis, Platform};
use nexo_chat::model::Login;
use nexo_chat::store::{RotateRequest, Rotation, Store};

use super::Opener;
use super::fixtures::{NOW, login, rotation, sign_in, user};

/// Live logins that every engine must be able to store per user.
const LIVE_MAX: u8 = 64;

async fn rotate(store: &Arc<dyn Store>, old: u8, new: u8) -> Rotation {
    store.rotate_refresh_token(rotation(old, new, NOW.plus(1000))).await.unwrap()
}

/// A rotation so long after [`NOW`], with a grace period of half a second.
fn rotation_at(ms: u64, old: u8, new: u8) -> RotateRequest {
    RotateRequest { grace_ms: 500, ..rotation(old, new, NOW.plus(ms)) }
}

async fn remembered(store: &Arc<dyn Store>, n: u8) -> Option<Login> {
    store.login(LoginId([n; 16])).await.unwrap()
}

pub(super) async fn kept(opener: Arc<dyn Opener>) {
    let store = opener.open();
    assert_eq!(remembered(&store, 1).await, None);
    sign_in(&*store, login("alice", 1)).await;
    assert_eq!(remembered(&store, 1).await, Some(login("alice", 1)));
}

pub(super) async fn forgotten(opener: Arc<dyn Opener>) {
    let store = opener.open();
    for n in 1..=3 {
        sign_in(&*store, login("alice", n)).await;
    }
    sign_in(&*store, login("bob", 9)).await;
    store.end_logins(&user("alice"), Box::new(|login| login.id.0[0] == 1)).await.unwrap();
    assert!(remembered(&store, 1).await.unwrap().ended, "remembered until the next sign-in");
    assert!(matches!(rotate(&store, 2, 20).await, Rotation::Done(_)));
    // Only the rotated one is valid for longer than an hour.
    let later = NOW.plus(3_600_001);
    let newest = Login { expires_at: later.plus(1000), ..login("alice", 4) };
    assert!(store.create_login(newest, 1, later).await.unwrap().is_some());
    assert_eq!(remembered(&store, 1).await, None);
    assert!(remembered(&store, 2).await.is_some());
    assert_eq!(remembered(&store, 3).await, None);
    assert!(remembered(&store, 4).await.is_some());
    assert!(remembered(&store, 9).await.is_some(), "others are left alone");
    assert_eq!(rotate(&store, 3, 30).await, Rotation::Unknown);
}

pub(super) async fn bounded(opener: Arc<dyn Opener>) {
    let store = opener.open();
    for n in 1..=LIVE_MAX + 2 {
        let ended = sign_in(&*store, login("alice", n)).await.ended;
        let oldest = n.checked_sub(LIVE_MAX).filter(|n| *n > 0).map(|n| LoginId([n; 16]));
        assert_eq!(ended, Vec::from_iter(oldest), "who makes room is told");
    }
    let live = store.end_logins(&user("alice"), Box::new(|_| true)).await.unwrap();
    let expect: Vec<_> = (3..=LIVE_MAX + 2).map(|n| LoginId([n; 16])).collect();
    assert_eq!(live, expect, "the oldest made room");
}

pub(super) async fn rotated(opener: Arc<dyn Opener>) {
    let store = opener.open();
    sign_in(&*store, login("alice", 1)).await;
    assert_eq!(rotate(&store, 77, 78).await, Rotation::Unknown);
    let expect = Login {
        refresh_hash: [2; 32],
        generation: 1,
        expires_at: NOW.plus(9_000_000),
        rotated_at: NOW.plus(1000),
        ..login("alice", 1)
    };
    assert_eq!(rotate(&store, 1, 2).await, Rotation::Done(expect.clone()));
    assert_eq!(remembered(&store, 1).await, Some(expect));
    assert!(matches!(rotate(&store, 2, 3).await, Rotation::Done(_)));
}

pub(super) async fn reuse(opener: Arc<dyn Opener>) {
    let store = opener.open();
    sign_in(&*store, login("alice", 1)).await;
    rotate(&store, 1, 2).await;
    let Rotation::Reused(ended) = rotate(&store, 1, 3).await else { panic!("it was used") };
    assert!(ended.ended);
    assert_eq!(remembered(&store, 1).await, Some(ended));
    for hash in [1, 2, 3] {
        assert_eq!(rotate(&store, hash, 9).await, Rotation::Unknown);
    }
}

pub(super) async fn reuse_at_once(opener: Arc<dyn Opener>) {
    let store = opener.open();
    sign_in(&*store, login("alice", 1)).await;
    let at = |ms, old, new| store.rotate_refresh_token(rotation_at(ms, old, new));
    assert!(matches!(at(1000, 1, 2).await.unwrap(), Rotation::Done(_)));
    let now = remembered(&store, 1).await.unwrap();
    assert_eq!(at(1400, 1, 2).await.unwrap(), Rotation::Again(now), "the same call");
    assert_eq!(at(1499, 1, 3).await.unwrap(), Rotation::Unknown, "within the grace");
    assert!(!remembered(&store, 1).await.unwrap().ended);
    assert!(matches!(at(1500, 1, 3).await.unwrap(), Rotation::Reused(_)));
}

pub(super) async fn clock_went_back(opener: Arc<dyn Opener>) {
    let store = opener.open();
    sign_in(&*store, login("alice", 1)).await;
    let at = |ms, old, new| store.rotate_refresh_token(rotation_at(ms, old, new));
    assert!(matches!(at(100_000, 1, 2).await.unwrap(), Rotation::Done(_)));
    let now = remembered(&store, 1).await.unwrap();
    assert_eq!(
        at(99_500, 1, 2).await.unwrap(),
        Rotation::Again(now.clone()),
        "another node's clock"
    );
    // The clock was set back by minutes: the used token works for nobody, and its owner stays signed in.
    for ms in [0, 40_000, 99_499] {
        for new in [2, 3] {
            assert_eq!(at(ms, 1, new).await.unwrap(), Rotation::Unknown, "{ms} {new}");
        }
    }
    assert_eq!(remembered(&store, 1).await, Some(now), "nothing was changed");
    assert!(matches!(at(40_000, 2, 4).await.unwrap(), Rotation::Done(_)), "the current one works");
    assert!(matches!(at(41_000, 2, 4).await.unwrap(), Rotation::Reused(_)));
    // The time of the login's end is the wall clock's, whatever the time of the rotation is.
    sign_in(&*store, login("bob", 9)).await;
    let steady = RotateRequest { now: NOW.plus(10), ..rotation_at(8_000_000, 9, 10) };
    assert!(matches!(store.rotate_refresh_token(steady).await.unwrap(), Rotation::Done(_)));
    let late = RotateRequest { now: NOW.plus(9_000_000), ..rotation_at(10, 10, 11) };
    assert_eq!(store.rotate_refresh_token(late).await.unwrap(), Rotation::Unknown, "expired");
}

pub(super) async fn version(opener: Arc<dyn Opener>) {
    let store = opener.open();
    sign_in(&*store, login("alice", 1)).await;
    store.change_password(&user("alice"), 1, "new".into()).await.unwrap();
    for (who, version) in [("alice", 1), ("alice", 3), ("nobody", 1)] {
        let refused = store.create_login(login(who, 2), version, NOW).await.unwrap();
        assert_eq!(refused, None, "{who} {version}");
    }
    assert_eq!(remembered(&store, 2).await, None);
    assert!(store.create_login(login("alice", 2), 2, NOW).await.unwrap().is_some());
}

pub(super) async fn after_all_others(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let first = sign_in(&*store, login("alice", 9)).await.login;
    let clock_went_back = Login { created_at: Millis(5), ..login("alice", 2) };
    let second = sign_in(&*store, clock_went_back).await.login;
    assert!(second.created_at > first.created_at);
    assert_eq!(remembered(&store, 2).await, Some(second));
}

pub(super) async fn parallel_rotations(opener: Arc<dyn Opener>) {
    let store = opener.open();
    sign_in(&*store, login("alice", 1)).await;
    let calls: Vec<_> = (10..14)
        .map(|new| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { rotate(&store, 1, new).await })
        })
        .collect();
    let mut done = 0;
    for call in calls {
        done += u32::from(matches!(call.await.unwrap(), Rotation::Done(_)));
    }
    assert_eq!(done, 1);
    assert!(remembered(&store, 1).await.unwrap().ended, "the second use ended it");
}

pub(super) async fn expired_and_ended(opener: Arc<dyn Opener>) {
    let store = opener.open();
    sign_in(&*store, Login { expires_at: NOW.plus(1000), ..login("alice", 1) }).await;
    assert_eq!(rotate(&store, 1, 2).await, Rotation::Unknown, "it expired at this moment");
    sign_in(&*store, login("alice", 3)).await;
    store.end_logins(&user("alice"), Box::new(|login| login.id.0[0] == 3)).await.unwrap();
    assert_eq!(rotate(&store, 3, 4).await, Rotation::Unknown);
}

pub(super) async fn two_back(opener: Arc<dyn Opener>) {
    let store = opener.open();
    sign_in(&*store, login("alice", 1)).await;
    rotate(&store, 1, 2).await;
    rotate(&store, 2, 3).await;
    // The theft of the first token is detected when its owner presents it.
    assert!(matches!(rotate(&store, 1, 9).await, Rotation::Reused(_)));
    assert_eq!(rotate(&store, 3, 4).await, Rotation::Unknown, "nobody goes on");
}

pub(super) async fn picked(opener: Arc<dyn Opener>) {
    let store = opener.open();
    for n in 1..=6 {
        sign_in(&*store, login("alice", n)).await;
    }
    sign_in(&*store, login("alice.", 7)).await;
    let on_one = |login: &Login| login.platform == Platform(1);
    let ended = store.end_logins(&user("alice"), Box::new(on_one)).await.unwrap();
    assert_eq!(ended, [LoginId([1; 16]), LoginId([6; 16])]);
    let again = store.end_logins(&user("alice"), Box::new(on_one)).await.unwrap();
    assert!(again.is_empty(), "they had ended before");
    let rest = store.end_logins(&user("alice"), Box::new(|_| true)).await.unwrap();
    assert_eq!(rest.len(), 4);
    assert!(!remembered(&store, 7).await.unwrap().ended);
}
