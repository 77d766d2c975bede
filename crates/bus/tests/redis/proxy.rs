//! A TCP proxy whose connections can fall silent: they stay open, and their bytes are lost.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// Forwards bytes in both directions.
pub(crate) struct SilentProxy {
    address: SocketAddr,
    /// Connections that are older than the last silence stay open and forward nothing.
    silences: Arc<AtomicUsize>,
}

impl SilentProxy {
    pub(crate) async fn to(host: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let silences = Arc::new(AtomicUsize::new(0));
        let now = Arc::clone(&silences);
        tokio::spawn(async move {
            while let Ok((here, _)) = listener.accept().await {
                let Ok(there) = TcpStream::connect(&host).await else { continue };
                let (client_in, client_out) = here.into_split();
                let (server_in, server_out) = there.into_split();
                tokio::spawn(forward(client_in, server_out, Arc::clone(&now)));
                tokio::spawn(forward(server_in, client_out, Arc::clone(&now)));
            }
        });
        Self { address, silences }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Silences all connections there are.
    pub(crate) fn fall_silent(&self) {
        self.silences.fetch_add(1, Ordering::SeqCst);
    }
}

async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, silences: Arc<AtomicUsize>) {
    let born = silences.load(Ordering::SeqCst);
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let is_silent = silences.load(Ordering::SeqCst) != born;
        if !is_silent && to.write_all(&bytes[..count]).await.is_err() {
            break;
        }
    }
}
