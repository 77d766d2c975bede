//! Who hears of it, and how?

use crate::command::{Event, Receipt, ReceiptTo, Target};
use crate::ids::{ConnectionId, ConversationId, UserId};
use crate::model::{Change, ChangeKind, CursorKind, Message};
use crate::rules::{GroupRules, Strategy};

/// The people an event concerns, without the one socket that caused it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audience {
    /// Whose sockets hear it.
    pub users: [Option<UserId>; 2],
    /// The group whose members online hear it.
    pub group: Option<ConversationId>,
    /// The socket that does not.
    pub except: Option<ConnectionId>,
    /// Whose sockets do not.
    pub not_to: Option<UserId>,
}

impl Audience {
    fn one(user: &UserId) -> Self {
        Self { users: [Some(user.clone()), None], ..Self::default() }
    }

    /// Both people of a private conversation, or the group's members.
    fn conversation(conversation: &ConversationId, except: Option<ConnectionId>) -> Self {
        match conversation.pair() {
            Some((a, b)) => Self { users: [Some(a), Some(b)], except, ..Self::default() },
            None => Self { group: Some(conversation.clone()), except, ..Self::default() },
        }
    }
}

/// Who hears of an event: of a message and of a change everybody in the conversation, of a receipt
/// the sender or a small group, and of a reading the reader's own other devices, so that their
/// unread counts follow. Those who decide on wishes to join, and those who see a person, are named by the
/// event.
pub fn who_hears(event: &Event) -> Audience {
    match event {
        Event::Message { message, origin, .. } | Event::Preview { message, origin } => {
            Audience::conversation(&message.conversation, *origin)
        }
        Event::Settled { message } => who_knows(&message.conversation, &message.sender),
        Event::Dropped(dropped) => who_knows(&dropped.conversation, &dropped.sender),
        // The asker hears like everybody: the answer does not tell the change's place.
        Event::Change { change, .. } => Audience::conversation(&change.conversation, None),
        Event::Receipt(receipt) => who_hears_receipt(receipt),
        Event::Typing { from, to: Target::User(to), .. } => {
            debug_assert_ne!(from, to, "nobody writes to themselves");
            Audience::one(to)
        }
        Event::Typing { from, to: Target::Group(group), .. } => Audience {
            group: Some(group.conversation()),
            not_to: Some(from.clone()),
            ..Audience::default()
        },
        Event::Online { group, .. } => {
            Audience { group: Some(group.clone()), ..Audience::default() }
        }
        Event::JoinAnswered { request, .. } => Audience::one(&request.user),
        Event::JoinRequested { .. } => Audience::default(),
        // The others are those of the conversations that the event names.
        Event::Profile { user, .. }
        | Event::Ended { user, .. }
        | Event::Closed { user, .. }
        | Event::Settings { user, .. } => Audience::one(user),
    }
}

/// Those who may know a message before it is saved: its sender, and between two people both.
fn who_knows(conversation: &ConversationId, sender: &UserId) -> Audience {
    match conversation.pair() {
        Some((a, b)) => Audience { users: [Some(a), Some(b)], ..Audience::default() },
        None => Audience::one(sender),
    }
}

fn who_hears_receipt(receipt: &Receipt) -> Audience {
    let Receipt { kind, conversation, by, sender, origin, to, .. } = receipt;
    let own = (*kind == CursorKind::Read).then(|| by.clone());
    let sender = match to {
        ReceiptTo::Sender => Some(sender.clone()),
        ReceiptTo::Group => return Audience::conversation(conversation, *origin),
        ReceiptTo::Nobody => None,
    };
    Audience { users: [sender, own], except: *origin, ..Audience::default() }
}

/// Whether a group's message speaks to somebody in particular, so that their device should say so.
pub fn is_important(message: &Message, user: &UserId) -> bool {
    message.sender != *user
        && message.content.concerns(user)
        && message.conversation.group().is_some()
}

/// How a group's message reaches those who are online.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As it is.
    Push,
    /// As a word that there is one.
    Notify,
    /// Not at all.
    Nothing,
}

/// The way for a group of this size with so many members online, who are only counted if that
/// matters.
pub fn which_way(rules: &GroupRules, members: u32, online: impl FnOnce() -> usize) -> Way {
    match rules.strategy {
        Strategy::None => return Way::Nothing,
        Strategy::Notify => return Way::Notify,
        Strategy::Push => return Way::Push,
        Strategy::Auto => {}
    }
    if members >= rules.none_members {
        return Way::Nothing;
    }
    match online() {
        online if online >= rules.none_online => Way::Nothing,
        _ if members >= rules.notify_members => Way::Notify,
        online if online >= rules.notify_online => Way::Notify,
        _ => Way::Push,
    }
}

/// Whether somebody hears at once of a change to a large group. Everybody else finds it in the
/// conversation's changes.
pub fn hears_change(way: Way, change: &Change, user: &UserId) -> bool {
    let is_recall = matches!(change.kind, ChangeKind::Recalled { .. });
    way == Way::Push || change.is_about(user) || (way == Way::Notify && is_recall)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_keeps_to_the_thresholds_of_document_000() {
        let check = |strategy, members, online, expect| {
            let rules = GroupRules { strategy, ..GroupRules::default() };
            let way = which_way(&rules, members, || online);
            assert_eq!(way, expect, "{strategy:?} {members} {online}");
        };
        check(Strategy::Auto, 1999, 499, Way::Push);
        check(Strategy::Auto, 2000, 1, Way::Notify);
        check(Strategy::Auto, 500, 500, Way::Notify);
        check(Strategy::Auto, 9999, 1999, Way::Notify);
        check(Strategy::Auto, 10_000, 1, Way::Nothing);
        check(Strategy::Auto, 9999, 2000, Way::Nothing);
        check(Strategy::Push, 100_000, 5000, Way::Push);
        check(Strategy::Notify, 2, 2, Way::Notify);
        check(Strategy::None, 2, 2, Way::Nothing);
    }
}
