//! Engines of `chat::Bus`. One node needs only [`Local`]; many find each other through [`RedisBus`].

pub mod conformance;
mod local;
mod redis;

pub use local::LocalBus;
pub use redis::{RedisBus, RedisBusOptions};
