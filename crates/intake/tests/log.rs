//! What a log promises, of the one in memory and the one in Redis.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use nexo_bus::{NodeId, RedisOptions};
use nexo_chat::ids::{ClientMsgId, ConversationId, Millis, UserId};
use nexo_chat::model::{Content, Draft};
use nexo_intake::accepted::Accepted;
use nexo_intake::log::{Depth, Entry, Fate, Log, Lost, Put, Role, Tenure};
use nexo_intake::{Local, RedisLog, RedisLogOptions};
use nexo_sim::Redis;
use tokio::sync::oneshot;

const WAIT: Duration = Duration::from_millis(50);

fn message(to: &str, client_id: &str, body: &str) -> Arc<Accepted> {
    let (ann, to) = (UserId::parse("ann").unwrap(), UserId::parse(to).unwrap());
    Arc::new(Accepted::new(Draft {
        conversation: ConversationId::private(&ann, &to),
        sender: ann,
        client_id: ClientMsgId::parse(client_id).unwrap(),
        content: Content::text(body.to_owned()),
        cleaned: None,
        sent_at: Millis(1),
        origin: None,
        marks_read: true,
    }))
}

async fn put(log: &dyn Log, message: &Arc<Accepted>) -> Put {
    let (sender, receiver) = oneshot::channel();
    log.put(Arc::clone(message), None, Box::new(move |put| drop(sender.send(put))));
    receiver.await.unwrap().unwrap()
}

/// A node's own way to a log in Redis.
async fn redis_log(redis: &Redis, prefix: &str, shard_max: usize) -> Arc<RedisLog> {
    static NODES: AtomicU8 = AtomicU8::new(1);
    let node = NodeId([NODES.fetch_add(1, Ordering::Relaxed); 16]);
    let options = RedisLogOptions {
        redis: RedisOptions { prefix: prefix.to_owned(), ..RedisOptions::new(&redis.url(), node) },
        accepts: true,
        shards: 1,
        shard_max,
        lease: Duration::from_millis(400),
    };
    let log = RedisLog::connect(options, [7; 32]).unwrap();
    assert!(log.reached(Duration::from_secs(5)).await);
    log.tend_to(1);
    log.begin().await.unwrap();
    log
}

fn client_ids(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.message.draft.client_id.as_str()).collect()
}

async fn next(tenure: &dyn Tenure, role: Role) -> Vec<Entry> {
    tenure.next(role, 100, WAIT).await.unwrap()
}

async fn keeps_until_done(log: &dyn Log) {
    let first = message("bob", "c1", "words");
    assert!(matches!(put(log, &first).await, Put::New { length: 1 }));
    assert_eq!(put(log, &first).await, Put::Again);
    assert_eq!(put(log, &message("bob", "c1", "other")).await, Put::Conflict);
    let second = message("cat", "c2", "words");
    assert!(matches!(put(log, &second).await, Put::New { length: 2 }));
    assert_eq!(put(log, &message("bob", "c3", "words")).await, Put::Full);
    let conversation = &first.draft.conversation;
    assert!(log.is_open(conversation, first.id).await.unwrap());
    let tenure = log.tend(0).await;
    let shown = next(&*tenure, Role::Deliver).await;
    let read = next(&*tenure, Role::Save).await;
    assert_eq!(client_ids(&shown), ["c1", "c2"], "each role reads all of it");
    assert_eq!(client_ids(&read), ["c1", "c2"]);
    assert_eq!(read[0].message, first);
    assert!(next(&*tenure, Role::Save).await.is_empty(), "once");
    tenure.shown(shown).await.unwrap();
    let fates = read.into_iter().zip([Fate::Saved, Fate::Dropped]).collect();
    tenure.done(fates).await.unwrap();
    assert!(!log.is_open(conversation, first.id).await.unwrap());
    assert_eq!(put(log, &first).await, Put::Saved, "it is remembered");
    assert!(matches!(put(log, &second).await, Put::New { length: 1 }), "it was not saved");
    assert!(matches!(put(log, &message("bob", "c3", "words")).await, Put::New { length: 2 }));
    assert_eq!(client_ids(&next(&*tenure, Role::Save).await), ["c2", "c3"]);
}

#[tokio::test]
async fn a_log_in_memory_keeps_until_done() {
    keeps_until_done(&*Local::new(1, 2)).await;
}

