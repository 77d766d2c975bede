//! Accepts connections and speaks HTTP on them, with limits on headers, time and number.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, StatusCode, header, server};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::ServiceExt;

use crate::gateway::Gateway;
use crate::head_watch::WatchedStream;
use crate::http::AmbiguousLength;

/// Bytes of a request line and its headers.
const HEAD_BYTES_MAX: usize = 32 * 1024;
const HEADERS_MAX: usize = 100;

/// Accepts connections until the shutdown begins, then waits for the open ones to end.
pub async fn listen(gateway: Arc<Gateway>, listener: TcpListener, router: Router) {
    let slots = Arc::new(Semaphore::new(gateway.options.connections_max));
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
            () = gateway.drain_started() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
                    tracing::warn!(%peer, "too many connections, one was refused");
                    continue;
                };
                let (gateway, router) = (Arc::clone(&gateway), router.clone());
                tasks.spawn(serve(gateway, stream, peer, router, slot));
            }
            Err(error) => {
                // Most likely out of file descriptors: retrying at once would only spin.
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    let finished = async {
        gateway.sessions_ended().await;
        while tasks.join_next().await.is_some() {}
    };
    if tokio::time::timeout(gateway.options.drain, finished).await.is_err() {
        tracing::warn!("some connections did not end in time");
    }
}

/// Disables Nagle's algorithm, and lets the kernel reset a connection whose peer acknowledges nothing
/// for the write timeout.
fn set_tcp_options(stream: &TcpStream, write_timeout: Duration) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let ms = u32::try_from(write_timeout.as_millis()).unwrap_or(u32::MAX);
    Ok(rustix::net::sockopt::set_tcp_user_timeout(stream, ms)?)
}

async fn serve(
    gateway: Arc<Gateway>,
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    slot: OwnedSemaphorePermit,
) {
    if let Err(error) = set_tcp_options(&stream, gateway.options.write_timeout) {
        tracing::debug!(%peer, %error, "the peer has disconnected");
        return;
    }
    let slot = Arc::new(slot);
    let (stream, head) = WatchedStream::new(stream, HEAD_BYTES_MAX);
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        // An upgraded socket outlives this service: it keeps the connection slot by this.
        request.extensions_mut().insert(Arc::clone(&slot));
        if request.headers().contains_key(header::TRANSFER_ENCODING) && head.has_content_length() {
            request.extensions_mut().insert(AmbiguousLength);
        }
        let (answering, head) = (router.clone().oneshot(request), Arc::clone(&head));
        async move {
            let response = answering.await?;
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                head.stop();
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(gateway.options.header_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = gateway.drain_started() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!(%peer, %error, "an HTTP connection ended badly");
    }
}
