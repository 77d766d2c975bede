//! The SDK against a real server (`NEXO_BIN`, else `target/release/nexo`, else
//! `target/debug/nexo`), and against a fake one for failures a real one does not have.
#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod accounts;
mod blocked;
mod connection;
mod fake;
mod groups;
mod phases;
mod reads;
mod request;
mod server;
mod sessions;
mod talk;
mod tap;
mod wire;
