//! The typed dialect (document 000): text frames, one flat camelCase object by `type`.

mod decode;
mod encode;
mod frame;
mod group;
mod text;

pub(crate) use decode::kind_name;
pub use decode::{Decoded, Echo, Inbound, Refused, decode};
pub use encode::{
    Limits, auth_fail, auth_ok, event, message, ping, pong, refusal, resend_done, revoked, saved,
};
pub use group::group_notify;
