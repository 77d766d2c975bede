//! Engines of `chat::Bus`. One node needs only [`Local`]; many find each other through [`Redis`].

pub mod conformance;
mod local;
mod redis;

pub use local::Local;
pub use redis::{Address, Addresses, Backoff, BadOptions, Link, Lot, NodeId, Redis, RedisOptions};
