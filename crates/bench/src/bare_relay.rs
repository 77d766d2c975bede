//! The bare relay: the server's WebSocket stack and buffers, with no store and no logic.
//!
//! `bare.rs` describes the frames. The number in its path identifies a connection.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::get;
use axum::serve::ListenerExt;
use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::bare::{ADDRESS_BYTES, HEAD_BYTES, PUSH_EXTRA, RECEIPT_EXTRA, SAVED_BYTES};

const BUFFER_BYTES: usize = 4096;
/// Frames waiting for one connection; a closed loop never comes near it.
const QUEUE: usize = 4096;
/// Frames taken from the queue at once.
const BATCH: usize = 256;
const FILL: &str = {
    assert!(PUSH_EXTRA <= 256 && RECEIPT_EXTRA <= 256 && SAVED_BYTES - 1 - 24 <= 256);
    match str::from_utf8(&[b'x'; 256]) {
        Ok(text) => text,
        Err(_) => "",
    }
};

type FrameQueue = mpsc::Sender<Message>;
type RelayConnections = Arc<RwLock<HashMap<usize, FrameQueue>>>;
/// The connections of each room.
type Rooms = Arc<RwLock<HashMap<usize, RelayConnections>>>;

/// Relays until its task is dropped.
pub async fn serve_bare_relay(listener: TcpListener) -> io::Result<()> {
    let app = Router::new()
        .route("/{number}", get(pair))
        .route("/room/{room}/{number}", get(room))
        .with_state(Rooms::default());
    let listener = listener.tap_io(|stream| {
        // A socket that refuses the option still relays, only slower.
        drop(stream.set_nodelay(true));
    });
    axum::serve(listener, app).await
}

/// Pairs are all in the first room.
async fn pair(
    State(rooms): State<Rooms>,
    Path(number): Path<usize>,
    upgrade: WebSocketUpgrade,
) -> Response {
    enter(&rooms, 0, number, upgrade)
}

async fn room(
    State(rooms): State<Rooms>,
    Path((room, number)): Path<(usize, usize)>,
    upgrade: WebSocketUpgrade,
) -> Response {
    enter(&rooms, room, number, upgrade)
}

fn enter(rooms: &Rooms, room: usize, number: usize, upgrade: WebSocketUpgrade) -> Response {
    let mut rooms = rooms.write().unwrap_or_else(PoisonError::into_inner);
    let connections = Arc::clone(rooms.entry(room).or_default());
    drop(rooms);
    let (queue, waiting) = mpsc::channel(QUEUE);
    // Registered before the handshake is answered, so that no peer sends to an unknown number.
    connections.write().unwrap_or_else(PoisonError::into_inner).insert(number, queue.clone());
    let queue = queue.downgrade();
    upgrade.read_buffer_size(BUFFER_BYTES).write_buffer_size(BUFFER_BYTES).on_upgrade(
        move |socket| async move {
            let mut relay = Relay { number, connections, peer: None, out: Vec::new() };
            // Ignored: the load generator notices missing frames.
            drop(relay.run(socket, waiting).await);
            leave(&relay.connections, number, &queue);
        },
    )
}

/// Removes a connection, unless a newer one already has its number.
fn leave(connections: &RelayConnections, number: usize, queue: &mpsc::WeakSender<Message>) {
    let mut connections = connections.write().unwrap_or_else(PoisonError::into_inner);
    let own = |known: &FrameQueue| queue.upgrade().is_some_and(|queue| queue.same_channel(known));
    if connections.get(&number).is_some_and(own) {
        connections.remove(&number);
    }
}

/// One connection.
struct Relay {
    number: usize,
    connections: RelayConnections,
    /// The connection it sent to last: in a pair always the same one.
    peer: Option<(usize, FrameQueue)>,
    /// Frames to write before one flush.
    out: Vec<Message>,
}

impl Relay {
    async fn run(
        &mut self,
        mut socket: WebSocket,
        mut waiting: mpsc::Receiver<Message>,
    ) -> Result<(), axum::Error> {
        loop {
            tokio::select! {
                frame = socket.next() => match frame {
                    Some(frame) => self.relay(&frame?),
                    None => return Ok(()),
                },
                taken = waiting.recv_many(&mut self.out, BATCH) => if taken == 0 {
                    // Another connection has taken this number.
                    return Ok(());
                },
            }
            while let Some(frame) = socket.next().now_or_never() {
                match frame {
                    Some(frame) => self.relay(&frame?),
                    None => return Ok(()),
                }
            }
            while let Ok(frame) = waiting.try_recv() {
                self.out.push(frame);
            }
            for frame in self.out.drain(..) {
                socket.feed(frame).await?;
            }
            socket.flush().await?;
        }
    }

    fn relay(&mut self, frame: &Message) {
        let Message::Text(text) = frame else { return };
        let (Some(to), Some(number)) =
            (text.get(1..ADDRESS_BYTES), text.get(ADDRESS_BYTES..HEAD_BYTES))
        else {
            return;
        };
        let Ok(to) = to.parse() else { return };
        match text.as_bytes().first() {
            Some(b'M') => {
                self.pass_on(to, filled(text, PUSH_EXTRA));
                self.answer(text, number);
            }
            Some(b'B') => {
                self.broadcast(&filled(text, PUSH_EXTRA));
                self.answer(text, number);
            }
            Some(b'A') => self.pass_on(to, filled(text, RECEIPT_EXTRA)),
            _ => {}
        }
    }

    fn answer(&mut self, text: &str, number: &str) {
        let saved = ["S", &text[1..ADDRESS_BYTES], number].concat();
        self.out.push(filled(&saved, SAVED_BYTES - saved.len()));
    }

    /// Sends one ready-made frame to all the others, who share its bytes.
    fn broadcast(&self, frame: &Message) {
        let connections = self.connections.read().unwrap_or_else(PoisonError::into_inner);
        for (_, queue) in connections.iter().filter(|(number, _)| **number != self.number) {
            drop(queue.try_send(frame.clone()));
        }
    }

    /// Drops the frame if the queue is full, since two connections that wait for each other would
    /// deadlock. The load generator reports it as lost.
    fn pass_on(&mut self, to: usize, frame: Message) {
        if self.peer.as_ref().is_none_or(|(peer, _)| *peer != to) {
            let connections = self.connections.read().unwrap_or_else(PoisonError::into_inner);
            self.peer = connections.get(&to).map(|queue| (to, queue.clone()));
        }
        if let Some((_, queue)) = &self.peer {
            drop(queue.try_send(frame));
        }
    }
}

fn filled(text: &str, extra: usize) -> Message {
    let mut longer = String::with_capacity(text.len() + extra);
    longer.push_str(text);
    longer.push_str(&FILL[..extra]);
    Message::Text(longer.into())
}
