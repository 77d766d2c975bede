//! Sockets with small buffers.

use std::pin::Pin;
use std::task::{self, Poll};
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::Sink;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// How long a handshake may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// The library's default of 128 KiB costs a third of the throughput and 250 MB at 1,000 sockets.
const BUFFER_BYTES: usize = 4096;

/// Handshakes at once: more than a listener's backlog would only be dropped and repeated.
pub(crate) const CONNECTING_AT_ONCE: usize = 64;

/// A client's socket.
pub(crate) type Socket = WebSocketStream<TcpStream>;

/// Connects to a path of the server.
pub(crate) async fn connect(authority: &str, path: &str) -> Result<Socket> {
    let handshake = async {
        let stream = TcpStream::connect(authority).await?;
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

/// Writes to the socket's buffer. It takes everything: the window bounds what can be in it.
pub(crate) fn say(socket: &mut Socket, frame: Message) -> Result<()> {
    Ok(Pin::new(socket).start_send(frame)?)
}

/// Begins to flush; if the kernel's buffer is full, the socket wakes the task to go on.
pub(crate) fn flush(socket: &mut Socket, cx: &mut task::Context<'_>) -> Result<()> {
    match Pin::new(socket).poll_flush(cx) {
        Poll::Ready(flushed) => Ok(flushed?),
        Poll::Pending => Ok(()),
    }
}
