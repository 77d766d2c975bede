//! What members, standings and cursors promise.

use std::sync::Arc;

use nexo_chat::ids::{ConversationId, Millis, Seq};
use nexo_chat::invariants;
use nexo_chat::model::{CursorKind, Cursors, Window};
use nexo_chat::store::{CursorMove, Store};

use super::Opener;
use super::fixtures::{append, draft, pair, send, send_many, standing, user};

/// Moves bob's cursor in his conversation with alice and checks where it comes to.
async fn check(store: &Arc<dyn Store>, kind: CursorKind, seq: u64, delivered: u64, read: u64) {
    let conversation = pair("alice", "bob");
    let before = standing(store, "bob", "alice").await;
    let moved = store.advance_cursor(&user("bob"), &conversation, kind, Seq(seq)).await.unwrap();
    let after = Cursors { delivered: Seq(delivered), read: Seq(read) };
    assert_eq!(moved, Some(CursorMove { before: before.cursors, after }), "{kind:?} to {seq}");
    assert!(invariants::is_valid_cursor_move(before.cursors, after, before.visible_max()));
    assert_eq!(standing(store, "bob", "alice").await.cursors, after);
}

pub(super) async fn both_members(opener: Arc<dyn Opener>) {
    let store = opener.open();
    assert_eq!(store.standing(&user("bob"), &pair("alice", "bob")).await.unwrap(), None);
    send(&store, "alice", "bob", "one").await;
    for (who, with) in [("alice", "bob"), ("bob", "alice")] {
        let standing = standing(&store, who, with).await;
        assert_eq!(standing.window, Window::ALL);
        assert_eq!(standing.max_seq, Seq(1));
        assert_eq!(standing.change_seq, Seq::ZERO);
    }
    assert_eq!(standing(&store, "bob", "alice").await.cursors, Cursors::default());
}

pub(super) async fn strangers(opener: Arc<dyn Opener>) {
    let store = opener.open();
    send(&store, "alice", "bob", "one").await;
    let (carol, conversation) = (user("carol"), pair("alice", "bob"));
    assert_eq!(store.standing(&carol, &conversation).await.unwrap(), None);
    let moved =
        store.advance_cursor(&carol, &conversation, CursorKind::Read, Seq(1)).await.unwrap();
    assert_eq!(moved, None);
    assert!(store.standings(&carol, None, 9).await.unwrap().is_empty());
    assert_eq!(store.standing(&carol, &conversation).await.unwrap(), None);
}

pub(super) async fn newest_message(opener: Arc<dyn Opener>) {
    let store = opener.open();
    for (i, at) in [50, 70, 60].into_iter().enumerate() {
        let mut draft = draft("alice", "bob", &format!("m{i}"), "hi");
        draft.sent_at = Millis(at);
        append(&store, draft).await.unwrap();
    }
    let standing = standing(&store, "bob", "alice").await;
    assert_eq!(standing.max_seq, Seq(3));
    assert_eq!(
        standing.updated_at(),
        Millis(60),
        "of the newest by seq, even if the clock went back"
    );
}

pub(super) async fn standings_page(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let peers = ["bob", "ann", "zoe", "carol", "A", "b"];
    for peer in peers {
        send_many(&store, peer, "m", &format!("to-m-{peer}"), 2).await;
    }
    send(&store, "m.", "bob", "of a user whose id begins like m").await;
    let mut expect: Vec<_> = peers.iter().map(|peer| pair("m", peer)).collect();
    expect.sort();
    let mut seen: Vec<ConversationId> = Vec::new();
    loop {
        let page = store.standings(&user("m"), seen.last(), 4).await.unwrap();
        assert!(page.len() <= 4);
        assert!(page.iter().all(|standing| standing.max_seq == Seq(2)));
        seen.extend(page.iter().map(|standing| standing.conversation.clone()));
        if page.len() < 4 {
            break;
        }
    }
    assert_eq!(seen, expect);
    assert!(store.standings(&user("m"), None, 0).await.unwrap().is_empty());
    let all = store.standings(&user("m"), None, usize::MAX).await.unwrap();
    assert_eq!(all.len(), peers.len());
    for listed in all {
        let alone = store.standing(&user("m"), &listed.conversation).await.unwrap();
        assert_eq!(alone, Some(listed));
    }
}

