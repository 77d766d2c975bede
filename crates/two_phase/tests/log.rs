//! The promises of a log, tested on the one in memory and the one in Redis.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use nexo_chat::ids::{ClientMsgId, ConversationId, Millis, UserId};
use nexo_chat::model::{Content, Draft};
use nexo_redis_link::{NodeId, RedisOptions};
use nexo_sim::RedisServer;
use nexo_two_phase::accepted::AcceptedMessage;
use nexo_two_phase::log::{
    AcceptedLog, ConsumerGroup, LeaseLost, LogEntry, PutOutcome, SaveOutcome, ShardDepth,
    ShardLease,
};
use nexo_two_phase::{LocalLog, RedisLog, RedisLogOptions};
use tokio::sync::oneshot;

const WAIT: Duration = Duration::from_millis(50);

fn message(to: &str, client_id: &str, body: &str) -> Arc<AcceptedMessage> {
    let (ann, to) = (UserId::parse("ann").unwrap(), UserId::parse(to).unwrap());
    Arc::new(AcceptedMessage::new(Draft {
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

async fn put(log: &dyn AcceptedLog, message: &Arc<AcceptedMessage>) -> PutOutcome {
    let (sender, receiver) = oneshot::channel();
    log.put(Arc::clone(message), None, Box::new(move |put| drop(sender.send(put))));
    receiver.await.unwrap().unwrap()
}

/// A node with a log in Redis.
async fn redis_log(redis: &RedisServer, prefix: &str, shard_max: usize) -> Arc<RedisLog> {
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
    assert!(log.wait_reachable(Duration::from_secs(5)).await);
    log.set_leasable_shards(1);
    log.start_accepting().await.unwrap();
    log
}

fn client_ids(entries: &[LogEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.message.draft.client_id.as_str()).collect()
}

async fn next(lease: &dyn ShardLease, group: ConsumerGroup) -> Vec<LogEntry> {
    lease.read_next(group, 100, WAIT).await.unwrap()
}

async fn keeps_until_done(log: &dyn AcceptedLog) {
    let first = message("bob", "c1", "words");
    assert!(matches!(put(log, &first).await, PutOutcome::New { length: 1 }));
    assert_eq!(put(log, &first).await, PutOutcome::Again);
    assert_eq!(put(log, &message("bob", "c1", "other")).await, PutOutcome::Conflict);
    let second = message("cat", "c2", "words");
    assert!(matches!(put(log, &second).await, PutOutcome::New { length: 2 }));
    assert_eq!(put(log, &message("bob", "c3", "words")).await, PutOutcome::Full);
    let conversation = &first.draft.conversation;
    assert!(log.is_waiting(conversation, first.id).await.unwrap());
    let lease = log.acquire_lease(0).await;
    let shown = next(&*lease, ConsumerGroup::Deliver).await;
    let read = next(&*lease, ConsumerGroup::Save).await;
    assert_eq!(client_ids(&shown), ["c1", "c2"], "each group reads all of it");
    assert_eq!(client_ids(&read), ["c1", "c2"]);
    assert_eq!(read[0].message, first);
    assert!(next(&*lease, ConsumerGroup::Save).await.is_empty(), "once");
    lease.acknowledge_delivered(shown).await.unwrap();
    let fates = read.into_iter().zip([SaveOutcome::Saved, SaveOutcome::Dropped]).collect();
    lease.finish(fates).await.unwrap();
    assert!(!log.is_waiting(conversation, first.id).await.unwrap());
    assert_eq!(put(log, &first).await, PutOutcome::Saved, "it is remembered");
    assert!(matches!(put(log, &second).await, PutOutcome::New { length: 1 }), "it was not saved");
    assert!(matches!(
        put(log, &message("bob", "c3", "words")).await,
        PutOutcome::New { length: 2 }
    ));
    assert_eq!(client_ids(&next(&*lease, ConsumerGroup::Save).await), ["c2", "c3"]);
}

#[tokio::test]
async fn a_log_in_memory_keeps_until_done() {
    keeps_until_done(&*LocalLog::new(1, 2)).await;
}

#[tokio::test]
async fn a_log_in_redis_keeps_until_done() {
    keeps_until_done(&*redis_log(RedisServer::shared(), "keeps", 2).await).await;
}

async fn depth(lease: &dyn ShardLease) -> ShardDepth {
    let reported = std::sync::Mutex::new(None);
    let report = |depth| *reported.lock().unwrap() = Some(depth);
    drop(tokio::time::timeout(WAIT, lease.renew_until_lost(&report)).await);
    reported.into_inner().unwrap().expect("it is reported at once")
}

/// Each group's pending entries are counted separately.
#[tokio::test]
async fn how_much_is_pending_is_told_for_both_groups() {
    let log = redis_log(RedisServer::shared(), "pending", 10).await;
    for client_id in ["c1", "c2"] {
        put(&*log, &message("bob", client_id, "words")).await;
    }
    let lease = log.acquire_lease(0).await;
    assert_eq!(depth(&*lease).await, ShardDepth { length: 2, pending: 0, pending_deliver: 0 });
    let shown = next(&*lease, ConsumerGroup::Deliver).await;
    assert_eq!(depth(&*lease).await, ShardDepth { length: 2, pending: 0, pending_deliver: 2 });
    let read = next(&*lease, ConsumerGroup::Save).await;
    lease.acknowledge_delivered(shown).await.unwrap();
    assert_eq!(depth(&*lease).await, ShardDepth { length: 2, pending: 2, pending_deliver: 0 });
    lease.finish(read.into_iter().map(|it| (it, SaveOutcome::Saved)).collect()).await.unwrap();
    assert_eq!(depth(&*lease).await, ShardDepth::default());
}

/// A worker that ends in the middle leaves nothing unsaved.
#[tokio::test]
async fn what_was_read_and_not_done_comes_again() {
    let redis = redis_log(RedisServer::shared(), "again", 10).await;
    let local = LocalLog::new(1, 10);
    for log in [&*redis as &dyn AcceptedLog, &*local] {
        put(log, &message("bob", "c1", "words")).await;
        let lease = log.acquire_lease(0).await;
        assert_eq!(client_ids(&next(&*lease, ConsumerGroup::Save).await), ["c1"]);
        drop(lease);
        let lease = log.acquire_lease(0).await;
        let read = next(&*lease, ConsumerGroup::Save).await;
        assert_eq!(client_ids(&read), ["c1"]);
        for _ in 0..2 {
            let done = read.iter().map(|entry| (entry.clone(), SaveOutcome::Saved)).collect();
            lease.finish(done).await.unwrap();
        }
        assert!(next(&*lease, ConsumerGroup::Save).await.is_empty());
        assert!(matches!(
            put(log, &message("bob", "c2", "words")).await,
            PutOutcome::New { length: 1 }
        ));
    }
}

/// No message is put behind one that the log lost.
#[tokio::test]
async fn nothing_overtakes_what_was_lost() {
    let redis = RedisServer::shared();
    let log = redis_log(redis, "overtakes", 10).await;
    let (first, second) = (message("bob", "c1", "words"), message("bob", "c2", "words"));
    put(&*log, &first).await;
    let after = |id| {
        let (sender, receiver) = oneshot::channel();
        let reported = Box::new(move |put| drop(sender.send(put)));
        log.put(Arc::clone(&second), Some(id), reported);
        async { receiver.await.unwrap().unwrap() }
    };
    redis.command(&["DEL", "overtakes:accept:{0}:log"]);
    assert_eq!(after(first.id).await, PutOutcome::Overtakes);
    assert!(!log.is_waiting(&first.draft.conversation, first.id).await.unwrap(), "it is not there");
    assert!(matches!(put(&*log, &first).await, PutOutcome::New { length: 1 }), "it is put again");
    assert!(matches!(after(first.id).await, PutOutcome::New { length: 2 }));
}

#[tokio::test]
async fn whoever_reads_is_woken() {
    let redis = redis_log(RedisServer::shared(), "woken", 10).await;
    let local = LocalLog::new(1, 10);
    for log in [&*redis as &dyn AcceptedLog, &*local] {
        let lease = log.acquire_lease(0).await;
        let waiting = lease.read_next(ConsumerGroup::Save, 10, Duration::from_secs(20));
        let putting = async {
            tokio::time::sleep(WAIT).await;
            put(log, &message("bob", "c1", "words")).await
        };
        let (read, _) = tokio::join!(waiting, putting);
        assert_eq!(client_ids(&read.unwrap()), ["c1"]);
    }
}

/// A node that was stopped and wakes up can neither read nor renew; the next owner begins with the
/// entries it had read.
#[tokio::test]
async fn one_node_at_a_time_looks_after_a_shard() {
    let redis = RedisServer::shared();
    let (log, other) = tokio::join!(redis_log(redis, "turns", 10), redis_log(redis, "turns", 10));
    for number in 1..=3 {
        put(&*log, &message("bob", &format!("c{number}"), "words")).await;
    }
    let stale = log.acquire_lease(0).await;
    assert_eq!(
        client_ids(&stale.read_next(ConsumerGroup::Save, 2, WAIT).await.unwrap()),
        ["c1", "c2"]
    );
    let taken = tokio::time::timeout(Duration::from_millis(200), other.acquire_lease(0)).await;
    assert!(taken.is_err(), "another node has the lease");
    // It does not renew for longer than its lease.
    let lease = other.acquire_lease(0).await;
    let lost = stale.read_next(ConsumerGroup::Save, 2, WAIT).await;
    assert!(matches!(lost, Err(LeaseLost(_))), "{lost:?}");
    assert!(matches!(stale.read_next(ConsumerGroup::Deliver, 2, WAIT).await, Err(LeaseLost(_))));
    tokio::time::timeout(WAIT, stale.renew_until_lost(&|_| {})).await.expect("it is lost");
    assert_eq!(
        client_ids(&next(&*lease, ConsumerGroup::Save).await),
        ["c1", "c2"],
        "what was not done"
    );
    assert_eq!(client_ids(&next(&*lease, ConsumerGroup::Save).await), ["c3"], "then new entries");
    // A node that renews keeps it.
    let kept = tokio::time::timeout(Duration::from_secs(1), lease.renew_until_lost(&|_| {})).await;
    assert!(kept.is_err(), "{kept:?}");
    other.leave().await;
    log.acquire_lease(0).await;
}

/// Redis read entries for a node, and the answer got lost.
#[tokio::test]
async fn what_was_read_and_never_came_comes_again() {
    let redis = RedisServer::shared();
    let log = redis_log(redis, "lost-answer", 10).await;
    let lease = log.acquire_lease(0).await;
    put(&*log, &message("bob", "c1", "words")).await;
    assert_eq!(client_ids(&next(&*lease, ConsumerGroup::Save).await), ["c1"]);
    for id in ["c2", "c3"] {
        put(&*log, &message("bob", id, "words")).await;
    }
    let (stream, owner) = ("lost-answer:accept:{0}:log", "lost-answer:accept:{0}:owner");
    let node = redis.command(&["GET", owner]);
    let group = ["XREADGROUP", "GROUP", "save", node.trim()];
    let lost = redis.command(&[&group[..], &["COUNT", "1", "STREAMS", stream, ">"]].concat());
    assert!(!lost.trim().is_empty(), "it has read it");
    assert_eq!(client_ids(&next(&*lease, ConsumerGroup::Save).await), ["c2"], "in its turn");
    assert_eq!(client_ids(&next(&*lease, ConsumerGroup::Save).await), ["c3"]);
    assert!(next(&*lease, ConsumerGroup::Save).await.is_empty(), "once");
}

/// A full Redis accepts nothing more, but its messages can be saved, which makes room.
#[tokio::test]
async fn a_redis_without_memory_can_be_emptied() {
    let redis = RedisServer::start();
    let log = redis_log(&redis, "full", 100).await;
    let body = "w".repeat(10_000);
    for number in 0..40 {
        put(&*log, &message("bob", &format!("c{number}"), &body)).await;
    }
    redis.command(&["CONFIG", "SET", "maxmemory", "1mb"]);
    assert_eq!(put(&*log, &message("bob", "more", &body)).await, PutOutcome::Full);
    assert!(log.health().is_ok(), "it is there");
    redis.command(&["DEL", "full:accept:{0}:owner"]); // as if the lease had expired
    let lease = log.acquire_lease(0).await;
    let mut read = next(&*lease, ConsumerGroup::Save).await;
    assert_eq!(read.len(), 40);
    assert!(
        tokio::time::timeout(WAIT, lease.renew_until_lost(&|_| {})).await.is_err(),
        "it is kept"
    );
    lease.dead_letter(read.remove(0), "why".into()).await.unwrap();
    let done = read.into_iter().map(|entry| (entry, SaveOutcome::Saved)).collect();
    lease.finish(done).await.unwrap();
    assert_eq!(redis.command(&["XLEN", "full:accept:{0}:log"]).trim(), "0");
    assert_eq!(redis.command(&["XLEN", "full:accept:{0}:dead"]).trim(), "1");
    redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert!(matches!(
        put(&*log, &message("bob", "more", &body)).await,
        PutOutcome::New { length: 1 }
    ));
}
