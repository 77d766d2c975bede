//! The dotted dialect: requests and answers by `cmd`, as JSON text or as protobuf.
//!
//! - [`payload`]: the payloads, one struct for JSON and protobuf
//! - `decode`: the envelope of a request; `requests`: its payload as a command
//! - `content`: text and media, to and from stored content
//! - `encode`: the envelope of a response or a push; `answers`, `events`: their payloads

mod answers;
mod content;
mod decode;
mod encode;
mod events;
pub mod payload;
mod requests;

pub use answers::{close_notice, refusal, registered, reply, signed_in, validated};
pub use decode::{decode, is_dotted};
pub use events::{event, message};

use nexo_chat::ids::ConversationId;
use nexo_chat::membership::Role;

/// `chat_type` of a conversation between two people.
const PRIVATE: i32 = 1;
/// `chat_type` of a group's conversation.
const GROUP: i32 = 2;

fn chat_type(conversation: &ConversationId) -> i32 {
    if conversation.group().is_some() { GROUP } else { PRIVATE }
}

/// Roles in the order of the dotted dialect's numbers.
const ROLES: [(i32, Role); 3] = [(0, Role::Owner), (1, Role::Member), (2, Role::Admin)];

fn role_number(role: Role) -> i32 {
    ROLES.iter().find(|(_, known)| *known == role).map_or(1, |(number, _)| *number)
}

/// A role that `group.set_member_role` can give: not owner.
fn role_from_number(number: i32) -> Option<Role> {
    let found = ROLES.iter().find(|(known, _)| *known == number);
    found.map(|(_, role)| *role).filter(|role| *role != Role::Owner)
}

/// Integers of the wire are signed.
fn int64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn int32(number: impl TryInto<i32>) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}
