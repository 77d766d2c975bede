//! One WebSocket, from handshake to close. In reading order:
//!
//! - `serve`: the parts below, one after the other
//! - `handshake`: authenticates a socket by its first frames
//! - `guard`: registers an authenticated socket, and unregisters it when it is dropped
//! - `connection`: the part of a session that other tasks see
//! - `session`: reads frames and calls the domain; `replies`: answers them
//! - `catch_up`: resends to a client what it has missed, page by page
//! - `io`: polls the socket: handles events first, writes when there is none
//! - `outbox`: the bounded queue of frames to write
//! - `strikes`: counts protocol violations
//! - `close`: the last frame and the close code
//! - `timings`: logs how long each message took, on request

mod catch_up;
mod close;
pub(crate) mod connection;
mod guard;
mod handshake;
mod io;
pub(crate) mod outbox;
mod replies;
pub(crate) mod serve;
mod session;
mod strikes;
pub(crate) mod timings;
