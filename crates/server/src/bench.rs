//! Measuring: starts what is to be measured as processes of their own, loads them, stops them.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use clap::Subcommand;
use nexo_bench::options::Target;
use nexo_bench::{
    BareRelayOptions, CatchupOptions, ConnectOptions, GroupOptions, MixedOptions, Outcome, Place,
    PrivateOptions,
};
use tempfile::TempDir;
use tokio::net::TcpListener;

#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Pairs of people who send each other messages.
    Private(PrivateOptions),
    /// A group whose members hear each other.
    Group(GroupOptions),
    /// Somebody comes back and wants what they missed.
    Catchup(CatchupOptions),
    /// Pairs, groups, idle connections and people who come and go, at once.
    Mixed(MixedOptions),
    /// Many connections that say nothing.
    Connect(ConnectOptions),
    /// The bare relay that `--baseline` compares with.
    #[command(hide = true)]
    BareRelay(BareRelayOptions),
}

impl Bench {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        crate::serve::raise_file_limit();
        match self {
            Self::Private(options) => runtime.block_on(private(&options)),
            Self::Group(options) => runtime.block_on(group(&options)),
            Self::Catchup(options) => runtime.block_on(catchup(&options)),
            Self::Mixed(options) => runtime.block_on(mixed(&options)),
            Self::Connect(options) => runtime.block_on(connect(&options)),
            Self::BareRelay(options) => runtime.block_on(bare_relay(&options)),
        }
    }
}

async fn private(options: &PrivateOptions) -> anyhow::Result<()> {
    options.check()?;
    let folder = folder()?;
    let mut report = {
        let server = Loaded::new(&options.target, &folder)?;
        nexo_bench::private(options, &server.place).await?
    };
    if options.target.baseline {
        let relay = Started::relay()?;
        let half = report.half.as_ref();
        let baseline = nexo_bench::baseline(options, half, &relay.place(), folder.path()).await?;
        report = report.with_baseline(baseline);
    }
    show(&report, &options.target)
}

async fn group(options: &GroupOptions) -> anyhow::Result<()> {
    options.check()?;
    let folder = folder()?;
    let mut report = {
        let server = Loaded::new(&options.target, &folder)?;
        nexo_bench::group(options, &server.place).await?
    };
    if options.target.baseline {
        let relay = Started::relay()?;
        report = report.with_broadcast(nexo_bench::bare_group(options, &relay.place()).await?);
    }
    show(&report, &options.target)
}

async fn catchup(options: &CatchupOptions) -> anyhow::Result<()> {
    options.check()?;
    let folder = folder()?;
    let server = Loaded::new(&options.target, &folder)?;
    show(&nexo_bench::catchup(options, &server.place).await?, &options.target)
}

async fn mixed(options: &MixedOptions) -> anyhow::Result<()> {
    options.check()?;
    let folder = folder()?;
    let server = Loaded::new(&options.target, &folder)?;
    show(&nexo_bench::mixed(options, &server.place).await?, &options.target)
}

async fn connect(options: &ConnectOptions) -> anyhow::Result<()> {
    options.check()?;
    let folder = folder()?;
    let mut report = {
        let server = Loaded::new(&options.target, &folder)?;
        nexo_bench::connect(options, &server.place).await?
    };
    if options.target.baseline {
        let relay = Started::relay()?;
        report = report.with_baseline(nexo_bench::bare_connect(options, &relay.place()).await?);
    }
    show(&report, &options.target)
}

/// Beside the working folder, so that the disk is the one that data would be on.
fn folder() -> std::io::Result<TempDir> {
    tempfile::Builder::new().prefix("nexo-bench-").tempdir_in(".")
}

fn show(report: &impl Outcome, target: &Target) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    if target.json {
        writeln!(out, "{}", report.to_json()?)?;
    } else {
        writeln!(out, "{report}")?;
    }
    if let Some(file) = &target.plot {
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

/// The server that is loaded: somebody else's, or a private one that ends with this.
struct Loaded {
    place: Place,
    _own: Option<Started>,
}

impl Loaded {
    fn new(target: &Target, folder: &TempDir) -> anyhow::Result<Self> {
        if let Some(address) = &target.target {
            return Ok(Self { place: Place::at(address), _own: None });
        }
        let server = Started::server(&folder.path().join("data"))?;
        Ok(Self { place: server.place(), _own: Some(server) })
    }
}

/// A process that printed its address; it is stopped when dropped.
struct Started {
    child: Child,
    address: String,
}

impl Started {
    /// A server without limits and with cheap passwords: what is measured is messages.
    fn server(data: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data);
        let settings = [
            ("NEXO_LIMITS__USER_SENDS_PER_SECOND", "0"),
            ("NEXO_LIMITS__USER_REQUESTS_PER_SECOND", "0"),
            ("NEXO_LIMITS__CONNECTION_FRAMES_PER_SECOND", "0"),
            ("NEXO_LIMITS__REGISTRATIONS_PER_MINUTE", "0"),
            ("NEXO_AUTH__ARGON2_MEMORY_KIB", "8"),
            ("NEXO_AUTH__ARGON2_PASSES", "1"),
            ("NEXO_GROUPS__STRATEGY", "push"),
            ("NEXO_LOG__LEVEL", "warn"),
        ];
        Self::new(command.envs(settings))
    }

    fn relay() -> anyhow::Result<Self> {
        Self::new(Command::new(std::env::current_exe()?).args(["bench", "bare-relay"]))
    }

    fn place(&self) -> Place {
        Place { address: self.address.clone(), pid: Some(self.child.id()) }
    }

    fn new(command: &mut Command) -> anyhow::Result<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim().rsplit(' ').next().filter(|word| word.starts_with("http://"));
        let address = address.with_context(|| format!("it did not start: {line}"))?.to_owned();
        Ok(Self { child, address })
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended already, which is what is wanted.
        if self.child.kill().is_ok() && self.child.wait().is_err() {
            tracing::debug!(pid = self.child.id(), "could not wait for a process");
        }
    }
}
