//! The order in which messages are shown.
use std::sync::Arc;

use crate::message_window::MessageWindow;
use crate::types::{Message, MessageState};
use crate::unsequenced::Unsequenced;

/// All messages in display order: those with a seq, then those without. A refused message never
/// gets a seq, so it stays where it was sent: later messages are shown after it.
pub(crate) fn arrange<'a>(
    messages: &MessageWindow,
    unsequenced: impl Iterator<Item = &'a Arc<Message>>,
) -> Vec<Arc<Message>> {
    let (mut behind, rest): (Vec<_>, Vec<_>) =
        unsequenced.partition(|one| is_behind(messages, one));
    behind.sort_by_key(|message| message.after); // stable: messages after the same seq keep their order
    // It belongs before the oldest message on this device, so it is shown when that part is loaded.
    behind.retain(|message| message.after.is_some_and(|after| after + 1 >= messages.first()));
    let mut behind = behind.into_iter().peekable();
    let mut all = Vec::with_capacity(messages.all().len() + behind.len() + rest.len());
    for message in messages.all() {
        while let Some(refused) = behind.next_if(|one| one.after < Some(message.seq)) {
            all.push(refused.clone());
        }
        all.push(message.clone());
    }
    all.extend(rest.into_iter().cloned());
    all
}

/// The last message for the list: a refused one only until a newer message exists.
pub(crate) fn latest(
    messages: &MessageWindow,
    previews: &Unsequenced,
    outgoing: &Unsequenced,
) -> Option<Arc<Message>> {
    let sent = || outgoing.all().rev().filter(|message| !is_behind(messages, message));
    // Messages in flight are newer than refused ones.
    let in_flight = sent().find(|message| message.state != MessageState::Refused);
    let unsaved = in_flight.or_else(|| previews.all().next_back()).or_else(|| sent().next());
    unsaved.or_else(|| messages.all().back()).cloned()
}

/// Whether it was refused and a newer message exists.
fn is_behind(messages: &MessageWindow, message: &Message) -> bool {
    let is_refused = message.state == MessageState::Refused;
    is_refused && message.after.is_some_and(|after| after < messages.last())
}
