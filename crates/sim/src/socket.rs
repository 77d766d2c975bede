//! A WebSocket that speaks the typed dialect.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::process;
use crate::repeats::Repeats;

const PATIENCE: Duration = Duration::from_secs(20);

/// What came from the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// A frame.
    Frame(Value),
    /// The end, with its close code if there was one.
    Closed(Option<u16>),
}

/// A client's side of a socket.
pub struct Socket {
    /// The raw stream, for tests that misbehave.
    pub stream: WebSocketStream<TcpStream>,
    waiting: VecDeque<Value>,
    repeats: Repeats,
}

impl Socket {
    /// Connects; says nothing yet.
    pub async fn open(authority: &str) -> Self {
        Self::open_with(authority, "").await
    }

    /// Connects with something said at the handshake.
    pub async fn open_with(authority: &str, query: &str) -> Self {
        let tcp = TcpStream::connect(authority).await.expect("a connection");
        tcp.set_nodelay(true).expect("a live socket");
        let url = format!("ws://{authority}/ws{query}");
        let (stream, _) = client_async(url, tcp).await.expect("a handshake");
        Self { stream, waiting: VecDeque::new(), repeats: Repeats::new() }
    }

    /// Connects, or not.
    pub async fn try_open(authority: &str) -> Option<Self> {
        let tcp = TcpStream::connect(authority).await.ok()?;
        tcp.set_nodelay(true).ok()?;
        let (stream, _) = client_async(format!("ws://{authority}/ws"), tcp).await.ok()?;
        Some(Self { stream, waiting: VecDeque::new(), repeats: Repeats::new() })
    }

    /// Says who it is and expects to be believed.
    pub async fn auth(&mut self, token: &str) -> Value {
        self.say(json!({ "type": "AUTH", "token": token })).await;
        self.expect("AUTH_OK").await
    }

    /// Sends a frame.
    pub async fn say(&mut self, frame: Value) {
        self.text(&frame.to_string()).await;
    }

    /// Sends text as it is.
    pub async fn text(&mut self, text: &str) {
        self.repeats.saying(text);
        self.stream.send(Message::text(text)).await.expect("the socket is open");
    }

    /// Sends text, or says that the socket is gone.
    pub async fn try_text(&mut self, text: &str) -> Result<(), Box<dyn std::error::Error>> {
        self.repeats.saying(text);
        Ok(self.stream.send(Message::text(text)).await?)
    }

    /// Sends many frames with one flush.
    pub async fn burst(&mut self, frames: impl IntoIterator<Item = Value>) {
        for frame in frames {
            let frame = frame.to_string();
            self.repeats.saying(&frame);
            self.stream.feed(Message::text(frame)).await.expect("the socket is open");
        }
        self.stream.flush().await.expect("the socket is open");
    }

    /// The next thing heard.
    pub async fn hear(&mut self) -> Heard {
        if let Some(frame) = self.waiting.pop_front() {
            return Heard::Frame(frame);
        }
        tokio::time::timeout(PATIENCE, self.receive()).await.expect("something in time")
    }

    /// The next thing heard, however long that takes.
    pub async fn hear_forever(&mut self) -> Heard {
        match self.waiting.pop_front() {
            Some(frame) => Heard::Frame(frame),
            None => self.receive().await,
        }
    }

