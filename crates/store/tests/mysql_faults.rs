//! The network between the store and the database fails in every way it can, under load. Every
//! answered message is stored once, with its seq; an unanswered one is settled by retrying.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nexo_chat::event::Event;
use nexo_chat::ids::{ClientMsgId, ConversationId, GroupId, MessageId, Millis, Seq, UserId};
use nexo_chat::membership::{
    GroupAction, GroupFacts, GroupProfile, HistoryPolicy, JoinCode, JoinPolicy, NewGroup,
};
use nexo_chat::model::{Content, CursorKind, Draft};
use nexo_chat::policy::group::decide;
use nexo_chat::policy::send::Permit;
use nexo_chat::rules::GroupRules;
use nexo_chat::store::{
    Actor, Appended, CommitListener, GroupFactsQuery, Limit, Order, Store, StoreError,
};
use nexo_sim::{MariaDb, Proxy};
use nexo_store::{MySql, MySqlOptions};

const SENDERS: usize = 8;

fn user(id: &str) -> UserId {
    UserId::parse(id).unwrap()
}

fn draft(sender: usize, number: usize) -> Draft {
    let sender = user(&format!("s{sender}"));
    // Half of them share one conversation.
    let other = user(if number.is_multiple_of(2) { "all" } else { "some" });
    Draft {
        conversation: ConversationId::private(&sender, &other),
        client_id: ClientMsgId::parse(&format!("m{number}")).unwrap(),
        sender,
        content: Content::text(format!("text {number}")),
        cleaned: None,
        sent_at: Millis(1_700_000_000_000),
        origin: None,
        marks_read: true,
    }
}

/// Records the seqs of committed messages.
#[derive(Default)]
struct CommittedSeqs(Mutex<HashMap<MessageId, Vec<Seq>>>);

impl CommitListener for CommittedSeqs {
    fn on_committed(&self, batch: &[Event]) {
        let mut committed = self.0.lock().unwrap();
        for kept in batch {
            if let Event::Message { message, .. } = kept {
                committed.entry(message.id).or_default().push(message.seq);
            }
        }
    }
}

async fn open(url: String) -> Arc<dyn Store> {
    let patience = Duration::from_secs(2);
    let options = MySqlOptions { patience, statement: patience, ..MySqlOptions::new(url) };
    MySql::open(&options).await.unwrap()
}

/// Sends until the deadline, each message until it is answered; returns what was answered.
async fn send(store: Arc<dyn Store>, sender: usize, until: Instant) -> Vec<(MessageId, Seq)> {
    let mut saved = Vec::new();
    for number in 0.. {
        let (id, seq) = loop {
            match store.append(Permit::for_tests(), draft(sender, number)).await {
                Ok(Appended::Stored(it) | Appended::Duplicate(it)) => break (it.id, it.seq),
                Ok(other) => panic!("{other:?}"),
                Err(StoreError::Unavailable(_)) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(error) => panic!("{error}"),
            }
        };
        saved.push((id, seq));
        if Instant::now() > until {
            return saved;
        }
    }
    saved
}

/// All senders send while `trouble` runs; then compares what the database has.
async fn under_load(
    port: u16,
    database: &str,
    direct: String,
    trouble: impl FnOnce() + Send + 'static,
) {
    let store = open(format!("mysql://root@127.0.0.1:{port}/{database}")).await;
    let committed = Arc::new(CommittedSeqs::default());
    store.set_commit_listener(Arc::clone(&committed) as Arc<dyn CommitListener>);
    let until = Instant::now() + Duration::from_secs(3);
    let senders: Vec<_> =
        (0..SENDERS).map(|it| tokio::spawn(send(Arc::clone(&store), it, until))).collect();
    tokio::task::spawn_blocking(trouble).await.unwrap();
    let mut saved = BTreeMap::new();
    for sender in senders {
        for (id, seq) in sender.await.unwrap() {
            assert_eq!(saved.insert(id, seq), None, "answered twice");
        }
    }
    store.close().await.unwrap();
    let direct = open(direct).await;
    let mut there = BTreeMap::new();
    for sender in 0..SENDERS {
        for number in 0..2 {
            let conversation = draft(sender, number).conversation;
            let all = Seq(1)..=Seq(u64::MAX);
            let found =
                direct.messages(&conversation, all, Limit::of(usize::MAX), Order::Ascending);
            for (place, message) in found.await.unwrap().messages.into_iter().enumerate() {
                assert_eq!(message.seq.0, place as u64 + 1, "dense");
                assert_eq!(there.insert(message.id, message.seq), None, "stored once");
            }
        }
    }
    assert_eq!(saved, there, "what was answered is what is there");
    let committed = committed.0.lock().unwrap();
    for (id, seq) in &there {
        let seqs = committed.get(id).cloned().unwrap_or_default();
        assert!(seqs.iter().all(|it| it == seq), "announced with its seq");
        assert!(!seqs.is_empty(), "announced");
    }
    eprintln!("{} messages", there.len());
}

