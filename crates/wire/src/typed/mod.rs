//! The typed dialect: text frames, one flat camelCase object by `type`.

mod decode;
mod encode;
mod frame;
mod group;
mod schema;
mod two_phase;

pub use decode::decode;
pub(crate) use decode::{KINDS, kind_name};
pub(crate) use encode::reply;
pub use encode::{
    ClientLimits, auth_fail, auth_ok, event, message, ping, pong, recalled, refusal, resend_done,
    saved,
};
pub use group::group_notify;
pub use schema::schema;
