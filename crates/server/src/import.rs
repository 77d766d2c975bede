//! `nexo import`: from another system.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use nexo_chat::clock::Clock;
use nexo_store::mini_im::{MiniIm, MiniImOptions, Report, UserIds};

use crate::clock::{SystemClock, SystemDice};
use crate::codes_file::CodesFile;
use crate::filling::{fill, say, tell};
use crate::migrate::prepare;
use crate::passwords;
use crate::place::Place;

#[derive(Subcommand, Debug)]
pub(crate) enum Import {
    /// Takes over a mini-im database (its tables before and after `msg_seq`).
    MiniIm(FromMiniIm),
}

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FromMiniIm {
    /// The database of mini-im: `mysql://user:password@host/database`, or `@file` with it in it.
    #[arg(long, value_name = "DATABASE")]
    from: String,
    /// The empty store to fill: `embedded:/path`, a folder, `mysql://…`, or `@file`.
    #[arg(long, value_name = "STORE")]
    to: String,
    /// What accounts are called here: by the number that its clients know, or by the name that
    /// people signed in with.
    #[arg(long, value_enum, default_value = "number")]
    user_ids: Called,
    /// What the times in it mean, such as +08:00, if not what its database says.
    #[arg(long, value_name = "OFFSET", allow_hyphen_values = true)]
    time_zone: Option<String>,
    /// Where to write the one-time codes with which people set a new password whose old one cannot be
    /// kept; a new file, for its owner alone. Else beside the store, ending in .reset-codes.csv.
    #[arg(long, value_name = "FILE")]
    codes: Option<PathBuf>,
    /// A certificate authority that the databases' TLS certificates are checked against.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Called {
    Number,
    Username,
}

const EXAMPLES: &str = "\
Stop mini-im first: what it keeps after this began is not taken over. The target must be empty.

Examples:
  nexo import mini-im --from mysql://im:password@db/mini_im --to /var/lib/nexo
  nexo import mini-im --from @/run/secrets/old --to @/run/secrets/new --user-ids username
  nexo import mini-im --from mysql://im:password@db/mini_im --to ./data --time-zone +08:00";

impl Import {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        prepare()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        match self {
            Self::MiniIm(command) => runtime.block_on(command.import()),
        }
    }
}

impl FromMiniIm {
    async fn import(&self) -> anyhow::Result<()> {
        let ca_file = self.ca_file.as_deref();
        let from = Place::parse(&self.from, ca_file).context("--from")?;
        let to = Place::parse(&self.to, ca_file).context("--to")?;
        let Place::Database(database) = &from else {
            bail!("--from: mini-im keeps its data in a database: mysql://user:password@host/name");
        };
        let options = MiniImOptions {
            database: database.clone(),
            time_zone: self.time_zone.clone(),
            user_ids: match self.user_ids {
                Called::Number => UserIds::Number,
                Called::Username => UserIds::Username,
            },
            unusable_password: passwords::of_nobody(&SystemDice)?,
            is_usable: passwords::is_usable,
            dice: Arc::new(SystemDice),
            now: SystemClock::new().now(),
        };
        let codes = match &self.codes {
            Some(path) => CodesFile::create(path)?,
            None => CodesFile::beside(&to)?,
        };
        let filled = async {
            let mini_im = MiniIm::open(options).await;
            let mini_im = mini_im.with_context(|| format!("cannot take over {from}"))?;
            say(&format!("Taking over {from} into {to}."))?;
            let tally = fill(&mini_im, &to, None).await?;
            anyhow::Ok((mini_im, tally))
        };
        let (mini_im, tally) = match filled.await {
            Ok(filled) => filled,
            Err(error) => {
                codes.remove();
                return Err(error);
            }
        };
        tell(&tally, &to)?;
        report(&mini_im.report())?;
        codes.write(&mini_im.take_codes())?;
        say(&format!("{from} is as it was. Next: {}", to.how_to_serve()))
    }
}

fn report(report: &Report) -> anyhow::Result<()> {
    for (title, losses) in [("Not as it was:", false), ("Left out:", true)] {
        let mut notes = report.notes().filter(|(note, ..)| note.is_loss() == losses).peekable();
        if notes.peek().is_some() || (losses && !report.tables().is_empty()) {
            say(title)?;
        }
        for (note, count, examples) in notes {
            let such = if examples.is_empty() {
                String::new()
            } else {
                let more = if count > examples.len() as u64 { ", …" } else { "" };
                format!(" ({}{more})", examples.join(", "))
            };
            say(&format!("{count:>12}  {}{such}", note.text()))?;
        }
    }
    for (table, rows) in report.tables() {
        say(&format!("{rows:>12}  rows of {table}: {}", why(table)))?;
    }
    say("Nobody is signed in: mini-im keeps that elsewhere. Whoever speaks has read what came \
         before, as always here.")
}

/// Why a table has no place here.
fn why(table: &str) -> &'static str {
    match table {
        "t_friend_relation" | "t_friend_request" => "there are no friends here; people just write",
        "t_message_ack" => "how far people are is told by their cursors",
        "t_call_record" => "there are no calls here",
        table if table.starts_with("t_moment") => "there are no moments here",
        _ => "not known here",
    }
}
