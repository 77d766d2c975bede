//! Runs the server until SIGTERM, SIGINT or SIGHUP.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use metrics_exporter_prometheus::PrometheusHandle;
use nexo_chat::rules::RegistrationPolicy;
use nexo_gateway::listen::{self, Entrance};
use nexo_gateway::{Gateway, sweep};
use nexo_redis_link::NodeId;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::config::Config;
use crate::descriptors::{self, DescriptorBudget};
use crate::redact_url::without_password;
use crate::wiring::{self, ServerParts};
use crate::{file_modes, logs, panic_hook};

/// How often recorded samples are folded into histograms, so that they stay small
/// even if `/metrics` is never read.
const FOLD_EVERY: Duration = Duration::from_millis(100);

/// Serves until a signal asks to stop; returns when everything is on disk.
pub(crate) fn serve(config: &Config) -> anyhow::Result<()> {
    logs::start(&config.log)?;
    panic_hook::install();
    let budget = DescriptorBudget::new(descriptors::raise_limit(), config)?;
    budget.warn_if_clamped();
    // Only the owner may read the files that the server writes.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    file_modes::warn_of_open_secret_files();
    warn_of_plain_text(config);
    warn_of_identities(config);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(config, budget.connections))
}

/// Folds samples into histograms. On a thread of its own, with the lowest priority and often: five
/// seconds' worth of samples keep a core busy for tens of milliseconds, in which an async worker
/// would serve no socket.
fn keep_folding(metrics: &PrometheusHandle) {
    // On Linux niceness is per thread. Without it everything works, only less evenly.
    if let Err(error) = rustix::process::nice(19) {
        tracing::debug!(%error, "no lower priority");
    }
    loop {
        thread::sleep(FOLD_EVERY);
        metrics.run_upkeep();
    }
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
    file_modes::warn_if_folder_is_open(Path::new(&config.data));
    tokio::spawn(keep_sweeping(Arc::clone(&gateway)));
    gateway.resume_broadcasts();
    thread::Builder::new().name("nexo-metrics".into()).spawn(move || keep_folding(&metrics))?;
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

/// Runs the one timer of all sockets; a panic in it must not end it for all of them.
async fn keep_sweeping(gateway: Arc<Gateway>) {
    while tokio::spawn(sweep::sweep(Arc::clone(&gateway))).await.is_err_and(|end| end.is_panic()) {}
}

/// Serves `/metrics` and health checks without a token on an address of its own, which the operator keeps private.
async fn serve_metrics(gateway: &Arc<Gateway>, address: &str) -> anyhow::Result<()> {
    let listener =
        TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    tokio::spawn(listen::listen(Arc::clone(gateway), listener, Entrance::for_metrics(gateway)));
    Ok(())
}

/// Warns of passwords and messages that travel unencrypted to another machine.
fn warn_of_plain_text(config: &Config) {
    if config.store.starts_with("mysql://")
        && let Some(host) = config.mysql.options(&config.store).plain_text_host()
        && !is_this_machine(&host)
    {
        tracing::warn!(
            host,
            "the database is reached without TLS: set mysql.ca_file, or ?require_ssl=true in its address"
        );
    }
    if !config.redis.is_empty() {
        let options = config.cluster.options(&config.redis, NodeId([0; 16]));
        let hosts = options.redis.plain_text_hosts();
        let hosts: Vec<&str> =
            hosts.iter().map(String::as_str).filter(|host| !is_this_machine(host)).collect();
        if !hosts.is_empty() {
            tracing::warn!(
                hosts = hosts.join(", "),
                "redis is reached without TLS: write rediss:// for redis:// in its address"
            );
        }
    }
}

/// Warns where people could take the ids of others before their owners come, or forge who they are.
fn warn_of_identities(config: &Config) {
    let (token, oidc) = (&config.auth.token, &config.auth.oidc);
    let is_open = config.rules().registration() == RegistrationPolicy::Open;
    if is_open && (token.is_on() || oidc.is_on()) {
        tracing::warn!(
            "everybody can register, also with an id that the identity provider gave to somebody else: \
             set auth.registration = \"closed\""
        );
    }
    for address in [&token.jwks_url, &oidc.issuer] {
        let url = reqwest::Url::parse(address).ok().filter(|url| url.scheme() == "http");
        if let Some(host) = url.as_ref().and_then(reqwest::Url::host_str)
            && !is_this_machine(host)
        {
            tracing::warn!(host, "the identity provider is reached without TLS: write https://");
        }
    }
}

fn is_this_machine(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|it| it.to_canonical().is_loopback())
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
