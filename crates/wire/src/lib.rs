//! Bytes to the domain's words and back. Pure: no sockets, no clock, no store.
//!
//! - [`codes`]: the one table of reason → codes, status, close
//! - [`typed`]: the dialect of text frames by `type`
//! - [`http`]: the bodies of HTTP answers

pub mod codes;
pub mod http;
pub mod typed;
