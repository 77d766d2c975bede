//! The numbered dialect: one envelope, operations by number, `data` as base64 of
//! JSON or, for JavaScript, as a nested object.

mod decode;
mod encode;
mod handshake;

pub use decode::decode;
pub use encode::{close_notice, event, message, refusal, reply, welcome};
pub use handshake::{Handshake, HandshakeQuery};

/// The answer to the handshake, for clients that want it as a frame.
const HANDSHAKE: i64 = 0;
/// The newest seqs of conversations.
const NEWEST: i64 = 1001;
/// Messages by a list of seqs.
const BY_LIST: i64 = 1002;
const SEND: i64 = 1003;
const BY_RANGE: i64 = 1005;
/// The read state of a conversation.
const STATE: i64 = 1006;
/// Push of messages.
const PUSH: i64 = 2001;
/// Push before the server closes the connection.
const KICK: i64 = 2002;
/// Push of a conversation change.
const CHANGE: i64 = 2003;
/// Push of a read receipt.
const RECEIPT: i64 = 2004;
const TYPING: i64 = 2005;
/// Push of a changed nickname or avatar.
const PROFILE: i64 = 2006;
/// The answer to a frame that could not be read.
const DATA_ERROR: i64 = 3001;
