//! Load for a Nexo server, measured beside what the machine itself can do.
//!
//! In reading order:
//!
//! - [`options`]: what the command line says;
//! - `http`, `accounts`, `socket`: users and their sockets;
//! - `dialect`, `speech`, `bare`: the frames of the real protocol and of the bare relay;
//! - `pace`: who may send when, and when it is over;
//! - `measure`, `progress`: histograms and rates, and a bar for who waits;
//! - `process`, [`started`]: what a process uses, and one that is started to be measured;
//! - `stage`: one phase of load;
//! - `ledger`, `pair`, [`private`]: private messages;
//! - [`group`]: a group's messages, and readers who misbehave;
//! - [`connect`]: connections that say nothing;
//! - [`two_phase`]: the same load acknowledged in two phases, and in one;
//! - [`mixed`]: all of this at once;
//! - [`catchup`]: somebody was away and wants all of it;
//! - [`database`]: messages into a database, beside plain inserts;
//! - [`growth`]: what grows with what is stored, and what does not;
//! - [`bare_relay`], [`bare_disk`], [`baseline`]: the same load with no server in between;
//! - [`report`], `table`, [`plot`]: what is printed and drawn.
//!
//! Every run is bounded in connections and in time, and ends by itself.

pub mod options;

mod accounts;
mod http;
mod socket;

mod bare;
mod dialect;
mod speech;

mod ledger;
mod measure;
mod pace;
mod pair;
mod process;
mod progress;
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
pub use catchup::{Caught, catchup};
pub use connect::{Connected, bare_connect, connect};
pub use database::{Stored, database};
pub use group::{bare_group, group};
pub use growth::{Growth, growth};
pub use ledger::Counters;
pub use measure::{Load, Percentiles};
pub use mixed::{Mixed, mixed};
pub use options::{
    BareRelayOptions, CatchupOptions, ConnectOptions, DatabaseOptions, GroupOptions, GrowthOptions,
    MixedOptions, PrivateOptions, TwoPhaseOptions,
};
pub use private::{bare, private};
pub use process::Place;
pub use report::{Outcome, Report};
pub use speech::Speech;
pub use started::Started;
pub use two_phase::TwoPhases;
