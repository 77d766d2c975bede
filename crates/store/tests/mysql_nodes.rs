//! Two nodes on one database: there is one order and one outcome, whichever node is called.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod database;

use std::collections::BTreeSet;
use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::ids::{ClientMsgId, ConversationId, GroupId, Millis, Seq, UserId};
use nexo_chat::membership::{
    GroupAction, GroupFacts, GroupProfile, HistoryPolicy, JoinCode, JoinPolicy, NewGroup,
};
use nexo_chat::model::{AccountDetails, AccountStatus, Content, CursorKind, Draft, Profile, User};
use nexo_chat::policy::group::decide;
use nexo_chat::policy::send::Permit;
use nexo_chat::rules::GroupRules;
use nexo_chat::store::{
    Actor, Appended, Collection, DocumentId, DocumentWrite, GroupFactsQuery, Limit, Order, Store,
};
use nexo_store::conformance::Opener;

const NOW: Millis = Millis(1_700_000_000_000);

fn user(id: &str) -> UserId {
    UserId::parse(id).unwrap()
}

fn nodes() -> [Arc<dyn Store>; 2] {
    let database = database::Database::fresh();
    [database.open(), database.open()]
}

fn draft(conversation: &ConversationId, from: &str, client_id: &str, text: &str) -> Draft {
    Draft {
        conversation: conversation.clone(),
        sender: user(from),
        client_id: ClientMsgId::parse(client_id).unwrap(),
        content: Content::text(text.to_owned()),
        cleaned: None,
        sent_at: NOW,
        origin: None,
        marks_read: true,
    }
}

async fn append(store: &Arc<dyn Store>, draft: Draft) -> Appended {
    store.append(Permit::for_tests(), draft).await.unwrap()
}

async fn act(
    store: &Arc<dyn Store>,
    by: &str,
    id: &GroupId,
    act: GroupAction,
) -> Result<(), Reason> {
    let (by, group) = (user(by), id.clone());
    let asker = Actor { user: by.clone(), at: NOW, origin: None };
    let about = GroupFactsQuery { users: act.users().to_vec(), code: act.code().cloned() };
    let rules = GroupRules::default();
    let deciding = move |facts: &GroupFacts| decide(&rules, facts, &group, &by, &act, NOW);
    store.change_group(id, asker, about, Box::new(deciding)).await.unwrap().map(drop)
}

