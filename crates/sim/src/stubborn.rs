//! Somebody who keeps at it: reconnects, says the same again until it is saved, and writes down what
//! they heard, as an app on a bad day would.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::person::Person;
use crate::socket::{Heard, Socket, chat, seq};

/// How long an answer may take before the socket is given up.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);
/// How long a hole may last.
const HOLE: Duration = Duration::from_millis(500);

/// Somebody with a socket, most of the time.
pub struct Stubborn {
    /// Where they connect to.
    pub authority: String,
    /// Who.
    pub person: Person,
    /// Messages of others by conversation and place, as they were heard.
    pub heard: BTreeMap<(String, u64), Value>,
    /// Messages of others by id that were shown before they were saved, and are not saved yet.
    pub previews: BTreeMap<String, Value>,
    /// How many messages were shown before they were saved.
    pub previewed: usize,
    /// How many of those were taken away again.
    pub dropped: usize,
    /// Whether they ask for what is missing between messages, as a client does. Where nodes die, somebody
    /// has to: what a node had saved and not told yet nobody else tells.
    pub fills_holes: bool,
    /// How often the server was busy.
    pub busy: usize,
    /// How often they had to connect again.
    pub reconnects: usize,
    /// Up to where there is no hole.
    prefix: BTreeMap<String, u64>,
    asked_at: Option<Instant>,
    socket: Option<Socket>,
}

impl Stubborn {
    /// Somebody who is not connected yet.
    pub fn new(authority: &str, person: &Person) -> Self {
        Self {
            authority: authority.to_owned(),
            person: person.clone(),
            heard: BTreeMap::new(),
            previews: BTreeMap::new(),
            previewed: 0,
            dropped: 0,
            fills_holes: false,
            busy: 0,
            reconnects: 0,
            prefix: BTreeMap::new(),
            asked_at: None,
            socket: None,
        }
    }

    /// Says something to somebody until it is saved; returns the ACK.
    pub async fn send(&mut self, to: &str, client_id: &str, body: &str) -> Value {
        self.until_saved(&chat(to, client_id, body)).await
    }

    /// Says a frame until it is saved; returns the ACK.
    pub async fn until_saved(&mut self, frame: &Value) -> Value {
        loop {
            self.connect().await;
            let Some(socket) = &mut self.socket else { continue };
            if socket.try_text(&frame.to_string()).await.is_err() {
                self.socket = None;
                continue;
            }
            let id = frame["clientMsgId"].as_str().expect("a client id");
            match tokio::time::timeout(PATIENCE, self.answer(id)).await {
                Ok(Some(ack)) if ack["ackType"] == "saved" => return ack,
                Ok(Some(error)) => {
                    assert_eq!(error["reason"], "server_busy", "{error}");
                    self.busy += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                Ok(None) | Err(_) => self.socket = None,
            }
        }
    }

    /// Listens for a while.
    pub async fn listen(&mut self, time: Duration) {
        let until = tokio::time::Instant::now() + time;
        while tokio::time::Instant::now() < until {
            self.connect().await;
            let Some(socket) = &mut self.socket else { continue };
            match tokio::time::timeout_at(until, socket.hear_forever()).await {
                Ok(Heard::Frame(frame)) => self.note(&frame).await,
                Ok(Heard::Closed(_)) => self.socket = None,
                Err(_) => return,
            }
        }
    }

    /// The answer to what was said, or `None` if the socket ended first.
    async fn answer(&mut self, client_id: &str) -> Option<Value> {
        loop {
            let Heard::Frame(frame) = self.socket.as_mut()?.hear_forever().await else {
                return None;
            };
            let is_answer = matches!(frame["type"].as_str(), Some("ACK" | "ERROR"))
                && frame["ackType"] != "accepted"
                && (frame["type"] == "ERROR" || frame["from"] == self.person.id.as_str());
            if is_answer && frame["clientMsgId"] == client_id {
                return Some(frame);
            }
            self.note(&frame).await;
        }
    }

    async fn tell(&mut self, frame: Value) {
        if let Some(socket) = &mut self.socket
            && socket.try_text(&frame.to_string()).await.is_err()
        {
            self.socket = None;
        }
    }

    /// Writes down a message, and acknowledges as far as there is no hole; asks for the next page if
    /// there is one.
    async fn note(&mut self, frame: &Value) {
        if frame["type"] == "RESEND_DONE" && frame["hasMore"] == true {
            self.tell(json!({ "type": "RESEND" })).await;
        }
        let id = frame["serverMsgId"].as_str().unwrap_or_default();
        match (frame["type"].as_str(), frame["ackType"].as_str()) {
            (Some("SINGLE_CHAT"), _) if frame["preview"] == true => {
                assert!(frame["msgSeq"].is_null(), "{frame}");
                self.previewed += 1;
                self.previews.insert(id.to_owned(), frame.clone());
            }
            (Some("ACK"), Some("saved")) => {
                if let Some(mut shown) = self.previews.remove(id) {
                    shown["msgSeq"] = frame["msgSeq"].clone();
                    self.keep(&shown).await;
                }
            }
            (Some("ACK"), Some("dropped")) => {
                self.dropped += usize::from(self.previews.remove(id).is_some());
            }
            (Some("SINGLE_CHAT" | "GROUP_CHAT"), _) => {
                self.previews.remove(id);
                self.keep(frame).await;
            }
            _ => {}
        }
    }

    /// Writes down a message that has its place.
    async fn keep(&mut self, frame: &Value) {
        let from = frame["from"].as_str().unwrap_or_default();
        let place = frame["groupId"].as_str().unwrap_or(from).to_owned();
        self.heard.insert((place.clone(), seq(frame)), frame.clone());
        let prefix = self.prefix.entry(place.clone()).or_default();
        let before = *prefix;
        while self.heard.contains_key(&(place.clone(), *prefix + 1)) {
            *prefix += 1;
        }
        let (prefix, has_hole) = (*prefix, *prefix < seq(frame));
        if has_hole {
            self.ask_for_hole(&frame["conversationId"], prefix).await;
        }
        if prefix == before {
            return;
        }
        let last = &self.heard[&(place, prefix)];
        let ack = json!({
            "type": "ACK", "ackType": "delivered", "to": last["from"],
            "serverMsgId": last["serverMsgId"], "msgSeq": last["msgSeq"],
        });
        self.tell(ack).await;
    }

    /// Asks now and then: what is missing may be on its way.
    async fn ask_for_hole(&mut self, conversation: &Value, prefix: u64) {
        let is_time = self.asked_at.is_none_or(|at| at.elapsed() > HOLE);
        if let (true, true, Some(id)) = (self.fills_holes, is_time, conversation.as_str()) {
            self.asked_at = Some(Instant::now());
            let cursors = BTreeMap::from([(id, prefix.to_string())]);
            self.tell(json!({ "type": "RESEND", "cursors": cursors })).await;
        }
    }

    async fn connect(&mut self) {
        while self.socket.is_none() {
            match tokio::time::timeout(PATIENCE, self.open()).await {
                Ok(Some(socket)) => self.socket = Some(socket),
                Ok(None) | Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn open(&mut self) -> Option<Socket> {
        self.reconnects += 1;
        let mut socket = Socket::try_open(&self.authority).await?;
        let auth = json!({ "type": "AUTH", "token": self.person.token });
        socket.try_text(&auth.to_string()).await.ok()?;
        match socket.hear_forever().await {
            Heard::Frame(frame) if frame["type"] == "AUTH_OK" => Some(socket),
            _ => None,
        }
    }
}
