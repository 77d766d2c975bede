//! A WebSocket client of the typed dialect.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::duplicate_filter::DuplicateFilter;
use crate::process;

const TIMEOUT: Duration = Duration::from_secs(20);

/// What came from the server.
#[derive(Clone, Debug, PartialEq)]
pub enum SocketEvent {
    Frame(Value),
    /// The socket closed, with a close code if there was a close frame.
    Closed(Option<u16>),
}

/// The client side of a WebSocket.
pub struct Socket {
    /// The raw stream, for tests that misbehave.
    pub stream: WebSocketStream<TcpStream>,
    queued: VecDeque<Value>,
    duplicates: DuplicateFilter,
}

impl Socket {
    /// Connects without authenticating.
    pub async fn open(authority: &str) -> Self {
        Self::open_with(authority, "").await
    }

    /// Connects with a query string in the handshake.
    pub async fn open_with(authority: &str, query: &str) -> Self {
        let tcp = TcpStream::connect(authority).await.expect("a connection");
        tcp.set_nodelay(true).expect("a live socket");
        let url = format!("ws://{authority}/ws{query}");
        let (stream, _) = client_async(url, tcp).await.expect("a handshake");
        Self { stream, queued: VecDeque::new(), duplicates: DuplicateFilter::new() }
    }

    /// Connects; `None` if that fails.
    pub async fn try_open(authority: &str) -> Option<Self> {
        Self::try_open_on(TcpStream::connect(authority).await.ok()?, authority).await
    }

    /// Opens a WebSocket on a connection; `None` if that fails.
    pub async fn try_open_on(tcp: TcpStream, authority: &str) -> Option<Self> {
        tcp.set_nodelay(true).ok()?;
        let (stream, _) = client_async(format!("ws://{authority}/ws"), tcp).await.ok()?;
        Some(Self { stream, queued: VecDeque::new(), duplicates: DuplicateFilter::new() })
    }

    /// Authenticates and expects success.
    pub async fn auth(&mut self, token: &str) -> Value {
        self.say(json!({ "type": "AUTH", "token": token })).await;
        self.expect("AUTH_OK").await
    }

    pub async fn say(&mut self, frame: Value) {
        self.text(&frame.to_string()).await;
    }

    /// Sends text as it is.
    pub async fn text(&mut self, text: &str) {
        self.duplicates.note_sent(text);
        self.stream.send(Message::text(text)).await.expect("the socket is open");
    }

    /// Sends text; an error if the socket is closed.
    pub async fn try_text(&mut self, text: &str) -> Result<(), Box<dyn std::error::Error>> {
        self.duplicates.note_sent(text);
        Ok(self.stream.send(Message::text(text)).await?)
    }

    /// Sends many frames with one flush.
    pub async fn burst(&mut self, frames: impl IntoIterator<Item = Value>) {
        for frame in frames {
            let frame = frame.to_string();
            self.duplicates.note_sent(&frame);
            self.stream.feed(Message::text(frame)).await.expect("the socket is open");
        }
        self.stream.flush().await.expect("the socket is open");
    }

    /// The next event; panics if none comes in time.
    pub async fn hear(&mut self) -> SocketEvent {
        if let Some(frame) = self.queued.pop_front() {
            return SocketEvent::Frame(frame);
        }
        tokio::time::timeout(TIMEOUT, self.receive()).await.expect("something in time")
    }

    /// The next event, without a timeout.
    pub async fn hear_forever(&mut self) -> SocketEvent {
        match self.queued.pop_front() {
            Some(frame) => SocketEvent::Frame(frame),
            None => self.receive().await,
        }
    }

