//! Stores a message: dedupe, check that the sender may speak, assign the next seq, add two records.

use std::sync::Arc;

use nexo_chat::event::Event;
use nexo_chat::ids::{Seq, UserId};
use nexo_chat::membership::MembershipStatus;
use nexo_chat::model::{Draft, Fingerprint, Message, Window};
use nexo_chat::policy::group::may_speak;
use nexo_chat::store::Appended;

use super::heads::ConversationHead;
use super::keys::Keyspace;
use super::pending::Pending;
use super::poison::EngineFault;
use super::record::{IdRecord, MessageRecord, WindowRecord};
use super::{change_group, conversations, keys, messages};
use crate::member_key::OwnSend;
use crate::prepared::Prepared;

/// Reads what an append would read. An append that is one of a run must not fail after the one before it
/// was decided.
pub(crate) fn check_readable(
    pending: &mut Pending<'_>,
    prepared: &Prepared,
) -> Result<(), EngineFault> {
    let Prepared { draft, id, .. } = prepared;
    if !pending.effects().messages.contains_key(id) {
        messages::find_message(pending.core, *id)?;
    }
    let head = pending.head(&draft.conversation)?;
    if !draft.marks_read {
        let member_key = (draft.sender.clone(), draft.conversation.clone());
        conversations::sent_without_read_up_to(pending.core, &member_key, head.seq.next())?;
    }
    Ok(())
}

/// Decides an append and adds its records to the batch.
pub(crate) fn append(
    pending: &mut Pending<'_>,
    prepared: Prepared,
) -> Result<Appended, EngineFault> {
    let Prepared { draft, id, fingerprint } = prepared;
    let known = match pending.effects().messages.get(&id) {
        Some(known) => Some(known.clone()),
        None => messages::find_message(pending.core, id)?,
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
        let member = change_group::current_member(pending, &group, &draft.sender)?;
        let group = change_group::current_group(pending, &group)?;
        let was_member = member.is_some()
            || change_group::was_member(pending, &draft.sender, &draft.conversation)?;
        let sender = MembershipStatus::new(member.as_deref(), was_member);
        if let Err(reason) = may_speak(group.as_deref(), sender, &draft) {
            return Ok(Appended::Refused(reason));
        }
        members = group.map_or(0, |group| group.members);
    }
    let head = pending.head(&draft.conversation)?;
    let seq = head.seq.next();
    let Draft { origin, marks_read, .. } = draft;
    let message = Arc::new(draft.into_message(id, seq));
    // First: it reads, and nothing may be added before the last read.
    write_marks(pending, &message, marks_read)?;
    join_pair(pending, &message)?;
    write(pending, &message, fingerprint)?;
    let effects = pending.effects();
    effects.heads.insert(
        message.conversation.clone(),
        ConversationHead { seq, sent_at: message.sent_at, ..head },
    );
    effects.messages.insert(id, (Arc::clone(&message), fingerprint));
    let change_seq = head.change_seq;
    effects.events.push(Event::Message {
        message: Arc::clone(&message),
        origin,
        members,
        change_seq,
    });
    Ok(Appended::Stored(message))
}

/// Makes both users members with the first message of a private conversation.
fn join_pair(pending: &mut Pending<'_>, message: &Message) -> Result<(), EngineFault> {
    if let (Seq(1), Some((a, b))) = (message.seq, message.conversation.pair()) {
        for user in [a, b] {
            let key = keys::member(&user, &message.conversation);
            pending.set(Keyspace::Members, key, &WindowRecord::from(Window::ALL))?;
        }
    }
    Ok(())
}

/// Writes what a message means for members: moves the sender's cursors (the system user has none in
/// a group), counts a message that marks nothing read, and adds an entry for everybody it mentions.
fn write_marks(
    pending: &mut Pending<'_>,
    message: &Message,
    marks_read: bool,
) -> Result<(), EngineFault> {
    let Message { conversation, sender, seq, content, .. } = message;
    let member_key = (sender.clone(), conversation.clone());
    if !marks_read {
        let count = match pending.effects().sent_without_read.get(&member_key) {
            Some(count) => *count,
            None => conversations::sent_without_read_up_to(pending.core, &member_key, *seq)?,
        };
        let key = keys::message_mark(sender.as_str(), conversation, *seq);
        pending.write(Keyspace::SentWithoutRead, &key, &(count + 1))?;
        pending.effects().sent_without_read.insert(member_key.clone(), count + 1);
    }
    if conversation.group().is_none() || !sender.is_system() {
        pending.effects().own_sends.push(OwnSend { member_key, seq: *seq, marks_read });
    }
    let answered = content.reply_to.as_ref().map(|reply| &reply.sender);
    let mut whom: Vec<&str> = content.mentions.iter().chain(answered).map(UserId::as_str).collect();
    whom.retain(|user| *user != sender.as_str());
    whom.extend(content.mentions_all.then_some(keys::MENTION_ALL));
    whom.sort_unstable();
    whom.dedup();
    for user in whom {
        let key = keys::message_mark(user, conversation, *seq);
        pending.write(Keyspace::Mentions, &key, &sender.as_str())?;
    }
    Ok(())
}

fn write(
    pending: &mut Pending<'_>,
    message: &Message,
    fingerprint: Fingerprint,
) -> Result<(), EngineFault> {
    let key = keys::message(&message.conversation, message.seq);
    pending.write(Keyspace::Messages, &key, &MessageRecord::from(message))?;
    let location = IdRecord::new(&message.conversation, message.seq, fingerprint);
    pending.write(Keyspace::MessageIds, &message.id.0, &location)
}
