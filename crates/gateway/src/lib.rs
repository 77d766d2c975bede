//! Sockets and HTTP: everything between the network and the domain. In reading order:
//!
//! - [`options`]: the limits of a connection
//! - [`listen`]: the accept loop; `head_watch`: detects requests whose length is ambiguous
//! - `socket`: one WebSocket from handshake to close
//! - `delivery`: an event finds the sockets that receive it, in the right order on every node
//! - [`sweep`]: the one timer all sockets share: idle, expired and slow connections
//! - `meters`: the gateway's metrics
//! - [`backups`]: what it needs from the part that makes backups
//! - [`http`]: the HTTP routes and their `OpenAPI` document
//! - [`gateway`]: the state that all sockets of a node share

pub mod backups;
mod delivery;
pub mod gateway;
mod head_watch;
pub mod http;
pub mod listen;
mod meters;
pub mod options;
mod socket;
pub mod sweep;

pub use backups::Backups;
pub use gateway::Gateway;
pub use options::Options;
