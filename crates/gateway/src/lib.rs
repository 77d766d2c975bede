//! Sockets and HTTP: everything between the network and the domain. In reading order:
//!
//! - [`options`]: the limits of a connection
//! - [`listen`]: the accept loop; `admission`: which connections get a place; `head_watch`: detects requests whose
//!   length is ambiguous
//! - `websocket`: the protocol; `socket`: one WebSocket from handshake to close
//! - `delivery`: an event finds the sockets that receive it, in the right order on every node
//! - [`sweep`]: the one timer all sockets share: idle, expired and slow connections
//! - `meters`: the gateway's metrics
//! - [`backups`]: what it needs from the part that makes backups
//! - [`http`]: the HTTP routes and their `OpenAPI` document
//! - [`gateway`]: the state that all sockets of a node share

mod admission;
pub mod backups;
mod delivery;
pub mod gateway;
mod head_watch;
pub mod http;
mod ip_network;
pub mod listen;
mod log_limit;
mod meters;
pub mod options;
mod socket;
pub mod sweep;
#[cfg(debug_assertions)]
mod test_panic;
mod websocket;

pub use backups::Backups;
pub use gateway::Gateway;
pub use ip_network::{IpNetwork, NetworkError};
pub use options::Options;
