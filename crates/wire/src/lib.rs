//! Bytes to the domain's words and back. Pure: no sockets, no clock, no store.
//!
//! - [`codes`]: the one table of reason → codes, status, close
//! - [`typed`]: the dialect of text frames by `type`
//! - [`http`]: the bodies of HTTP answers; [`snake`]: those of document 003's paths

pub mod codes;
pub mod http;
pub mod snake;
pub mod typed;