    async fn receive(&mut self) -> Heard {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => {
                    let frame = serde_json::from_str(&text).expect("frames are JSON");
                    if !self.repeats.is_one(&text, &frame) {
                        return Heard::Frame(frame);
                    }
                }
                Some(Ok(Message::Close(close))) => {
                    return Heard::Closed(close.map(|close| close.code.into()));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Heard::Closed(None),
            }
        }
    }

    /// The next frame; panics if the socket closed instead.
    pub async fn next(&mut self) -> Value {
        match self.hear().await {
            Heard::Frame(frame) => frame,
            Heard::Closed(code) => panic!("closed with {code:?} instead of a frame"),
        }
    }

    /// The next frame of a type, keeping the others for later.
    pub async fn expect(&mut self, kind: &str) -> Value {
        self.find(|frame| frame["type"] == kind, kind).await
    }

    /// The next ACK of a type, keeping the others for later.
    pub async fn expect_ack(&mut self, ack_type: &str) -> Value {
        self.find(|frame| frame["type"] == "ACK" && frame["ackType"] == ack_type, ack_type).await
    }

    /// The next frame that fits, keeping the others for later.
    pub async fn find(&mut self, fits: impl Fn(&Value) -> bool, what: &str) -> Value {
        if let Some(at) = self.waiting.iter().position(&fits) {
            return self.waiting.remove(at).expect("it was there");
        }
        loop {
            let heard = tokio::time::timeout(PATIENCE, self.receive()).await;
            match heard.unwrap_or_else(|_| panic!("no {what} in time; kept: {:?}", self.waiting)) {
                Heard::Frame(frame) if fits(&frame) => return frame,
                Heard::Frame(frame) => self.waiting.push_back(frame),
                Heard::Closed(code) => panic!("closed with {code:?} before {what}"),
            }
        }
    }

    /// Whether a frame that fits has come by now; all are kept for later.
    pub async fn has(&mut self, fits: impl Fn(&Value) -> bool) -> bool {
        while let Ok(Heard::Frame(frame)) =
            tokio::time::timeout(Duration::from_millis(1), self.receive()).await
        {
            self.waiting.push_back(frame);
        }
        self.waiting.iter().any(fits)
    }

    /// Throws away frames that were kept for later.
    pub fn forget(&mut self, fits: impl Fn(&Value) -> bool) {
        self.waiting.retain(|frame| !fits(frame));
    }

    /// All frames up to one of a type, which is left out.
    pub async fn until(&mut self, kind: &str) -> Vec<Value> {
        self.up_to(kind).await.0
    }

    /// All frames up to one of a type, and that one.
    pub async fn up_to(&mut self, kind: &str) -> (Vec<Value>, Value) {
        let mut frames = Vec::new();
        loop {
            let frame = self.next().await;
            if frame["type"] == kind {
                let is_page = kind == "RESEND_DONE";
                return (if is_page { self.once(frames) } else { frames }, frame);
            }
            frames.push(frame);
        }
    }

    /// What pages brought, without what else may come meanwhile among nodes: a node hears late of
    /// what happened elsewhere, and pushes it to somebody who has just connected.
    pub fn once(&self, frames: Vec<Value>) -> Vec<Value> {
        self.repeats.once(frames)
    }

    /// Expects nothing for a moment: sends a PING and hears the PONG first. Among nodes a message
    /// that was heard may have been brought from the store, and the end of that is told too.
    pub async fn expect_silence(&mut self) {
        self.say(json!({ "type": "PING" })).await;
        let mut frame = self.next().await;
        while process::nodes() > 1 && frame["type"] == "RESEND_DONE" {
            frame = self.next().await;
        }
        assert_eq!(frame["type"], "PONG", "expected silence, heard {frame}");
    }

    /// Expects the end; returns the frames before it and the close code.
    pub async fn expect_end(&mut self) -> (Vec<Value>, Option<u16>) {
        let mut frames = Vec::new();
        loop {
            match self.hear().await {
                Heard::Frame(frame) => frames.push(frame),
                Heard::Closed(code) => return (frames, code),
            }
        }
    }

    /// Sends a text to somebody and returns its ACK(saved).
    pub async fn send(&mut self, to: &str, client_id: &str, body: &str) -> Value {
        self.say(chat(to, client_id, body)).await;
        self.answer(client_id).await
    }

    /// The ACK(saved) or the refusal of a send.
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

/// A send as a frame.
pub fn chat(to: &str, client_id: &str, body: &str) -> Value {
    json!({ "type": "SINGLE_CHAT", "clientMsgId": client_id, "to": to, "body": body })
}

/// A frame's seq.
pub fn seq(frame: &Value) -> u64 {
    let seq = frame["msgSeq"].as_str().unwrap_or_else(|| panic!("no seq in {frame}"));
    seq.parse().expect("a number")
}
