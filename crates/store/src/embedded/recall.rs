//! Takes a message back: its record without its content, and a change that tells of it.

use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::ids::{ConversationId, MessageId, Seq};
use nexo_chat::model::{Change, ChangeKind, Kept, Message, Recall};
use nexo_chat::store::{Asker, MayRecall, Order, RecallFacts};

use super::change_record::ChangeRecord;
use super::core::Core;
use super::groups;
use super::heads::Head;
use super::keys::{self, Space};
use super::pending::Pending;
use super::poison::Fault;
use super::read;
use super::record::{self, MessageRecord};

/// Decides a recall and adds its records to the batch.
pub(crate) fn recall(
    pending: &mut Pending<'_>,
    id: MessageId,
    asker: &Asker,
    may: &MayRecall,
) -> Result<Result<Arc<Message>, Reason>, Fault> {
    let known = match pending.decided().messages.get(&id) {
        Some(known) => Some(known.clone()),
        None => read::known(pending.core, id)?,
    };
    let Some((message, fingerprint)) = known else { return Ok(Err(Reason::MessageNotFound)) };
    let group = match message.conversation.group() {
        Some(id) => groups::current(pending, &id)?.filter(|group| group.ended.is_none()),
        None => None,
    };
    let is_member = match &group {
        Some(group) => groups::current_member(pending, &group.id, &asker.user)?.is_some(),
        None => false,
    };
    if let Err(reason) = may(RecallFacts { message: &message, group: group.as_deref(), is_member })
    {
        return Ok(Err(reason));
    }
    if message.recalled.is_some() {
        return Ok(Ok(message));
    }
    let recall = Recall { by: asker.user.clone(), at: asker.at };
    let recalled = Arc::new(message.recalled(recall));
    let key = keys::message(&message.conversation, message.seq);
    let value = record::encode(Space::Messages, &key, &MessageRecord::from(&*recalled))?;
    let decided = pending.decided();
    if decided.messages.insert(id, (Arc::clone(&recalled), fingerprint)).is_some() {
        // It is of this very batch: each key is written once, and nobody hears the text.
        decided.batch.replace(Space::Messages, &key, &value);
        for kept in &mut decided.kept {
            if let Kept::Message { message, .. } = kept
                && message.id == id
            {
                *message = Arc::clone(&recalled);
            }
        }
    } else {
        decided.batch.put(Space::Messages, &key, &value);
    }
    let kind =
        ChangeKind::Recalled { message: id, seq: message.seq, sender: message.sender.clone() };
    let members = group.map_or(0, |group| group.members);
    note(pending, &message.conversation, asker, kind, members)?;
    Ok(Ok(recalled))
}

/// Writes a change under the next change seq.
pub(crate) fn note(
    pending: &mut Pending<'_>,
    conversation: &ConversationId,
    asker: &Asker,
    kind: ChangeKind,
    members: u32,
) -> Result<Arc<Change>, Fault> {
    let head = pending.head(conversation)?;
    let seq = head.change_seq.next();
    let Asker { user: by, at, origin } = asker.clone();
    let change = Arc::new(Change { conversation: conversation.clone(), seq, by, at, kind });
    let key = keys::message(conversation, seq);
    pending.write(Space::Changes, &key, &ChangeRecord::from(&*change))?;
    let decided = pending.decided();
    decided.heads.insert(conversation.clone(), Head { change_seq: seq, ..head });
    decided.kept.push(Kept::Change { change: Arc::clone(&change), origin, members });
    Ok(change)
}

/// A page of a conversation's changes. Dense, like its messages: a hole is damage.
pub(crate) fn changes(
    core: &Core,
    conversation: &ConversationId,
    after: Seq,
    limit: usize,
) -> Result<Vec<Arc<Change>>, Fault> {
    let range = keys::changes_after(conversation, after);
    let found = core.engine.scan(Space::Changes, range, limit, Order::Ascending, usize::MAX)?;
    let mut changes = Vec::with_capacity(found.len());
    for ((key, value), expect) in found.into_iter().zip(after.0.saturating_add(1)..) {
        let seq = keys::seq_of(&key).filter(|seq| seq.0 == expect);
        let seq = seq.ok_or_else(|| record::impossible(Space::Changes, "a hole in the changes"))?;
        let record: ChangeRecord<'_> = record::decode(Space::Changes, &key, &value)?;
        changes.push(Arc::new(record.change(conversation, seq)?));
    }
    Ok(changes)
}
