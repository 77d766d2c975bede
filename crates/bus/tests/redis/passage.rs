//! A way to a server on which what is under way can get lost without anybody being told.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// Passes bytes on both ways.
pub(crate) struct Passage {
    address: SocketAddr,
    /// Connections from before the last silence stay open, and nothing passes on them.
    silences: Arc<AtomicUsize>,
}

impl Passage {
    /// A way to this host.
    pub(crate) async fn to(host: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let silences = Arc::new(AtomicUsize::new(0));
        let now = Arc::clone(&silences);
        tokio::spawn(async move {
            while let Ok((here, _)) = listener.accept().await {
                let Ok(there) = TcpStream::connect(&host).await else { continue };
                let (asked, answer) = here.into_split();
                let (answered, ask) = there.into_split();
                tokio::spawn(pass(asked, ask, Arc::clone(&now)));
                tokio::spawn(pass(answered, answer, Arc::clone(&now)));
            }
        });
        Self { address, silences }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Loses everything on the connections there are.
    pub(crate) fn fall_silent(&self) {
        self.silences.fetch_add(1, Ordering::SeqCst);
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, silences: Arc<AtomicUsize>) {
    let born = silences.load(Ordering::SeqCst);
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let is_silent = silences.load(Ordering::SeqCst) != born;
        if !is_silent && to.write_all(&bytes[..count]).await.is_err() {
            break;
        }
    }
}
