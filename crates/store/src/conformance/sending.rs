//! What `append` promises.

use std::collections::BTreeMap;
use std::sync::Arc;

use nexo_chat::ids::{ClientMsgId, MessageId, Seq};
use nexo_chat::invariants;
use nexo_chat::model::{Content, ContentKind, ReplyTo};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{Appended, Limit, Order};

use super::Opener;
use super::fixtures::{all, append, draft, pair, send, send_many, seqs, user};

pub(super) async fn seqs_are_dense(opener: Arc<dyn Opener>) {
    let store = opener.open();
    for seq in 1..=5 {
        assert_eq!(send(&store, "alice", "bob", &format!("a{seq}")).await.seq, Seq(seq));
        assert_eq!(send(&store, "alice", "carol", &format!("c{seq}")).await.seq, Seq(seq));
    }
    let read = store
        .messages(&pair("alice", "bob"), all(), Limit::of(100), Order::Ascending)
        .await
        .unwrap()
        .messages;
    assert!(invariants::is_dense(read.iter().map(|message| message.seq)));
}

pub(super) async fn is_what_was_sent(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let mut sent = draft("alice", "bob", "c-1", "");
    sent.client_id = ClientMsgId::parse("ключ ☃").unwrap();
    sent.content = Content {
        kind: ContentKind::CUSTOM,
        body: vec![0, 255, 0, 1].into(),
        extra: BTreeMap::from([("k".into(), "v".into()), (String::new(), "\0".into())]),
        mentions: vec![user("bob"), user("carol")],
        mentions_all: true,
        reply_to: Some(ReplyTo { message: MessageId([9; 16]), sender: user("bob") }),
    };
    let Appended::Stored(message) = append(&store, sent.clone()).await.unwrap() else {
        panic!("the first is stored")
    };
    assert_eq!(message.id, MessageId::of(&sent.sender, &sent.client_id));
    assert_eq!(message.sender, sent.sender);
    assert_eq!(message.client_id, sent.client_id);
    assert_eq!(message.conversation, sent.conversation);
    assert_eq!(message.sent_at, sent.sent_at);
    assert_eq!(message.content, sent.content);
    let read = store
        .messages(&sent.conversation, all(), Limit::of(9), Order::Ascending)
        .await
        .unwrap()
        .messages;
    assert_eq!(read, [message]);
}

pub(super) async fn same_client_id(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let first = send(&store, "alice", "bob", "one").await;
    send(&store, "bob", "alice", "two").await;
    let mut retry = draft("alice", "bob", "one", "one");
    retry.sent_at = retry.sent_at.plus(5_000);
    retry.origin = None;
    assert_eq!(append(&store, retry).await.unwrap(), Appended::Duplicate(first));
}

pub(super) async fn client_id_per_sender(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let one = send(&store, "alice", "bob", "same").await;
    let two = send(&store, "bob", "alice", "same").await;
    assert_eq!((one.seq, two.seq), (Seq(1), Seq(2)));
    assert_ne!(one.id, two.id);
}

pub(super) async fn conflict_changes_nothing(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let first = send(&store, "alice", "bob", "one").await;
    let other = draft("alice", "bob", "one", "something else");
    assert_eq!(append(&store, other).await.unwrap(), Appended::Conflict);
    let read = store
        .messages(&pair("alice", "bob"), all(), Limit::of(9), Order::Ascending)
        .await
        .unwrap()
        .messages;
    assert_eq!(read, [Arc::clone(&first)]);
    assert_eq!(store.message(first.id).await.unwrap(), Some(first));
}

pub(super) async fn other_conversation(opener: Arc<dyn Opener>) {
    let store = opener.open();
    send(&store, "alice", "bob", "one").await;
    let elsewhere = draft("alice", "carol", "one", "one");
    assert_eq!(append(&store, elsewhere).await.unwrap(), Appended::Conflict);
    let standing = store.standing(&user("carol"), &pair("alice", "carol")).await.unwrap();
    assert_eq!(standing, None, "a refused message opens no conversation");
}

pub(super) async fn no_holes_after_conflict(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let mut answers = Vec::new();
    for (client_id, text) in
        [("a", "1"), ("a", "2"), ("b", "1"), ("a", "1"), ("b", "x"), ("c", "1"), ("d", "1")]
    {
        answers.push(store.append(Permit::for_tests(), draft("alice", "bob", client_id, text)));
    }
    let mut kinds = String::new();
    for answer in answers {
        kinds.push(match answer.await.unwrap() {
            Appended::Stored(_) => 's',
            Appended::Duplicate(_) => 'd',
            Appended::Conflict => 'c',
            Appended::Refused(_) => 'r',
        });
    }
    assert_eq!(kinds, "scsdcss");
    let read = store
        .messages(&pair("alice", "bob"), all(), Limit::of(9), Order::Ascending)
        .await
        .unwrap()
        .messages;
    assert_eq!(seqs(&read), [1, 2, 3, 4]);
}

