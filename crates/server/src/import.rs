//! `nexo import`: takes over the data of another system.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use nexo_chat::clock::Clock;
use nexo_store::mini_im::{ImportReport, MiniIm, MiniImOptions, UserIds};

use crate::clock::{SystemClock, SystemRng};
use crate::copy::{copy_and_verify, print_line, print_summary};
use crate::migrate::start_command;
use crate::passwords;
use crate::reset_codes_file::ResetCodesFile;
use crate::store_location::StoreLocation;

#[derive(Subcommand, Debug)]
pub(crate) enum ImportCommand {
    /// Takes over a mini-im database (its tables before and after `msg_seq`).
    MiniIm(MiniImArgs),
}

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MiniImArgs {
    /// The database of mini-im: `mysql://user:password@host/database`, or `@file` with it in it.
    #[arg(long, value_name = "DATABASE")]
    from: String,
    /// The empty store to write to: `embedded:/path`, a folder, `mysql://…`, or `@file`.
    #[arg(long, value_name = "STORE")]
    to: String,
    /// The ids of accounts here: the number that mini-im's clients know, or the name that people signed
    /// in with.
    #[arg(long, value_enum, default_value = "number")]
    user_ids: UserIdsArg,
    /// The time zone of its times, such as +08:00, if it is not the one of its database.
    #[arg(long, value_name = "OFFSET", allow_hyphen_values = true)]
    time_zone: Option<String>,
    /// Where to write one-time codes for people whose old password cannot be taken over: each sets a new
    /// password with theirs. A new file that only its owner can read; by default beside the store, ending in .reset-codes.csv.
    #[arg(long, value_name = "FILE")]
    codes: Option<PathBuf>,
    /// A file with the certificate authority to check the databases' TLS certificates against.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum UserIdsArg {
    Number,
    Username,
}

const EXAMPLES: &str = "\
Stop mini-im first: what it stores after the import began is not taken over. The target must be empty.

Examples:
  nexo import mini-im --from mysql://im:password@db/mini_im --to /var/lib/nexo
  nexo import mini-im --from @/run/secrets/old --to @/run/secrets/new --user-ids username
  nexo import mini-im --from mysql://im:password@db/mini_im --to ./data --time-zone +08:00";

impl ImportCommand {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        start_command()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        match self {
            Self::MiniIm(command) => runtime.block_on(command.import()),
        }
    }
}

impl MiniImArgs {
    async fn import(&self) -> anyhow::Result<()> {
        let ca_file = self.ca_file.as_deref();
        let from = StoreLocation::parse(&self.from, ca_file).context("--from")?;
        let to = StoreLocation::parse(&self.to, ca_file).context("--to")?;
        let StoreLocation::Database(database) = &from else {
            bail!("--from: mini-im keeps its data in a database: mysql://user:password@host/name");
        };
        let options = MiniImOptions {
            database: database.clone(),
            time_zone: self.time_zone.clone(),
            user_ids: match self.user_ids {
                UserIdsArg::Number => UserIds::Number,
                UserIdsArg::Username => UserIds::Username,
            },
            unusable_password: passwords::unusable_hash(&SystemRng)?,
            is_usable: passwords::is_usable,
            rng: Arc::new(SystemRng),
            now: SystemClock::new().now(),
        };
        let codes = match &self.codes {
            Some(path) => ResetCodesFile::create(path)?,
            None => ResetCodesFile::beside(&to)?,
        };
        let importing = async {
            let mini_im = MiniIm::open(options).await;
            let mini_im = mini_im.with_context(|| format!("cannot take over {from}"))?;
            print_line(&format!("Taking over {from} into {to}."))?;
            let tally = copy_and_verify(&mini_im, &to, None).await?;
            anyhow::Ok((mini_im, tally))
        };
        let (mini_im, tally) = match importing.await {
            Ok(imported) => imported,
            Err(error) => {
                codes.remove();
                return Err(error);
            }
        };
        print_summary(&tally, &to)?;
        report(&mini_im.report())?;
        codes.write(&mini_im.take_codes())?;
        print_line(&format!("{from} was not changed. Next: {}", to.how_to_serve()))
    }
}

fn report(report: &ImportReport) -> anyhow::Result<()> {
    for (title, losses) in [("Changed:", false), ("Left out:", true)] {
        let mut notes = report.notes().filter(|(note, ..)| note.is_loss() == losses).peekable();
        if notes.peek().is_some() || (losses && !report.tables().is_empty()) {
            print_line(title)?;
        }
        for (note, count, examples) in notes {
            let examples = if examples.is_empty() {
                String::new()
            } else {
                let more = if count > examples.len() as u64 { ", …" } else { "" };
                format!(" ({}{more})", examples.join(", "))
            };
            print_line(&format!("{count:>12}  {}{examples}", note.text()))?;
        }
    }
    for (table, rows) in report.tables() {
        print_line(&format!("{rows:>12}  rows of {table}: {}", why(table)))?;
    }
    print_line(
        "Everyone has to sign in again: mini-im keeps sign-ins elsewhere. A user who sends a message \
         has read what came before it, as always here.",
    )
}

/// Why a table is not imported.
fn why(table: &str) -> &'static str {
    match table {
        "t_friend_relation" | "t_friend_request" => "Nexo has no friend lists; users just write",
        "t_message_ack" => "cursors say what each user has received and read",
        "t_call_record" => "Nexo has no calls",
        table if table.starts_with("t_moment") => "Nexo has no moments",
        _ => "unknown to Nexo",
    }
}
