//! Engines of `chat::Bus`. One node needs only [`Local`].

pub mod conformance;
mod local;

pub use local::Local;
