//! HTTP by hand: small enough to read, and able to say what a polite client would not.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(30);

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The head as it came.
    pub head: String,
    /// The body as it came.
    pub text: String,
    /// The body as JSON, or null.
    pub body: Value,
}

impl Answer {
    /// The envelope's `data`; panics unless the answer is a success.
    pub fn data(&self) -> &Value {
        assert_eq!((self.status, &self.body["code"]), (200, &Value::from(0)), "{}", self.text);
        &self.body["data"]
    }

    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The refusal's word.
    pub fn reason(&self) -> &str {
        self.body["reason"].as_str().unwrap_or_default()
    }
}

/// A server's address to ask.
#[derive(Clone, Debug)]
pub struct Http {
    /// `host:port`.
    pub authority: String,
}

impl Http {
    /// Gets a path.
    pub async fn get(&self, path: &str, token: &str) -> Answer {
        self.ask("GET", path, token, None).await
    }

    /// Posts a JSON body.
    pub async fn post(&self, path: &str, token: &str, body: Value) -> Answer {
        self.ask("POST", path, token, Some(body)).await
    }

    /// Puts a JSON body.
    pub async fn put(&self, path: &str, token: &str, body: Value) -> Answer {
        self.ask("PUT", path, token, Some(body)).await
    }

    async fn ask(&self, method: &str, path: &str, token: &str, body: Option<Value>) -> Answer {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let token = match token {
            "" => String::new(),
            token => format!("Authorization: Bearer {token}\r\n"),
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n{token}",
            self.authority,
            body.len(),
        );
        self.raw(format!("{head}\r\n{body}").as_bytes()).await
    }

    /// Sends bytes as they are and reads until the server closes.
    pub async fn raw(&self, bytes: &[u8]) -> Answer {
        self.try_raw(bytes).await.expect("an answer")
    }

    /// As [`Self::raw`]; `None` if the connection broke before there was an answer.
    pub async fn try_raw(&self, bytes: &[u8]) -> Option<Answer> {
        let exchange = async {
            let mut stream = TcpStream::connect(&self.authority).await?;
            stream.write_all(bytes).await?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await?;
            std::io::Result::Ok(String::from_utf8_lossy(&answer).into_owned())
        };
        let answer = tokio::time::timeout(PATIENCE, exchange).await.expect("an answer in time");
        let answer = answer.ok()?;
        let (head, text) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let body = serde_json::from_str(text).unwrap_or(Value::Null);
        Some(Answer { status, head: head.to_owned(), text: text.to_owned(), body })
    }
}
