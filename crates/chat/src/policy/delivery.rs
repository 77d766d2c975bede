//! Who hears of it?

use crate::command::{Event, Receipt};
use crate::ids::{ConnectionId, UserId};
use crate::model::CursorKind;

/// The people an event concerns, without the one socket that caused it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audience {
    /// Whose sockets hear it.
    pub users: [Option<UserId>; 2],
    /// The socket that does not.
    pub except: Option<ConnectionId>,
}

/// Who hears of an event: of a message and of a change both people, of a receipt the sender, and of a reading the
/// reader's own other devices, so that their unread counts follow.
pub fn who_hears(event: &Event) -> Audience {
    match event {
        Event::Message { message, origin } => {
            let peer = message.conversation.peer_of(&message.sender);
            Audience { users: [peer, Some(message.sender.clone())], except: *origin }
        }
        Event::Change { change, origin } => {
            let pair = change.conversation.pair();
            let users = pair.map_or([None, None], |(a, b)| [Some(a), Some(b)]);
            Audience { users, except: *origin }
        }
        Event::Receipt(Receipt { kind, by, sender, origin, .. }) => {
            let own = (*kind == CursorKind::Read).then(|| by.clone());
            Audience { users: [Some(sender.clone()), own], except: *origin }
        }
        Event::Typing { to, .. } => Audience { users: [Some(to.clone()), None], except: None },
        Event::Ended { user, .. } | Event::Closed { user, .. } => {
            Audience { users: [Some(user.clone()), None], except: None }
        }
    }
}
