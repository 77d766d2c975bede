//! A fake server, for behaviour that a real one does not show.
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use nexo_sdk::{Client, Options};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use crate::server::{online, options, until};

pub(crate) const ID: &str = "si_me_you";

type Answer = Box<dyn Fn(&str) -> (u16, Value) + Send>;

/// The server's end of one connection.
struct Socket {
    say: mpsc::UnboundedSender<Message>,
    heard: Arc<Mutex<Vec<Value>>>,
}

#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) url: String,
    sockets: Arc<Mutex<Vec<Socket>>>,
    answers: Arc<Mutex<HashMap<&'static str, Answer>>>,
    /// How long the answers to some paths take.
    delays: Arc<Mutex<HashMap<&'static str, Duration>>>,
    /// Connections stay open, but frames are not read.
    is_deaf: Arc<AtomicBool>,
    /// The requested paths.
    asked: Arc<Mutex<Vec<String>>>,
}

pub(crate) fn grant(token: &str) -> Value {
    let (refresh, user) = (format!("{token}-refresh"), json!({ "user_id": "me" }));
    json!({ "token": token, "refresh_token": refresh, "expires_in": 1800, "user_info": user })
}

impl Fake {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sockets, answers, delays, is_deaf, asked) = Default::default();
        let fake = Self { url, sockets, answers, delays, is_deaf, asked };
        fake.answer("/auth/login", |_| (200, grant("token-1")));
        fake.answer("/conversation/heads", |_| (200, json!({ "heads": [], "has_more": false })));
        fake.answer("/conversation/all", |_| (200, json!({ "list": [], "has_more": false })));
        let serving = fake.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(stream));
            }
        });
        fake
    }

    /// Sets the answer to this path; it is called with the whole path.
    pub(crate) fn answer(
        &self,
        path: &'static str,
        answer: impl Fn(&str) -> (u16, Value) + Send + 'static,
    ) {
        self.answers.lock().unwrap().insert(path, Box::new(answer));
    }

    /// Delays the answers to this path.
    pub(crate) fn delay(&self, path: &'static str, ms: u64) {
        self.delays.lock().unwrap().insert(path, Duration::from_millis(ms));
    }

    /// A client that is signed in and online.
    pub(crate) async fn person(&self, change: impl FnOnce(&mut Options)) -> Client {
        let mut options = options(&self.url);
        options.timing.gap_delay_ms = 50;
        options.timing.ack_window_ms = 50;
        change(&mut options);
        let client = Client::new(options).unwrap();
        client.login("me", "password").await.unwrap();
        online(&client).await;
        client
    }

    /// Sends a frame on the newest connection.
    pub(crate) fn say(&self, frame: &Value) {
        let frame = Message::text(frame.to_string());
        self.sockets.lock().unwrap().last().unwrap().say.send(frame).unwrap();
    }

    /// Ends it with a close code, or abruptly.
    pub(crate) fn end(&self, close: Option<(u16, &str)>) {
        let word = |(code, reason): (u16, &str)| CloseFrame {
            code: code.into(),
            reason: reason.to_owned().into(),
        };
        let frame = Message::Close(close.map(word));
        self.sockets.lock().unwrap().last().unwrap().say.send(frame).unwrap();
    }

    /// Stops reading, or reads again on the next connection.
    pub(crate) fn deafen(&self, is_deaf: bool) {
        self.is_deaf.store(is_deaf, Relaxed);
        // A frame wakes the reading loop.
        self.say(&json!({ "type": "PONG" }));
    }

    pub(crate) fn connections(&self) -> usize {
        self.sockets.lock().unwrap().len()
    }

    /// The frames of a type that the newest connection received.
    pub(crate) fn heard(&self, kind: &str) -> Vec<Value> {
        let sockets = self.sockets.lock().unwrap();
        let heard = sockets.last().unwrap().heard.lock().unwrap();
        heard.iter().filter(|frame| frame["type"] == kind).cloned().collect()
    }

    pub(crate) async fn until_heard(&self, kind: &str, many: usize) -> Vec<Value> {
        until(kind, async || self.heard(kind).len() >= many).await;
        self.heard(kind)
    }

    pub(crate) fn asked(&self, path: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| asked.starts_with(path)).count()
    }

    async fn serve(self, stream: TcpStream) {
        let mut first = [0; 8];
        while stream.peek(&mut first).await.is_ok_and(|many| many > 0 && many < first.len()) {}
        if first.starts_with(b"GET /ws") {
            self.serve_socket(stream).await;
        } else {
            self.serve_http(stream).await;
        }
    }

    async fn serve_socket(self, stream: TcpStream) {
        let mut stream = accept_async(stream).await.unwrap();
        let (say, mut said) = mpsc::unbounded_channel();
        let heard = Arc::new(Mutex::new(Vec::new()));
        self.sockets.lock().unwrap().push(Socket { say, heard: heard.clone() });
        loop {
            tokio::select! {
                frame = said.recv() => match frame.unwrap() {
                    Message::Close(None) => return,
                    frame => drop(stream.send(frame).await),
                },
                frame = stream.next(), if !self.is_deaf.load(Relaxed) => {
                    let Some(Ok(Message::Text(text))) = frame else { return };
                    let frame: Value = serde_json::from_str(&text).unwrap();
                    let is_hello = frame["type"] == "AUTH";
                    heard.lock().unwrap().push(frame);
                    if is_hello {
                        let limits = json!({ "frameBytesMax": 131_072 });
                        let welcome = json!({ "type": "AUTH_OK", "from": "me", "limits": limits });
                        stream.send(Message::text(welcome.to_string())).await.ok();
                    }
                }
            }
        }
    }

    /// One request per connection; bodies are small enough to come at once.
    async fn serve_http(self, mut stream: TcpStream) {
        let mut bytes = vec![0; 1 << 16];
        let many = stream.read(&mut bytes).await.unwrap_or(0);
        let text = String::from_utf8_lossy(&bytes[..many]).into_owned();
        let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
        self.asked.lock().unwrap().push(path.clone());
        let plain = path.split('?').next().unwrap_or_default();
        let delay = self.delays.lock().unwrap().get(plain).copied();
        tokio::time::sleep(delay.unwrap_or_default()).await;
        let answer = self.answers.lock().unwrap().get(plain).map(|answer| answer(&path));
        // No answer: the connection just ends.
        let Some((status, data)) = answer else { return };
        let is_good = status == 200;
        let envelope = if is_good { json!({ "code": 0, "data": data }) } else { data };
        let body = envelope.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).await.ok();
    }
}
