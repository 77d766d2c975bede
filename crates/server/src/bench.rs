//! `nexo bench`: starts servers as processes of their own, loads them, stops them.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use clap::Subcommand;
use nexo_bench::options::{OutputOptions, TargetOptions};
use nexo_bench::{
    BareRelayOptions, BenchReport, CatchupOptions, ConnectOptions, DatabaseOptions, Endpoint,
    GroupOptions, GrowthOptions, MixedOptions, PrivateOptions, Started, TwoPhaseOptions,
    TwoPhaseReport, two_phase,
};
use nexo_store::{MySql, MySqlOptions};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::growth::growth;

/// No rate limits and cheap password hashes: the benchmarks measure messages.
pub(crate) const SETTINGS: [(&str, &str); 12] = [
    ("NEXO_LIMITS__CONNECTIONS_PER_ADDRESS", "0"),
    ("NEXO_LIMITS__USER_SENDS_PER_SECOND", "0"),
    ("NEXO_ACCOUNTS__STRANGERS_PER_HOUR", "0"),
    ("NEXO_GROUPS__BY_STRANGERS_PER_HOUR", "0"),
    ("NEXO_LIMITS__USER_REQUESTS_PER_SECOND", "0"),
    ("NEXO_LIMITS__CONNECTION_FRAMES_PER_SECOND", "0"),
    ("NEXO_LIMITS__REGISTRATIONS_PER_MINUTE", "100000000"),
    ("NEXO_AUTH__ARGON2_MEMORY_KIB", "8"),
    ("NEXO_AUTH__ARGON2_PASSES", "1"),
    ("NEXO_GROUPS__MEMBERS_MAX", "200000"),
    ("NEXO_GROUPS__STRATEGY", "push"),
    ("NEXO_LOG__LEVEL", "warn"),
];

#[derive(Subcommand)]
pub(crate) enum BenchCommand {
    /// Pairs of users who send each other messages.
    Private(PrivateOptions),
    /// A group whose members send and receive messages.
    Group(GroupOptions),
    /// Clients that were offline fetch what they missed.
    Catchup(CatchupOptions),
    /// Pairs, groups, idle connections and reconnecting members, all at once.
    Mixed(MixedOptions),
    /// The same load with and without two-phase acknowledgement.
    TwoPhase(TwoPhaseOptions),
    /// Many idle connections.
    Connect(ConnectOptions),
    /// Messages into a database, compared with plain inserts.
    Database(DatabaseOptions),
    /// Whether cost grows with what is stored.
    Growth(GrowthOptions),
    /// The bare relay that `--baseline` compares with.
    #[command(hide = true)]
    BareRelay(BareRelayOptions),
}

impl BenchCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        crate::descriptors::raise_limit();
        let done = runtime.block_on(async {
            tokio::select! {
                done = self.measure() => done,
                // Returning, unlike exiting, removes the folder, which may be large, and ends the server.
                _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted"),
            }
        });
        // Do not wait for the timer threads of unfinished phases.
        runtime.shutdown_background();
        done
    }

    async fn measure(self) -> anyhow::Result<()> {
        match self {
            Self::Private(options) => private(&options).await,
            Self::Group(options) => group(&options).await,
            Self::Catchup(options) => catchup(&options).await,
            Self::Mixed(options) => mixed(&options).await,
            Self::TwoPhase(options) => two_phase(&options).await,
            Self::Connect(options) => connect(&options).await,
            Self::Database(options) => database(&options).await,
            Self::Growth(options) => growth(&options).await,
            Self::BareRelay(options) => bare_relay(&options).await,
        }
    }
}

async fn private(options: &PrivateOptions) -> anyhow::Result<()> {
    options.check()?;
    let folder = folder()?;
    let mut report = {
        let server = BenchTarget::new(&options.target, &folder)?;
        nexo_bench::private(options, &server.endpoint).await?
    };
    if options.target.baseline {
        let relay = relay()?;
        let half = report.half.as_ref();
        let baseline =
            nexo_bench::baseline(options, half, &relay.endpoint(), folder.path()).await?;
        report = report.with_baseline(baseline);
    }
    show(&report, &options.target.output)
}

async fn group(options: &GroupOptions) -> anyhow::Result<()> {
    options.check()?;
    let folder = folder()?;
    let mut report = {
        let server = BenchTarget::new(&options.target, &folder)?;
        nexo_bench::group(options, &server.endpoint).await?
    };
    if options.target.baseline {
        let relay = relay()?;
        report = report.with_broadcast(nexo_bench::bare_group(options, &relay.endpoint()).await?);
    }
    show(&report, &options.target.output)
}

