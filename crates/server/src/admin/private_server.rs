//! A server for one command: on the stopped data, reachable from this process alone.

use std::sync::Arc;

use nexo_chat::clock::Rng;
use nexo_gateway::listen::{self, Entrance};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::clock::SystemRng;
use crate::config::Config;
use crate::remote::RemoteServer;
use crate::wiring::{self, ServerParts};

/// Connections that a command needs.
const CONNECTIONS: usize = 8;

pub(super) struct PrivateServer {
    pub(super) remote: RemoteServer,
    parts: ServerParts,
    listening: JoinHandle<()>,
}

impl PrivateServer {
    pub(super) async fn start(config: &Config) -> anyhow::Result<Self> {
        let mut secret = [0; 32];
        SystemRng.fill(&mut secret);
        let key = data_encoding::BASE64URL_NOPAD.encode(&secret);
        let mut config = config.clone();
        config.system.token.clone_from(&key);
        config.two_phase.enabled = false;
        config.backup.target.clear();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let parts = wiring::build(&config, CONNECTIONS).await?;
        let gateway = Arc::clone(&parts.gateway);
        let entrances = Entrance::for_clients(&gateway);
        let listening = tokio::spawn(listen::listen(gateway, listener, entrances));
        Ok(Self { remote: RemoteServer::at(url, key)?, parts, listening })
    }

    pub(super) async fn stop(self) -> anyhow::Result<()> {
        let Self { remote, parts, listening } = self;
        drop(remote); // its connections
        parts.gateway.drain();
        listening.await?;
        let closed = parts.store.close().await;
        if let Some(redis) = parts.redis {
            redis.leave().await;
        }
        Ok(closed?)
    }
}
