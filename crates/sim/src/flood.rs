//! A flood of TCP connections that never say anything, from one loopback address.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;

/// Opens connections until it is dropped, and keeps the newest of them open.
pub struct Flood {
    opened: Arc<AtomicUsize>,
    opening: JoinHandle<()>,
}

impl Flood {
    /// Keeps at most `open` connections from `from` open.
    pub fn start(authority: &str, from: IpAddr, open: usize) -> Self {
        raise_file_limit();
        let to: SocketAddr = authority.parse().expect("an address");
        let opened = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&opened);
        let opening = tokio::spawn(async move {
            let mut kept = VecDeque::with_capacity(open);
            loop {
                // The server's queue may be full for a moment: then the flood is as large as it gets.
                let connecting =
                    tokio::time::timeout(Duration::from_millis(100), connect(to, from));
                if let Ok(Some(stream)) = connecting.await {
                    if kept.len() == open {
                        kept.pop_front();
                    }
                    kept.push_back(stream);
                    count.fetch_add(1, Ordering::Relaxed);
                }
                tokio::task::yield_now().await;
            }
        });
        Self { opened, opening }
    }

    /// How many it has opened so far.
    pub fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }

    /// Closes all its connections.
    pub async fn end(self) {
        self.opening.abort();
        // It never ends by itself, so this is the abort.
        drop(self.opening.await);
    }
}

/// Connects from a given address; `None` if that fails.
pub async fn connect(to: SocketAddr, from: IpAddr) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().ok()?;
    socket.bind(SocketAddr::new(from, 0)).ok()?;
    socket.connect(to).await.ok()
}

/// Lets this process have as many connections as the system allows.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("the own limit can be raised");
}
