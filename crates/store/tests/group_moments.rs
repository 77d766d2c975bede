//! The changes of a batch to a member are never seen half done.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod folder;
mod story;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nexo_chat::ids::{Millis, Seq};
use nexo_chat::membership::GroupAction;
use nexo_chat::model::{CursorKind, Standing};
use nexo_chat::store::{Appended, Store};
use nexo_store::Embedded;

use story::{EventRecorder, act, conversation, create, person, say};

/// A user joins and leaves within one batch, or leaves and joins again, with many messages in
/// between, while another task reads their standing all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_comes_and_goes_at_once_sees_no_more_than_their_windows() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Embedded::open(folder.path(), &folder::options()).unwrap();
    let recorder = Arc::new(EventRecorder::default());
    store.set_commit_listener(Arc::clone(&recorder) as _);
    create(&store, person(0)).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let looking: Vec<_> =
        (0..3).map(|_| tokio::spawn(look_on(Arc::clone(&store), Arc::clone(&is_over)))).collect();
    let (owner, max) = (person(0), person(1));
    let join = || GroupAction::Join { message: String::new(), inviter: None };
    let kick = || GroupAction::Kick(person(1));
    for round in 0..300_u64 {
        let at = Millis(1_000_000 + round);
        let talk = |part: &str| -> Vec<_> {
            let ids = (0..8).map(|n| format!("{round}-{part}{n}"));
            ids.map(|id| say(&store, &owner, &id, at, true)).collect()
        };
        // All calls are made before any is awaited: most of them become one batch.
        let mut moves = vec![act(&store, &max, join(), at)];
        let mut said = talk("a");
        moves.push(act(&store, &owner, kick(), at));
        said.extend(talk("b"));
        if round % 2 == 0 {
            moves.push(act(&store, &max, join(), at));
            said.extend(talk("c"));
            moves.push(act(&store, &max, GroupAction::Leave, at));
        }
        for done in moves {
            done.await.unwrap().unwrap();
        }
        for said in said {
            assert!(matches!(said.await.unwrap(), Appended::Stored(_)));
        }
    }
    is_over.store(true, Ordering::SeqCst);
    let history = recorder.story();
    for seen in looking {
        for standing in seen.await.unwrap() {
            history.check_moment(&max, &standing);
        }
    }
    history.check(&store, [owner, max].into_iter()).await;
}

/// Reads the standing without pause, and acknowledges everything now and then.
async fn look_on(store: Arc<dyn Store>, is_over: Arc<AtomicBool>) -> Vec<Standing> {
    let mut seen: Vec<Standing> = Vec::new();
    while !is_over.load(Ordering::SeqCst) {
        for _ in 0..50 {
            let standing = store.standing(&person(1), &conversation()).await.unwrap();
            let is_news = standing.as_ref() != seen.last();
            seen.extend(standing.filter(|_| is_news));
        }
        let (me, end) = (person(1), Seq(u64::MAX));
        store.advance_cursor(&me, &conversation(), CursorKind::Delivered, end).await.unwrap();
        tokio::task::yield_now().await;
    }
    seen
}
