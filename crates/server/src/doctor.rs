//! `nexo doctor`: examines a data folder, explains what is wrong with it, repairs what can be derived, and copies
//! what is readable into a new folder.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use nexo_store::embedded::doctor::{self, Report, SalvageReport};
use nexo_store::{OpenError, Options};

use crate::copy::print_line;
use crate::error_chain;
use crate::migrate::start_command;

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorCommand {
    /// The data folder to examine.
    #[arg(long, value_name = "DIR", default_value = "./data")]
    data: PathBuf,
    /// Writes what can be derived from intact records: indexes, counts, cursors beyond the end.
    #[arg(long, conflicts_with = "salvage")]
    repair: bool,
    /// Copies everything that is readable into this new folder, and lists what is missing.
    #[arg(long, value_name = "NEWDIR")]
    salvage: Option<PathBuf>,
    /// Prints the result as JSON.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str =
    "Stop the server first. Without --repair nothing is changed. Exit code 0: healthy, \
1: problems were found, 2: it could not be checked.

Examples:
  nexo doctor --data /var/lib/nexo
  nexo doctor --data /var/lib/nexo --json
  nexo doctor --data /var/lib/nexo --repair
  nexo doctor --data /var/lib/nexo --salvage /var/lib/nexo-salvaged";

/// Problems were found, or something could not be copied.
const PROBLEMS: u8 = 1;
const NOT_CHECKED: u8 = 2;

impl DoctorCommand {
    /// Runs, and returns the exit code.
    pub(crate) fn run(&self) -> ExitCode {
        match self.try_run() {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(PROBLEMS),
            Err(error) => {
                let text = error_chain::describe(&error);
                drop(writeln!(std::io::stderr(), "nexo: {text}")); // the exit code tells it too
                ExitCode::from(NOT_CHECKED)
            }
        }
    }

    /// Returns whether everything is fine.
    fn try_run(&self) -> anyhow::Result<bool> {
        start_command()?;
        if let Some(target) = &self.salvage {
            return self.salvage(target);
        }
        let bar = spinner();
        let mut progress = |part: &str| bar.set_message(part.to_owned());
        if self.repair {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            let options = Options::default();
            let repair = doctor::repair(&self.data, &options, &mut progress);
            for sentence in runtime.block_on(repair).map_err(explain_archive)? {
                print_line(&sentence)?;
            }
        }
        let report = doctor::check(&self.data, &mut progress).map_err(explain)?;
        bar.finish_and_clear();
        if self.json {
            print_line(&serde_json::to_string_pretty(&report)?)?;
        } else {
            print_report(&self.data, &report)?;
        }
        Ok(report.is_healthy())
    }

    fn salvage(&self, target: &Path) -> anyhow::Result<bool> {
        let bar = spinner();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let mut progress = |part: &str| bar.set_message(part.to_owned());
        let options = Options::default();
        let copied = doctor::salvage(&self.data, target, &options, &mut progress);
        let report = runtime.block_on(copied).map_err(explain_archive)?;
        bar.finish_and_clear();
        if self.json {
            print_line(&serde_json::to_string_pretty(&report)?)?;
        } else {
            print_salvaged(&self.data, target, &report)?;
        }
        let is_whole = report.lost_messages.is_empty() && report.lost_changes.is_empty();
        Ok(is_whole && report.unreadable.is_empty() && !report.is_log_short)
    }
}

/// A server holds the lock: it can be asked, but not examined.
fn explain(error: OpenError) -> anyhow::Error {
    if let OpenError::Locked(path) = &error {
        return anyhow::anyhow!(
            "a server is using {}: stop it to examine the folder. While it runs, it tells what it found \
             damaged so far: GET /readyz with the token in {}",
            path.display(),
            path.join("metrics.token").display()
        );
    }
    error.into()
}

fn explain_archive(error: nexo_store::archive::ArchiveError) -> anyhow::Error {
    match error {
        nexo_store::archive::ArchiveError::Open(error) => explain(error),
        error => error.into(),
    }
}

/// Shows what is being read; a pipe gets nothing.
fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(std::time::Duration::from_millis(120));
    match ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar, // a plain one will do
    }
}

fn print_report(path: &Path, report: &Report) -> anyhow::Result<()> {
    let Report { tables, messages, conversations, .. } = report;
    print_line(&format!(
        "{}: {tables} tables, {messages} messages in {conversations} conversations.",
        path.display()
    ))?;
    if report.is_healthy() {
        return print_line("Every checksum and every index is right.");
    }
    for problem in &report.problems {
        print_line("")?;
        print_line(&problem.what)?;
        print_line(&format!("  {}", problem.affects))?;
        print_line(&format!("  What to do: {}.", problem.advice))?;
    }
    if report.more > 0 {
        print_line(&format!("\nAnd {} more problems.", report.more))?;
    }
    let repairable = report.problems.iter().filter(|problem| problem.can_repair).count();
    print_line(&format!(
        "\n{} problems, {repairable} of them can be repaired.",
        report.problems.len() as u64 + report.more
    ))
}

fn print_salvaged(from: &Path, to: &Path, report: &SalvageReport) -> anyhow::Result<()> {
    print_line(&format!("Copied from {} to {}:", from.display(), to.display()))?;
    for (kind, count) in &report.copied {
        print_line(&format!("{count:>12}  {kind}"))?;
    }
    for (what, lost) in [("messages", &report.lost_messages), ("changes", &report.lost_changes)] {
        for range in lost {
            let (id, from, to) = (&range.conversation, range.from, range.to);
            print_line(&format!("Lost: the {what} {from} to {to} of {id}."))?;
        }
    }
    for (kind, count) in &report.unreadable {
        print_line(&format!("Lost: {count} records of {kind}."))?;
    }
    if report.is_log_short {
        print_line(
            "The end of the log is missing: what was sent last may be lost without a trace.",
        )?;
    }
    print_line(&format!(
        "The whole list is in {}. {} was not changed. Copy jwt.secret, system.token and metrics.token \
         from there, then: nexo serve --data {}",
        to.join("SALVAGED.json").display(),
        from.display(),
        to.display()
    ))
}
