//! The HTTP request that becomes a WebSocket.

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::socket::WebSocket;
use crate::head_watch::WatchedStream;

/// The version of the protocol.
const VERSION: HeaderValue = HeaderValue::from_static("13");

/// A valid request for a WebSocket.
pub(crate) struct Upgrade {
    on_upgrade: OnUpgrade,
    /// Proves that the server understood the request.
    accept_key: String,
}

/// The request is none for a WebSocket, or not a valid one. The handler turns it into a refusal.
pub(crate) struct NotAnUpgrade;

impl NotAnUpgrade {
    /// Names the version that a client may try instead.
    pub(crate) fn add_version(mut refusal: Response) -> Response {
        refusal.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, VERSION);
        refusal
    }
}

impl IntoResponse for NotAnUpgrade {
    fn into_response(self) -> Response {
        Self::add_version(StatusCode::BAD_REQUEST.into_response())
    }
}

impl<S: Sync> FromRequestParts<S> for Upgrade {
    type Rejection = NotAnUpgrade;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, NotAnUpgrade> {
        let headers = &parts.headers;
        let key = headers.get(header::SEC_WEBSOCKET_KEY).ok_or(NotAnUpgrade)?;
        let is_valid = parts.method == Method::GET
            && has_token(headers, &header::CONNECTION, "upgrade")
            && has_token(headers, &header::UPGRADE, "websocket")
            && headers.get(header::SEC_WEBSOCKET_VERSION).is_some_and(|version| version == VERSION);
        let accept_key = derive_accept_key(key.as_bytes());
        let on_upgrade = parts.extensions.remove::<OnUpgrade>().filter(|_| is_valid);
        Ok(Self { on_upgrade: on_upgrade.ok_or(NotAnUpgrade)?, accept_key })
    }
}

/// Whether a header has a token, in whatever case.
fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|it| it.trim().eq_ignore_ascii_case(token))
}

impl Upgrade {
    /// Answers the request, and serves the socket in a task of its own.
    pub(crate) fn respond<F: Future<Output = ()> + Send + 'static>(
        self,
        protocol: Option<&'static str>,
        message_bytes_max: usize,
        serve: impl FnOnce(WebSocket) -> F + Send + 'static,
    ) -> Response {
        let on_upgrade = self.on_upgrade;
        tokio::spawn(async move {
            match into_socket(on_upgrade, message_bytes_max).await {
                Ok(socket) => serve(socket).await,
                Err(error) => tracing::debug!(%error, "a connection did not become a WebSocket"),
            }
        });
        let mut response = Response::builder()
            .status(StatusCode::SWITCHING_PROTOCOLS)
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, "websocket")
            .header(header::SEC_WEBSOCKET_ACCEPT, self.accept_key);
        if let Some(protocol) = protocol {
            response = response.header(header::SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response.body(Body::empty()).expect("names and values are valid")
    }
}

/// Takes the TCP stream back from the HTTP library, so that nothing of that stays with the socket.
async fn into_socket(
    on_upgrade: OnUpgrade,
    message_bytes_max: usize,
) -> Result<WebSocket, Box<dyn std::error::Error + Send + Sync>> {
    let upgraded = on_upgrade.await?;
    let parts = upgraded.downcast::<TokioIo<WatchedStream>>();
    let parts = parts.map_err(|_| "the stream is not one of the listener")?;
    let stream = parts.io.into_inner().into_inner();
    Ok(WebSocket::new(stream, parts.read_buf, message_bytes_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_in_lists_and_in_any_case() {
        let mut headers = HeaderMap::new();
        headers.append(header::CONNECTION, "keep-alive, Upgrade".parse().unwrap());
        assert!(has_token(&headers, &header::CONNECTION, "upgrade"));
        assert!(!has_token(&headers, &header::CONNECTION, "upgrades"));
        assert!(!has_token(&headers, &header::UPGRADE, "websocket"));
    }
}
