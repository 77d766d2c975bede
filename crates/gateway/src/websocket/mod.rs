//! The server's side of WebSocket (RFC 6455) on a TCP stream. A codec of our own, because a general
//! one keeps buffers for every idle socket and copies each frame twice; this one has a buffer only
//! while there is something in it, and unmasks frames where they were read. No extensions.
//!
//! - `upgrade`: the HTTP request that becomes a WebSocket
//! - `frame`: the bytes of one frame
//! - `reader`: the bytes of a stream become messages
//! - `socket`: reads messages from a stream and writes frames to it

mod frame;
mod reader;
mod socket;
mod upgrade;

pub(crate) use frame::{Opcode, Violation};
pub(crate) use socket::{Incoming, WebSocket};
pub(crate) use upgrade::{NotAnUpgrade, Upgrade};
