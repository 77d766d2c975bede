//! Running the server until it is told to stop.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use nexo_gateway::{Gateway, http, listen, sweep};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cluster_settings::shown;
use crate::config::Config;
use crate::logs;
use crate::wiring::{self, Parts};

/// Histograms are folded this often, so that they stay small when nobody reads them.
const FOLD_EVERY: Duration = Duration::from_secs(5);

/// Serves until told to stop; returns when everything is on disk.
pub(crate) fn serve(config: &Config) -> anyhow::Result<()> {
    logs::start(&config.log)?;
    raise_file_limit();
    // Whatever is written is for its owner alone.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(config))
}

async fn run(config: &Config) -> anyhow::Result<()> {
    let address: SocketAddr = config.listen.parse().context("listen")?;
    // The port is taken first: nobody should wait for a store only to hear that it is taken.
    let listener =
        TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let Parts { gateway, store, redis, two_phase, metrics } = wiring::build(config).await?;
    let address = listener.local_addr()?;
    warn_if_open(address);
    let router = http::router(Arc::clone(&gateway));
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
    tracing::info!(%address, data = config.data, store = shown(&config.store), "listening");
    listen::listen(Arc::clone(&gateway), listener, router).await;
    if let Some(two_phase) = two_phase {
        two_phase.stop().await;
    }
    // What is still being saved is told to the others before this node leaves them.
    let closed = store.close().await;
    if let Some(redis) = redis {
        redis.leave().await;
    }
    closed.context("the store did not close cleanly")?;
    tracing::info!("stopped");
    Ok(())
}

/// `/metrics` on an address of its own, which the operator keeps private.
async fn serve_metrics(gateway: &Arc<Gateway>, address: &str) -> anyhow::Result<()> {
    let listener =
        TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let router = http::metrics_router(Arc::clone(gateway));
    tokio::spawn(listen::listen(Arc::clone(gateway), listener, router));
    Ok(())
}

fn warn_if_open(address: SocketAddr) {
    if !address.ip().is_loopback() {
        tracing::warn!(%address, "plain HTTP beyond this machine: put a TLS proxy in front");
    }
}

/// The signals that ask to stop. Heard from the moment this is made.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// A terminal that is closed, or a supervisor that reloads this way: it stops as cleanly.
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
    tracing::info!("stopping: sockets are told to reconnect");
    signals.next().await;
    tracing::warn!("stopping at once");
    std::process::exit(1);
}

/// Every socket is a file: take as many as the system gives.
pub(crate) fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}