#[tokio::test]
async fn a_log_in_redis_keeps_until_done() {
    keeps_until_done(&*redis_log(Redis::shared(), "keeps", 2).await).await;
}

async fn depth(tenure: &dyn Tenure) -> Depth {
    let told = std::sync::Mutex::new(None);
    let tell = |depth| *told.lock().unwrap() = Some(depth);
    drop(tokio::time::timeout(WAIT, tenure.keep(&tell)).await);
    told.into_inner().unwrap().expect("it is told at once")
}

/// What each group has read and not finished is seen apart.
#[tokio::test]
async fn how_much_is_pending_is_told_for_both_groups() {
    let log = redis_log(Redis::shared(), "pending", 10).await;
    for client_id in ["c1", "c2"] {
        put(&*log, &message("bob", client_id, "words")).await;
    }
    let tenure = log.tend(0).await;
    assert_eq!(depth(&*tenure).await, Depth { length: 2, pending: 0, pending_deliver: 0 });
    let shown = next(&*tenure, Role::Deliver).await;
    assert_eq!(depth(&*tenure).await, Depth { length: 2, pending: 0, pending_deliver: 2 });
    let read = next(&*tenure, Role::Save).await;
    tenure.shown(shown).await.unwrap();
    assert_eq!(depth(&*tenure).await, Depth { length: 2, pending: 2, pending_deliver: 0 });
    tenure.done(read.into_iter().map(|it| (it, Fate::Saved)).collect()).await.unwrap();
    assert_eq!(depth(&*tenure).await, Depth::default());
}

/// A worker that ended in the middle leaves nothing unsaved.
#[tokio::test]
async fn what_was_read_and_not_done_comes_again() {
    let redis = redis_log(Redis::shared(), "again", 10).await;
    let local = Local::new(1, 10);
    for log in [&*redis as &dyn Log, &*local] {
        put(log, &message("bob", "c1", "words")).await;
        let tenure = log.tend(0).await;
        assert_eq!(client_ids(&next(&*tenure, Role::Save).await), ["c1"]);
        drop(tenure);
        let tenure = log.tend(0).await;
        let read = next(&*tenure, Role::Save).await;
        assert_eq!(client_ids(&read), ["c1"]);
        for _ in 0..2 {
            let done = read.iter().map(|entry| (entry.clone(), Fate::Saved)).collect();
            tenure.done(done).await.unwrap();
        }
        assert!(next(&*tenure, Role::Save).await.is_empty());
        assert!(matches!(put(log, &message("bob", "c2", "words")).await, Put::New { length: 1 }));
    }
}

/// Behind a message that the log lost nothing is put.
#[tokio::test]
async fn nothing_overtakes_what_was_lost() {
    let redis = Redis::shared();
    let log = redis_log(redis, "overtakes", 10).await;
    let (first, second) = (message("bob", "c1", "words"), message("bob", "c2", "words"));
    put(&*log, &first).await;
    let after = |id| {
        let (sender, receiver) = oneshot::channel();
        let told = Box::new(move |put| drop(sender.send(put)));
        log.put(Arc::clone(&second), Some(id), told);
        async { receiver.await.unwrap().unwrap() }
    };
    redis.command(&["DEL", "overtakes:accept:{0}:log"]);
    assert_eq!(after(first.id).await, Put::Overtakes);
    assert!(!log.is_open(&first.draft.conversation, first.id).await.unwrap(), "it is not there");
    assert!(matches!(put(&*log, &first).await, Put::New { length: 1 }), "it is put again");
    assert!(matches!(after(first.id).await, Put::New { length: 2 }));
}

#[tokio::test]
async fn whoever_reads_is_woken() {
    let redis = redis_log(Redis::shared(), "woken", 10).await;
    let local = Local::new(1, 10);
    for log in [&*redis as &dyn Log, &*local] {
        let tenure = log.tend(0).await;
        let waiting = tenure.next(Role::Save, 10, Duration::from_secs(20));
        let putting = async {
            tokio::time::sleep(WAIT).await;
            put(log, &message("bob", "c1", "words")).await
        };
        let (read, _) = tokio::join!(waiting, putting);
        assert_eq!(client_ids(&read.unwrap()), ["c1"]);
    }
}

