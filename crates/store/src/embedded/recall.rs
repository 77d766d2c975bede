//! Recalls a message: rewrites its record without content, and writes a change.

use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::event::Event;
use nexo_chat::ids::{ConversationId, MessageId};
use nexo_chat::model::{Change, ChangeKind, Message, Recall};
use nexo_chat::store::{Actor, MayRecall, RecallFacts};

use super::heads::ConversationHead;
use super::keys::Keyspace;
use super::pending::Pending;
use super::poison::EngineFault;
use super::record::{ChangeRecord, MessageRecord};
use super::{change_group, keys, messages, record};

/// Decides a recall and adds its records to the batch.
pub(crate) fn recall(
    pending: &mut Pending<'_>,
    id: MessageId,
    asker: &Actor,
    may: &MayRecall,
) -> Result<Result<Arc<Message>, Reason>, EngineFault> {
    let known = match pending.effects().messages.get(&id) {
        Some(known) => Some(known.clone()),
        None => messages::find_message(pending.core, id)?,
    };
    let Some((message, fingerprint)) = known else { return Ok(Err(Reason::MessageNotFound)) };
    let group = match message.conversation.group() {
        Some(id) => {
            change_group::current_group(pending, &id)?.filter(|group| group.ended.is_none())
        }
        None => None,
    };
    let is_member = match &group {
        Some(group) => change_group::current_member(pending, &group.id, &asker.user)?.is_some(),
        None => false,
    };
    if let Err(reason) = may(RecallFacts { message: &message, group: group.as_deref(), is_member })
    {
        return Ok(Err(reason));
    }
    if message.recalled.is_some() {
        return Ok(Ok(message));
    }
    pending.head(&message.conversation)?; // read before anything is added
    let recall = Recall { by: asker.user.clone(), at: asker.at };
    let recalled = Arc::new(message.recalled(recall));
    let key = keys::message(&message.conversation, message.seq);
    let value = record::encode(Keyspace::Messages, &key, &MessageRecord::from(&*recalled))?;
    let effects = pending.effects();
    if effects.messages.insert(id, (Arc::clone(&recalled), fingerprint)).is_some() {
        // The message is of this very batch: each key is written once, and the listener must not
        // receive the text.
        effects.batch.replace(Keyspace::Messages, &key, &value);
        for event in &mut effects.events {
            if let Event::Message { message, .. } = event
                && message.id == id
            {
                *message = Arc::clone(&recalled);
            }
        }
    } else {
        effects.batch.put(Keyspace::Messages, &key, &value);
    }
    let kind =
        ChangeKind::Recalled { message: id, seq: message.seq, sender: message.sender.clone() };
    let members = group.map_or(0, |group| group.members);
    append_change(pending, &message.conversation, asker, kind, members)?;
    Ok(Ok(recalled))
}

/// Writes a change under the next change seq.
pub(crate) fn append_change(
    pending: &mut Pending<'_>,
    conversation: &ConversationId,
    asker: &Actor,
    kind: ChangeKind,
    members: u32,
) -> Result<Arc<Change>, EngineFault> {
    let head = pending.head(conversation)?;
    let seq = head.change_seq.next();
    let Actor { user: by, at, origin } = asker.clone();
    let change = Arc::new(Change { conversation: conversation.clone(), seq, by, at, kind });
    let key = keys::message(conversation, seq);
    pending.write(Keyspace::Changes, &key, &ChangeRecord::from(&*change))?;
    let effects = pending.effects();
    effects.heads.insert(conversation.clone(), ConversationHead { change_seq: seq, ..head });
    effects.events.push(Event::Change { change: Arc::clone(&change), origin, members });
    Ok(change)
}
