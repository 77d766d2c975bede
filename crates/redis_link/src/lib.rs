//! Connections to Redis, shared by the bus and by two-phase acknowledgement. In reading order:
//!
//! - [`RedisOptions`]: where Redis is; [`Addresses`]: the clients made from it
//! - [`NodeId`]: the name of a node, from its start to its end
//! - [`RedisLink`]: a connection for commands; [`Pipeline`]: commands sent together; [`answer_within`]:
//!   the time limit every caller sets
//! - [`Backoff`]: how long to wait before connecting again
//! - [`Seal`]: proves that bytes read from Redis were written by a node of this system

mod address;
mod backoff;
mod link;
mod node_id;
mod options;
mod pipeline;
mod seal;

pub use address::{Address, Addresses};
pub use backoff::Backoff;
pub use link::{RedisLink, answer_within, no_answer};
pub use node_id::NodeId;
pub use options::{RedisOptions, RedisOptionsError};
pub use pipeline::{Pipeline, script};
pub use seal::{Seal, SealError};
