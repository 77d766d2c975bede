//! Bytes to the domain's words and back. Pure: no sockets, no clock, no store.
//!
//! - [`codes`]: the one table of reason → codes, status, close; [`typescript`]: the same for that client
//! - [`words`]: what the domain's choices are called; [`mentions`]: whom a message speaks of
//! - [`dialect`]: the three dialects as one choice
//! - [`typed`]: text frames by `type`; [`numbered`]: envelopes by number; [`dotted`]: by `cmd`, as text
//!   or protobuf
//! - [`http`]: the envelope of HTTP answers and the bodies that all paths share
//! - [`camel`]: the bodies of camelCase paths; [`snake`]: those of `snake_case`
//! - [`info`]: what the server says of itself; [`shapes`]: what fields may hold, for the documents
//! - [`groups`]: the bodies about groups; [`changes`]: what happened to something stored

pub mod camel;
pub mod changes;
pub mod codes;
pub mod dialect;
pub mod dotted;
pub mod groups;
pub mod http;
pub mod info;
pub mod mentions;
pub mod numbered;
pub mod shapes;
pub mod snake;
pub mod typed;
pub mod typescript;
pub mod words;