/// A node that was stopped and wakes up reads and holds nothing any more; the next one begins with
/// what it had read.
#[tokio::test]
async fn one_node_at_a_time_looks_after_a_shard() {
    let redis = Redis::shared();
    let (log, other) = tokio::join!(redis_log(redis, "turns", 10), redis_log(redis, "turns", 10));
    for number in 1..=3 {
        put(&*log, &message("bob", &format!("c{number}"), "words")).await;
    }
    let stale = log.tend(0).await;
    assert_eq!(client_ids(&stale.next(Role::Save, 2, WAIT).await.unwrap()), ["c1", "c2"]);
    let taken = tokio::time::timeout(Duration::from_millis(200), other.tend(0)).await;
    assert!(taken.is_err(), "somebody looks after it");
    // It does not say anything for longer than its lease.
    let tenure = other.tend(0).await;
    let lost = stale.next(Role::Save, 2, WAIT).await;
    assert!(matches!(lost, Err(Lost(_))), "{lost:?}");
    assert!(matches!(stale.next(Role::Deliver, 2, WAIT).await, Err(Lost(_))));
    tokio::time::timeout(WAIT, stale.keep(&|_| {})).await.expect("it is lost");
    assert_eq!(client_ids(&next(&*tenure, Role::Save).await), ["c1", "c2"], "what was not done");
    assert_eq!(client_ids(&next(&*tenure, Role::Save).await), ["c3"], "then what nobody has read");
    // Whoever says so keeps it.
    let kept = tokio::time::timeout(Duration::from_secs(1), tenure.keep(&|_| {})).await;
    assert!(kept.is_err(), "{kept:?}");
    other.leave().await;
    log.tend(0).await;
}

/// Redis read something for a node, and the answer never came there.
#[tokio::test]
async fn what_was_read_and_never_came_comes_again() {
    let redis = Redis::shared();
    let log = redis_log(redis, "lost-answer", 10).await;
    let tenure = log.tend(0).await;
    put(&*log, &message("bob", "c1", "words")).await;
    assert_eq!(client_ids(&next(&*tenure, Role::Save).await), ["c1"]);
    for id in ["c2", "c3"] {
        put(&*log, &message("bob", id, "words")).await;
    }
    let (stream, owner) = ("lost-answer:accept:{0}:log", "lost-answer:accept:{0}:owner");
    let node = redis.command(&["GET", owner]);
    let group = ["XREADGROUP", "GROUP", "save", node.trim()];
    let lost = redis.command(&[&group[..], &["COUNT", "1", "STREAMS", stream, ">"]].concat());
    assert!(!lost.trim().is_empty(), "it has read it");
    assert_eq!(client_ids(&next(&*tenure, Role::Save).await), ["c2"], "in its turn");
    assert_eq!(client_ids(&next(&*tenure, Role::Save).await), ["c3"]);
    assert!(next(&*tenure, Role::Save).await.is_empty(), "once");
}

/// A full Redis takes nothing more, but what is in it can be saved, which makes room.
#[tokio::test]
async fn a_redis_without_memory_can_be_emptied() {
    let redis = Redis::start();
    let log = redis_log(&redis, "full", 100).await;
    let body = "w".repeat(10_000);
    for number in 0..40 {
        put(&*log, &message("bob", &format!("c{number}"), &body)).await;
    }
    redis.command(&["CONFIG", "SET", "maxmemory", "1mb"]);
    assert_eq!(put(&*log, &message("bob", "more", &body)).await, Put::Full);
    assert!(log.health().is_ok(), "it is there");
    redis.command(&["DEL", "full:accept:{0}:owner"]); // as if nobody had looked after it
    let tenure = log.tend(0).await;
    let mut read = next(&*tenure, Role::Save).await;
    assert_eq!(read.len(), 40);
    assert!(tokio::time::timeout(WAIT, tenure.keep(&|_| {})).await.is_err(), "it is kept");
    tenure.bury(read.remove(0), "why".into()).await.unwrap();
    let done = read.into_iter().map(|entry| (entry, Fate::Saved)).collect();
    tenure.done(done).await.unwrap();
    assert_eq!(redis.command(&["XLEN", "full:accept:{0}:log"]).trim(), "0");
    assert_eq!(redis.command(&["XLEN", "full:accept:{0}:dead"]).trim(), "1");
    redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert!(matches!(put(&*log, &message("bob", "more", &body)).await, Put::New { length: 1 }));
}
