//! `nexo user`: what an operator does for a person, beside a running server or without one.

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use nexo_chat::clock::Clock;
use nexo_chat::ids::UserId;
use nexo_chat::{Reason, reset};

use crate::cli::Settings;
use crate::clock::{SystemClock, SystemDice};
use crate::config::Config;
use crate::filling::say;
use crate::migrate::prepare;
use crate::wiring::open_store;

#[derive(Subcommand)]
pub(crate) enum User {
    /// Makes a one-time code with which somebody sets a new password.
    ResetCode(ForUser),
}

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ForUser {
    /// Whose.
    id: String,
    #[command(flatten)]
    settings: Settings,
}

const EXAMPLES: &str = "\
A folder can be used by one process only: stop the server first. A database may be in use.

Examples:
  nexo user reset-code alice --data /var/lib/nexo
  NEXO_STORE_FILE=/run/secrets/database nexo user reset-code alice";

impl User {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        prepare()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        match self {
            Self::ResetCode(asked) => runtime.block_on(asked.reset_code()),
        }
    }
}

impl ForUser {
    async fn reset_code(&self) -> anyhow::Result<()> {
        let config = Config::load(&self.settings)?;
        if config.store == "memory" {
            bail!("store = \"memory\" keeps no accounts: give --data or --store");
        }
        if config.store == "embedded" && !std::path::Path::new(&config.data).join("FORMAT").exists()
        {
            bail!("{} has no data: give the right folder with --data", config.data);
        }
        let id = UserId::parse(&self.id).with_context(|| format!("{:?}", self.id))?;
        let store = open_store(&config).await?;
        let issued = reset::issue(&*store, &SystemDice, SystemClock::new().now(), &id).await;
        store.close().await?;
        let issued = match issued {
            Err(error) if error.reason() == Reason::UserNotFound => bail!("there is no user {id}"),
            issued => issued?,
        };
        say(&issued.code)?;
        say(&format!(
            "With this code {} sets a new password (POST /user/reset_password), once and within 30 days. \
             An earlier code is worth nothing now.",
            issued.user
        ))
    }
}
