//! The order in which messages are shown.
use std::sync::Arc;

use crate::held::Held;
use crate::types::{Message, MessageState};
use crate::unplaced::Unplaced;

/// Everything to show, in order: what has a place, then what has none yet. A refused message gets no
/// place any more, so it stays where it was said: what comes later stands after it.
pub(crate) fn arrange<'a>(
    held: &Held,
    unplaced: impl Iterator<Item = &'a Arc<Message>>,
) -> Vec<Arc<Message>> {
    let (mut behind, rest): (Vec<_>, Vec<_>) = unplaced.partition(|one| is_behind(held, one));
    behind.sort_by_key(|message| message.after); // stable: those behind the same place keep their order
    // Said before the oldest message here: it comes with the older ones.
    behind.retain(|message| message.after.is_some_and(|after| after + 1 >= held.first()));
    let mut behind = behind.into_iter().peekable();
    let mut all = Vec::with_capacity(held.all().len() + behind.len() + rest.len());
    for message in held.all() {
        while let Some(refused) = behind.next_if(|one| one.after < Some(message.seq)) {
            all.push(refused.clone());
        }
        all.push(message.clone());
    }
    all.extend(rest.into_iter().cloned());
    all
}

/// The message that a list shows of a conversation: a refused one only until something comes after it.
pub(crate) fn latest(
    held: &Held,
    previews: &Unplaced,
    outgoing: &Unplaced,
) -> Option<Arc<Message>> {
    let sent = || outgoing.all().rev().filter(|message| !is_behind(held, message));
    // Whatever is on its way comes after what was refused.
    let on_its_way = sent().find(|message| message.state != MessageState::Refused);
    let unsaved = on_its_way.or_else(|| previews.all().next_back()).or_else(|| sent().next());
    unsaved.or_else(|| held.all().back()).cloned()
}

/// Whether it was refused, and something came after it.
fn is_behind(held: &Held, message: &Message) -> bool {
    let is_refused = message.state == MessageState::Refused;
    is_refused && message.after.is_some_and(|after| after < held.last())
}
