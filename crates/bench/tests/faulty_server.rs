//! The load generator against a server in the typed dialect with injected faults: each fault must be
//! found and counted, and nothing else. Fails on wrong counts, never on time.

mod typed_server;

use std::time::Duration;

use nexo_bench::options::{Flow, OutputOptions, Span, TargetOptions};
use nexo_bench::{Counters, PrivateOptions, private};
use serde_json::{Value, json};
use typed_server::{Behaviour, Clients, Connection, serve};

/// What is done to messages, by their number. Everything else is done right.
#[derive(Clone, Copy, Default)]
struct Faults {
    never_pushed: Option<u64>,
    pushed_twice: Option<u64>,
    /// Held back until the next one is pushed.
    pushed_late: Option<u64>,
    refused: Option<u64>,
    never_answered: Option<u64>,
}

impl Behaviour for Faults {
    fn handle(&self, clients: &Clients, by: &mut Connection, frame: &Value) {
        if frame["type"] == "ACK" {
            let id = frame["serverMsgId"].as_str().expect("an id");
            let seq = id.rsplit('-').next();
            let to = frame["to"].as_str().expect("a sender");
            let receipt = json!({ "type": "ACK", "ackType": "delivered", "msgSeq": seq });
            return clients.send(to, receipt);
        }
        let number = frame["clientMsgId"].as_str().expect("a number");
        let index = number.parse().ok();
        if index == self.refused {
            let reason = "RATE_LIMITED";
            let refusal = json!({ "type": "ERROR", "reason": reason, "clientMsgId": number });
            return clients.send(&by.user, refusal);
        }
        by.seq += 1;
        let seq = by.seq.to_string();
        if index != self.never_answered {
            let saved =
                json!({ "type": "ACK", "ackType": "saved", "clientMsgId": number, "msgSeq": seq });
            clients.send(&by.user, saved);
        }
        let push = json!({ "type": "SINGLE_CHAT", "clientMsgId": number, "msgSeq": seq,
            "serverMsgId": format!("{}-{seq}", by.user), "body": frame["body"] });
        self.push(clients, frame["to"].as_str().expect("a receiver"), index, push, &mut by.held);
    }
}

impl Faults {
    fn push(
        &self,
        clients: &Clients,
        to: &str,
        index: Option<u64>,
        push: Value,
        held: &mut Option<Value>,
    ) {
        if index == self.never_pushed {
            return;
        }
        if index == self.pushed_late {
            *held = Some(push);
            return;
        }
        if index == self.pushed_twice {
            clients.send(to, push.clone());
        }
        clients.send(to, push);
        if let Some(late) = held.take() {
            clients.send(to, late);
        }
    }
}

/// Two pairs, 20 messages each, at a given rate: the same count on every machine.
async fn counters_with(faults: Faults) -> Counters {
    let options = PrivateOptions {
        pairs: Some(2),
        flow: Flow { rate: Some(200), ..Flow::default() },
        span: Span {
            warmup: Duration::ZERO,
            duration: Duration::from_millis(200),
            grace: Duration::from_secs(5),
        },
        target: TargetOptions {
            output: OutputOptions { json: true, plot: None },
            ..TargetOptions::default()
        },
        ..PrivateOptions::default()
    };
    let report = private(&options, &serve(faults).await).await.expect("a report");
    report.load.counters
}

/// What a faultless server leads to.
fn faultless() -> Counters {
    let all = 40;
    Counters {
        sent: all,
        saved: all,
        pushed: all,
        delivered: all,
        receipts: all,
        ..Counters::default()
    }
}

#[tokio::test]
async fn a_good_server_is_not_blamed() {
    let counters = counters_with(Faults::default()).await;
    assert!(counters.is_clean());
    assert_eq!(counters, faultless());
}

#[tokio::test]
async fn a_lost_message_is_found() {
    let counters = counters_with(Faults { never_pushed: Some(3), ..Faults::default() }).await;
    let wanted = Counters { lost: 2, pushed: 38, delivered: 38, receipts: 38, ..faultless() };
    assert_eq!(counters, wanted);
}

#[tokio::test]
async fn a_repeated_message_is_found() {
    let counters = counters_with(Faults { pushed_twice: Some(5), ..Faults::default() }).await;
    assert_eq!(counters, Counters { duplicates: 2, receipts: 42, ..faultless() });
}

#[tokio::test]
async fn a_late_message_is_found() {
    let counters = counters_with(Faults { pushed_late: Some(7), ..Faults::default() }).await;
    let wanted = Counters { reordered_by_seq: 2, reordered_by_sender: 2, ..faultless() };
    assert_eq!(counters, wanted);
}

#[tokio::test]
async fn a_refusal_is_counted_by_its_reason() {
    let counters = counters_with(Faults { refused: Some(9), ..Faults::default() }).await;
    assert_eq!((counters.refused, counters.saved, counters.pushed), (2, 38, 38));
    assert_eq!(counters.errors["RATE_LIMITED"], 2);
    assert_eq!((counters.lost, counters.unanswered, counters.undelivered), (0, 0, 0));
}

#[tokio::test]
async fn silence_is_not_taken_for_an_answer() {
    let counters = counters_with(Faults { never_answered: Some(4), ..Faults::default() }).await;
    assert_eq!((counters.unanswered, counters.saved, counters.pushed), (2, 38, 40));
    assert!(!counters.is_clean());
}