async fn catchup(options: &CatchupOptions) -> anyhow::Result<()> {
    options.check()?;
    let folder = folder()?;
    let server = BenchTarget::new(&options.target, &folder)?;
    show(&nexo_bench::catchup(options, &server.endpoint).await?, &options.target.output)
}

async fn mixed(options: &MixedOptions) -> anyhow::Result<()> {
    options.check()?;
    let folder = folder()?;
    let server = BenchTarget::new(&options.target, &folder)?;
    show(&nexo_bench::mixed(options, &server.endpoint).await?, &options.target.output)
}

async fn connect(options: &ConnectOptions) -> anyhow::Result<()> {
    options.check()?;
    let folder = folder()?;
    let mut report = {
        let server = BenchTarget::new(&options.target, &folder)?;
        nexo_bench::connect(options, &server.endpoint).await?
    };
    if options.target.baseline {
        let relay = relay()?;
        report = report.with_baseline(nexo_bench::bare_connect(options, &relay.endpoint()).await?);
    }
    show(&report, &options.target.output)
}

async fn two_phase(options: &TwoPhaseOptions) -> anyhow::Result<()> {
    options.check()?;
    let store = options.store.as_deref().map_or("the embedded store", |_| "a database");
    let log = options.redis.as_deref().map_or("memory", |_| "Redis");
    let kept_in = format!("messages in {store}, those accepted in {log}");
    let mut loads = Vec::new();
    for (name, settings) in two_phase::MODES {
        if !options.output.json {
            writeln!(std::io::stderr(), "{name}")?;
        }
        let folder = folder()?;
        let mut command = serve_command(&folder.path().join("data"))?;
        command.envs(settings.iter().copied());
        for (flag, url) in [("--store", &options.store), ("--redis", &options.redis)] {
            command.args(url.iter().flat_map(|url| [flag, url]));
        }
        let secret = "nobody but this benchmark uses this server";
        let server = Started::new(command.env("NEXO_AUTH__JWT_SECRET", secret))?;
        loads.push(nexo_bench::private(&options.load(), &server.endpoint()).await?.load);
        // Stop cleanly: after a kill the next server would wait for the shard leases to expire.
        server.stop().await?;
    }
    show(&TwoPhaseReport { rate: options.rate, kept_in, loads }, &options.output)
}

async fn database(options: &DatabaseOptions) -> anyhow::Result<()> {
    let engine = MySqlOptions {
        committers: options.committers,
        connections_max: options.committers + 8,
        ..MySqlOptions::new(&options.url)
    };
    let store = MySql::open(&engine).await.context("cannot use the database")?;
    show(&nexo_bench::database(options, store).await?, &options.output)
}

/// A temporary folder in the working folder, so that it is on the disk that data would be on.
pub(crate) fn folder() -> std::io::Result<TempDir> {
    tempfile::Builder::new().prefix("nexo-bench-").tempdir_in(".")
}

pub(crate) fn show(report: &impl BenchReport, output: &OutputOptions) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    if output.json {
        writeln!(out, "{}", report.to_json()?)?;
    } else {
        writeln!(out, "{report}")?;
    }
    if let Some(file) = &output.plot {
        std::fs::write(file, report.to_page())
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    anyhow::ensure!(report.is_clean(), "something was lost, repeated, reordered or refused");
    Ok(())
}

async fn bare_relay(options: &BareRelayOptions) -> anyhow::Result<()> {
    let listener = TcpListener::bind(options.listen).await?;
    writeln!(std::io::stdout(), "bare relay on http://{}", listener.local_addr()?)?;
    Ok(nexo_bench::serve_bare_relay(listener).await?)
}

/// The server under load: the one given with `--target`, or a private one that stops when this is dropped.
struct BenchTarget {
    endpoint: Endpoint,
    _own: Option<Started>,
}

impl BenchTarget {
    fn new(target: &TargetOptions, folder: &TempDir) -> anyhow::Result<Self> {
        if let Some(address) = &target.target {
            return Ok(Self { endpoint: Endpoint::at(address), _own: None });
        }
        let server = server(&folder.path().join("data"))?;
        Ok(Self { endpoint: server.endpoint(), _own: Some(server) })
    }
}

/// Starts a private server.
pub(crate) fn server(data: &Path) -> anyhow::Result<Started> {
    Started::new(&mut serve_command(data)?)
}

fn serve_command(data: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data).envs(SETTINGS);
    Ok(command)
}

fn relay() -> anyhow::Result<Started> {
    Started::new(Command::new(std::env::current_exe()?).args(["bench", "bare-relay"]))
}
