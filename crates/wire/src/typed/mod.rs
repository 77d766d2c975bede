//! The typed dialect: text frames, one flat camelCase object by `type`.

mod decode;
mod early;
mod encode;
mod frame;
mod group;
mod schema;
mod text;

pub use decode::decode;
pub(crate) use decode::{KINDS, kind_name};
pub(crate) use encode::reply;
pub use encode::{
    Limits, auth_fail, auth_ok, event, message, ping, pong, refusal, resend_done, revoked, saved,
};
pub use group::group_notify;
pub use schema::schema;
pub(crate) use text::Text;
