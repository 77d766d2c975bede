//! Load for a Nexo server, measured beside what the machine itself can do.
//!
//! In reading order:
//!
//! - [`options`]: what the command line says;
//! - `http`, `accounts`, `connect`: users and their sockets;
//! - `dialect`, `typed`, `bare`: the frames of the real protocol and of the bare relay;
//! - `ledger`: what became of every message of one pair;
//! - `pace`: who may send when, and when it is over;
//! - `pair`: a sender and a receiver in one task;
//! - `measure`, `progress`: histograms and rates, and a bar for who waits;
//! - [`run`]: pairs made, loaded and summed up;
//! - [`bare_relay`], [`bare_disk`], [`baseline`]: the same load with no server in between;
//! - [`report`]: what is printed.
//!
//! Every run is bounded in connections and in time, and ends by itself.

pub mod options;

mod accounts;
mod connect;
mod http;

mod bare;
mod dialect;
mod typed;

mod ledger;
mod measure;
mod pace;
mod pair;
mod progress;

pub mod bare_disk;
pub mod bare_relay;
pub mod baseline;
pub mod report;
pub mod run;

pub use bare_relay::serve_bare_relay;
pub use baseline::{Baseline, baseline};
pub use ledger::Counters;
pub use measure::{Load, Percentiles};
pub use options::{BareRelayOptions, PrivateOptions};
pub use report::Report;
pub use run::{bare, private};
