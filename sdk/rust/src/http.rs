//! HTTP requests.
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::dial::Server;
use crate::error::{Error, Refused};
use crate::reason::Reason;

const RESPONSE_BYTES_MAX: usize = 64 << 20;
/// An idle connection is reused for this long; the server may close older ones at any moment.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// HTTP requests. Every answer is an envelope; a refusal becomes an error with its reason.
#[derive(Clone)]
pub(crate) struct Http {
    pub(crate) server: Arc<Server>,
    timeout: Duration,
    /// An idle connection to reuse, and since when it is idle.
    idle: Arc<Mutex<Option<(Instant, HttpSender)>>>,
}

type HttpSender = SendRequest<Full<Bytes>>;

/// A request to the API.
pub(crate) struct ApiRequest {
    method: Method,
    path: String,
    body: Option<Value>,
    /// Overrides the default.
    timeout: Option<Duration>,
}

/// The envelope of an answer to `Client::request`, with the names of HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply<Data> {
    /// Always 0: a refusal is an error.
    pub code: i64,
    /// The message of the server.
    pub message: String,
    /// The payload.
    pub data: Data,
    /// Identifies the request in the server's log.
    pub request_id: String,
    /// If `data` is a list: whether there is more.
    pub has_more: Option<bool>,
}

/// The envelope as received.
#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    data: Value,
    reason: Option<Reason>,
    message: Option<String>,
    request_id: Option<String>,
    has_more: Option<bool>,
}

impl ApiRequest {
    pub(crate) fn get(path: &str, query: &[(&str, &str)]) -> Self {
        let mut path = path.to_owned();
        for (key, value) in query {
            add_query(&mut path, key, value);
        }
        Self { method: Method::GET, path, body: None, timeout: None }
    }

    /// Any request of the app. For methods without a body, its fields become the query.
    pub(crate) fn any(method: &str, path: &str, body: Option<Value>) -> Result<Self, Error> {
        let bad = |why: &str| Error::InvalidRequest(format!("{method} {path}: {why}"));
        let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes())
            .map_err(|_| bad("no method"))?;
        // Anything else could name another host, which must not get the token.
        if !path.starts_with('/') || path.starts_with("//") {
            return Err(bad("a path begins with one /"));
        }
        path.parse::<PathAndQuery>().map_err(|_| bad("no path"))?;
        let mut path = path.to_owned();
        if ![Method::GET, Method::DELETE, Method::HEAD].contains(&method) {
            let body = Some(body.unwrap_or_else(|| json!({})));
            return Ok(Self { method, path, body, timeout: None });
        }
        let fields = match body {
            None => serde_json::Map::new(),
            Some(Value::Object(fields)) => fields,
            Some(_) => return Err(bad("a query has fields")),
        };
        for (key, value) in &fields {
            match value {
                Value::Null => {}
                Value::String(text) => add_query(&mut path, key, text),
                Value::Bool(_) | Value::Number(_) => add_query(&mut path, key, &value.to_string()),
                _ => return Err(bad("a field of a query is a text, a number or a bool")),
            }
        }
        Ok(Self { method, path, body: None, timeout: None })
    }

    pub(crate) fn post(path: &str, body: Value) -> Self {
        Self { method: Method::POST, path: path.to_owned(), body: Some(body), timeout: None }
    }

    pub(crate) fn put(path: &str, body: Value) -> Self {
        Self { method: Method::PUT, path: path.to_owned(), body: Some(body), timeout: None }
    }

    /// Overrides the timeout.
    pub(crate) fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }
}

impl Http {
    pub(crate) fn new(server: Server, timeout: Duration) -> Self {
        Self { server: Arc::new(server), timeout, idle: Arc::default() }
    }

    /// Sends the request once, with this token if there is one.
    pub(crate) async fn fetch<T: DeserializeOwned>(
        &self,
        request: &ApiRequest,
        token: Option<&str>,
    ) -> Result<T, Error> {
        Ok(self.fetch_reply(request, token).await?.data)
    }

    /// The same, with the whole envelope.
    pub(crate) async fn fetch_reply<T: DeserializeOwned>(
        &self,
        request: &ApiRequest,
        token: Option<&str>,
    ) -> Result<Reply<T>, Error> {
        let name =
            format!("{} {}", request.method, request.path.split('?').next().unwrap_or_default());
        let unreachable = |why: String| Error::Unreachable(format!("{name}: {why}"));
        let answer =
            timeout(request.timeout.unwrap_or(self.timeout), self.exchange(request, token)).await;
        let answer = answer.map_err(|_| unreachable("no answer in time".to_owned()))?;
        let (status, retry_after, bytes) = answer.map_err(|why| unreachable(why.to_string()))?;
        let envelope: Envelope = serde_json::from_slice(&bytes)
            .map_err(|_| unreachable(format!("status {status} without an envelope")))?;
        if status.is_success() {
            let data = serde_json::from_value(envelope.data)
                .map_err(|why| unreachable(format!("an answer of another kind: {why}")))?;
            return Ok(Reply {
                code: envelope.code,
                message: envelope.message.unwrap_or_default(),
                data,
                request_id: envelope.request_id.unwrap_or_default(),
                has_more: envelope.has_more,
            });
        }
        let Some(reason) = envelope.reason else {
            return Err(unreachable(format!("status {status} without a reason")));
        };
        let message = envelope.message.unwrap_or_else(|| reason.text().to_owned());
        let (status, request_id) = (Some(status.as_u16()), envelope.request_id);
        Err(Error::Refused(Box::new(Refused { reason, message, status, retry_after, request_id })))
    }

