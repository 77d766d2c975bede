//! Flushing behind the log: nothing is lost, and the log is retired.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nexo_chat::ids::{ClientMsgId, ConversationId, Millis, Seq, UserId};
use nexo_chat::model::{Content, Draft};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{Appended, Limit, MessageStore, Order};
use nexo_store::{Embedded, Options};

const PEERS: u64 = 5;
const EACH: u64 = 600;

fn options() -> Options {
    Options { memtable_bytes: 64 << 10, cache_bytes: 1 << 20, ..Options::default() }
}

fn draft(n: u64) -> Draft {
    let (alice, peer) = ("alice".to_owned(), format!("peer-{}", n % PEERS));
    let [alice, peer] = [alice, peer].map(|id| UserId::parse(&id).unwrap());
    Draft {
        conversation: ConversationId::private(&alice, &peer),
        sender: alice,
        client_id: ClientMsgId::parse(&format!("m{n}")).unwrap(),
        content: Content::text(format!("{n:0>200}")),
        sent_at: Millis(n),
        cleaned: None,
        origin: None,
        marks_read: true,
    }
}

async fn send(store: &Arc<Embedded>, n: u64) -> Appended {
    store.append(Permit::for_tests(), draft(n)).await.unwrap()
}

/// Checks that every message up to here can be read, and its id is known.
async fn check(store: &Arc<Embedded>, sent: u64) {
    for n in (0..sent).step_by(7) {
        match send(store, n).await {
            Appended::Duplicate(message) => assert_eq!(message.seq, Seq(n / PEERS + 1), "{n}"),
            other => panic!("message {n} again: {other:?}"),
        }
    }
    for peer in 0..PEERS {
        let range = Seq(1)..=Seq(u64::MAX);
        let conversation = draft(peer).conversation;
        let limit = Limit::of(usize::MAX);
        let found =
            store.messages(&conversation, range, limit, Order::Ascending).await.unwrap().messages;
        assert_eq!(found.len() as u64, sent / PEERS);
    }
}

fn segments(folder: &Path) -> usize {
    fs::read_dir(folder.join("log")).unwrap().count()
}

fn tables(folder: &Path, keyspace: &str) -> usize {
    fs::read_dir(folder.join("trees").join(keyspace).join("tables")).unwrap().count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_found_in_memory_on_the_way_out_and_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Embedded::open(folder.path(), &options()).unwrap();
    for round in 0..EACH {
        let answers: Vec<_> = (0..PEERS)
            .map(|peer| store.append(Permit::for_tests(), draft(round * PEERS + peer)))
            .collect();
        for answer in answers {
            assert!(matches!(answer.await.unwrap(), Appended::Stored(_)));
        }
        if round % 100 == 99 {
            check(&store, (round + 1) * PEERS).await;
            drop(store);
            store = Embedded::open(folder.path(), &options()).unwrap();
            check(&store, (round + 1) * PEERS).await;
        }
    }
    for keyspace in ["messages", "ids"] {
        assert!(tables(folder.path(), keyspace) > 0, "{keyspace} was never written out");
    }
}

#[tokio::test]
async fn segments_do_not_pile_up_over_many_starts() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..20 {
        let store = Embedded::open(folder.path(), &options()).unwrap();
        assert!(matches!(send(&store, n * PEERS).await, Appended::Stored(_)));
        let since = Instant::now();
        while segments(folder.path()) > 8 && since.elapsed() < Duration::from_secs(10) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(segments(folder.path()) <= 8, "after {n} starts");
    }
}
