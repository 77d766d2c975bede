//! A minimal HTTP client that can also send malformed requests.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub struct HttpResponse {
    pub status: u16,
    /// Status line and headers as received.
    pub head: String,
    /// The body as received.
    pub text: String,
    /// The body as JSON, or null.
    pub body: Value,
}

impl HttpResponse {
    /// The envelope's `data`; panics unless the request succeeded.
    pub fn data(&self) -> &Value {
        assert_eq!((self.status, &self.body["code"]), (200, &Value::from(0)), "{}", self.text);
        &self.body["data"]
    }

    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The reason of a refusal, or empty.
    pub fn reason(&self) -> &str {
        self.body["reason"].as_str().unwrap_or_default()
    }
}

/// A client for one server address.
#[derive(Clone, Debug)]
pub struct Http {
    /// `host:port`.
    pub authority: String,
}

impl Http {
    pub async fn get(&self, path: &str, token: &str) -> HttpResponse {
        self.ask("GET", path, token, None).await
    }

    pub async fn post(&self, path: &str, token: &str, body: Value) -> HttpResponse {
        self.ask("POST", path, token, Some(body)).await
    }

    pub async fn put(&self, path: &str, token: &str, body: Value) -> HttpResponse {
        self.ask("PUT", path, token, Some(body)).await
    }

    pub async fn delete(&self, path: &str, token: &str) -> HttpResponse {
        self.ask("DELETE", path, token, None).await
    }

    /// Any method, with or without a body.
    pub async fn ask(
        &self,
        method: &str,
        path: &str,
        token: &str,
        body: Option<Value>,
    ) -> HttpResponse {
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
    pub async fn raw(&self, bytes: &[u8]) -> HttpResponse {
        self.try_raw(bytes).await.expect("an answer")
    }

    /// As [`Self::raw`]; `None` if the connection broke before a response.
    pub async fn try_raw(&self, bytes: &[u8]) -> Option<HttpResponse> {
        self.try_raw_on(TcpStream::connect(&self.authority).await.ok()?, bytes).await
    }

    /// As [`Self::try_raw`], on a connection that is open already.
    pub async fn try_raw_on(&self, mut stream: TcpStream, bytes: &[u8]) -> Option<HttpResponse> {
        let exchange = async {
            stream.write_all(bytes).await?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await?;
            std::io::Result::Ok(String::from_utf8_lossy(&answer).into_owned())
        };
        let answer = tokio::time::timeout(TIMEOUT, exchange).await.expect("an answer in time");
        let answer = answer.ok()?;
        let (head, text) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let body = serde_json::from_str(text).unwrap_or(Value::Null);
        Some(HttpResponse { status, head: head.to_owned(), text: text.to_owned(), body })
    }
}