pub(super) async fn only_forward(opener: Arc<dyn Opener>) {
    let store = opener.open();
    send_many(&store, "alice", "bob", "m", 5).await;
    check(&store, CursorKind::Delivered, 3, 3, 0).await;
    check(&store, CursorKind::Delivered, 2, 3, 0).await;
    check(&store, CursorKind::Delivered, 3, 3, 0).await;
    check(&store, CursorKind::Read, 2, 3, 2).await;
    check(&store, CursorKind::Read, 1, 3, 2).await;
    check(&store, CursorKind::Read, 0, 3, 2).await;
    check(&store, CursorKind::Delivered, 5, 5, 2).await;
}

pub(super) async fn never_beyond(opener: Arc<dyn Opener>) {
    let store = opener.open();
    send_many(&store, "alice", "bob", "m", 3).await;
    check(&store, CursorKind::Delivered, 99, 3, 0).await;
    check(&store, CursorKind::Read, u64::MAX, 3, 3).await;
    send(&store, "alice", "bob", "more").await;
    assert_eq!(standing(&store, "bob", "alice").await.unread(), 1);
}

pub(super) async fn read_moves_delivered(opener: Arc<dyn Opener>) {
    let store = opener.open();
    send_many(&store, "alice", "bob", "m", 4).await;
    check(&store, CursorKind::Read, 3, 3, 3).await;
}

pub(super) async fn delivered_alone(opener: Arc<dyn Opener>) {
    let store = opener.open();
    send_many(&store, "alice", "bob", "m", 4).await;
    check(&store, CursorKind::Delivered, 4, 4, 0).await;
    assert_eq!(standing(&store, "bob", "alice").await.unread(), 4);
}

pub(super) async fn own_messages(opener: Arc<dyn Opener>) {
    let store = opener.open();
    send_many(&store, "alice", "bob", "a", 3).await;
    assert_eq!(standing(&store, "alice", "bob").await.unread(), 0);
    assert_eq!(standing(&store, "bob", "alice").await.unread(), 3);
    send(&store, "bob", "alice", "b").await;
    let bob = standing(&store, "bob", "alice").await;
    assert_eq!(bob.cursors.read, Seq(4));
    assert_eq!(bob.unread(), 0);
    assert_eq!(standing(&store, "alice", "bob").await.unread(), 1);
}

pub(super) async fn an_answer(opener: Arc<dyn Opener>) {
    let store = opener.open();
    send_many(&store, "alice", "bob", "a", 3).await;
    let alice = standing(&store, "alice", "bob").await;
    assert_eq!(alice.cursors, Cursors { delivered: Seq(3), read: Seq(3) }, "nothing to wait for");
    send_many(&store, "bob", "alice", "b", 2).await;
    let bob = standing(&store, "bob", "alice").await;
    assert_eq!(bob.cursors, Cursors { delivered: Seq(0), read: Seq(5) });
    check(&store, CursorKind::Delivered, 2, 2, 5).await;
    check(&store, CursorKind::Delivered, 3, 5, 5).await;
}

pub(super) async fn duplicate_moves_nothing(opener: Arc<dyn Opener>) {
    let store = opener.open();
    send(&store, "alice", "bob", "a").await;
    send(&store, "bob", "alice", "b").await;
    append(&store, draft("alice", "bob", "a", "a")).await.unwrap();
    append(&store, draft("alice", "bob", "a", "conflict")).await.unwrap();
    assert_eq!(standing(&store, "alice", "bob").await.unread(), 1);
}
