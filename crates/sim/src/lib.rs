//! What tries to break the server: real processes, real sockets, and a checker that remembers what
//! was promised. Never shipped. It panics where a test should fail, and says why.
//!
//! - [`process`]: a server process that can be killed and started again on the same data
//! - [`mariadb`], [`redis`], [`redis_cluster`]: the services a server may need, the same way
//! - [`proxy`]: a network in between that fails on demand; [`balancer`]: one before many nodes
//! - [`http`]: requests, also bad ones
//! - [`person`]: an account with its tokens
//! - [`socket`]: a WebSocket that speaks the typed dialect
//! - [`stubborn`]: somebody who reconnects and says it again until it is saved
//! - [`group`]: a group as its people use it
//! - [`talker`]: somebody who speaks any of the dialects
//! - [`schema`]: whether a value is as a document says
//! - [`crowd`]: many accounts and one group of them, made before a server starts
//! - [`history`]: what was acknowledged, compared with what is there
//! - [`story`]: what somebody heard who was there all the time, and what follows from it

#![allow(clippy::missing_panics_doc, reason = "panicking is how a test fails")]
#![allow(clippy::must_use_candidate, reason = "noisy here")]

pub mod balancer;
mod certificate;
pub mod crowd;
pub mod group;
pub mod history;
pub mod http;
pub mod mariadb;
pub mod person;
mod port;
pub mod process;
pub mod proxy;
pub mod redis;
pub mod redis_cluster;
mod repeats;
pub mod schema;
mod service;
pub mod socket;
pub mod story;
pub mod stubborn;
pub mod talk;
pub mod talker;

pub use balancer::Balancer;
pub use crowd::Crowd;
pub use group::Group;
pub use history::History;
pub use http::{Answer, Http};
pub use mariadb::MariaDb;
pub use person::Person;
pub use process::Server;
pub use proxy::Proxy;
pub use redis::Redis;
pub use redis_cluster::RedisCluster;
pub use socket::Socket;
pub use story::Story;
pub use stubborn::Stubborn;
pub use talk::{Talk, Talked};
pub use talker::{Said, Talker, To, Tongue};
