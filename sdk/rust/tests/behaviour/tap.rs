//! A proxy between a client and a server that records every frame and can drop some.
use std::sync::{Arc, Mutex};

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{accept_async, client_async};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the client.
    Up,
    Down,
}

type Swallows = Box<dyn FnMut(Way, &Value) -> bool + Send>;

#[derive(Clone)]
pub(crate) struct Tap {
    pub(crate) url: String,
    book: Arc<Mutex<Book>>,
}

struct Book {
    frames: Vec<(Way, Value)>,
    /// The first lines of HTTP requests.
    asked: Vec<String>,
    swallows: Swallows,
}

impl Tap {
    pub(crate) async fn before(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (frames, asked, swallows) = (Vec::new(), Vec::new(), Box::new(|_, _: &Value| false));
        let tap = Self { url, book: Arc::new(Mutex::new(Book { frames, asked, swallows })) };
        let (server, passing) = (server.trim_start_matches("http://").to_owned(), tap.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(passing.clone().pass(client, server.clone()));
            }
        });
        tap
    }

    /// Drops these frames from now on.
    pub(crate) fn swallow(&self, swallows: impl FnMut(Way, &Value) -> bool + Send + 'static) {
        self.book.lock().unwrap().swallows = Box::new(swallows);
    }

    /// The recorded frames of a type.
    pub(crate) fn of(&self, way: Way, kind: &str) -> Vec<Value> {
        let book = self.book.lock().unwrap();
        let passed =
            book.frames.iter().filter(|(passed, frame)| *passed == way && frame["type"] == kind);
        passed.map(|(_, frame)| frame.clone()).collect()
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.book.lock().unwrap().asked.clone()
    }

    async fn pass(self, client: TcpStream, server: String) {
        let mut first = [0; 8];
        while client.peek(&mut first).await.is_ok_and(|many| many > 0 && many < first.len()) {}
        let Ok(upstream) = TcpStream::connect(&server).await else { return };
        if first.starts_with(b"GET /ws") {
            self.relay(client, upstream, &server).await;
        } else {
            self.copy(client, upstream).await;
        }
    }

    async fn copy(self, client: TcpStream, upstream: TcpStream) {
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = upstream.into_split();
        tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await.ok() });
        let mut bytes = vec![0; 1 << 16];
        while let Ok(many @ 1..) = from_client.read(&mut bytes).await {
            let text = String::from_utf8_lossy(&bytes[..many]).into_owned();
            let lines = text.lines().filter(|line| line.ends_with("HTTP/1.1")).map(str::to_owned);
            self.book.lock().unwrap().asked.extend(lines);
            if to_server.write_all(&bytes[..many]).await.is_err() {
                return;
            }
        }
    }

    async fn relay(self, client: TcpStream, upstream: TcpStream, server: &str) {
        let Ok(mut client) = accept_async(client).await else { return };
        let Ok((mut upstream, _)) = client_async(format!("ws://{server}/ws"), upstream).await
        else {
            return;
        };
        loop {
            let (way, said) = tokio::select! {
                said = client.next() => (Way::Up, said),
                said = upstream.next() => (Way::Down, said),
            };
            let Some(Ok(said)) = said else { return };
            if matches!(&said, Message::Text(text) if self.is_swallowed(way, text)) {
                continue;
            }
            let is_over = said.is_close();
            let to = if way == Way::Up { &mut upstream } else { &mut client };
            if to.send(said).await.is_err() || is_over {
                return;
            }
        }
    }

    fn is_swallowed(&self, way: Way, text: &str) -> bool {
        let frame: Value = serde_json::from_str(text).unwrap();
        let mut book = self.book.lock().unwrap();
        let is_swallowed = (book.swallows)(way, &frame);
        if !is_swallowed {
            book.frames.push((way, frame));
        }
        is_swallowed
    }
}
