//! The numbered dialect: one envelope, operations by number, `data` as base64 of
//! JSON or, for JavaScript, as a nested object.

mod decode;
mod encode;
mod handshake;

pub use decode::decode;
pub use encode::{event, farewell, message, refusal, reply, welcome};
pub use handshake::{Handshake, Query};

/// Answered: the connection itself, to those who want that as a frame.
const HANDSHAKE: i64 = 0;
/// The newest places of conversations.
const NEWEST: i64 = 1001;
/// Messages by a list of places.
const BY_LIST: i64 = 1002;
/// Say something.
const SEND: i64 = 1003;
/// Messages of a range.
const BY_RANGE: i64 = 1005;
/// How far the caller has come.
const STATE: i64 = 1006;
/// Pushed: messages.
const PUSH: i64 = 2001;
/// Pushed: this connection has to go.
const KICK: i64 = 2002;
/// Pushed: something stored was changed.
const CHANGE: i64 = 2003;
/// Pushed: somebody read.
const RECEIPT: i64 = 2004;
/// Pushed: somebody is writing.
const TYPING: i64 = 2005;
/// Pushed: somebody has a new name or picture.
const PROFILE: i64 = 2006;
/// Said of what could not be read.
const DATA_ERROR: i64 = 3001;
