//! The generator against a server in the typed dialect that misbehaves as told: each fault must be
//! found and counted, and nothing else. Fails on wrong counts, never on time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::routing::{get, post};
use axum::{Json, Router};
use nexo_bench::options::{Flow, Span, Target};
use nexo_bench::{Counters, Place, PrivateOptions, private};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

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

#[derive(Clone, Default)]
struct Server {
    faults: Faults,
    users: Arc<Mutex<HashMap<String, UnboundedSender<Value>>>>,
}

impl Server {
    fn tell(&self, user: &str, frame: Value) {
        if let Some(queue) = self.users.lock().expect("no panic").get(user) {
            queue.send(frame).expect("connected");
        }
    }

    /// A frame of `user`; `held` is the push held back, if any.
    fn hear(&self, user: &str, frame: &Value, seq: &mut u64, held: &mut Option<Value>) {
        if frame["type"] == "ACK" {
            let id = frame["serverMsgId"].as_str().expect("an id");
            let seq = id.rsplit('-').next();
            let to = frame["to"].as_str().expect("a sender");
            let receipt = json!({ "type": "ACK", "ackType": "delivered", "msgSeq": seq });
            return self.tell(to, receipt);
        }
        let number = frame["clientMsgId"].as_str().expect("a number");
        let index = number.parse().ok();
        if index == self.faults.refused {
            let reason = "RATE_LIMITED";
            let refusal = json!({ "type": "ERROR", "reason": reason, "clientMsgId": number });
            return self.tell(user, refusal);
        }
        *seq += 1;
        let place = seq.to_string();
        if index != self.faults.never_answered {
            let saved = json!({ "type": "ACK", "ackType": "saved", "clientMsgId": number, "msgSeq": place });
            self.tell(user, saved);
        }
        let push = json!({ "type": "SINGLE_CHAT", "clientMsgId": number, "msgSeq": place,
            "serverMsgId": format!("{user}-{place}"), "body": frame["body"] });
        self.push(frame["to"].as_str().expect("a receiver"), index, push, held);
    }

    fn push(&self, to: &str, index: Option<u64>, push: Value, held: &mut Option<Value>) {
        if index == self.faults.never_pushed {
            return;
        }
        if index == self.faults.pushed_late {
            *held = Some(push);
            return;
        }
        if index == self.faults.pushed_twice {
            self.tell(to, push.clone());
        }
        self.tell(to, push);
        if let Some(late) = held.take() {
            self.tell(to, late);
        }
    }
}

async fn serve(faults: Faults) -> String {
    let ok = || async { Json(json!({ "code": 0, "message": "ok", "data": {} })) };
    // The user's name is their token.
    let login = |Json(form): Json<Value>| async move {
        Json(json!({ "code": 0, "message": "ok", "data": { "token": form["user_id"] } }))
    };
    let app = Router::new()
        .route("/user/register", post(ok))
        .route("/auth/login", post(login))
        .route(
            "/ws",
            get(|State(server): State<Server>, upgrade: WebSocketUpgrade| async {
                upgrade.on_upgrade(|socket| session(server, socket))
            }),
        )
        .with_state(Server { faults, ..Server::default() });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let target = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, app).await });
    target
}

async fn session(server: Server, mut socket: WebSocket) {
    let (queue, mut waiting) = unbounded_channel();
    let (mut user, mut seq, mut held) = (String::new(), 0, None);
    loop {
        tokio::select! {
            frame = socket.recv() => {
                let Some(Ok(Message::Text(text))) = frame else { return };
                let frame: Value = serde_json::from_str(&text).expect("JSON");
                if frame["type"] == "AUTH" {
                    frame["token"].as_str().expect("a token").clone_into(&mut user);
                    server.users.lock().expect("no panic").insert(user.clone(), queue.clone());
                    server.tell(&user, json!({ "type": "AUTH_OK", "from": user }));
                    server.tell(&user, json!({ "type": "RESEND_DONE", "hasMore": false }));
                } else {
                    server.hear(&user, &frame, &mut seq, &mut held);
                }
            }
            Some(frame) = waiting.recv() => {
                if socket.send(Message::Text(frame.to_string().into())).await.is_err() {
                    return;
                }
            }
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
        target: Target { json: true, ..Target::default() },
        ..PrivateOptions::default()
    };
    let report = private(&options, &Place::at(serve(faults).await)).await.expect("a report");
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
