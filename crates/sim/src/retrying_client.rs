//! A client that reconnects, retries each send until it is saved, and records what it received, as an app on a
//! bad network does.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::person::Person;
use crate::socket::{Socket, SocketEvent, chat, seq};

/// How long a reply may take before the client reconnects.
const TIMEOUT: Duration = Duration::from_secs(5);
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// How long to wait between two requests for missing messages.
const GAP_REQUEST_INTERVAL: Duration = Duration::from_millis(500);

/// A client with a socket, most of the time.
pub struct RetryingClient {
    pub authority: String,
    pub person: Person,
    /// Messages of others by conversation and seq, as received.
    pub received: BTreeMap<(String, u64), Value>,
    /// Accepted messages of others that are not saved yet, by id.
    pub previews: BTreeMap<String, Value>,
    /// How many messages came before they were saved.
    pub previewed: usize,
    /// How many of those were dropped.
    pub dropped: usize,
    /// Whether to request messages that are missing in between, as the SDKs do. Tests that kill nodes need it:
    /// no other node pushes what the killed one saved and did not publish.
    pub requests_gaps: bool,
    /// How often the server answered `server_busy`.
    pub busy: usize,
    /// How often the client tried to connect.
    pub reconnects: usize,
    /// The seq up to which nothing is missing, per conversation.
    contiguous: BTreeMap<String, u64>,
    gap_requested_at: Option<Instant>,
    socket: Option<Socket>,
}

impl RetryingClient {
    /// A client that is not connected yet.
    pub fn new(authority: &str, person: &Person) -> Self {
        Self {
            authority: authority.to_owned(),
            person: person.clone(),
            received: BTreeMap::new(),
            previews: BTreeMap::new(),
            previewed: 0,
            dropped: 0,
            requests_gaps: false,
            busy: 0,
            reconnects: 0,
            contiguous: BTreeMap::new(),
            gap_requested_at: None,
            socket: None,
        }
    }

    /// Sends a private message until it is saved; returns the ACK.
    pub async fn send(&mut self, to: &str, client_id: &str, body: &str) -> Value {
        self.send_until_saved(&chat(to, client_id, body)).await
    }

    /// Sends a frame until it is saved; returns the ACK.
    pub async fn send_until_saved(&mut self, frame: &Value) -> Value {
        loop {
            self.connect().await;
            let Some(socket) = &mut self.socket else { continue };
            if socket.try_text(&frame.to_string()).await.is_err() {
                self.socket = None;
                continue;
            }
            let id = frame["clientMsgId"].as_str().expect("a client id");
            match tokio::time::timeout(TIMEOUT, self.answer(id)).await {
                Ok(Some(ack)) if ack["ackType"] == "saved" => return ack,
                Ok(Some(error)) => {
                    assert_eq!(error["reason"], "server_busy", "{error}");
                    self.busy += 1;
                    tokio::time::sleep(RETRY_DELAY).await;
                }
                Ok(None) | Err(_) => self.socket = None,
            }
        }
    }

    /// Receives for a while.
    pub async fn listen(&mut self, time: Duration) {
        let until = tokio::time::Instant::now() + time;
        while tokio::time::Instant::now() < until {
            self.connect().await;
            let Some(socket) = &mut self.socket else { continue };
            match tokio::time::timeout_at(until, socket.hear_forever()).await {
                Ok(SocketEvent::Frame(frame)) => self.record(&frame).await,
                Ok(SocketEvent::Closed(_)) => self.socket = None,
                Err(_) => return,
            }
        }
    }

    /// The reply to a send, or `None` if the socket closed first.
    async fn answer(&mut self, client_id: &str) -> Option<Value> {
        loop {
            let SocketEvent::Frame(frame) = self.socket.as_mut()?.hear_forever().await else {
                return None;
            };
            let is_answer = matches!(frame["type"].as_str(), Some("ACK" | "ERROR"))
                && frame["ackType"] != "accepted"
                && (frame["type"] == "ERROR" || frame["from"] == self.person.id.as_str());
            if is_answer && frame["clientMsgId"] == client_id {
                return Some(frame);
            }
            self.record(&frame).await;
        }
    }

