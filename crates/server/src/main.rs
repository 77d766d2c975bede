//! The `nexo` program.
//!
//! - `cli`: the command line; `config`: the settings;
//! - `serve`, `wiring`, `two_phase`: runs the server, and builds it from its settings;
//! - `clock`, `descriptors`, `passwords`, `secrets`, `file_modes`, `logs`,
//!   `panic_hook`: what the server needs from the system;
//! - `identity`: the app's own identity provider;
//! - `metric_table`, `process_metrics`: what `/metrics` shows;
//! - `migrate`, `import`: copy data into an empty store (`store_location`, `copy`, `reset_codes_file`);
//! - `doctor`: examines a data folder, repairs and salvages;
//! - `backup`: makes backups, on a schedule or when asked; `restore`: a new data folder from one;
//! - `admin`: API keys, accounts, groups and the audit log from the command line; `remote`: requests to a
//!   running server; `user`: reset codes for people who forgot their password;
//! - `bench`, `growth`: benchmarks.

mod admin;
mod backup;
mod bench;
mod cli;
mod clock;
mod config;
mod copy;
mod descriptors;
mod doctor;
mod error_chain;
mod file_modes;
mod growth;
mod identity;
mod import;
mod logs;
mod metric_table;
mod migrate;
mod panic_hook;
mod passwords;
mod process_metrics;
mod redact_url;
mod remote;
mod reset_codes_file;
mod restore;
mod secrets;
mod serve;
mod store_location;
mod two_phase;
mod user;
mod wiring;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use tikv_jemallocator::Jemalloc;

/// Messages are allocated by one thread and freed by another, where threads of the system's allocator
/// wait for each other.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match cli.command.run() {
        Ok(code) => code,
        Err(error) => {
            // The log may be JSON or not started yet: print the error as text in any case.
            let written = writeln!(std::io::stderr(), "nexo: {}", error_chain::describe(&error));
            if written.is_err() { ExitCode::from(3) } else { ExitCode::FAILURE }
        }
    }
}
