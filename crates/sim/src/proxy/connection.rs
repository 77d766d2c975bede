//! One connection through the proxy.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::ProxyState;
use super::cut_pattern::{CutTiming, StreamTail};

/// Chunks in flight per direction. When the queue is full, the sender has to wait, as on a real network.
const CHUNKS_IN_FLIGHT: usize = 64;

/// Bytes in flight, and when they may arrive.
type Chunk = (Instant, Vec<u8>);

/// The connection has ended for any reason; dropping the sockets closes both sides.
struct ConnectionEnded;

impl From<std::io::Error> for ConnectionEnded {
    fn from(_: std::io::Error) -> Self {
        Self
    }
}

/// Forwards bytes both ways until both sides have closed, one fails, or the connection is cut.
pub(super) async fn forward(mut client: TcpStream, target: SocketAddr, state: Arc<ProxyState>) {
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    // Without Nagle's algorithm, bytes are late by the requested delay only.
    if client.set_nodelay(true).and(server.set_nodelay(true)).is_err() {
        return;
    }
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let (up, up_queue) = mpsc::channel(CHUNKS_IN_FLIGHT);
    let (down, down_queue) = mpsc::channel(CHUNKS_IN_FLIGHT);
    let state = state.as_ref();
    let cut_on_response = AtomicBool::new(false);
    let result = tokio::try_join!(
        read_chunks(from_client, up, state, None),
        write_chunks(up_queue, to_server, state, Some(&cut_on_response)),
        read_chunks(from_server, down, state, Some(&cut_on_response)),
        write_chunks(down_queue, to_client, state, None),
    );
    // Whether it ended or failed: the sockets are closed now.
    drop(result);
}

/// Reads bytes from one side. On the server's side, the next bytes cut the connection if `cut_on_response` is
/// set.
async fn read_chunks(
    mut from: ReadHalf<'_>,
    queue: mpsc::Sender<Chunk>,
    state: &ProxyState,
    cut_on_response: Option<&AtomicBool>,
) -> Result<(), ConnectionEnded> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer).await?;
        if cut_on_response.is_some_and(|cut_on_response| cut_on_response.load(Ordering::SeqCst)) {
            return Err(count_cut(state));
        }
        if read == 0 {
            return Ok(());
        }
        let due = Instant::now() + state.settings.borrow().delay;
        if queue.send((due, buffer[..read].to_vec())).await.is_err() {
            return Err(ConnectionEnded);
        }
    }
}

/// Writes bytes to the other side when they are due. On the way to the server, a pattern may cut the
/// connection or set `cut_on_response`.
async fn write_chunks(
    mut queue: mpsc::Receiver<Chunk>,
    mut to: WriteHalf<'_>,
    state: &ProxyState,
    cut_on_response: Option<&AtomicBool>,
) -> Result<(), ConnectionEnded> {
    let (mut settings, mut tail) = (state.settings.subscribe(), StreamTail::default());
    while let Some((due, bytes)) = queue.recv().await {
        sleep_until(due).await;
        if settings.wait_for(|settings| !settings.stall).await.is_err() {
            return Err(ConnectionEnded);
        }
        let uncut =
            cut_on_response.filter(|cut_on_response| !cut_on_response.load(Ordering::SeqCst));
        let matched =
            uncut.and_then(|cut_on_response| Some((cut_on_response, tail.push(&bytes, state)?)));
        if let Some((cut_on_response, matched)) = matched {
            match matched.when {
                CutTiming::AfterResponse => cut_on_response.store(true, Ordering::SeqCst),
                CutTiming::BeforeRequest => {
                    to.write_all(&bytes[..matched.before]).await?;
                    return Err(count_cut(state));
                }
            }
        }
        to.write_all(&bytes).await?;
    }
    settings.wait_for(|settings| !settings.stall).await.map_err(|_| ConnectionEnded)?;
    Ok(to.shutdown().await?)
}

/// Counts a cut before the sockets close, so that a test that sees the close also sees the count.
fn count_cut(state: &ProxyState) -> ConnectionEnded {
    state.cuts.fetch_add(1, Ordering::SeqCst);
    ConnectionEnded
}
