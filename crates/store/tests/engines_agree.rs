//! Any sequence of calls has the same outcome on the embedded engine as on the reference engine,
//! over restarts too.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod calls;
mod folder;

use std::sync::Arc;

use proptest::prelude::*;

use nexo_chat::ids::{Seq, UserId};
use nexo_chat::store::{Limit, Order, Store};
use nexo_store::{Embedded, Memory};

use self::calls::{Call, Names, PEOPLE, calls, make, user};

async fn check(calls: Vec<Call>) {
    let folder = tempfile::tempdir().unwrap();
    let open = || Embedded::open(folder.path(), &folder::options()).unwrap();
    let reference: Arc<dyn Store> = Memory::new();
    let mut store: Arc<dyn Store> = open();
    let (mut expected, mut given) = (Names::default(), Names::default());
    for call in calls {
        if let Call::Reopen = call {
            store.close().await.unwrap();
            drop(store);
            store = open();
        }
        let expect = make(&reference, &call, &mut expected).await;
        assert_eq!(make(&store, &call, &mut given).await, expect, "{call:?}");
        recount(&reference).await;
    }
    recount(&store).await;
}

/// Checks that unread is what a recount finds, and that the cursors are within the window.
async fn recount(store: &Arc<dyn Store>) {
    for who in (0..PEOPLE.len()).map(user) {
        for standing in store.standings(&who, None, usize::MAX).await.unwrap() {
            let visible = standing.window.min..=standing.visible_max();
            let seen = store.messages(
                &standing.conversation,
                visible.clone(),
                Limit::of(usize::MAX),
                Order::Ascending,
            );
            let is_unread =
                |seq: Seq, sender: &UserId| seq > standing.cursors.read && *sender != who;
            let seen = seen.await.unwrap().messages;
            let unread = seen.iter().filter(|it| is_unread(it.seq, &it.sender)).count();
            assert_eq!(standing.unread(), unread as u64, "{who} in {standing:?}");
            assert!(standing.cursors.read <= standing.visible_max(), "{who} in {standing:?}");
            assert!(standing.cursors.delivered <= standing.visible_max(), "{who} in {standing:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn embedded_answers_like_memory(calls in proptest::collection::vec(calls(), 1..120)) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(check(calls));
    }
}
