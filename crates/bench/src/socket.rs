//! Sockets with small buffers.

use std::io;
use std::pin::Pin;
use std::task::{self, Poll};
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::Sink;
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// How long a handshake may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// The library's default of 128 KiB costs a third of the throughput and 250 MB at 1,000 sockets.
const BUFFER_BYTES: usize = 4096;

/// The kernel's receive buffer of a slow reader.
const NARROW_BYTES: u32 = 4096;
/// Handshakes at a time: beyond a listener's backlog the kernel would drop and retry them.
pub(crate) const CONNECTING_AT_ONCE: usize = 64;

pub(crate) type Socket = WebSocketStream<TcpStream>;

pub(crate) async fn connect(authority: &str, path: &str) -> Result<Socket> {
    open(authority, path, TcpStream::connect(authority)).await
}

/// Connects with a small receive buffer in the kernel, so that the server soon notices a slow reader.
pub(crate) async fn connect_narrow(authority: &str, path: &str) -> Result<Socket> {
    let stream = async {
        let address = lookup_host(authority).await?.next();
        let address = address.ok_or_else(|| io::Error::other("no such host"))?;
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_recv_buffer_size(NARROW_BYTES)?;
        socket.connect(address).await
    };
    open(authority, path, stream).await
}

async fn open(
    authority: &str,
    path: &str,
    stream: impl Future<Output = io::Result<TcpStream>>,
) -> Result<Socket> {
    let handshake = async {
        let stream = stream.await?;
        stream.set_nodelay(true)?;
        let config = WebSocketConfig::default()
            .read_buffer_size(BUFFER_BYTES)
            .write_buffer_size(BUFFER_BYTES);
        let url = format!("ws://{authority}{path}");
        let (socket, _) = client_async_with_config(url, stream, Some(config)).await?;
        anyhow::Ok(socket)
    };
    let socket = timeout(PATIENCE, handshake).await.context("no WebSocket handshake in time")?;
    socket.with_context(|| format!("cannot connect to ws://{authority}{path}"))
}

/// Queues a frame in the socket's buffer. It never fills up: the window bounds what is in it.
pub(crate) fn queue_frame(socket: &mut Socket, frame: Message) -> Result<()> {
    Ok(Pin::new(socket).start_send(frame)?)
}

/// Flushes; if the kernel's buffer is full, the socket wakes the task to continue.
pub(crate) fn flush(socket: &mut Socket, cx: &mut task::Context<'_>) -> Result<()> {
    match Pin::new(socket).poll_flush(cx) {
        Poll::Ready(flushed) => Ok(flushed?),
        Poll::Pending => Ok(()),
    }
}
