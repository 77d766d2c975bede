//! A TCP proxy that cuts, stalls and delays connections on demand.

mod connection;
mod cut_pattern;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use cut_pattern::{CutPattern, CutTiming};

/// A TCP port in front of an address. It runs on a thread of its own, so it works while a test blocks.
/// Dropping it closes all connections.
pub struct Proxy {
    port: u16,
    state: Arc<ProxyState>,
    /// Dropped first, which ends the thread.
    cut_requests: Option<mpsc::UnboundedSender<CutRequest>>,
    thread: Option<JoinHandle<()>>,
}

/// A request to close all connections; answered once they are closed.
type CutRequest = std::sync::mpsc::Sender<()>;

/// Shared between the proxy and its connections.
struct ProxyState {
    settings: watch::Sender<ProxySettings>,
    cut_patterns: Mutex<Vec<CutPattern>>,
    connections: AtomicU64,
    cuts: AtomicU64,
}

#[derive(Clone, Copy, Default)]
struct ProxySettings {
    refuse: bool,
    stall: bool,
    delay: Duration,
}

impl Proxy {
    /// Starts a proxy that forwards everything.
    pub fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let port = listener.local_addr().expect("its address").port();
        let state = Arc::new(ProxyState {
            settings: watch::Sender::default(),
            cut_patterns: Mutex::default(),
            connections: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
        });
        let (cut_requests, cut_receiver) = mpsc::unbounded_channel();
        let shared = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(serve(listener, target, shared, cut_receiver));
        });
        Self { port, state, cut_requests: Some(cut_requests), thread: Some(thread) }
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Closes all connections; when this returns, they are closed.
    pub fn cut(&self) {
        let (done, is_done) = std::sync::mpsc::channel();
        self.cut_requests.as_ref().expect("a proxy in use").send(done).expect("its thread runs");
        is_done.recv().expect("its thread runs");
    }

    /// Whether to close new connections at once. Existing ones stay open.
    pub fn refuse(&self, refuse: bool) {
        self.state.settings.send_modify(|settings| settings.refuse = refuse);
    }

    /// Whether to hold bytes back while connections stay open. None is lost: they are forwarded when the
    /// stall ends.
    pub fn stall(&self, stall: bool) {
        self.state.settings.send_modify(|settings| settings.stall = stall);
    }

    /// Delays bytes by this much, each way.
    pub fn delay(&self, delay: Duration) {
        self.state.settings.send_modify(|settings| settings.delay = delay);
    }

    /// For the next `times` times that a client sends the pattern: the server receives it and responds, but the
    /// client gets a closed connection instead of the response. The server has acted by then, because its
    /// response triggers the cut.
    pub fn cut_after_client_bytes(&self, pattern: &[u8], times: usize) {
        self.add_cut_pattern(CutTiming::AfterResponse, pattern, times);
    }

    /// For the next `times` times that a client sends the pattern: the connection is cut before the server
    /// has received all of it.
    pub fn cut_before_client_bytes(&self, pattern: &[u8], times: usize) {
        self.add_cut_pattern(CutTiming::BeforeRequest, pattern, times);
    }

    /// Removes all patterns that are still armed.
    pub fn clear_cut_patterns(&self) {
        self.state.cut_patterns.lock().expect("no panic").clear();
    }

    fn add_cut_pattern(&self, when: CutTiming, pattern: &[u8], times: usize) {
        self.state
            .cut_patterns
            .lock()
            .expect("no panic")
            .push(CutPattern::new(when, pattern, times));
    }

    /// How many connections it has accepted so far, without refused ones.
    pub fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// How many connections it has cut so far, on request or by a pattern.
    pub fn cuts(&self) -> u64 {
        self.state.cuts.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut_requests = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            eprintln!("the proxy on port {} has panicked", self.port);
        }
    }
}

/// Accepts connections until the proxy is dropped.
async fn serve(
    listener: TcpListener,
    target: SocketAddr,
    state: Arc<ProxyState>,
    mut cut_requests: mpsc::UnboundedReceiver<CutRequest>,
) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // The client disconnected before it was accepted.
                let Ok((client, _)) = accepted else { continue };
                if state.settings.borrow().refuse {
                    continue;
                }
                state.connections.fetch_add(1, Ordering::SeqCst);
                open.spawn(connection::forward(client, target, Arc::clone(&state)));
            }
            request = cut_requests.recv() => {
                let Some(done) = request else { return };
                // Connections that ended by themselves do not count as cut.
                while open.try_join_next().is_some() {}
                state.cuts.fetch_add(open.len() as u64, Ordering::SeqCst);
                open.shutdown().await;
                done.send(()).expect("the caller waits");
            }
            Some(ended) = open.join_next() => ended.expect("no panic"),
        }
    }
}