    async fn exchange(
        &self,
        request: &ApiRequest,
        token: Option<&str>,
    ) -> Result<RawResponse, BoxError> {
        let mut builder = Request::builder()
            .method(&request.method)
            .uri(self.server.path(&request.path))
            .header(header::HOST, self.server.name());
        if let Some(token) = token {
            builder = builder.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let body = request.body.as_ref().map(Value::to_string);
        if body.is_some() {
            builder = builder.header(header::CONTENT_TYPE, "application/json");
        }
        let outgoing = builder.body(Full::from(body.unwrap_or_default()))?;
        let mut sender = self.sender().await?;
        let response = sender.send_request(outgoing).await?;
        let (parts, body) = response.into_parts();
        let bytes = Limited::new(body, RESPONSE_BYTES_MAX).collect().await?.to_bytes();
        self.keep_idle(sender);
        let wait = parts.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let wait = wait
            .and_then(|value| value.parse().ok())
            .map(|seconds: u64| Duration::from_secs(seconds.min(3600)));
        Ok((parts.status, wait, bytes))
    }

    /// The idle connection, or a new one.
    async fn sender(&self) -> Result<HttpSender, BoxError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((since, mut sender)) = idle
            && since.elapsed() < IDLE_MAX
            && sender.ready().await.is_ok()
        {
            return Ok(sender);
        }
        let (sender, connection) = handshake(TokioIo::new(self.server.dial().await?)).await?;
        // It ends with the sender, which also reports its errors.
        tokio::spawn(async { connection.await.ok() });
        Ok(sender)
    }

    fn keep_idle(&self, sender: HttpSender) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        *idle = Some((Instant::now(), sender));
    }
}

type RawResponse = (StatusCode, Option<Duration>, Bytes);
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Appends a field to the query of a path.
fn add_query(path: &mut String, key: &str, value: &str) {
    path.push(if path.contains('?') { '&' } else { '?' });
    escape(path, key);
    path.push('=');
    escape(path, value);
}

fn escape(path: &mut String, value: &str) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            write!(path, "%{byte:02X}").expect("a string takes everything");
        }
    }
}

/// The fields of a request body, without those that are `None`.
pub(crate) fn fields(body: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(body).expect("a request is plain data");
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, value| !value.is_null());
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_in_an_address_is_escaped() {
        let request = ApiRequest::get("/a", &[("x", "sg_1 2&é"), ("y", "3")]);
        assert_eq!(request.path, "/a?x=sg_1%202%26%C3%A9&y=3");
        assert_eq!(ApiRequest::get("/a", &[]).path, "/a");
    }

    #[test]
    fn what_an_app_asks_for_has_a_body_or_a_query() {
        let given = || Some(json!({ "a": "x y", "b": 2, "c": true, "d": null }));
        for method in ["get", "DELETE"] {
            let request = ApiRequest::any(method, "/p?z=1", given()).unwrap();
            assert_eq!(
                (request.path.as_str(), &request.body),
                ("/p?z=1&a=x%20y&b=2&c=true", &None)
            );
        }
        let request = ApiRequest::any("patch", "/p", given()).unwrap();
        assert_eq!(
            (request.method, request.path.as_str(), request.body),
            (Method::PATCH, "/p", given())
        );
        assert_eq!(ApiRequest::any("POST", "/p", None).unwrap().body, Some(json!({})));
        for query in [json!([1]), json!({ "a": [1] }), json!("a")] {
            assert!(matches!(
                ApiRequest::any("GET", "/p", Some(query)),
                Err(Error::InvalidRequest(_))
            ));
        }
    }

    #[test]
    fn a_path_that_names_another_host_is_none() {
        let hosts = [".evil.example/x", "@evil.example/x", "https://evil.example/x", "//evil/x"];
        for path in [&hosts[..], &["", "x", "/a b", "/a\r\nhost: evil"]].concat() {
            let request = ApiRequest::any("GET", path, None);
            assert!(matches!(request, Err(Error::InvalidRequest(_))), "{path}");
        }
        assert!(matches!(ApiRequest::any("GE T", "/", None), Err(Error::InvalidRequest(_))));
    }
}
