//! `nexo user`: what an operator does for a user.

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use nexo_chat::clock::Clock;
use nexo_chat::ids::UserId;
use nexo_chat::{Reason, password_reset};

use crate::cli::ConfigArgs;
use crate::clock::{SystemClock, SystemRng};
use crate::config::Config;
use crate::copy::print_line;
use crate::migrate::start_command;
use crate::wiring::open_store;

#[derive(Subcommand)]
pub(crate) enum UserCommand {
    /// Creates a one-time code with which a user sets a new password.
    ResetCode(ResetCodeArgs),
}

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ResetCodeArgs {
    /// The user's id.
    id: String,
    #[command(flatten)]
    config: ConfigArgs,
}

const EXAMPLES: &str = "\
A folder can be used by one process only: stop the server first. A database may be in use.

Examples:
  nexo user reset-code alice --data /var/lib/nexo
  NEXO_STORE_FILE=/run/secrets/database nexo user reset-code alice";

impl UserCommand {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        start_command()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        match self {
            Self::ResetCode(args) => runtime.block_on(args.reset_code()),
        }
    }
}

impl ResetCodeArgs {
    async fn reset_code(&self) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        if config.store == "memory" {
            bail!("store = \"memory\" keeps no accounts: give --data or --store");
        }
        if config.store == "embedded" && !std::path::Path::new(&config.data).join("FORMAT").exists()
        {
            bail!("{} has no data: give the right folder with --data", config.data);
        }
        let id = UserId::parse(&self.id).with_context(|| format!("{:?}", self.id))?;
        let store = open_store(&config).await?;
        let issued =
            password_reset::issue(&*store, &SystemRng, SystemClock::new().now(), &id).await;
        store.close().await?;
        let issued = match issued {
            Err(error) if error.reason() == Reason::UserNotFound => bail!("there is no user {id}"),
            issued => issued?,
        };
        print_line(&issued.code)?;
        print_line(&format!(
            "With this code {} sets a new password (POST /user/reset_password), once and within 30 days. \
             Earlier codes no longer work.",
            issued.user
        ))
    }
}
