//! One request of the table, before a caller is put into it.

use serde_json::Value;

/// A masked close frame without a payload: a socket that was opened ends at once.
const CLOSE_FRAME: [u8; 6] = [0x88, 0x80, 0, 0, 0, 0];

const UPGRADE: [&str; 4] = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

#[derive(Default)]
pub(crate) struct Request {
    query: String,
    body: String,
    headers: Vec<String>,
    /// Parameters of the path that the world does not have, by name.
    params: Vec<(&'static str, String)>,
    is_upgrade: bool,
}

/// A request with neither query nor body.
pub(crate) fn empty() -> Request {
    Request::default()
}

pub(crate) fn query(query: impl Into<String>) -> Request {
    Request { query: query.into(), ..Request::default() }
}

pub(crate) fn body(body: &Value) -> Request {
    Request { body: body.to_string(), ..Request::default() }
}

/// A body that is more than one JSON value.
pub(crate) fn lines(lines: &str) -> Request {
    Request { body: lines.to_owned(), ..Request::default() }
}

/// The opening of a socket.
pub(crate) fn upgrade(query: impl Into<String>) -> Request {
    Request { query: query.into(), is_upgrade: true, ..Request::default() }
}

impl Request {
    #[must_use]
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push(format!("{name}: {value}"));
        self
    }

    #[must_use]
    pub(crate) fn param(mut self, name: &'static str, value: &str) -> Self {
        self.params.push((name, value.to_owned()));
        self
    }

    /// The path of a template, by the request's own parameters and then those of the world.
    pub(crate) fn path(&self, template: &str, world: &[(&'static str, String)]) -> String {
        let mut path = template.to_owned();
        for (name, value) in self.params.iter().chain(world) {
            path = path.replace(&format!("{{{name}}}"), value);
        }
        assert!(!path.contains('{'), "{path} has a parameter without a value");
        let mark = if self.query.is_empty() { "" } else { "?" };
        format!("{path}{mark}{}", self.query)
    }

    /// The bytes on the wire. The forwarded address is one per cell: limits count by address, and a cell must not see
    /// those of another.
    pub(crate) fn bytes(&self, method: &str, path: &str, token: &str, address: &str) -> Vec<u8> {
        let mut head = vec![
            format!("{method} {path} HTTP/1.1"),
            "Host: x".to_owned(),
            format!("X-Forwarded-For: {address}"),
            format!("Content-Length: {}", self.body.len()),
        ];
        if !token.is_empty() {
            head.push(format!("Authorization: Bearer {token}"));
        }
        head.extend(self.headers.iter().cloned());
        let connection: &[&str] = if self.is_upgrade { &UPGRADE } else { &["Connection: close"] };
        head.extend(connection.iter().map(|&header| header.to_owned()));
        let head = head.join("\r\n") + "\r\n\r\n";
        let mut bytes = (head + &self.body).into_bytes();
        if self.is_upgrade {
            bytes.extend(CLOSE_FRAME);
        }
        bytes
    }
}
