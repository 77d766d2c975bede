//! The command line.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::admin::{AdminArgs, KeyArgs};
use crate::backup::BackupCommand;
use crate::bench::BenchCommand;
use crate::config::{self, Config};
use crate::doctor::DoctorCommand;
use crate::import::ImportCommand;
use crate::migrate::MigrateCommand;
use crate::restore::RestoreCommand;
use crate::serve;
use crate::user::UserCommand;

/// A self-hosted instant-messaging server.
#[derive(Parser)]
#[command(version, about, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

const EXAMPLES: &str = "Examples:
  nexo serve                                 on http://127.0.0.1:8080, data in ./data
  nexo serve --listen 0.0.0.0:80 --data /var/lib/nexo
  NEXO_SESSION__POLICY=single nexo serve     any setting as an environment variable
  nexo config default > nexo.toml            every setting with its default
  nexo config check --config nexo.toml
  nexo migrate --from ./data --to mysql://nexo:password@db/nexo
  nexo doctor --data ./data                  is everything readable?
  nexo backup create --to /mnt/backups       while the server runs, or of a stopped one
  nexo restore --from /mnt/backups --data ./restored
  nexo user reset-code alice                 alice forgot her password
  nexo key create --name shop --scope backend  a key for the backend of an app
  nexo admin users disable bob --reason spam
  nexo bench private --duration 10           how fast is it here?";

#[derive(Subcommand)]
pub(crate) enum CliCommand {
    /// Runs the server until SIGTERM or Ctrl-C.
    Serve(ConfigArgs),
    /// Shows or checks settings.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Copies all data from one store into another, empty one, and verifies it.
    Migrate(MigrateCommand),
    /// Examines a data folder, explains what is wrong, repairs, or copies what is readable.
    Doctor(DoctorCommand),
    /// Takes over the data of another system.
    #[command(subcommand)]
    Import(ImportCommand),
    /// Makes, lists, checks and deletes backups of the embedded store.
    #[command(subcommand)]
    Backup(BackupCommand),
    /// Makes a new data folder from a backup.
    Restore(RestoreCommand),
    /// Helps a user: creates a code with which they set a new password.
    #[command(subcommand)]
    User(UserCommand),
    /// Makes, lists and revokes API keys, with which backends and operators use the server.
    Key(KeyArgs),
    /// Manages users, groups, messages and the audit log.
    Admin(AdminArgs),
    /// Benchmarks a server on this machine.
    #[command(subcommand)]
    Bench(BenchCommand),
}

#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Checks the settings and lists every problem.
    Check(ConfigArgs),
    /// Prints every setting with its default, as a file to start from.
    Default,
}

/// Where settings come from: the file, then the environment, then these flags.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ConfigArgs {
    /// A TOML file with settings.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The folder for messages, secrets and locks.
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data: Option<String>,
    /// The address to listen on; port 0 picks a free one.
    #[arg(long, global = true, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// `embedded`, `memory` (nothing survives a restart), or `mysql://user:password@host/database`.
    #[arg(long, global = true, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// Connects nodes that share a database: `redis://:password@host:6379`.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) redis: Option<String>,
    /// `text` or `json`.
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(crate) log: Option<String>,
}

impl CliCommand {
    /// Runs, and returns the exit code of success.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if let Self::Doctor(doctor) = self {
            return Ok(doctor.run());
        }
        self.run_command().map(|()| ExitCode::SUCCESS)
    }

    fn run_command(self) -> anyhow::Result<()> {
        match self {
            Self::Serve(settings) => serve::serve(&Config::load(&settings)?),
            Self::Doctor(_) => Ok(()), // it has exit codes of its own
            Self::Config(ConfigCommand::Check(settings)) => {
                Config::load(&settings)?;
                Ok(writeln!(std::io::stdout(), "The settings are fine.")?)
            }
            Self::Config(ConfigCommand::Default) => {
                Ok(write!(std::io::stdout(), "{}", config::EXAMPLE)?)
            }
            Self::Migrate(migrate) => migrate.run(),
            Self::Import(import) => import.run(),
            Self::Backup(backup) => backup.run(),
            Self::Restore(restore) => restore.run(),
            Self::User(user) => user.run(),
            Self::Key(key) => key.run(),
            Self::Admin(admin) => admin.run(),
            Self::Bench(bench) => bench.run(),
        }
    }
}
