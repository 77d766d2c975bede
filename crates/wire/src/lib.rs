//! Bytes to the domain's words and back. Pure: no sockets, no clock, no store.
//!
//! - [`codes`]: the one table of reason → codes, status, close
//! - [`words`]: what the domain's choices are called; [`mentions`]: whom a message speaks of
//! - [`typed`]: the dialect of text frames by `type`
//! - [`http`]: the envelope of HTTP answers and the bodies that all paths share
//! - [`camel`]: the bodies of document 000's paths; [`snake`]: those of document 003's
//! - [`groups`]: the bodies about groups; [`changes`]: what happened to something stored

pub mod camel;
pub mod changes;
pub mod codes;
pub mod groups;
pub mod http;
pub mod mentions;
pub mod snake;
pub mod typed;
pub mod words;
