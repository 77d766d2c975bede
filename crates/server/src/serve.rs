//! Runs the server until SIGTERM, SIGINT or SIGHUP.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use nexo_gateway::listen::{self, Entrance};
use nexo_gateway::{Gateway, sweep};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::config::Config;
use crate::descriptors::{self, DescriptorBudget};
use crate::logs;
use crate::redact_url::without_password;
use crate::wiring::{self, ServerParts};

/// How often recorded samples are folded into histograms, so that they stay small
/// even if `/metrics` is never read.
const FOLD_EVERY: Duration = Duration::from_secs(5);

/// Serves until a signal asks to stop; returns when everything is on disk.
pub(crate) fn serve(config: &Config) -> anyhow::Result<()> {
    logs::start(&config.log)?;
    let budget = DescriptorBudget::new(descriptors::raise_limit(), config)?;
    budget.warn_if_clamped();
    // Only the owner may read the files that the server writes.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(config, budget.connections))
}

async fn run(config: &Config, connections_max: usize) -> anyhow::Result<()> {
    let address: SocketAddr = config.listen.parse().context("listen")?;
    // Bind the port first: opening a large store only to find the port taken would waste time.
    let listener =
        TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let ServerParts { gateway, store, redis, two_phase, backups, metrics } =
        wiring::build(config, connections_max).await?;
    let address = listener.local_addr()?;
    warn_if_open(address);
    tokio::spawn(sweep::sweep(Arc::clone(&gateway)));
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(FOLD_EVERY).await;
            metrics.run_upkeep();
        }
    });
    if !config.metrics.listen.is_empty() {
        serve_metrics(&gateway, &config.metrics.listen).await?;
    }
    tokio::spawn(stop_on_signal(Arc::clone(&gateway), Signals::new()?));
    writeln!(std::io::stdout(), "Nexo is listening on http://{address}")?;
    tracing::info!(%address, data = config.data, store = without_password(&config.store), "listening");
    listen::listen(Arc::clone(&gateway), listener, Entrance::for_clients(&gateway)).await;
    if let Some(two_phase) = two_phase {
        two_phase.stop().await;
    }
    if let Some(backups) = backups {
        // It holds the folder's lock while it copies.
        backups.stop().await;
    }
    // Closing the store publishes what is still being saved; only then may this node leave the bus.
    let closed = store.close().await;
    if let Some(redis) = redis {
        redis.leave().await;
    }
    closed.context("the store did not close cleanly")?;
    tracing::info!("stopped");
    Ok(())
}

/// Serves `/metrics` and health checks without a token on an address of its own, which the operator keeps private.
async fn serve_metrics(gateway: &Arc<Gateway>, address: &str) -> anyhow::Result<()> {
    let listener =
        TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    tokio::spawn(listen::listen(Arc::clone(gateway), listener, Entrance::for_metrics(gateway)));
    Ok(())
}

fn warn_if_open(address: SocketAddr) {
    if !address.ip().is_loopback() {
        tracing::warn!(%address, "serving plain HTTP beyond this machine: put a TLS proxy in front");
    }
}

/// The signals that ask to stop, received from the moment this is created.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// Sent by a closing terminal, or by a supervisor to reload; the server stops cleanly here too.
    hangup: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { terminate, interrupt, hangup: signal(SignalKind::hangup())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

async fn stop_on_signal(gateway: Arc<Gateway>, mut signals: Signals) {
    signals.next().await;
    gateway.drain();
    tracing::info!("stopping: asking clients to reconnect");
    signals.next().await;
    tracing::warn!("stopping at once");
    std::process::exit(1);
}
