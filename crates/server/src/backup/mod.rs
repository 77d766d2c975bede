//! `nexo backup`: makes, lists, checks and deletes backups of the embedded store.
//!
//! - `service`: backups of a running server; `archiver`: its log, copied continuously;
//! - `remote`: asks a running server for a backup;
//! - `progress`: shows how far it is.

mod archiver;
pub(crate) mod progress;
mod remote;
mod service;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use nexo_backup::{
    BackupOptions, Keep, Manifest, Repository, S3Options, Target, Transfer, create, format_time,
    prune, verify,
};
use nexo_chat::clock::Clock;
use nexo_chat::store::Store;
use nexo_store::{Embedded, OpenError};

pub(crate) use self::service::BackupService;

use self::progress::{size, with_progress};
use crate::cli::ConfigArgs;
use crate::clock::{SystemClock, SystemRng};
use crate::config::Config;
use crate::copy::print_line;
use crate::migrate::start_command;
use crate::process_metrics::VERSION;

#[derive(Subcommand)]
pub(crate) enum BackupCommand {
    /// Makes a backup of a running server, or of a stopped one's folder.
    Create(CreateArgs),
    /// Lists the backups of a repository.
    List(RepositoryArgs),
    /// Reads backups back and compares every byte with what was written.
    Verify(VerifyArgs),
    /// Deletes old backups, and the files that no other backup needs.
    Prune(PruneArgs),
}

#[derive(Args)]
#[command(after_help = CREATE_EXAMPLES)]
pub(crate) struct CreateArgs {
    /// A folder, or `s3://bucket/prefix`; else `backup.target` of the settings. A running server
    /// writes to its own `backup.target` only.
    #[arg(long, value_name = "TARGET")]
    to: Option<String>,
    /// Puts jwt.secret and the tokens of the data folder into the backup too.
    #[arg(long)]
    with_secrets: bool,
    /// The address of the running server; else `listen` of the settings.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    config: ConfigArgs,
}

const CREATE_EXAMPLES: &str = "\
If a server is using the data folder, it is asked to make the backup, and goes on serving.

Examples:
  nexo backup create --config nexo.toml             to backup.target of the settings
  nexo backup create --to /mnt/backups --data /var/lib/nexo
  nexo backup create --to s3://bucket/nexo          with AWS_ACCESS_KEY_ID and so on";

#[derive(Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct RepositoryArgs {
    /// A folder, or `s3://bucket/prefix`; else `backup.target` of the settings.
    #[arg(long, value_name = "TARGET")]
    from: Option<String>,
    #[command(flatten)]
    config: ConfigArgs,
}

const LIST_EXAMPLES: &str = "\
Examples:
  nexo backup list --from /mnt/backups";

#[derive(Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// Only this backup.
    #[arg(long, value_name = "ID")]
    backup: Option<String>,
    #[command(flatten)]
    repository: RepositoryArgs,
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  nexo backup verify --from /mnt/backups
  nexo backup verify --from s3://bucket/nexo --backup 20261118T040000Z-5f2a9c01";

#[derive(Args)]
#[command(after_help = PRUNE_EXAMPLES)]
pub(crate) struct PruneArgs {
    /// Keeps so many of the newest.
    #[arg(long, value_name = "N", default_value_t = 0)]
    keep_last: usize,
    /// Keeps those of so many days.
    #[arg(long, value_name = "N", default_value_t = 0)]
    keep_days: u64,
    /// How long the files of a deleted backup stay, since a backup that is being made may need
    /// them. 0 only if none is being made.
    #[arg(long, value_name = "N", default_value_t = 24)]
    grace_hours: u64,
    #[command(flatten)]
    repository: RepositoryArgs,
}

const PRUNE_EXAMPLES: &str = "\
A backup stays if one of the two wants it; the newest always stays.

Examples:
  nexo backup prune --from /mnt/backups --keep-last 7
  nexo backup prune --from /mnt/backups --keep-last 7 --keep-days 30";

/// What the settings say about backups.
pub(crate) struct BackupPlan {
    pub(crate) target: Target,
    pub(crate) s3: S3Options,
    pub(crate) data: PathBuf,
    pub(crate) with_secrets: bool,
    pub(crate) mib_per_second: u64,
}

impl BackupPlan {
    /// `None` without a target.
    fn new(config: &Config) -> anyhow::Result<Option<Self>> {
        let settings = &config.backup;
        if settings.target.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            target: Target::parse(&settings.target).context("backup.target")?,
            s3: settings.s3_options(),
            data: PathBuf::from(&config.data),
            with_secrets: settings.with_secrets,
            mib_per_second: settings.mib_per_second,
        }))
    }
}

fn backup_options(plan: &BackupPlan) -> BackupOptions {
    BackupOptions {
        data: plan.data.clone(),
        with_secrets: plan.with_secrets,
        version: VERSION.to_owned(),
        clock: Arc::new(SystemClock::new()),
        rng: Arc::new(SystemRng),
    }
}

