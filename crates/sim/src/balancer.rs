//! A round-robin load balancer for connections.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// Stops when dropped.
pub struct Balancer {
    address: SocketAddr,
    nodes: Arc<Mutex<Vec<SocketAddr>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Balancer {
    pub fn start(nodes: Vec<SocketAddr>) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket that does not block");
        let address = listener.local_addr().expect("its address");
        let nodes = Arc::new(Mutex::new(nodes));
        let (stop, stopped) = oneshot::channel();
        let known = Arc::clone(&nodes);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let listener = TcpListener::from_std(listener).expect("a listener");
                tokio::select! {
                    () = accept(listener, known) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address, nodes, stop: Some(stop), thread: Some(thread) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends new connections to these nodes from now on.
    pub fn send_to(&self, nodes: Vec<SocketAddr>) {
        *self.nodes.lock().unwrap_or_else(PoisonError::into_inner) = nodes;
    }
}

async fn accept(listener: TcpListener, nodes: Arc<Mutex<Vec<SocketAddr>>>) {
    let turn = AtomicUsize::new(0);
    while let Ok((client, _)) = listener.accept().await {
        let node = {
            let nodes = nodes.lock().unwrap_or_else(PoisonError::into_inner);
            if nodes.is_empty() {
                continue; // no node is running: the connection is closed
            }
            nodes[turn.fetch_add(1, Ordering::Relaxed) % nodes.len()]
        };
        tokio::spawn(async move {
            let Ok(node) = TcpStream::connect(node).await else { return };
            for stream in [&client, &node] {
                if stream.set_nodelay(true).is_err() {
                    return; // it is closed already
                }
            }
            // Each direction ends by itself: a node may still send after the client has finished.
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_node, mut to_node) = node.into_split();
            let there = async {
                drop(tokio::io::copy(&mut from_client, &mut to_node).await);
                drop(to_node.shutdown().await);
            };
            let back = async {
                drop(tokio::io::copy(&mut from_node, &mut to_client).await);
                drop(to_client.shutdown().await);
            };
            // Once the node has closed its side, do not wait for the client.
            let waiting = async {
                there.await;
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = waiting => {}
                () = back => {}
            }
        });
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
