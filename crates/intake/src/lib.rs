//! Two-phase acknowledgement: a message is accepted into a log, which answers its sender at once, and
//! saved from there. In reading order:
//!
//! - [`accepted`], [`log`]: what is kept, and what a log promises
//! - [`local`]: a log in memory, for one node; [`redis`]: one that outlives nodes, for many
//! - [`held`]: what this node accepted and nobody saved yet
//! - [`two_phase`]: takes messages in, and starts the workers
//! - `tend`: who looks after a shard of the log; `deliver` shows messages before they are saved,
//!   `save` saves them, `rescue` looks after those that the log lost
//! - `meters`: what can be watched

pub mod accepted;
mod deliver;
pub mod held;
pub mod local;
pub mod log;
mod meters;
pub mod options;
pub mod redis;
mod rescue;
mod save;
mod tend;
pub mod two_phase;

pub use local::Local;
pub use options::Options;
pub use redis::{RedisLog, RedisLogOptions};
pub use two_phase::TwoPhase;
