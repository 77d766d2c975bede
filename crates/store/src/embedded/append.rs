//! Stores a message: dedupe, may the sender speak, next seq, two records.

use std::sync::Arc;

use nexo_chat::ids::{Seq, UserId};
use nexo_chat::membership::Belonging;
use nexo_chat::model::{Draft, Fingerprint, Kept, Message, Window};
use nexo_chat::policy::group::may_speak;
use nexo_chat::store::Appended;

use super::cursors::Sent;
use super::groups;
use super::heads::Head;
use super::keys::{self, Space};
use super::pending::Pending;
use super::poison::Fault;
use super::read;
use super::record::{IdRecord, MessageRecord, WindowRecord};
use crate::prepared::Prepared;

/// Decides an append and adds its records to the batch.
pub(crate) fn append(pending: &mut Pending<'_>, prepared: Prepared) -> Result<Appended, Fault> {
    let Prepared { draft, id, fingerprint } = prepared;
    let known = match pending.decided().messages.get(&id) {
        Some(known) => Some(known.clone()),
        None => read::known(pending.core, id)?,
    };
    if let Some((message, stored)) = known {
        if stored != fingerprint {
            return Ok(Appended::Conflict);
        }
        pending.core.meters.duplicates.increment(1);
        return Ok(Appended::Duplicate(message));
    }
    let mut members = 0;
    if let Some(group) = draft.conversation.group() {
        let member = groups::current_member(pending, &group, &draft.sender)?;
        let group = groups::current(pending, &group)?;
        let was_in =
            member.is_some() || groups::was_in(pending, &draft.sender, &draft.conversation)?;
        let sender = Belonging::new(member.as_deref(), was_in);
        if let Err(reason) = may_speak(group.as_deref(), sender, &draft) {
            return Ok(Appended::Refused(reason));
        }
        members = group.map_or(0, |group| group.members);
    }
    let head = pending.head(&draft.conversation)?;
    let seq = head.seq.next();
    let Draft { origin, marks_read, .. } = draft;
    let message = Arc::new(draft.into_message(id, seq));
    join(pending, &message)?;
    mark(pending, &message, marks_read)?;
    write(pending, &message, fingerprint)?;
    let decided = pending.decided();
    decided
        .heads
        .insert(message.conversation.clone(), Head { seq, sent_at: message.sent_at, ..head });
    decided.messages.insert(id, (Arc::clone(&message), fingerprint));
    let change_seq = head.change_seq;
    decided.kept.push(Kept::Message { message: Arc::clone(&message), origin, members, change_seq });
    Ok(Appended::Stored(message))
}

/// The first message of two people makes them members.
fn join(pending: &mut Pending<'_>, message: &Message) -> Result<(), Fault> {
    if let (Seq(1), Some((a, b))) = (message.seq, message.conversation.pair()) {
        for user in [a, b] {
            let key = keys::member(&user, &message.conversation);
            pending.set(Space::Members, key, &WindowRecord::from(Window::ALL))?;
        }
    }
    Ok(())
}

/// Notes what a message means for people: its sender's cursors move (in a group the operator has
/// none), one that marks nothing read is counted, and whom it speaks to finds it.
fn mark(pending: &mut Pending<'_>, message: &Message, marks_read: bool) -> Result<(), Fault> {
    let Message { conversation, sender, seq, content, .. } = message;
    let place = (sender.clone(), conversation.clone());
    if !marks_read {
        let count = match pending.decided().quiet.get(&place) {
            Some(count) => *count,
            None => read::quiet_up_to(pending.core, &place, *seq)?,
        };
        let key = keys::marked(sender.as_str(), conversation, *seq);
        pending.write(Space::Quiet, &key, &(count + 1))?;
        pending.decided().quiet.insert(place.clone(), count + 1);
    }
    if conversation.group().is_none() || !sender.is_system() {
        pending.decided().sent.push(Sent { place, seq: *seq, marks_read });
    }
    let answered = content.reply_to.as_ref().map(|reply| &reply.sender);
    let mut whom: Vec<&str> = content.mentions.iter().chain(answered).map(UserId::as_str).collect();
    whom.retain(|user| *user != sender.as_str());
    whom.extend(content.mentions_all.then_some(keys::EVERYBODY));
    whom.sort_unstable();
    whom.dedup();
    for user in whom {
        let key = keys::marked(user, conversation, *seq);
        pending.write(Space::Mentions, &key, &sender.as_str())?;
    }
    Ok(())
}

fn write(
    pending: &mut Pending<'_>,
    message: &Message,
    fingerprint: Fingerprint,
) -> Result<(), Fault> {
    let key = keys::message(&message.conversation, message.seq);
    pending.write(Space::Messages, &key, &MessageRecord::from(message))?;
    let place = IdRecord::new(&message.conversation, message.seq, fingerprint);
    pending.write(Space::Ids, &message.id.0, &place)
}
