//! `nexo restore`: a new data folder from a backup.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use nexo_backup::{RestoreRequest, Restored, Transfer, format_time, parse_time, restore};
use nexo_chat::store::Store;
use nexo_store::archive::{Import, ItemKind, Tally, survey};

use crate::backup::open_repository;
use crate::backup::progress::with_progress;
use crate::cli::ConfigArgs;
use crate::config::Config;
use crate::copy::print_line;
use crate::migrate::start_command;

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RestoreCommand {
    /// The backups: a folder, or `s3://bucket/prefix`; else `backup.target` of the settings.
    #[arg(long, value_name = "TARGET")]
    from: Option<String>,
    /// This backup; else the newest, and the archived log after it.
    #[arg(long, value_name = "ID")]
    backup: Option<String>,
    /// The data as it was at this time, such as 2026-11-18T04:00:00Z.
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    #[command(flatten)]
    config: ConfigArgs,
}

const EXAMPLES: &str = "\
The folder of --data must be new or empty. Every file is compared with its checksum while it is copied.
With the log archived (backup.archive_log_seconds), --at reaches any moment since the first backup;
without, only the minutes before each backup that its log covers.

Examples:
  nexo restore --from /mnt/backups --data /var/lib/nexo-new
  nexo restore --from s3://bucket/nexo --backup 20261118T040000Z-5f2a9c01 --data ./restored
  nexo restore --from /mnt/backups --at 2026-11-18T04:00:00Z --data ./restored";

impl RestoreCommand {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        start_command()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(self.restore())
    }

    async fn restore(&self) -> anyhow::Result<()> {
        let Some(data) = &self.config.data else { bail!("give a new folder with --data") };
        let config = Config::load(&self.config)?;
        let at_ms = match &self.at {
            Some(text) => Some(parse_time(text).with_context(|| {
                format!("--at {text}: give a time such as 2026-11-18T04:00:00Z")
            })?),
            None => None,
        };
        let (repository, _) = open_repository(self.from.as_deref(), &config).await?;
        let request = RestoreRequest {
            backup: self.backup.clone(),
            at_ms,
            data: PathBuf::from(data),
            options: config.embedded_options(),
        };
        let transfer = Transfer::new(0);
        let copying = restore(&repository, &request, &transfer);
        let restored = with_progress(copying, &transfer).await;
        let restored = restored.with_context(|| format!("cannot restore into {data}"))?;
        // Reads every record, so that what is reported is what a server will find.
        let found = survey(&*restored.store, &mut |_| {}).await?;
        restored.store.finish().await?;
        restored.store.close().await?;
        print_restored(data, &restored, &found, at_ms)
    }
}

fn print_restored(
    data: &str,
    restored: &Restored,
    found: &Tally,
    at_ms: Option<u64>,
) -> anyhow::Result<()> {
    let Restored { manifest, newest, newest_ms, .. } = restored;
    let written = newest_ms.map(|at| format!(", written {}", format_time(at))).unwrap_or_default();
    print_line(&format!(
        "{data} has backup {} (taken {}), up to entry {newest} of the log{written}: {} messages in \
         {} conversations, {} accounts, {} groups. Every record was read.",
        manifest.id,
        format_time(manifest.taken_ms),
        found.count(ItemKind::Message),
        found.conversations(),
        found.count(ItemKind::User),
        found.count(ItemKind::Group),
    ))?;
    if let Some(at) = at_ms.filter(|_| !restored.is_covered) {
        print_line(&format!(
            "The backups end before {}: what came between is not in them.",
            format_time(at)
        ))?;
    }
    if !manifest.with_secrets {
        print_line(
            "Not in the backup: jwt.secret and the tokens. Copy them into the folder, or new ones are \
             generated at the first start, and people and tools need new tokens.",
        )?;
    }
    print_line(
        "Sign-ins are those of that moment: who was signed in then still is, also if they signed out \
         since.",
    )
}
