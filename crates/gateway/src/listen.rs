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
use crate::head_watch::Watched;
use crate::http::TwoLengths;

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 32 * 1024;
const HEADERS_MAX: usize = 100;

/// Serves until the gateway drains, then waits for what is under way.
pub async fn listen(gateway: Arc<Gateway>, listener: TcpListener, router: Router) {
    let places = Arc::new(Semaphore::new(gateway.options.connections_max));
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
            () = gateway.drained() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                    tracing::warn!(%peer, "too many connections, one was refused");
                    continue;
                };
                let (gateway, router) = (Arc::clone(&gateway), router.clone());
                tasks.spawn(serve(gateway, stream, peer, router, place));
            }
            Err(error) => {
                // Out of files, most likely: waiting is all that helps, spinning would not.
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    let finished = async {
        gateway.emptied().await;
        while tasks.join_next().await.is_some() {}
    };
    if tokio::time::timeout(gateway.options.drain, finished).await.is_err() {
        tracing::warn!("some connections did not end in time");
    }
}

/// Small frames leave at once, and the kernel cuts off a peer that takes nothing for too long.
fn prepare(stream: &TcpStream, write_timeout: Duration) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let ms = u32::try_from(write_timeout.as_millis()).unwrap_or(u32::MAX);
    Ok(rustix::net::sockopt::set_tcp_user_timeout(stream, ms)?)
}

async fn serve(
    gateway: Arc<Gateway>,
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    place: OwnedSemaphorePermit,
) {
    if let Err(error) = prepare(&stream, gateway.options.write_timeout) {
        tracing::debug!(%peer, %error, "the peer was gone at once");
        return;
    }
    let place = Arc::new(place);
    let (stream, window) = Watched::new(stream, HEAD_BYTES_MAX);
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        // An upgraded socket outlives this connection's service and keeps its place by this.
        request.extensions_mut().insert(Arc::clone(&place));
        if request.headers().contains_key(header::TRANSFER_ENCODING) && window.tells_length() {
            request.extensions_mut().insert(TwoLengths);
        }
        let (answering, window) = (router.clone().oneshot(request), Arc::clone(&window));
        async move {
            let response = answering.await?;
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                window.end();
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
        () = gateway.drained() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!(%peer, %error, "an HTTP connection ended badly");
    }
}
