//! What reading messages promises.

use std::sync::Arc;

use nexo_chat::ids::{ConversationId, MessageId, Seq};
use nexo_chat::store::{Limit, Order, PageRequest, Store};

use super::Opener;
use super::fixtures::{all, group, pair, say, send, send_many, seqs};

async fn check(
    store: &Arc<dyn Store>,
    range: std::ops::RangeInclusive<u64>,
    limit: usize,
    order: Order,
    expect: &[u64],
) {
    let seq_range = Seq(*range.start())..=Seq(*range.end());
    let read = store
        .messages(&pair("alice", "bob"), seq_range, Limit::of(limit), order)
        .await
        .unwrap()
        .messages;
    assert_eq!(seqs(&read), expect, "{range:?} limit {limit} {order:?}");
}

pub(super) async fn found_by_id(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let message = send(&store, "alice", "bob", "one").await;
    assert_eq!(store.message(message.id).await.unwrap(), Some(message));
    assert_eq!(store.message(MessageId([1; 16])).await.unwrap(), None);
}

pub(super) async fn both_orders(opener: Arc<dyn Opener>) {
    let store = opener.open();
    send_many(&store, "alice", "bob", "m", 5).await;
    check(&store, 1..=5, 9, Order::Ascending, &[1, 2, 3, 4, 5]).await;
    check(&store, 1..=5, 9, Order::Descending, &[5, 4, 3, 2, 1]).await;
    check(&store, 2..=4, 9, Order::Ascending, &[2, 3, 4]).await;
    check(&store, 2..=4, 9, Order::Descending, &[4, 3, 2]).await;
    check(&store, 3..=3, 9, Order::Descending, &[3]).await;
}

pub(super) async fn limits(opener: Arc<dyn Opener>) {
    let store = opener.open();
    send_many(&store, "alice", "bob", "m", 5).await;
    check(&store, 1..=5, 2, Order::Ascending, &[1, 2]).await;
    check(&store, 1..=5, 2, Order::Descending, &[5, 4]).await;
    check(&store, 1..=5, 0, Order::Ascending, &[]).await;
    check(&store, 1..=5, usize::MAX, Order::Ascending, &[1, 2, 3, 4, 5]).await;
}

pub(super) async fn beyond(opener: Arc<dyn Opener>) {
    let store = opener.open();
    send_many(&store, "alice", "bob", "m", 3).await;
    check(&store, 0..=u64::MAX, 9, Order::Ascending, &[1, 2, 3]).await;
    check(&store, 2..=u64::MAX, 9, Order::Descending, &[3, 2]).await;
    check(&store, 4..=9, 9, Order::Ascending, &[]).await;
    check(&store, u64::MAX..=u64::MAX, 9, Order::Ascending, &[]).await;
    check(&store, 0..=0, 9, Order::Ascending, &[]).await;
    #[allow(clippy::reversed_empty_ranges, reason = "that is the case")]
    check(&store, 3..=1, 9, Order::Ascending, &[]).await;
    let unknown = pair("alice", "zoe");
    assert!(
        store
            .messages(&unknown, all(), Limit::of(9), Order::Ascending)
            .await
            .unwrap()
            .messages
            .is_empty()
    );
}

pub(super) async fn neighbours(opener: Arc<dyn Opener>) {
    let store = opener.open();
    // Ids that are prefixes of each other.
    for id in ["1", "1.", "11", "1-"] {
        group(&store, id, &["alice"]).await;
        for n in 1..=3 {
            say(&store, "alice", id, &format!("{id}/{n}")).await;
        }
    }
    for id in ["sg_1", "sg_1.", "sg_11", "sg_1-"] {
        let id = ConversationId::parse(id).unwrap();
        for order in [Order::Ascending, Order::Descending] {
            let read = store.messages(&id, all(), Limit::of(99), order).await.unwrap().messages;
            assert_eq!(read.len(), 3, "{id}");
            assert!(read.iter().all(|message| message.conversation == id), "{id}");
        }
    }
}

pub(super) async fn several(opener: Arc<dyn Opener>) {
    let store = opener.open();
    send_many(&store, "alice", "bob", "b", 5).await;
    send_many(&store, "alice", "carol", "c", 3).await;
    let request = |peer: &str, range: std::ops::RangeInclusive<u64>, count| PageRequest {
        conversation: pair("alice", peer),
        range: Seq(*range.start())..=Seq(*range.end()),
        limit: Limit::of(count),
    };
    // One of them unknown, one twice: the pages come in the order of the requests.
    let requests = vec![
        request("carol", 2..=u64::MAX, 9),
        request("zoe", 1..=9, 9),
        request("bob", 2..=4, 9),
        request("bob", 1..=5, 2),
    ];
    let pages = store.message_pages(requests).await.unwrap();
    let read: Vec<_> = pages.iter().map(|page| seqs(&page.messages)).collect();
    assert_eq!(read, [vec![2, 3], vec![], vec![2, 3, 4], vec![1, 2]]);
    let is_carols = pages[0].messages.iter().all(|it| it.conversation == pair("alice", "carol"));
    assert!(is_carols);
    assert!(store.message_pages(Vec::new()).await.unwrap().is_empty());
}

pub(super) async fn many(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let mut sent = Vec::new();
    for i in 0..300 {
        sent.push(send(&store, "alice", "bob", &format!("m{i}")).await);
    }
    let read = store
        .messages(&pair("alice", "bob"), all(), Limit::of(1000), Order::Ascending)
        .await
        .unwrap()
        .messages;
    assert_eq!(read, sent);
    for message in sent {
        assert_eq!(store.message(message.id).await.unwrap(), Some(message));
    }
}
