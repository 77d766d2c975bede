//! A server in the typed dialect that lets anybody in and answers as it is told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::routing::{get, post};
use axum::{Json, Router};
use nexo_bench::Place;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// What a server does with a frame of somebody who is let in.
pub(crate) trait Manner: Clone + Send + Sync + 'static {
    fn hear(&self, people: &People, by: &mut Speaker, frame: &Value);
}

/// One connection, as the server remembers it.
#[derive(Default)]
pub(crate) struct Speaker {
    pub(crate) user: String,
    pub(crate) seq: u64,
    /// A push that is held back.
    pub(crate) held: Option<Value>,
}

/// Everybody who is connected.
#[derive(Clone, Default)]
pub(crate) struct People {
    queues: Arc<Mutex<BTreeMap<String, UnboundedSender<Value>>>>,
}

impl People {
    /// Nobody hears it if they are gone, which is what a test may want. `null` closes.
    pub(crate) fn tell(&self, user: &str, frame: Value) {
        if let Some(queue) = self.queues.lock().expect("no panic").get(user) {
            drop(queue.send(frame));
        }
    }

    /// All names, in order.
    #[allow(dead_code, reason = "not every test has groups")]
    pub(crate) fn names(&self) -> Vec<String> {
        self.queues.lock().expect("no panic").keys().cloned().collect()
    }
}

/// Serves until the test ends.
pub(crate) async fn serve(manner: impl Manner) -> Place {
    let ok = || async { Json(json!({ "code": 0, "message": "ok", "data": { "group_id": "g" } })) };
    // The user's name is their token.
    let login = |Json(form): Json<Value>| async move {
        Json(json!({ "code": 0, "message": "ok", "data": { "token": form["user_id"] } }))
    };
    let socket = |State(people): State<People>, upgrade: WebSocketUpgrade| async move {
        upgrade.on_upgrade(|socket| session(manner, people, socket))
    };
    let app = Router::new()
        .route("/user/register", post(ok))
        .route("/auth/login", post(login))
        .route("/group/create", post(ok))
        .route("/group/invite", post(ok))
        .route("/ws", get(socket))
        .with_state(People::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let place = Place::at(format!("http://{}", listener.local_addr().expect("an address")));
    tokio::spawn(async move { axum::serve(listener, app).await });
    place
}

async fn session(manner: impl Manner, people: People, mut socket: WebSocket) {
    let (queue, mut waiting) = unbounded_channel();
    let mut by = Speaker::default();
    loop {
        tokio::select! {
            frame = socket.recv() => {
                let Some(Ok(Message::Text(text))) = frame else { return };
                let frame: Value = serde_json::from_str(&text).expect("JSON");
                if frame["type"] == "AUTH" {
                    frame["token"].as_str().expect("a token").clone_into(&mut by.user);
                    people.queues.lock().expect("no panic").insert(by.user.clone(), queue.clone());
                    people.tell(&by.user, json!({ "type": "AUTH_OK", "from": by.user }));
                    people.tell(&by.user, json!({ "type": "RESEND_DONE", "hasMore": false }));
                } else {
                    manner.hear(&people, &mut by, &frame);
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
