//! Bytes to the domain's types and back. Pure: no sockets, no clock, no store.
//!
//! - [`codes`]: one table of reasons with their codes, HTTP status and close code; [`typescript`]: the same table as
//!   a file of the TypeScript SDK
//! - [`dialect`]: the three WebSocket dialects behind one enum
//! - [`typed`]: text frames by `type`; [`numbered`]: envelopes by number; [`dotted`]: by `cmd`, as JSON or protobuf
//! - [`http`]: bodies and query parameters, requests and answers by subject
//! - [`changes`]: a conversation change as wire fields; [`mentions`]: mentioned users and the replied-to message
//! - [`enum_values`]: the domain's enums as words and numbers; [`field_schemas`]: the same as JSON Schema
//! - [`json`]: reads the JSON of a request; [`parse_ids`]: user and group ids as requests give them
//! - `text_or_number`: a field that clients send as a string or as a number

pub mod changes;
pub mod codes;
pub mod dialect;
pub mod dotted;
pub mod enum_values;
pub mod field_schemas;
pub mod http;
pub mod json;
pub mod mentions;
pub mod numbered;
pub mod parse_ids;
mod text_or_number;
pub mod typed;
pub mod typescript;
