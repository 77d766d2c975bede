//! Stores a message: dedupe, next seq, two records.

use std::sync::Arc;

use nexo_chat::ids::{MessageId, Seq, UserId};
use nexo_chat::model::{Draft, Fingerprint, Kept, Message, Window};
use nexo_chat::store::Appended;

use super::heads::Head;
use super::keys::{self, Space};
use super::pending::Pending;
use super::poison::Fault;
use super::read;
use super::record::{IdRecord, MessageRecord, WindowRecord};

/// A draft with what can be worked out before its turn comes.
pub(crate) struct Prepared {
    draft: Draft,
    id: MessageId,
    fingerprint: Fingerprint,
}

impl Prepared {
    /// Hashes are worked out by the caller's thread: the committer has only one.
    pub(crate) fn new(draft: Draft) -> Self {
        let id = MessageId::of(&draft.sender, &draft.client_id);
        let fingerprint = draft.content.fingerprint(&draft.conversation);
        Self { draft, id, fingerprint }
    }

    /// About how many bytes it will take.
    pub(crate) fn bytes(&self) -> usize {
        let content = &self.draft.content;
        let extra = content.extra.iter().map(|(key, value)| key.len() + value.len());
        256 + content.body.len() + extra.sum::<usize>() + content.mentions.len() * UserId::LEN_MAX
    }
}

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
    let head = pending.head(&draft.conversation)?;
    let seq = head.seq.next();
    let origin = draft.origin;
    let message = Arc::new(with_seq(draft, id, seq));
    join(pending, &message)?;
    write(pending, &message, fingerprint)?;
    let decided = pending.decided();
    decided
        .heads
        .insert(message.conversation.clone(), Head { seq, sent_at: message.sent_at, ..head });
    decided.messages.insert(id, (Arc::clone(&message), fingerprint));
    decided.kept.push(Kept::Message { message: Arc::clone(&message), origin });
    Ok(Appended::Stored(message))
}

fn with_seq(draft: Draft, id: MessageId, seq: Seq) -> Message {
    Message {
        id,
        conversation: draft.conversation,
        seq,
        sender: draft.sender,
        client_id: draft.client_id,
        sent_at: draft.sent_at,
        content: draft.cleaned.unwrap_or(draft.content),
        recalled: None,
    }
}

/// The first message of two people makes them members; every message moves its sender's cursors,
/// if the sender is a member.
fn join(pending: &mut Pending<'_>, message: &Message) -> Result<(), Fault> {
    let pair = message.conversation.pair();
    if let (Seq(1), Some((a, b))) = (message.seq, &pair) {
        for user in [a, b] {
            let key = keys::member(user, &message.conversation);
            pending.set(Space::Members, key, &WindowRecord::from(Window::ALL))?;
        }
    }
    let is_member = if let Some((a, b)) = pair {
        message.sender == a || message.sender == b
    } else {
        let key = keys::member(&message.sender, &message.conversation);
        pending.get(Space::Members, &key)?.is_some()
    };
    if is_member {
        let place = (message.sender.clone(), message.conversation.clone());
        pending.decided().sent.push((place, message.seq));
    }
    Ok(())
}

fn write(
    pending: &mut Pending<'_>,
    message: &Message,
    fingerprint: Fingerprint,
) -> Result<(), Fault> {
    let key = keys::message(&message.conversation, message.seq);
    pending.write(Space::Messages, key, &MessageRecord::from(message))?;
    let place = IdRecord::new(&message.conversation, message.seq, fingerprint);
    pending.write(Space::Ids, message.id.0.to_vec(), &place)
}
