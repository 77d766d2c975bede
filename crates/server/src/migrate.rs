//! `nexo migrate`: from one engine to another, there and back.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;

use crate::config::Log;
use crate::filling::{fill, say, tell};
use crate::logs;
use crate::place::Place;

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Migrate {
    /// The store to read: `embedded:/path`, a folder, `mysql://user:password@host/database`, or
    /// `@file` with one of these in it.
    #[arg(long, value_name = "STORE")]
    from: String,
    /// The empty store to fill, named the same way.
    #[arg(long, value_name = "STORE")]
    to: String,
    /// A certificate authority that the database's TLS certificate is checked against.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

const EXAMPLES: &str =
    "Stop the servers first. The target must be empty, and nothing is changed in the source.

Examples:
  nexo migrate --from ./data --to mysql://nexo:password@db/nexo
  nexo migrate --from mysql://nexo:password@db/nexo --to embedded:/var/lib/nexo
  nexo migrate --from ./data --to @/run/secrets/database    the address is in a file";

/// What the server keeps beside the store.
const SECRETS: &str = "jwt.secret, system.token and metrics.token";

impl Migrate {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        prepare()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(self.migrate())
    }

    async fn migrate(&self) -> anyhow::Result<()> {
        let ca_file = self.ca_file.as_deref();
        let from = Place::parse(&self.from, ca_file).context("--from")?;
        let to = Place::parse(&self.to, ca_file).context("--to")?;
        if from.is(&to) {
            bail!("{from} cannot be moved onto itself: give another --to");
        }
        let source = from.open_to_read().await;
        let source = source.with_context(|| format!("cannot move data from {from}"))?;
        say(&format!("Moving {from} to {to}."))?;
        let moved = fill(source.export(), &to, Some(&source)).await;
        // In any case: whoever starts a server on the source need not wait.
        source.close().await?;
        tell(&moved?, &to)?;
        say(&secrets(&from, &to))?;
        say(&format!("{from} is as it was. Next: {}", to.how_to_serve()))
    }
}

fn secrets(from: &Place, to: &Place) -> String {
    let kept = match from {
        Place::Folder(path) => format!("in {}", path.display()),
        Place::Database(_) => "in the data folders of the servers that used the database".into(),
    };
    let whereto = match to {
        Place::Folder(path) => format!("into {}", path.display()),
        Place::Database(_) => "into the data folder of every server".into(),
    };
    format!(
        "Not copied, since they are no part of a store: {SECRETS}, {kept}. Copy them {whereto} (or \
         give them as NEXO_AUTH__JWT_SECRET, NEXO_SYSTEM__TOKEN and NEXO_METRICS__TOKEN); with new \
         ones everybody's tokens have to be renewed."
    )
}

/// What every command does first that makes a store.
pub(crate) fn prepare() -> anyhow::Result<()> {
    logs::start(&Log { level: "error".into(), ..Log::default() })?;
    // Whatever is written is for its owner alone.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    Ok(())
}
