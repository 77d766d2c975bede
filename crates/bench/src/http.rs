//! One request per connection: good enough to register and to sign in, where the password hash costs
//! a hundred times what the connection does.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const ANSWER_BYTES_MAX: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Deserialize)]
struct HttpEnvelope {
    code: i64,
    #[serde(default)]
    message: String,
    reason: Option<String>,
    #[serde(default)]
    data: Value,
}

/// `host:port` of a target such as `http://127.0.0.1:8080`.
pub(crate) fn authority(target: &str) -> Result<String> {
    let rest = target.strip_prefix("http://").with_context(|| {
        format!("the target must begin with http:// (TLS is not spoken here): {target}")
    })?;
    let authority = rest.trim_end_matches('/');
    ensure!(!authority.is_empty() && !authority.contains('/'), "not a server's URL: {target}");
    let has_port = authority.rsplit(':').next().is_some_and(|port| port.parse::<u16>().is_ok());
    Ok(if has_port { authority.to_owned() } else { format!("{authority}:80") })
}

/// Posts a body and returns the answer's `data`. An empty token sends none.
pub(crate) async fn post(authority: &str, path: &str, token: &str, body: &Value) -> Result<Value> {
    let body = body.to_string();
    let length = body.len();
    let bearer = match token {
        "" => String::new(),
        token => format!("Authorization: Bearer {token}\r\n"),
    };
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\n{bearer}\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    let answer = exchange(authority, &request).await.with_context(|| format!("POST {path}"))?;
    parse(&answer).with_context(|| format!("POST {path}"))
}

/// Whether a server says that it is ready.
pub(crate) async fn is_ready(authority: &str) -> bool {
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    let answer = exchange(authority, &request).await;
    answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

async fn exchange(authority: &str, request: &str) -> Result<String> {
    let answer = timeout(PATIENCE, ask(authority, request)).await;
    answer.with_context(|| format!("no answer in {PATIENCE:?}"))?
}

async fn ask(authority: &str, request: &str) -> Result<String> {
    let mut stream = TcpStream::connect(authority)
        .await
        .with_context(|| format!("cannot connect to {authority}"))?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer).await?;
    Ok(answer)
}

fn parse(answer: &str) -> Result<Value> {
    let (head, body) = answer.split_once("\r\n\r\n").context("not an HTTP answer")?;
    let status = head.lines().next().unwrap_or_default();
    let envelope: HttpEnvelope =
        serde_json::from_str(body).with_context(|| format!("{status}: {body}"))?;
    if envelope.code != 0 {
        let reason = envelope.reason.unwrap_or_else(|| envelope.code.to_string());
        bail!("{status}: {reason}: {}", envelope.message);
    }
    Ok(envelope.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_become_authorities() {
        assert_eq!(authority("http://127.0.0.1:8080").unwrap(), "127.0.0.1:8080");
        assert_eq!(authority("http://localhost/").unwrap(), "localhost:80");
        assert!(authority("https://localhost").is_err());
        assert!(authority("http://localhost/path").is_err());
    }

    #[test]
    fn a_refusal_names_its_reason() {
        let answer = "HTTP/1.1 429 Too Many Requests\r\nA: b\r\n\r\n\
                      {\"code\":3,\"message\":\"slow down\",\"reason\":\"RATE_LIMITED\"}";
        let error = parse(answer).unwrap_err().to_string();
        assert!(error.contains("429") && error.contains("RATE_LIMITED"), "{error}");
        let answer = "HTTP/1.1 200 OK\r\n\r\n{\"code\":0,\"message\":\"ok\",\"data\":7}";
        assert_eq!(parse(answer).unwrap(), 7);
    }
}
