//! Load generators for a Nexo server, compared with what the machine itself can do.
//!
//! In reading order:
//!
//! - [`options`]: the command line;
//! - `http`, `accounts`, `socket`: users and their sockets;
//! - `codec`, `dialects`, `bare`: the frames of the real protocol and of the bare relay;
//! - `schedule`: when each task may send, and when a phase is over;
//! - `measure`, `seconds`, `progress`: histograms and rates, and progress bars;
//! - `endpoint`, [`started`]: the server under load, and one that is started for it;
//! - `stage`: one phase of load;
//! - `ledger`, `pair`, [`private`]: private messages;
//! - [`group`]: group messages, and faulty readers;
//! - [`connect`]: idle connections;
//! - [`two_phase`]: the same load with and without two-phase acknowledgement;
//! - [`mixed`]: all of this at once;
//! - [`catchup`]: clients that were offline fetch what they missed;
//! - [`database`]: messages into a database, compared with plain inserts;
//! - [`growth`]: whether cost grows with what is stored;
//! - [`bare_relay`], [`bare_disk`], [`baseline`]: the same load without the server;
//! - [`report`], `table`, [`plot`]: reports and charts.
//!
//! Every run is bounded in connections and in time, and ends by itself.

pub mod options;

mod accounts;
mod http;
mod socket;

mod bare;
mod codec;
mod dialects;

mod endpoint;
mod ledger;
mod measure;
mod pair;
mod progress;
mod schedule;
mod seconds;
mod stage;
mod table;

pub mod bare_disk;
pub mod bare_relay;
pub mod baseline;
pub mod catchup;
pub mod connect;
pub mod database;
pub mod group;
pub mod growth;
pub mod mixed;
pub mod plot;
pub mod private;
pub mod report;
pub mod started;
pub mod two_phase;

pub use bare_relay::serve_bare_relay;
pub use baseline::{Baseline, baseline};
pub use catchup::{CatchupReport, catchup};
pub use connect::{ConnectReport, bare_connect, connect};
pub use database::{DatabaseReport, database};
pub use dialects::DialectChoice;
pub use endpoint::Endpoint;
pub use group::{bare_group, group};
pub use growth::{GrowthReport, growth};
pub use ledger::Counters;
pub use measure::{Load, Percentiles};
pub use mixed::{MixedReport, mixed};
pub use options::{
    BareRelayOptions, CatchupOptions, ConnectOptions, DatabaseOptions, GroupOptions, GrowthOptions,
    MixedOptions, PrivateOptions, TwoPhaseOptions,
};
pub use private::{bare, private};
pub use report::{BenchReport, LoadReport};
pub use started::Started;
pub use two_phase::TwoPhaseReport;
