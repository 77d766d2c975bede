//! Engines of the domain's [`Store`](nexo_chat::store::Store) contract. In reading order:
//!
//! - [`memory`]: the shortest correct reading of the contract; the oracle in property tests
//! - [`embedded`]: the default engine, an LSM tree on the local disk with a single committer
//! - [`mysql`]: a MySQL-protocol database, shared by many nodes
//! - [`archive`]: everything a store keeps, on its way from one engine to another
//! - [`mini_im`]: the same from the tables of an older system
//! - [`conformance`]: the contract as named cases, run on every engine

pub mod archive;
pub mod conformance;
pub mod embedded;
pub mod memory;
mod meters;
pub mod mini_im;
pub mod mysql;
mod prepared;
mod sign_ins;
mod told;

pub use embedded::{Embedded, OpenError, Options};
pub use memory::Memory;
pub use mysql::{MySql, MySqlOptions};
