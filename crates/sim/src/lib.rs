//! Test peers: server processes, MariaDB and Redis, clients, a faulty network, and checkers of what was
//! acknowledged. Never shipped. It panics where a test should fail.
//!
//! - [`process`]: a server process that can be killed and restarted on the same data
//! - [`mariadb`], [`redis`], [`redis_cluster`]: the services a server may need, which can be killed too
//! - [`proxy`]: a TCP proxy that cuts, stalls and delays connections; [`balancer`]: a load balancer
//! - [`flood`]: connections that say nothing, more and more of them
//! - [`backups`]: backups of a server, as an operator makes and restores them
//! - [`identity_provider`]: one that publishes keys and signs people in; they can change, and it can go away
//! - [`http`]: an HTTP client that can also send malformed requests
//! - [`person`]: an account with its tokens
//! - [`socket`]: a WebSocket client of the typed dialect
//! - [`retrying_client`]: a client that reconnects and retries until its messages are saved
//! - [`group`]: a group over HTTP and sockets
//! - [`dialect_client`]: one client interface for all dialects
//! - [`schema`]: validates values against JSON Schema
//! - [`large_group`]: many accounts and one group of them, written before a server starts
//! - [`history`]: compares what was acknowledged with what is stored
//! - [`group_timeline`]: what a permanent member received, and what other members must see
//! - [`crash_load`]: clients that send, recall and retry until the server dies; [`loop_disk`]: a disk whose power
//!   can be cut
//! - [`workload`]: clients that send and receive while a test breaks something

#![allow(clippy::missing_panics_doc, reason = "panicking is how a test fails")]
#![allow(clippy::must_use_candidate, reason = "noisy here")]

pub mod backups;
pub mod balancer;
mod certificate;
pub mod clock;
pub mod crash_load;
pub mod dialect_client;
mod duplicate_filter;
pub mod flood;
pub mod group;
pub mod group_timeline;
pub mod history;
pub mod http;
pub mod identity_provider;
pub mod large_group;
pub mod loop_disk;
pub mod mariadb;
pub mod person;
mod port;
pub mod process;
pub mod proxy;
pub mod redis;
pub mod redis_cluster;
pub mod retrying_client;
pub mod schema;
mod service;
pub mod socket;
pub mod workload;

pub use backups::BackupRepository;
pub use balancer::Balancer;
pub use crash_load::CrashLoad;
pub use dialect_client::{ClientDialect, DialectClient, ReceivedMessage, Recipient};
pub use flood::Flood;
pub use group::TestGroup;
pub use group_timeline::GroupTimeline;
pub use history::History;
pub use http::{Http, HttpResponse};
pub use identity_provider::IdentityProvider;
pub use large_group::LargeGroup;
pub use loop_disk::LoopDisk;
pub use mariadb::MariaDb;
pub use person::Person;
pub use process::Server;
pub use proxy::Proxy;
pub use redis::RedisServer;
pub use redis_cluster::RedisCluster;
pub use retrying_client::RetryingClient;
pub use socket::Socket;
pub use workload::{Workload, WorkloadReport};