async fn team(store: &Arc<dyn Store>, people: &[&str]) -> GroupId {
    let id = GroupId::parse("team").unwrap();
    let new = NewGroup {
        profile: GroupProfile { name: "Team".into(), ..GroupProfile::default() },
        joining: JoinPolicy::Open,
        history: HistoryPolicy::Joined,
        members: people[1..].iter().map(|id| user(id)).collect(),
        members_min: 1,
        code: JoinCode::random([3; 8]),
    };
    act(store, people[0], &id, GroupAction::Create(new)).await.unwrap();
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_through_both_are_dense_and_stored_once() {
    let nodes = nodes();
    let conversation = ConversationId::private(&user("a"), &user("b"));
    let tasks: Vec<_> = (0..200)
        .map(|i| {
            let (node, conversation) = (Arc::clone(&nodes[i % 2]), conversation.clone());
            // Every client id is sent through both nodes.
            tokio::spawn(async move {
                let from = if i / 2 % 2 == 0 { "a" } else { "b" };
                append(&node, draft(&conversation, from, &format!("c{}", i / 2), "text")).await
            })
        })
        .collect();
    let (mut seqs, mut stored) = (BTreeSet::new(), 0);
    for task in tasks {
        match task.await.unwrap() {
            Appended::Stored(it) => {
                stored += 1;
                seqs.insert(it.seq);
            }
            Appended::Duplicate(it) => {
                seqs.insert(it.seq);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((stored, seqs), (100, (1..=100).map(Seq).collect()));
    for node in &nodes {
        let all = Seq(1)..=Seq(1000);
        let read = node.messages(&conversation, all, Limit::of(1000), Order::Ascending).await;
        assert_eq!(read.unwrap().messages.len(), 100);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_elsewhere_is_a_duplicate_whatever_happened_since() {
    let [one, other] = nodes();
    let id = team(&one, &["olga", "bob"]).await;
    let here = id.conversation();
    let Appended::Stored(first) = append(&one, draft(&here, "bob", "c1", "text")).await else {
        panic!("not stored");
    };
    act(&one, "olga", &id, GroupAction::Kick(user("bob"))).await.unwrap();
    assert_eq!(append(&other, draft(&here, "bob", "c1", "text")).await, Appended::Duplicate(first));
    assert_eq!(append(&other, draft(&here, "bob", "c1", "another")).await, Appended::Conflict);
    let there = ConversationId::private(&user("bob"), &user("olga"));
    assert_eq!(append(&other, draft(&there, "bob", "c1", "text")).await, Appended::Conflict);
    let refused = append(&other, draft(&here, "bob", "c2", "text")).await;
    assert_eq!(refused, Appended::Refused(Reason::MemberNotActive));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_id_to_two_places_at_once_is_stored_in_one() {
    let nodes = nodes();
    for round in 0..20 {
        let id = format!("c{round}");
        let sends = ["b", "c"].map(|to| {
            let conversation = ConversationId::private(&user("a"), &user(to));
            let node = Arc::clone(&nodes[usize::from(to == "b")]);
            let draft = draft(&conversation, "a", &id, "text");
            tokio::spawn(async move { append(&node, draft).await })
        });
        let mut outcomes = Vec::new();
        for send in sends {
            outcomes.push(send.await.unwrap());
        }
        let stored = outcomes.iter().filter(|it| matches!(it, Appended::Stored(_))).count();
        let conflicts = outcomes.iter().filter(|it| matches!(it, Appended::Conflict)).count();
        assert_eq!((stored, conflicts), (1, 1), "{outcomes:?}");
    }
}

/// A kick through one node and sends through the other: every message is before or after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_kick_and_sends_agree_on_their_order() {
    let [one, other] = nodes();
    let id = team(&one, &["olga", "bob"]).await;
    for round in 0..20 {
        let sending = {
            let (node, here) = (Arc::clone(&other), id.conversation());
            tokio::spawn(async move {
                let mut last = Seq::ZERO;
                for i in 0.. {
                    match append(&node, draft(&here, "bob", &format!("{round}-{i}"), "text")).await
                    {
                        Appended::Stored(it) => last = it.seq,
                        Appended::Refused(Reason::MemberNotActive) => return last,
                        other => panic!("{other:?}"),
                    }
                }
                last
            })
        };
        tokio::time::sleep(std::time::Duration::from_millis(15)).await;
        act(&one, "olga", &id, GroupAction::Kick(user("bob"))).await.unwrap();
        let last = sending.await.unwrap();
        let standing = one.standing(&user("bob"), &id.conversation()).await.unwrap().unwrap();
        assert!(standing.window.end.unwrap().seq >= last, "{standing:?} {last}");
        assert_eq!(standing.unread(), 0);
        act(&other, "bob", &id, GroupAction::Join { message: String::new(), inviter: None })
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_moved_through_both_only_go_forward() {
    let [one, other] = nodes();
    let conversation = ConversationId::private(&user("a"), &user("b"));
    for i in 1..=60 {
        append(&one, draft(&conversation, "a", &format!("c{i}"), "text")).await;
    }
    let tasks: Vec<_> = (1..=60)
        .map(|seq| {
            let node = Arc::clone(if seq % 2 == 0 { &one } else { &other });
            let conversation = conversation.clone();
            tokio::spawn(async move {
                let kind = if seq % 3 == 0 { CursorKind::Read } else { CursorKind::Delivered };
                let moved = node.advance_cursor(&user("b"), &conversation, kind, Seq(seq)).await;
                let moved = moved.unwrap().unwrap();
                assert!(moved.after.delivered >= moved.before.delivered.max(Seq(seq)));
                assert!(moved.after.read >= moved.before.read);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for node in [&one, &other] {
        let standing = node.standing(&user("b"), &conversation).await.unwrap().unwrap();
        assert_eq!((standing.cursors.delivered, standing.cursors.read), (Seq(60), Seq(60)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn delivered_cursors_are_known_here_at_once_and_everywhere_soon() {
    let [one, other] = nodes();
    let conversation = ConversationId::private(&user("a"), &user("b"));
    let delivered = async |node: &Arc<dyn Store>| {
        let standing = node.standing(&user("b"), &conversation).await.unwrap().unwrap();
        standing.cursors.delivered
    };
    let acknowledge = async |seq| {
        let kind = CursorKind::Delivered;
        one.advance_cursor(&user("b"), &conversation, kind, Seq(seq)).await.unwrap().unwrap()
    };
    for i in 1..=6 {
        append(&one, draft(&conversation, "a", &format!("c{i}"), "text")).await;
    }
    acknowledge(1).await; // asks the database; those after it are moved in memory
    for seq in 2..=4 {
        let moved = acknowledge(seq).await;
        assert_eq!((moved.before.delivered, moved.after.delivered), (Seq(seq - 1), Seq(seq)));
        assert_eq!(delivered(&one).await, Seq(seq));
    }
    let began = std::time::Instant::now();
    while delivered(&other).await < Seq(4) {
        assert!(began.elapsed().as_secs() < 5, "another node never learns of it");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    // Written: this node still has it, and the other moves it on.
    assert_eq!(delivered(&one).await, Seq(4));
    let read = other.advance_cursor(&user("b"), &conversation, CursorKind::Read, Seq(5)).await;
    assert_eq!(read.unwrap().unwrap().before.delivered, Seq(4));
    // This node knows less now: its move to an older seq takes nothing back.
    append(&one, draft(&conversation, "b", "own", "text")).await;
    assert_eq!(acknowledge(5).await.after.delivered, Seq(5));
    assert_eq!(acknowledge(6).await.after.delivered, Seq(7), "the own message needs none");
    one.close().await.unwrap();
    let standing = other.standing(&user("b"), &conversation).await.unwrap().unwrap();
    assert_eq!(standing.cursors.delivered, Seq(7), "closing writes what waits");
    assert_eq!(standing.cursors.read, Seq(7), "moved by the own message");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_account_is_gone_everywhere_once_other_nodes_are_told() {
    let [one, other] = nodes();
    let alice = User {
        id: user("alice"),
        profile: Profile::default(),
        created_at: NOW,
        updated_at: NOW,
        password_hash: String::new(),
        session_version: 1,
        details: AccountDetails::default(),
    };
    one.create_user(alice).await.unwrap();
    for node in [&one, &other] {
        assert!(node.user_exists(&user("alice")).await.unwrap(), "it is remembered from now on");
    }
    let delete = |before: &User| {
        let status = AccountStatus::Deleted { at: NOW };
        Some(User {
            details: AccountDetails { status, ..before.details.clone() },
            ..before.clone()
        })
    };
    one.change_account(&user("alice"), Box::new(delete)).await.unwrap().unwrap();
    assert!(!one.user_exists(&user("alice")).await.unwrap(), "this node knows at once");
    other.forget_user(&user("alice"));
    assert!(!other.user_exists(&user("alice")).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_documents_through_both_all_count() {
    let nodes = nodes();
    let count = DocumentId::new(Collection::Settings, "count");
    let tasks: Vec<_> = (0..60)
        .map(|i| {
            let (node, count) = (Arc::clone(&nodes[i % 2]), count.clone());
            tokio::spawn(async move {
                let guard = count.clone();
                let next = move |before: Option<&[u8]>| {
                    let next = before.map_or(1, |bytes| bytes[0] + 1);
                    vec![DocumentWrite::put(count.clone(), vec![next])]
                };
                node.change_documents(&guard, Box::new(next)).await.unwrap();
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for node in &nodes {
        assert_eq!(node.document(&count).await.unwrap(), Some(vec![60]));
    }
}