fn through_proxy() -> (Proxy, String, String) {
    let database = MariaDb::shared().fresh_database();
    let name = database.rsplit('/').next().unwrap().to_owned();
    let target: SocketAddr = ([127, 0, 0, 1], MariaDb::shared().port()).into();
    (Proxy::start(target), name, database)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_to_a_commit_is_lost() {
    let (proxy, name, direct) = through_proxy();
    let port = proxy.port();
    under_load(port, &name, direct, move || {
        for _ in 0..30 {
            proxy.cut_after_client_bytes(b"\x03COMMIT", 1);
            std::thread::sleep(Duration::from_millis(80));
        }
        proxy.clear_cut_patterns();
        assert!(proxy.cuts() > 10, "{} cuts", proxy.cuts());
        std::thread::sleep(Duration::from_secs(1));
        std::mem::forget(proxy); // it ends with the process: the senders still need it
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_never_arrives() {
    let (proxy, name, direct) = through_proxy();
    let port = proxy.port();
    under_load(port, &name, direct, move || {
        for _ in 0..30 {
            proxy.cut_before_client_bytes(b"\x03COMMIT", 1);
            std::thread::sleep(Duration::from_millis(80));
        }
        proxy.clear_cut_patterns();
        assert!(proxy.cuts() > 10, "{} cuts", proxy.cuts());
        std::thread::sleep(Duration::from_secs(1));
        std::mem::forget(proxy);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_cut_at_any_moment_and_hang() {
    let (proxy, name, direct) = through_proxy();
    let port = proxy.port();
    under_load(port, &name, direct, move || {
        for round in 0..20 {
            std::thread::sleep(Duration::from_millis(60 + 7 * round));
            proxy.cut();
        }
        proxy.stall(true);
        std::thread::sleep(Duration::from_secs(3));
        proxy.stall(false);
        proxy.refuse(true);
        std::thread::sleep(Duration::from_millis(500));
        proxy.cut();
        proxy.refuse(false);
        std::thread::sleep(Duration::from_millis(500));
        std::mem::forget(proxy);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_is_killed_and_comes_back() {
    let mut database = MariaDb::start();
    database.create_database("nexo");
    let (port, direct) = (database.port(), database.url("nexo"));
    under_load(port, "nexo", direct, move || {
        for round in 0..3 {
            std::thread::sleep(Duration::from_millis(500));
            if round % 2 == 0 {
                database.kill();
            } else {
                database.stop();
            }
            std::thread::sleep(Duration::from_millis(300));
            database.start_again();
        }
        Box::leak(Box::new(database)); // it ends with the process
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_absent_database_is_told_soon_and_forgotten_when_it_is_back() {
    let (proxy, name, _) = through_proxy();
    let store = open(format!("mysql://root@127.0.0.1:{}/{name}", proxy.port())).await;
    assert!(store.health().is_ok());
    proxy.refuse(true);
    proxy.cut();
    let wait = Instant::now() + Duration::from_secs(10);
    while store.health().is_ok() {
        assert!(Instant::now() < wait, "nobody noticed");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let since = Instant::now();
    let refused = store.append(Permit::for_tests(), draft(0, 0)).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert!(since.elapsed() < Duration::from_millis(500), "it took {:?}", since.elapsed());
    proxy.refuse(false);
    let wait = Instant::now() + Duration::from_secs(10);
    while store.health().is_err() {
        assert!(Instant::now() < wait, "nobody noticed");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let saved = store.append(Permit::for_tests(), draft(0, 0)).await.unwrap();
    assert!(matches!(saved, Appended::Stored(it) if it.seq == Seq(1)), "refused is not stored");
}

/// A node died in the middle of a transaction and holds the lock of a conversation: only that
/// conversation waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_conversation_stops_no_other() {
    let url = MariaDb::shared().fresh_database();
    let options = MySqlOptions { committers: 1, ..MySqlOptions::new(url.clone()) };
    let store: Arc<dyn Store> = MySql::open(&options).await.unwrap();
    for sender in 0..4 {
        store.append(Permit::for_tests(), draft(sender, 0)).await.unwrap();
    }
    let (held, database) = (draft(0, 0).conversation, url.rsplit('/').next().unwrap().to_owned());
    let holding = std::thread::spawn(move || {
        let lock = format!("SELECT id FROM conversations WHERE id = '{held}' FOR UPDATE");
        MariaDb::shared().sql(&database, &format!("BEGIN; {lock}; SELECT SLEEP(9); COMMIT;"));
    });
    tokio::time::sleep(Duration::from_millis(500)).await; // long enough to have the lock
    let since = Instant::now();
    let mut sends: Vec<_> =
        (0..4).map(|sender| store.append(Permit::for_tests(), draft(sender, 2))).collect();
    let blocked = sends.remove(0);
    for send in sends {
        assert!(matches!(send.await.unwrap(), Appended::Stored(_)));
    }
    assert!(blocked.await.is_err(), "it is held");
    assert!(since.elapsed() < Duration::from_secs(9), "it took {:?}", since.elapsed());
    holding.join().unwrap();
    let again = store.append(Permit::for_tests(), draft(0, 2)).await.unwrap();
    assert!(matches!(again, Appended::Stored(it) if it.seq == Seq(2)), "and free again");
}

/// A decision about a group is never half done, and answers hold.
#[tokio::test(flavor = "multi_thread")]
async fn groups_and_cursors_survive_lost_commits() {
    let (proxy, name, direct) = through_proxy();
    let store = open(format!("mysql://root@127.0.0.1:{}/{name}", proxy.port())).await;
    let (id, owner) = (GroupId::parse("team").unwrap(), user("owner"));
    let act = |act: GroupAction, by: UserId| {
        let now = Millis(1_700_000_000_000);
        let asker = Actor { user: by.clone(), at: now, origin: None };
        let about = GroupFactsQuery { users: act.users().to_vec(), code: act.code().cloned() };
        let group = id.clone();
        let deciding =
            move |facts: &GroupFacts| decide(&GroupRules::default(), facts, &group, &by, &act, now);
        store.change_group(&id, asker, about, Box::new(deciding))
    };
    let new = NewGroup {
        profile: GroupProfile { name: "Team".into(), ..GroupProfile::default() },
        joining: JoinPolicy::Open,
        history: HistoryPolicy::All,
        members: Vec::new(),
        members_min: 1,
        code: JoinCode::random([3; 8]),
    };
    act(GroupAction::Create(new), owner).await.unwrap().unwrap();
    let mut joined = Vec::new();
    for number in 0..40 {
        if number % 2 == 0 {
            proxy.cut_after_client_bytes(b"\x03COMMIT", 1);
        } else {
            proxy.cut_before_client_bytes(b"\x03COMMIT", 1);
        }
        let comer = user(&format!("u{number}"));
        let joins = GroupAction::Join { message: String::new(), inviter: None };
        match act(joins, comer.clone()).await {
            Ok(Ok(_)) => joined.push(comer),
            Ok(Err(reason)) => panic!("{reason}"),
            Err(error) => eprintln!("{comer}: {error}"),
        }
        proxy.clear_cut_patterns();
    }
    assert!(proxy.cuts() >= 40, "{} cuts", proxy.cuts());
    assert!(joined.len() >= 38, "{} of 40 joined", joined.len());
    let direct = open(direct).await;
    let group = direct.group(&id).await.unwrap().unwrap();
    let members = direct.group_members(&id, None, 1000).await.unwrap();
    assert_eq!(group.members as usize, members.len(), "the count is right");
    for comer in &joined {
        assert!(members.iter().any(|member| member.user == *comer), "{comer} is in");
    }
    let changes = direct.changes(&id.conversation(), Seq::ZERO, 1000).await.unwrap();
    let seqs: Vec<u64> = changes.iter().map(|change| change.seq.0).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "changes are dense");
    assert_eq!(changes.len(), members.len(), "one change each, whatever was tried again");

    let sent = draft(1, 0);
    let (reader, conversation) = (user("all"), sent.conversation.clone());
    store.append(Permit::for_tests(), sent).await.unwrap();
    proxy.cut_after_client_bytes(b"\x03COMMIT", 1);
    let moved =
        store.advance_cursor(&reader, &conversation, CursorKind::Read, Seq(1)).await.unwrap();
    assert_eq!(moved.unwrap().after.read, Seq(1));
    let standing = direct.standing(&reader, &conversation).await.unwrap().unwrap();
    assert_eq!(standing.cursors.read, Seq(1));
}
