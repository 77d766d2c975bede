//! `nexo migrate`: moves all data from one store to another, in either direction.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;

use crate::config::LogSettings;
use crate::copy::{copy_and_verify, print_line, print_summary};
use crate::logs;
use crate::store_location::StoreLocation;

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MigrateCommand {
    /// The store to read: `embedded:/path`, a folder, `mysql://user:password@host/database`, or
    /// `@file` with one of these in it.
    #[arg(long, value_name = "STORE")]
    from: String,
    /// The empty store to write to, in the same form.
    #[arg(long, value_name = "STORE")]
    to: String,
    /// A file with the certificate authority to check the database's TLS certificate against.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

const EXAMPLES: &str =
    "Stop the servers first. The target must be empty. The source is not changed.

Examples:
  nexo migrate --from ./data --to mysql://nexo:password@db/nexo
  nexo migrate --from mysql://nexo:password@db/nexo --to embedded:/var/lib/nexo
  nexo migrate --from ./data --to @/run/secrets/database    reads the address from a file";

/// Files in the data folder that are not part of the store.
const SECRETS: &str = "jwt.secret, system.token and metrics.token";

impl MigrateCommand {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        start_command()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(self.migrate())
    }

    async fn migrate(&self) -> anyhow::Result<()> {
        let ca_file = self.ca_file.as_deref();
        let from = StoreLocation::parse(&self.from, ca_file).context("--from")?;
        let to = StoreLocation::parse(&self.to, ca_file).context("--to")?;
        if from.is_same(&to) {
            bail!("{from} cannot be copied onto itself: give another --to");
        }
        let source = from.open_to_read().await;
        let source = source.with_context(|| format!("cannot move data from {from}"))?;
        print_line(&format!("Copying {from} to {to}."))?;
        let copied = copy_and_verify(source.export(), &to, Some(&source)).await;
        // Close it even after a failure, so that a server can be started on the source at once.
        source.close().await?;
        print_summary(&copied?, &to)?;
        print_line(&secrets_hint(&from, &to))?;
        print_line(&format!("{from} was not changed. Next: {}", to.how_to_serve()))
    }
}

fn secrets_hint(from: &StoreLocation, to: &StoreLocation) -> String {
    let source = match from {
        StoreLocation::Folder(path) => format!("in {}", path.display()),
        StoreLocation::Database(_) => {
            "in the data folders of the servers that used the database".into()
        }
    };
    let target = match to {
        StoreLocation::Folder(path) => format!("into {}", path.display()),
        StoreLocation::Database(_) => "into the data folder of every server".into(),
    };
    format!(
        "Not copied, since they are not part of the store: {SECRETS}, {source}. Copy them {target} \
         (or set NEXO_AUTH__JWT_SECRET, NEXO_SYSTEM__TOKEN and NEXO_METRICS__TOKEN); with new ones, \
         all users and tools need new tokens."
    )
}

/// Prepares a command that writes a store: logging, and permissions of new files.
pub(crate) fn start_command() -> anyhow::Result<()> {
    logs::start(&LogSettings { level: "error".into(), format: "text".into() })?;
    // Only the owner may read the files that the command writes.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    Ok(())
}