impl BackupCommand {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        start_command()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async {
            match self {
                Self::Create(args) => args.run().await,
                Self::List(args) => args.list().await,
                Self::Verify(args) => args.run().await,
                Self::Prune(args) => args.run().await,
            }
        })
    }
}

impl CreateArgs {
    async fn run(&self) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        if config.store != "embedded" {
            bail!("a database is backed up with its own tools: docs/operating.md says how");
        }
        if !Path::new(&config.data).join("FORMAT").exists() {
            bail!("{} has no data: give the right folder with --data", config.data);
        }
        let given = self.to.as_deref().unwrap_or(&config.backup.target);
        if given.is_empty() {
            bail!("give --to, or backup.target in the settings");
        }
        let plan = BackupPlan {
            target: Target::parse(given).context("--to")?,
            s3: config.backup.s3_options(),
            data: PathBuf::from(&config.data),
            with_secrets: self.with_secrets || config.backup.with_secrets,
            mib_per_second: config.backup.mib_per_second,
        };
        match Embedded::open(&plan.data, &config.embedded_options()) {
            Ok(store) => {
                let made = make(&store, &plan).await;
                store.close().await?;
                print_made(&made?, &plan.target)
            }
            Err(OpenError::Locked(_)) => {
                remote::create(&config, &plan, self.server.as_deref()).await
            }
            Err(error) => Err(error).context("cannot open the data folder"),
        }
    }
}

async fn make(store: &Embedded, plan: &BackupPlan) -> anyhow::Result<Manifest> {
    let repository = Repository::create(&plan.target, &plan.s3).await?;
    // Nobody waits for this folder's disk: no limit.
    let transfer = Transfer::new(0);
    let options = backup_options(plan);
    Ok(with_progress(create(&repository, store, &options, &transfer), &transfer).await?)
}

fn print_made(manifest: &Manifest, target: &Target) -> anyhow::Result<()> {
    print_line(&format!(
        "Backup {} is in {target}: {}, of which {} were new. It was read back.",
        manifest.id,
        size(manifest.bytes),
        size(manifest.written_bytes),
    ))
}

impl RepositoryArgs {
    /// Opens the repository, and returns its address too.
    pub(crate) async fn open(&self) -> anyhow::Result<(Repository, Target)> {
        let config = Config::load(&self.config)?;
        open_repository(self.from.as_deref(), &config).await
    }

    async fn list(&self) -> anyhow::Result<()> {
        let (repository, target) = self.open().await?;
        let listed = repository.backups().await?;
        if listed.backups.is_empty() {
            print_line(&format!("{target} has no backups yet."))?;
        }
        for backup in &listed.backups {
            let secrets = if backup.with_secrets { ", with secrets" } else { "" };
            print_line(&format!(
                "{}  taken {}  {:>10}  {:>10} new  log up to entry {}{secrets}",
                backup.id,
                format_time(backup.taken_ms),
                size(backup.bytes),
                size(backup.written_bytes),
                backup.newest,
            ))?;
        }
        for (_, error) in &listed.damaged {
            print_line(&error.to_string())?;
        }
        Ok(())
    }
}

/// Opens the repository at this address, or at that of the settings.
pub(crate) async fn open_repository(
    from: Option<&str>,
    config: &Config,
) -> anyhow::Result<(Repository, Target)> {
    let given = from.unwrap_or(&config.backup.target);
    if given.is_empty() {
        bail!("give --from, or backup.target in the settings");
    }
    let target = Target::parse(given).context("--from")?;
    Ok((Repository::open(&target, &config.backup.s3_options()).await?, target))
}

impl VerifyArgs {
    async fn run(&self) -> anyhow::Result<()> {
        let (repository, target) = self.repository.open().await?;
        let transfer = Transfer::new(0);
        let reading = verify(&repository, self.backup.as_deref(), &transfer);
        let verified = with_progress(reading, &transfer).await?;
        for problem in &verified.problems {
            print_line(problem)?;
        }
        let (backups, objects) = (verified.backups, verified.objects);
        match verified.problems.len() {
            0 => print_line(&format!(
                "{backups} backups in {target} are whole: {objects} files, {}, were read.",
                size(verified.bytes)
            )),
            1 => bail!("there is a problem with the backups in {target}"),
            count => bail!("there are {count} problems with the backups in {target}"),
        }
    }
}

impl PruneArgs {
    async fn run(&self) -> anyhow::Result<()> {
        if self.keep_last == 0 && self.keep_days == 0 {
            bail!("give --keep-last or --keep-days: which backups shall stay?");
        }
        let (repository, target) = self.repository.open().await?;
        let keep = Keep { last: self.keep_last, days: self.keep_days };
        let now = SystemClock::new().now().0;
        let grace = self.grace_hours.saturating_mul(3_600_000);
        let pruned = prune(&repository, keep, now, Some(grace)).await?;
        for id in &pruned.backups {
            print_line(&format!("Deleted backup {id}."))?;
        }
        print_line(&format!(
            "Deleted {} files, {}, in {target}. What was deleted now frees its space after {} hours.",
            pruned.objects,
            size(pruned.bytes),
            self.grace_hours,
        ))
    }
}
