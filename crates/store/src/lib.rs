//! Engines of the domain's [`Store`](nexo_chat::store::Store) contract. In reading order:
//!
//! - [`memory`]: the shortest correct implementation; the oracle in property tests
//! - [`embedded`]: the default engine: a commit log and LSM trees on the local disk, one committer
//! - [`mysql`]: a MySQL-protocol database, shared by many nodes
//! - [`archive`]: exports and imports everything in a store, to move it to another engine
//! - [`mini_im`]: imports the tables of an older system
//! - [`conformance`]: the contract as named cases, run on every engine

mod account_rules;
pub mod archive;
pub mod conformance;
mod details;
mod document_range;
pub mod embedded;
mod group_events;
mod login_rules;
mod member_key;
pub mod memory;
mod meters;
pub mod mini_im;
pub mod mysql;
mod prepared;

pub use embedded::{Embedded, OpenError, Options};
pub use memory::Memory;
pub use mysql::{MySql, MySqlOptions};