    async fn send_frame(&mut self, frame: Value) {
        if let Some(socket) = &mut self.socket
            && socket.try_text(&frame.to_string()).await.is_err()
        {
            self.socket = None;
        }
    }

    /// Records a frame, and requests the next resend page if there is one.
    async fn record(&mut self, frame: &Value) {
        if frame["type"] == "RESEND_DONE" && frame["hasMore"] == true {
            self.send_frame(json!({ "type": "RESEND" })).await;
        }
        let id = frame["serverMsgId"].as_str().unwrap_or_default();
        match (frame["type"].as_str(), frame["ackType"].as_str()) {
            (Some("SINGLE_CHAT"), _) if frame["preview"] == true => {
                assert!(frame["msgSeq"].is_null(), "{frame}");
                self.previewed += 1;
                self.previews.insert(id.to_owned(), frame.clone());
            }
            (Some("ACK"), Some("saved")) => {
                if let Some(mut message) = self.previews.remove(id) {
                    message["msgSeq"] = frame["msgSeq"].clone();
                    self.record_message(&message).await;
                }
            }
            (Some("ACK"), Some("dropped")) => {
                self.dropped += usize::from(self.previews.remove(id).is_some());
            }
            (Some("SINGLE_CHAT" | "GROUP_CHAT"), _) => {
                self.previews.remove(id);
                self.record_message(frame).await;
            }
            _ => {}
        }
    }

    /// Records a message that has a seq, and acknowledges up to the first gap.
    async fn record_message(&mut self, frame: &Value) {
        let from = frame["from"].as_str().unwrap_or_default();
        let conversation = frame["groupId"].as_str().unwrap_or(from).to_owned();
        self.received.insert((conversation.clone(), seq(frame)), frame.clone());
        let contiguous = self.contiguous.entry(conversation.clone()).or_default();
        let before = *contiguous;
        while self.received.contains_key(&(conversation.clone(), *contiguous + 1)) {
            *contiguous += 1;
        }
        let (contiguous, has_gap) = (*contiguous, *contiguous < seq(frame));
        if has_gap {
            self.request_gap(&frame["conversationId"], contiguous).await;
        }
        if contiguous == before {
            return;
        }
        let last = &self.received[&(conversation, contiguous)];
        let ack = json!({
            "type": "ACK", "ackType": "delivered", "to": last["from"],
            "serverMsgId": last["serverMsgId"], "msgSeq": last["msgSeq"],
        });
        self.send_frame(ack).await;
    }

    /// Requests missing messages, at a limited rate because they may be on their way.
    async fn request_gap(&mut self, conversation: &Value, contiguous: u64) {
        let is_due = self.gap_requested_at.is_none_or(|at| at.elapsed() > GAP_REQUEST_INTERVAL);
        if let (true, true, Some(id)) = (self.requests_gaps, is_due, conversation.as_str()) {
            self.gap_requested_at = Some(Instant::now());
            let cursors = BTreeMap::from([(id, contiguous.to_string())]);
            self.send_frame(json!({ "type": "RESEND", "cursors": cursors })).await;
        }
    }

    async fn connect(&mut self) {
        while self.socket.is_none() {
            match tokio::time::timeout(TIMEOUT, self.open()).await {
                Ok(Some(socket)) => self.socket = Some(socket),
                Ok(None) | Err(_) => tokio::time::sleep(RETRY_DELAY).await,
            }
        }
    }

    async fn open(&mut self) -> Option<Socket> {
        self.reconnects += 1;
        let mut socket = Socket::try_open(&self.authority).await?;
        let auth = json!({ "type": "AUTH", "token": self.person.token });
        socket.try_text(&auth.to_string()).await.ok()?;
        match socket.hear_forever().await {
            SocketEvent::Frame(frame) if frame["type"] == "AUTH_OK" => Some(socket),
            _ => None,
        }
    }
}