    async fn receive(&mut self) -> SocketEvent {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => {
                    let frame = serde_json::from_str(&text).expect("frames are JSON");
                    if !self.duplicates.check_duplicate(&text, &frame) {
                        return SocketEvent::Frame(frame);
                    }
                }
                Some(Ok(Message::Close(close))) => {
                    return SocketEvent::Closed(close.map(|close| close.code.into()));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return SocketEvent::Closed(None),
            }
        }
    }

    /// The next frame; panics if the socket closed instead.
    pub async fn next(&mut self) -> Value {
        match self.hear().await {
            SocketEvent::Frame(frame) => frame,
            SocketEvent::Closed(code) => panic!("closed with {code:?} instead of a frame"),
        }
    }

    /// The next frame of a type; others are queued for later.
    pub async fn expect(&mut self, kind: &str) -> Value {
        self.find(|frame| frame["type"] == kind, kind).await
    }

    /// The next ACK of a type; other frames are queued for later.
    pub async fn expect_ack(&mut self, ack_type: &str) -> Value {
        self.find(|frame| frame["type"] == "ACK" && frame["ackType"] == ack_type, ack_type).await
    }

    /// The next frame that matches; others are queued for later.
    pub async fn find(&mut self, matches: impl Fn(&Value) -> bool, what: &str) -> Value {
        if let Some(at) = self.queued.iter().position(&matches) {
            return self.queued.remove(at).expect("it was there");
        }
        loop {
            let received = tokio::time::timeout(TIMEOUT, self.receive()).await;
            match received.unwrap_or_else(|_| panic!("no {what} in time; kept: {:?}", self.queued))
            {
                SocketEvent::Frame(frame) if matches(&frame) => return frame,
                SocketEvent::Frame(frame) => self.queued.push_back(frame),
                SocketEvent::Closed(code) => panic!("closed with {code:?} before {what}"),
            }
        }
    }

    /// Whether a matching frame has arrived; all frames stay queued.
    pub async fn has(&mut self, matches: impl Fn(&Value) -> bool) -> bool {
        while let Ok(SocketEvent::Frame(frame)) =
            tokio::time::timeout(Duration::from_millis(1), self.receive()).await
        {
            self.queued.push_back(frame);
        }
        self.queued.iter().any(matches)
    }

    /// Removes matching frames from the queue.
    pub fn forget(&mut self, matches: impl Fn(&Value) -> bool) {
        self.queued.retain(|frame| !matches(frame));
    }

    /// All frames up to one of a type, without that one.
    pub async fn until(&mut self, kind: &str) -> Vec<Value> {
        self.up_to(kind).await.0
    }

    /// All frames up to one of a type, and that one separately.
    pub async fn up_to(&mut self, kind: &str) -> (Vec<Value>, Value) {
        let mut frames = Vec::new();
        loop {
            let frame = self.next().await;
            if frame["type"] == kind {
                let is_page = kind == "RESEND_DONE";
                return (if is_page { self.without_duplicates(frames) } else { frames }, frame);
            }
            frames.push(frame);
        }
    }

    /// The frames of pages without pushes that may come in between with several nodes: a node learns late of
    /// events elsewhere, and pushes them to a client that has just connected.
    pub fn without_duplicates(&self, frames: Vec<Value>) -> Vec<Value> {
        self.duplicates.without_duplicates(frames)
    }

    /// Expects no frame: sends a PING and expects the PONG first. With several nodes an earlier message may
    /// have come by a backfill, whose `RESEND_DONE` may follow.
    pub async fn expect_silence(&mut self) {
        self.say(json!({ "type": "PING" })).await;
        let mut frame = self.next().await;
        while process::nodes() > 1 && frame["type"] == "RESEND_DONE" {
            frame = self.next().await;
        }
        assert_eq!(frame["type"], "PONG", "expected silence, received {frame}");
    }

    /// Expects the socket to close; returns the frames before that and the close code.
    pub async fn expect_end(&mut self) -> (Vec<Value>, Option<u16>) {
        let mut frames = Vec::new();
        loop {
            match self.hear().await {
                SocketEvent::Frame(frame) => frames.push(frame),
                SocketEvent::Closed(code) => return (frames, code),
            }
        }
    }

    /// Sends a text message and returns its ACK(saved).
    pub async fn send(&mut self, to: &str, client_id: &str, body: &str) -> Value {
        self.say(chat(to, client_id, body)).await;
        self.answer(client_id).await
    }

    /// The ACK(saved) or the ERROR of a send.
    pub async fn answer(&mut self, client_id: &str) -> Value {
        self.find(
            |frame| {
                frame["clientMsgId"] == client_id
                    && (frame["type"] == "ERROR" || frame["ackType"] == "saved")
            },
            "the answer to a send",
        )
        .await
    }

    /// Acknowledges a message.
    pub async fn ack(&mut self, ack_type: &str, to: &str, message: &Value) {
        let id = &message["serverMsgId"];
        self.say(json!({ "type": "ACK", "ackType": ack_type, "serverMsgId": id, "to": to })).await;
    }
}

/// A frame that sends a private message.
pub fn chat(to: &str, client_id: &str, body: &str) -> Value {
    json!({ "type": "SINGLE_CHAT", "clientMsgId": client_id, "to": to, "body": body })
}

/// A frame's seq.
pub fn seq(frame: &Value) -> u64 {
    let seq = frame["msgSeq"].as_str().unwrap_or_else(|| panic!("no seq in {frame}"));
    seq.parse().expect("a number")
}
