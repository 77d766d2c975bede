//! The dotted dialect: requests and answers by `cmd`, as JSON text or as protobuf.
//!
//! - [`payload`]: what is inside the envelopes, one struct for both forms
//! - `decode`: the envelope of a request; `requests`: what each command asks for
//! - `content`: text and media, to and from what is stored
//! - `encode`: the envelope of an answer and of a push; `answers`, `events`: what is in them

mod answers;
mod content;
mod decode;
mod encode;
mod events;
pub mod payload;
mod requests;

pub use answers::{farewell, refusal, registered, reply, signed_in, validated};
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

/// A role that can be given; a group is handed over in another way.
fn role_at(number: i32) -> Option<Role> {
    let found = ROLES.iter().find(|(known, _)| *known == number);
    found.map(|(_, role)| *role).filter(|role| *role != Role::Owner)
}

/// A count or a time as a number of the wire, which is signed.
fn int64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn int32(number: impl TryInto<i32>) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}
