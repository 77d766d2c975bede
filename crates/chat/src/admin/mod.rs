//! What operators and backends do with an API key. HTTP, the command line and the console call these functions;
//! each checks the key's scope first and records what it did in the audit log.

pub mod broadcast;
pub mod groups;
pub mod messages;
pub mod sessions;
pub mod statistics;
pub mod users;
