//! Two-phase acknowledgement: a message is accepted into a log, its sender is answered, and workers
//! save it from the log. In reading order:
//!
//! - [`accepted`], [`log`]: an accepted message, and what a log promises
//! - [`local`]: a log in memory, for one node; [`redis`]: a log in Redis, for many
//! - [`unsaved`]: the messages this node accepted and has not seen saved
//! - [`coordinator`]: starts the workers; `accept`: accepts a message; `context`: what they share
//! - `shard_worker`: serves a shard of the log while this node holds its lease; `deliver` previews
//!   messages before they are saved, `save` saves them
//! - `rescue`: saves from memory the messages that the log lost
//! - `cursor_audit`: appends to the store and logs how senders' cursors move; `meters`: metrics

mod accept;
pub mod accepted;
mod context;
pub mod coordinator;
mod cursor_audit;
mod deliver;
pub mod local;
pub mod log;
mod meters;
pub mod options;
pub mod redis;
mod rescue;
mod save;
mod shard_worker;
pub mod unsaved;

pub use coordinator::Coordinator;
pub use local::LocalLog;
pub use options::Options;
pub use redis::{RedisLog, RedisLogOptions};
