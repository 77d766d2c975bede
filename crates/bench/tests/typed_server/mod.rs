//! A test server in the typed dialect that accepts every token and answers as the test wants.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::routing::{get, post};
use axum::{Json, Router};
use nexo_bench::Endpoint;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// What the server does with a frame of an authenticated client.
pub(crate) trait Behaviour: Clone + Send + Sync + 'static {
    fn handle(&self, clients: &Clients, by: &mut Connection, frame: &Value);
}

/// The state of one connection.
#[derive(Default)]
pub(crate) struct Connection {
    pub(crate) user: String,
    pub(crate) seq: u64,
    /// A push that is held back.
    pub(crate) held: Option<Value>,
}

/// All connected clients.
#[derive(Clone, Default)]
pub(crate) struct Clients {
    queues: Arc<Mutex<BTreeMap<String, UnboundedSender<Value>>>>,
}

impl Clients {
    /// Sends a frame, unless the client is gone, which a test may want. `null` closes the connection.
    pub(crate) fn send(&self, user: &str, frame: Value) {
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
pub(crate) async fn serve(behaviour: impl Behaviour) -> Endpoint {
    let ok = || async { Json(json!({ "code": 0, "message": "ok", "data": { "group_id": "g" } })) };
    // The user's name is their token.
    let login = |Json(form): Json<Value>| async move {
        Json(json!({ "code": 0, "message": "ok", "data": { "token": form["user_id"] } }))
    };
    let socket = |State(clients): State<Clients>, upgrade: WebSocketUpgrade| async move {
        upgrade.on_upgrade(|socket| session(behaviour, clients, socket))
    };
    let app = Router::new()
        .route("/user/register", post(ok))
        .route("/auth/login", post(login))
        .route("/group/create", post(ok))
        .route("/group/invite", post(ok))
        .route("/ws", get(socket))
        .with_state(Clients::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let endpoint = Endpoint::at(format!("http://{}", listener.local_addr().expect("an address")));
    tokio::spawn(async move { axum::serve(listener, app).await });
    endpoint
}

async fn session(behaviour: impl Behaviour, clients: Clients, mut socket: WebSocket) {
    let (queue, mut waiting) = unbounded_channel();
    let mut by = Connection::default();
    loop {
        tokio::select! {
            frame = socket.recv() => {
                let Some(Ok(Message::Text(text))) = frame else { return };
                let frame: Value = serde_json::from_str(&text).expect("JSON");
                if frame["type"] == "AUTH" {
                    frame["token"].as_str().expect("a token").clone_into(&mut by.user);
                    clients.queues.lock().expect("no panic").insert(by.user.clone(), queue.clone());
                    clients.send(&by.user, json!({ "type": "AUTH_OK", "from": by.user }));
                    clients.send(&by.user, json!({ "type": "RESEND_DONE", "hasMore": false }));
                } else {
                    behaviour.handle(&clients, &mut by, &frame);
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
