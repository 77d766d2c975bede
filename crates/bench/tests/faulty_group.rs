//! A group on a server in the typed dialect with injected faults: each fault must be found and
//! counted, and nothing else. Fails on wrong counts, never on time.

mod typed_server;

use std::time::Duration;

use nexo_bench::options::{
    FaultyReaderOptions, Flow, OnlineMembers, OutputOptions, Span, TargetOptions,
};
use nexo_bench::{Counters, DialectChoice, GroupOptions, group};
use serde_json::{Value, json};
use typed_server::{Behaviour, Clients, Connection, serve};

/// What is done to messages, by their number, for the last member alone. Everything else is done
/// right.
#[derive(Clone, Copy, Default)]
struct Faults {
    never_pushed: Option<u64>,
    pushed_twice: Option<u64>,
    /// Held back until the next one is pushed.
    pushed_late: Option<u64>,
    /// Pushed with the id of the message before.
    id_repeated: Option<u64>,
    closed: Option<u64>,
}

impl Behaviour for Faults {
    fn handle(&self, clients: &Clients, by: &mut Connection, frame: &Value) {
        if frame["type"] != "GROUP_CHAT" {
            return;
        }
        by.seq += 1;
        let (seq, number) = (by.seq, frame["clientMsgId"].as_str().expect("a number"));
        let push = |id: u64| {
            json!({ "type": "GROUP_CHAT", "clientMsgId": number, "msgSeq": seq.to_string(),
                "serverMsgId": id.to_string(), "body": frame["body"] })
        };
        let saved = json!({ "type": "ACK", "ackType": "saved", "clientMsgId": number,
            "msgSeq": seq.to_string() });
        clients.send(&by.user, saved);
        let mut others = clients.names();
        others.retain(|name| *name != by.user);
        let victim = others.pop().expect("a receiver");
        for other in others {
            clients.send(&other, push(seq));
        }
        let is = |fault: Option<u64>| fault.is_some() && fault == number.parse().ok();
        let id = if is(self.id_repeated) { seq - 1 } else { seq };
        if is(self.closed) {
            clients.send(&victim, Value::Null);
        } else if is(self.pushed_late) {
            by.held = Some(push(id));
        } else if !is(self.never_pushed) {
            let count = 1 + usize::from(is(self.pushed_twice));
            (0..count).for_each(|_| clients.send(&victim, push(id)));
            by.held.take().into_iter().for_each(|late| clients.send(&victim, late));
        }
    }
}

/// Four members online, one of whom says 20 messages: the same count on every machine.
async fn counters_with(faults: Faults) -> Counters {
    let options = GroupOptions {
        target: TargetOptions {
            output: OutputOptions { json: true, plot: None },
            ..TargetOptions::default()
        },
        span: Span {
            warmup: Duration::ZERO,
            duration: Duration::from_millis(200),
            grace: Duration::from_secs(2),
        },
        flow: Flow { rate: Some(100), ..Flow::default() },
        members: 6,
        online: OnlineMembers::Count(4),
        senders: 1,
        dialect: DialectChoice::Typed,
        readers: FaultyReaderOptions { slow_frames: 1, ..FaultyReaderOptions::default() },
    };
    let report = group(&options, &serve(faults).await).await.expect("a report");
    report.load.counters
}

/// The counters of a faultless server: three members receive each message.
fn faultless() -> Counters {
    Counters { sent: 20, saved: 20, pushed: 60, ..Counters::default() }
}

#[tokio::test]
async fn a_good_server_is_not_blamed() {
    let counters = counters_with(Faults::default()).await;
    assert!(counters.is_clean());
    assert_eq!(counters, faultless());
}

#[tokio::test]
async fn a_message_that_one_member_did_not_get_is_lost() {
    let counters = counters_with(Faults { never_pushed: Some(3), ..Faults::default() }).await;
    assert_eq!(counters, Counters { lost: 1, pushed: 59, ..faultless() });
}

#[tokio::test]
async fn a_message_that_one_member_got_twice_is_a_duplicate() {
    let counters = counters_with(Faults { pushed_twice: Some(5), ..Faults::default() }).await;
    assert_eq!(counters, Counters { duplicates: 1, ..faultless() });
}

#[tokio::test]
async fn a_message_that_one_member_got_late_is_reordered() {
    let counters = counters_with(Faults { pushed_late: Some(7), ..Faults::default() }).await;
    let wanted = Counters { reordered_by_seq: 1, reordered_by_sender: 1, ..faultless() };
    assert_eq!(counters, wanted);
}

#[tokio::test]
async fn an_id_that_one_member_saw_before_is_wrong() {
    let counters = counters_with(Faults { id_repeated: Some(7), ..Faults::default() }).await;
    assert_eq!(counters, Counters { wrong_ids: 1, ..faultless() });
}

#[tokio::test]
async fn a_member_who_is_thrown_out_without_a_reason_is_an_error() {
    let counters = counters_with(Faults { closed: Some(10), ..Faults::default() }).await;
    assert_eq!((counters.lost, counters.pushed), (10, 50));
    assert_eq!(counters.errors.values().sum::<u64>(), 1, "{:?}", counters.errors);
    assert!(!counters.is_clean());
}
