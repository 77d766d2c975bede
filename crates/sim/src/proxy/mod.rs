//! A network that fails on demand: what goes through it can be cut, held up and delayed.

mod connection;
mod trap;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use trap::{Trap, When};

/// A TCP port in front of an address. It has a thread of its own, so it keeps going while a test
/// waits for something else. Dropped, it closes everything.
pub struct Proxy {
    port: u16,
    wires: Arc<Wires>,
    /// Taken when dropped, which ends the thread.
    orders: Option<mpsc::UnboundedSender<Cut>>,
    thread: Option<JoinHandle<()>>,
}

/// Somebody wants all connections closed, and to be told once they are.
type Cut = std::sync::mpsc::Sender<()>;

/// What the proxy's owner and its connections both see.
struct Wires {
    switches: watch::Sender<Switches>,
    traps: Mutex<Vec<Trap>>,
    connections: AtomicU64,
    cuts: AtomicU64,
}

/// How the network behaves now.
#[derive(Clone, Copy, Default)]
struct Switches {
    refuse: bool,
    stall: bool,
    delay: Duration,
}

impl Proxy {
    /// Starts one that passes everything on.
    pub fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let port = listener.local_addr().expect("its address").port();
        let wires = Arc::new(Wires {
            switches: watch::Sender::default(),
            traps: Mutex::default(),
            connections: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
        });
        let (orders, ordered) = mpsc::unbounded_channel();
        let seen = Arc::clone(&wires);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(serve(listener, target, seen, ordered));
        });
        Self { port, wires, orders: Some(orders), thread: Some(thread) }
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Closes all connections; when this returns, they are closed.
    pub fn cut(&self) {
        let (done, is_done) = std::sync::mpsc::channel();
        self.orders.as_ref().expect("a proxy in use").send(done).expect("its thread runs");
        is_done.recv().expect("its thread runs");
    }

    /// Whether new connections are closed at once. Those there are stay.
    pub fn refuse(&self, refuse: bool) {
        self.wires.switches.send_modify(|switches| switches.refuse = refuse);
    }

    /// Whether bytes stay where they are, in connections that stay open. None is lost: they go on
    /// when this ends.
    pub fn stall(&self, stall: bool) {
        self.wires.switches.send_modify(|switches| switches.stall = stall);
    }

    /// How long bytes take from now on, each way.
    pub fn delay(&self, delay: Duration) {
        self.wires.switches.send_modify(|switches| switches.delay = delay);
    }

    /// The next so many times that a client says this, the server hears it and answers, but instead
    /// of the answer the client gets a closed connection. The server has acted by then: it is the
    /// arrival of its answer that cuts the connection.
    pub fn cut_after_client_bytes(&self, pattern: &[u8], times: usize) {
        self.set_trap(When::Answered, pattern, times);
    }

    /// The next so many times that a client says this, the connection is cut before the server has
    /// heard all of it.
    pub fn cut_before_client_bytes(&self, pattern: &[u8], times: usize) {
        self.set_trap(When::Said, pattern, times);
    }

    /// Forgets the patterns that were not met often enough.
    pub fn disarm(&self) {
        self.wires.traps.lock().expect("no panic").clear();
    }

    fn set_trap(&self, when: When, pattern: &[u8], times: usize) {
        self.wires.traps.lock().expect("no panic").push(Trap::new(when, pattern, times));
    }

    /// How many connections it has taken so far, without those it refused.
    pub fn connections(&self) -> u64 {
        self.wires.connections.load(Ordering::SeqCst)
    }

    /// How many connections it has cut so far, on demand or because of a pattern.
    pub fn cuts(&self) -> u64 {
        self.wires.cuts.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.orders = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            eprintln!("the proxy on port {} has panicked", self.port);
        }
    }
}

/// Takes connections until nobody can order anything any more.
async fn serve(
    listener: TcpListener,
    target: SocketAddr,
    wires: Arc<Wires>,
    mut orders: mpsc::UnboundedReceiver<Cut>,
) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A client that has gone again already is none.
                let Ok((client, _)) = accepted else { continue };
                if wires.switches.borrow().refuse {
                    continue;
                }
                wires.connections.fetch_add(1, Ordering::SeqCst);
                open.spawn(connection::carry(client, target, Arc::clone(&wires)));
            }
            order = orders.recv() => {
                let Some(done) = order else { return };
                // Those that ended by themselves are not cut.
                while open.try_join_next().is_some() {}
                wires.cuts.fetch_add(open.len() as u64, Ordering::SeqCst);
                open.shutdown().await;
                done.send(()).expect("somebody waits");
            }
            Some(ended) = open.join_next() => ended.expect("no panic"),
        }
    }
}