pub(super) async fn calls_in_order(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let call = |i: u64| {
        let draft = draft("alice", "bob", &format!("m{i}"), "hi");
        store.append(Permit::for_tests(), draft)
    };
    let mut answers: Vec<_> = (1..=200).map(call).collect();
    // Awaiting them backwards must not matter: the call decided the order.
    answers.reverse();
    for (answer, seq) in answers.into_iter().zip((1..=200).rev()) {
        let Appended::Stored(message) = answer.await.unwrap() else { panic!("all are new") };
        assert_eq!(message.seq, Seq(seq));
    }
}

pub(super) async fn parallel_sends_are_dense(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let senders: Vec<_> = (0..8)
        .map(|n| {
            let store = Arc::clone(&store);
            let (from, to) = if n % 2 == 0 { ("alice", "bob") } else { ("bob", "alice") };
            tokio::spawn(async move { send_many(&store, from, to, &format!("n{n}-"), 25).await })
        })
        .collect();
    for sender in senders {
        sender.await.unwrap();
    }
    let read = store
        .messages(&pair("alice", "bob"), all(), Limit::of(999), Order::Ascending)
        .await
        .unwrap()
        .messages;
    assert_eq!(read.len(), 200);
    assert!(invariants::is_dense(read.iter().map(|message| message.seq)));
}

pub(super) async fn parallel_sends_of_one_client_id(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let calls: Vec<_> = (0..32)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { append(&store, draft("alice", "bob", "one", "hi")).await })
        })
        .collect();
    let mut stored = 0;
    for call in calls {
        match call.await.unwrap().unwrap() {
            Appended::Stored(message) => {
                stored += 1;
                assert_eq!(message.seq, Seq(1));
            }
            Appended::Duplicate(message) => assert_eq!(message.seq, Seq(1)),
            other => panic!("they are all the same: {other:?}"),
        }
    }
    assert_eq!(stored, 1);
    let read = store
        .messages(&pair("alice", "bob"), all(), Limit::of(9), Order::Ascending)
        .await
        .unwrap()
        .messages;
    assert_eq!(read.len(), 1);
}

pub(super) async fn run_in_order(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let drafts = |from, to| (0..100).map(move |i| draft(from, to, &format!("{to}{i}"), "run"));
    // Several at once, and single ones between them: each run keeps its order.
    let first = store.append_run(Permit::for_tests(), drafts("alice", "bob").collect());
    let between = store.append(Permit::for_tests(), draft("bob", "alice", "between", "hi"));
    let other = store.append_run(Permit::for_tests(), drafts("alice", "carol").collect());
    let second: Vec<_> =
        (0..50).map(|i| draft("alice", "bob", &format!("later{i}"), "run")).collect();
    let second = store.append_run(Permit::for_tests(), second);
    let stored = |outcomes: Vec<Appended>| -> Vec<u64> {
        let seq = |it| match it {
            Appended::Stored(message) => message.seq.0,
            other => panic!("all are new, got {other:?}"),
        };
        outcomes.into_iter().map(seq).collect()
    };
    assert_eq!(stored(first.await.unwrap()), (1..=100).collect::<Vec<_>>());
    assert_eq!(stored(vec![between.await.unwrap()]), [101]);
    assert_eq!(stored(other.await.unwrap()), (1..=100).collect::<Vec<_>>());
    assert_eq!(stored(second.await.unwrap()), (102..=151).collect::<Vec<_>>());
    assert!(store.append_run(Permit::for_tests(), Vec::new()).await.unwrap().is_empty());
}

pub(super) async fn run_refuses(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let known = send(&store, "alice", "bob", "known").await;
    let run = vec![
        draft("alice", "bob", "new", "new"),
        draft("alice", "bob", "known", "known"),
        draft("alice", "bob", "known", "other words"),
        draft("alice", "bob", "new", "new"),
        draft("alice", "bob", "new", "other words"),
        draft("bob", "alice", "last", "last"),
    ];
    let outcomes = store.append_run(Permit::for_tests(), run).await.unwrap();
    assert!(matches!(&outcomes[0], Appended::Stored(it) if it.seq == Seq(2)), "{outcomes:?}");
    assert_eq!(outcomes[1], Appended::Duplicate(known));
    assert_eq!(outcomes[2], Appended::Conflict);
    assert!(matches!(&outcomes[3], Appended::Duplicate(it) if it.seq == Seq(2)), "{outcomes:?}");
    assert_eq!(outcomes[4], Appended::Conflict, "of one that came with it, too");
    assert!(matches!(&outcomes[5], Appended::Stored(it) if it.seq == Seq(3)), "{outcomes:?}");
}

pub(super) async fn dropped_append(opener: Arc<dyn Opener>) {
    let store = opener.open();
    drop(store.append(Permit::for_tests(), draft("alice", "bob", "one", "one")));
    assert_eq!(send(&store, "alice", "bob", "two").await.seq, Seq(2));
    let again = append(&store, draft("alice", "bob", "one", "one")).await.unwrap();
    assert!(matches!(again, Appended::Duplicate(message) if message.seq == Seq(1)));
}
