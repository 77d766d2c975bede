//! One connection through the proxy.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::Wires;
use super::trap::{Said, When};

/// How many pieces may be under way in one direction. When it is full, the sender has to wait, as on
/// a real network.
const UNDER_WAY: usize = 64;

/// Bytes under way, and when they may arrive.
type Piece = (Instant, Vec<u8>);

/// The connection is over, for whatever reason; dropping the sockets says so to both sides.
struct Over;

impl From<std::io::Error> for Over {
    fn from(_: std::io::Error) -> Self {
        Self
    }
}

/// Carries bytes both ways until both sides have ended, or one is lost, or the connection is cut.
pub(super) async fn carry(mut client: TcpStream, target: SocketAddr, wires: Arc<Wires>) {
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    // Bytes are late by as much as was asked for, and not because they wait for more.
    if client.set_nodelay(true).and(server.set_nodelay(true)).is_err() {
        return;
    }
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let (up, to_go_up) = mpsc::channel(UNDER_WAY);
    let (down, to_go_down) = mpsc::channel(UNDER_WAY);
    let wires = wires.as_ref();
    let doomed = AtomicBool::new(false);
    let over = tokio::try_join!(
        take(from_client, up, wires, None),
        give(to_go_up, to_server, wires, Some(&doomed)),
        take(from_server, down, wires, Some(&doomed)),
        give(to_go_down, to_client, wires, None),
    );
    // Ended or lost is the same here: the sockets are closed now.
    drop(over);
}

/// Takes bytes from one side. The server's next bytes cut a connection that is doomed.
async fn take(
    mut from: ReadHalf<'_>,
    queue: mpsc::Sender<Piece>,
    wires: &Wires,
    doomed: Option<&AtomicBool>,
) -> Result<(), Over> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer).await?;
        if doomed.is_some_and(|doomed| doomed.load(Ordering::SeqCst)) {
            return Err(cut(wires));
        }
        if read == 0 {
            return Ok(());
        }
        let due = Instant::now() + wires.switches.borrow().delay;
        if queue.send((due, buffer[..read].to_vec())).await.is_err() {
            return Err(Over);
        }
    }
}

/// Gives bytes to the other side when they are due. What a client says may doom the connection.
async fn give(
    mut queue: mpsc::Receiver<Piece>,
    mut to: WriteHalf<'_>,
    wires: &Wires,
    doomed: Option<&AtomicBool>,
) -> Result<(), Over> {
    let (mut switches, mut said) = (wires.switches.subscribe(), Said::default());
    while let Some((due, bytes)) = queue.recv().await {
        sleep_until(due).await;
        if switches.wait_for(|switches| !switches.stall).await.is_err() {
            return Err(Over);
        }
        let undoomed = doomed.filter(|doomed| !doomed.load(Ordering::SeqCst));
        let sprung = undoomed.and_then(|doomed| Some((doomed, said.hear(&bytes, wires)?)));
        if let Some((doomed, sprung)) = sprung {
            match sprung.when {
                When::Answered => doomed.store(true, Ordering::SeqCst),
                When::Said => {
                    to.write_all(&bytes[..sprung.before]).await?;
                    return Err(cut(wires));
                }
            }
        }
        to.write_all(&bytes).await?;
    }
    switches.wait_for(|switches| !switches.stall).await.map_err(|_| Over)?;
    Ok(to.shutdown().await?)
}

/// Counts a cut before anybody can notice it.
fn cut(wires: &Wires) -> Over {
    wires.cuts.fetch_add(1, Ordering::SeqCst);
    Over
}
