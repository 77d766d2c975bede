//! The `nexo` program: reads settings, puts the parts together, runs until told to stop.

mod bench;
mod cause;
mod cli;
mod clock;
mod cluster_settings;
mod codes_file;
mod config;
mod early;
mod environment;
mod figures;
mod filling;
mod group_settings;
mod growth;
mod import;
mod logs;
mod metric_table;
mod migrate;
mod passwords;
mod place;
mod place_problems;
mod secrets;
mod serve;
mod table_check;
mod two_phase_settings;
mod user;
mod wiring;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use tikv_jemallocator::Jemalloc;

/// Messages are made by one thread and dropped by another; the system's allocator makes them wait
/// for each other there.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match cli.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The log may be JSON or not set up yet; a person is always told in words.
            let told = writeln!(std::io::stderr(), "nexo: {}", cause::told(&error));
            if told.is_err() { ExitCode::from(3) } else { ExitCode::FAILURE }
        }
    }
}
