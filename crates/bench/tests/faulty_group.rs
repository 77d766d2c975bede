//! A group on a server in the typed dialect that misbehaves as told: each fault must be found and
//! counted, and nothing else. Fails on wrong counts, never on time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::routing::{get, post};
use axum::{Json, Router};
use nexo_bench::options::{Flow, Online, Readers, Span, Target};
use nexo_bench::{Counters, GroupOptions, Place, Speech, group};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

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

type Queue = UnboundedSender<Value>;

#[derive(Clone, Default)]
struct Server {
    faults: Faults,
    users: Arc<Mutex<BTreeMap<String, Queue>>>,
}

impl Server {
    fn hear(&self, user: &str, frame: &Value, seq: &mut u64, held: &mut Option<Value>) {
        if frame["type"] != "GROUP_CHAT" {
            return;
        }
        *seq += 1;
        let number = frame["clientMsgId"].as_str().expect("a number");
        let index: u64 = number.parse().expect("a number");
        let push = |id: u64| {
            json!({ "type": "GROUP_CHAT", "clientMsgId": number, "msgSeq": seq.to_string(),
                "serverMsgId": id.to_string(), "body": frame["body"] })
        };
        let saved = json!({ "type": "ACK", "ackType": "saved", "clientMsgId": number, "msgSeq": seq.to_string() });
        let users = self.users.lock().expect("no panic");
        users[user].send(saved).expect("connected");
        let (victim, others) = {
            let mut others: Vec<_> = users.iter().filter(|(name, _)| *name != user).collect();
            (others.pop().expect("somebody hears").1, others)
        };
        for (_, queue) in others {
            queue.send(push(*seq)).expect("connected");
        }
        let is = |fault: Option<u64>| fault == Some(index);
        let id = if is(self.faults.id_repeated) { *seq - 1 } else { *seq };
        if is(self.faults.closed) {
            victim.send(Value::Null).expect("connected");
        } else if is(self.faults.pushed_late) {
            *held = Some(push(id));
        } else if !is(self.faults.never_pushed) {
            let count = 1 + usize::from(is(self.faults.pushed_twice));
            // Whoever was closed hears nothing more, which is the fault.
            (0..count).for_each(|_| drop(victim.send(push(id))));
            held.take().into_iter().for_each(|late| drop(victim.send(late)));
        }
    }
}

async fn serve(faults: Faults) -> Place {
    let ok = || async { Json(json!({ "code": 0, "message": "ok", "data": { "group_id": "g" } })) };
    // The user's name is their token.
    let login = |Json(form): Json<Value>| async move {
        Json(json!({ "code": 0, "message": "ok", "data": { "token": form["user_id"] } }))
    };
    let app = Router::new()
        .route("/user/register", post(ok))
        .route("/auth/login", post(login))
        .route("/group/create", post(ok))
        .route("/group/invite", post(ok))
        .route(
            "/ws",
            get(|State(server): State<Server>, upgrade: WebSocketUpgrade| async {
                upgrade.on_upgrade(|socket| session(server, socket))
            }),
        )
        .with_state(Server { faults, ..Server::default() });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let place = Place::at(format!("http://{}", listener.local_addr().expect("an address")));
    tokio::spawn(async move { axum::serve(listener, app).await });
    place
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
                    queue.send(json!({ "type": "AUTH_OK", "from": user })).expect("own queue");
                } else {
                    server.hear(&user, &frame, &mut seq, &mut held);
                }
            }
            Some(frame) = waiting.recv() => {
                let text = Message::Text(frame.to_string().into());
                if frame.is_null() || socket.send(text).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Four members online, one of whom says 20 messages: the same count on every machine.
async fn counters_with(faults: Faults) -> Counters {
    let options = GroupOptions {
        target: Target { json: true, ..Target::default() },
        span: Span {
            warmup: Duration::ZERO,
            duration: Duration::from_millis(200),
            grace: Duration::from_secs(2),
        },
        flow: Flow { rate: Some(100), ..Flow::default() },
        members: 6,
        online: Online::Count(4),
        senders: 1,
        dialect: Speech::Typed,
        readers: Readers { slow_frames: 1, ..Readers::default() },
    };
    let report = group(&options, &serve(faults).await).await.expect("a report");
    report.load.counters
}

/// What a faultless server leads to: three hear each message.
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
