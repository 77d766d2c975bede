//! Who receives an event, and how?

use crate::command::Target;
use crate::event::{Event, Receipt, ReceiptTo};
use crate::ids::{ConnectionId, ConversationId, UserId};
use crate::model::{Change, ChangeKind, CursorKind, Message};
use crate::rules::{DeliveryStrategy, GroupRules};

/// The receivers of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audience {
    /// All sockets of these users.
    pub users: [Option<UserId>; 2],
    /// All sockets subscribed to this group.
    pub group: Option<ConversationId>,
    /// Excludes one socket, usually the one that caused the event.
    pub except_connection: Option<ConnectionId>,
    /// Excludes all sockets of a user.
    pub except_user: Option<UserId>,
}

impl Audience {
    fn user(user: &UserId) -> Self {
        Self { users: [Some(user.clone()), None], ..Self::default() }
    }

    /// Both users of a private conversation, or the group's members.
    fn conversation(conversation: &ConversationId, except: Option<ConnectionId>) -> Self {
        match conversation.pair() {
            Some((a, b)) => {
                Self { users: [Some(a), Some(b)], except_connection: except, ..Self::default() }
            }
            None => Self {
                group: Some(conversation.clone()),
                except_connection: except,
                ..Self::default()
            },
        }
    }
}

/// Who receives an event: messages and changes go to the whole conversation; receipts to the sender or a
/// small group, and read receipts also to the reader's other devices, so that their unread counts follow.
/// Events about requests to join and profiles name further receivers themselves.
pub fn audience_of(event: &Event) -> Audience {
    match event {
        Event::Message { message, origin, .. } | Event::Preview { message, origin } => {
            Audience::conversation(&message.conversation, *origin)
        }
        Event::AcceptedSaved { message } => {
            two_phase_audience(&message.conversation, &message.sender)
        }
        Event::Dropped(dropped) => two_phase_audience(&dropped.conversation, &dropped.sender),
        // The requesting socket too: the reply does not contain the change's seq.
        Event::Change { change, .. } => Audience::conversation(&change.conversation, None),
        Event::Receipt(receipt) => receipt_audience(receipt),
        Event::Typing { from, to: Target::User(to), .. } => {
            debug_assert_ne!(from, to, "a user does not type to themselves");
            Audience::user(to)
        }
        Event::Typing { from, to: Target::Group(group), .. } => Audience {
            group: Some(group.conversation()),
            except_user: Some(from.clone()),
            ..Audience::default()
        },
        Event::Online { group, .. } => {
            Audience { group: Some(group.clone()), ..Audience::default() }
        }
        Event::JoinAnswered { request, .. } => Audience::user(&request.user),
        Event::JoinRequested { .. } => Audience::default(),
        // A profile also goes to the conversations that the event names.
        Event::Profile { user, .. }
        | Event::Ended { user, .. }
        | Event::Closed { user, .. }
        | Event::Settings { user, .. } => Audience::user(user),
    }
}

/// Who may know a message before it is saved: its sender, and in a private conversation both users.
fn two_phase_audience(conversation: &ConversationId, sender: &UserId) -> Audience {
    match conversation.pair() {
        Some((a, b)) => Audience { users: [Some(a), Some(b)], ..Audience::default() },
        None => Audience::user(sender),
    }
}

fn receipt_audience(receipt: &Receipt) -> Audience {
    let Receipt { kind, conversation, by, sender, origin, to, .. } = receipt;
    let own = (*kind == CursorKind::Read).then(|| by.clone());
    let sender = match to {
        ReceiptTo::Sender => Some(sender.clone()),
        ReceiptTo::Group => return Audience::conversation(conversation, *origin),
        ReceiptTo::Nobody => None,
    };
    Audience { users: [sender, own], except_connection: *origin, ..Audience::default() }
}

/// Whether a group message mentions a user or replies to them, so that their device should notify.
pub fn is_important(message: &Message, user: &UserId) -> bool {
    message.sender != *user
        && message.content.mentions_or_answers(user)
        && message.conversation.group().is_some()
}

/// How a group message reaches online members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryMode {
    Push,
    /// A notification without content.
    Notify,
    Nothing,
}

/// The mode for a group of this size. Online members are only counted if the number matters.
pub fn delivery_mode(
    rules: &GroupRules,
    members: u32,
    online: impl FnOnce() -> usize,
) -> DeliveryMode {
    match rules.strategy {
        DeliveryStrategy::None => return DeliveryMode::Nothing,
        DeliveryStrategy::Notify => return DeliveryMode::Notify,
        DeliveryStrategy::Push => return DeliveryMode::Push,
        DeliveryStrategy::Auto => {}
    }
    if members >= rules.none_members {
        return DeliveryMode::Nothing;
    }
    match online() {
        online if online >= rules.none_online => DeliveryMode::Nothing,
        _ if members >= rules.notify_members => DeliveryMode::Notify,
        online if online >= rules.notify_online => DeliveryMode::Notify,
        _ => DeliveryMode::Push,
    }
}

/// Whether a user is pushed a change of a group in this mode. Everyone else reads it from the
/// conversation's changes.
pub fn receives_change(mode: DeliveryMode, change: &Change, user: &UserId) -> bool {
    let is_recall = matches!(change.kind, ChangeKind::Recalled { .. });
    mode == DeliveryMode::Push
        || change.is_about(user)
        || (mode == DeliveryMode::Notify && is_recall)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_keeps_to_its_thresholds() {
        let check = |strategy, members, online, expect| {
            let rules = GroupRules { strategy, ..GroupRules::default() };
            let mode = delivery_mode(&rules, members, || online);
            assert_eq!(mode, expect, "{strategy:?} {members} {online}");
        };
        check(DeliveryStrategy::Auto, 1999, 499, DeliveryMode::Push);
        check(DeliveryStrategy::Auto, 2000, 1, DeliveryMode::Notify);
        check(DeliveryStrategy::Auto, 500, 500, DeliveryMode::Notify);
        check(DeliveryStrategy::Auto, 9999, 1999, DeliveryMode::Notify);
        check(DeliveryStrategy::Auto, 10_000, 1, DeliveryMode::Nothing);
        check(DeliveryStrategy::Auto, 9999, 2000, DeliveryMode::Nothing);
        check(DeliveryStrategy::Push, 100_000, 5000, DeliveryMode::Push);
        check(DeliveryStrategy::Notify, 2, 2, DeliveryMode::Notify);
        check(DeliveryStrategy::None, 2, 2, DeliveryMode::Nothing);
    }
}
