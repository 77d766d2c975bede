//! Messages and the changes of a conversation.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::{Actor, StoreFuture};
use crate::ids::{ConversationId, MessageId, Seq, UserId};
use crate::membership::Group;
use crate::model::{Change, Draft, Message};
use crate::policy::send::Permit;
use crate::reason::Reason;

/// The outcome of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    /// Stored by this call; durable.
    Stored(Arc<Message>),
    /// Stored by an earlier call with the same sender, client id and content; durable.
    Duplicate(Arc<Message>),
    /// The client id was used for other content. Nothing changed.
    Conflict,
    /// The sender may not speak in this group now. Nothing changed.
    Refused(Reason),
}

/// The most messages one [`MessageStore::append_run`] may have.
pub const RUN_MAX: usize = 128;

/// The maximum size of a page: a number of messages and about a number of bytes. A page has at
/// least one message, whatever its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub count: usize,
    /// Measured by [`Message::weight`].
    pub bytes: usize,
}

impl Limit {
    /// Limits the count only.
    pub fn of(count: usize) -> Self {
        Self { count, bytes: usize::MAX }
    }
}

/// A page of messages. Seqs are dense, so each seq of the range up to the end of the page is either among
/// the messages or in a damaged range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessagePage {
    pub messages: Vec<Arc<Message>>,
    /// Seqs whose messages cannot be read any more, in the order of the page. Almost always empty.
    pub damaged: Vec<RangeInclusive<Seq>>,
}

impl MessagePage {
    /// The last seq, in the page's order, that the page covers; `None` if it is empty.
    pub fn end(&self, order: Order) -> Option<Seq> {
        let message = self.messages.last().map(|message| message.seq);
        let damaged = self.damaged.last().map(|range| match order {
            Order::Ascending => *range.end(),
            Order::Descending => *range.start(),
        });
        match order {
            Order::Ascending => message.max(damaged),
            Order::Descending => message.into_iter().chain(damaged).min(),
        }
    }

    /// How many seqs it covers.
    pub fn covered(&self) -> u64 {
        let damaged = self.damaged.iter().map(|range| range.end().0 - range.start().0 + 1);
        self.messages.len() as u64 + damaged.sum::<u64>()
    }
}

impl From<Vec<Arc<Message>>> for MessagePage {
    fn from(messages: Vec<Arc<Message>>) -> Self {
        Self { messages, damaged: Vec::new() }
    }
}

/// A page to be read, oldest message first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    pub conversation: ConversationId,
    pub range: RangeInclusive<Seq>,
    pub limit: Limit,
}

/// Reading direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Oldest first.
    Ascending,
    /// Newest first.
    Descending,
}

/// The facts a recall is decided on, read inside the atomic operation.
#[derive(Clone, Copy, Debug)]
pub struct RecallFacts<'a> {
    pub message: &'a Message,
    /// The message's group, if it is a group message and the group has not ended.
    pub group: Option<&'a Group>,
    /// Whether the asker is in that group.
    pub is_member: bool,
}

/// Decides on a recall. Pure: it runs inside the atomic operation, and again on every retry.
pub type MayRecall = Box<dyn Fn(RecallFacts<'_>) -> Result<(), Reason> + Send + Sync>;

/// Appends, reads and recalls messages.
pub trait MessageStore: Send + Sync {
    /// Stores a message in one atomic operation: looks up (sender, client id), asks
    /// [`crate::policy::group::may_speak`] if it is for a group, assigns the next seq, writes,
    /// makes durable, and moves the sender's cursors as [`crate::progress`] says. A retry of a
    /// stored message is a duplicate even if its sender may not speak any more.
    ///
    /// The message takes its place in the order when this is *called*, not when the future is
    /// polled, so consecutive calls get increasing seqs. Dropping the future does not undo it.
    /// The first message of a private conversation makes both users members of it.
    /// An error means "unknown": the same call again gives the one outcome. If it cannot be read whether
    /// the message was stored before, or what the next seq is, it is refused as damaged: nothing is ever
    /// stored twice.
    fn append(&self, permit: Permit, draft: Draft) -> StoreFuture<'static, Appended>;

    /// Stores messages of one conversation like as many consecutive calls of
    /// [`MessageStore::append`], with one difference: after an error, either none of them was
    /// stored or all of them were. So repeating the call never puts an earlier message after a
    /// later one.
    ///
    /// At most [`RUN_MAX`] messages.
    fn append_run(&self, permit: Permit, drafts: Vec<Draft>)
    -> StoreFuture<'static, Vec<Appended>>;

    /// Returns the message with this id, if it was stored.
    fn message(&self, id: MessageId) -> StoreFuture<'_, Option<Arc<Message>>>;

    /// Like [`MessageStore::message`], but the result may be the message as it was before a recall:
    /// its conversation, seq and sender never change. Called for every acknowledgement, so it may
    /// be answered from memory.
    fn message_location(&self, id: MessageId) -> StoreFuture<'_, Option<Arc<Message>>> {
        self.message(id)
    }

    /// Tells the store about a message that another node stored and that may soon be looked up.
    fn note_remote_message(&self, _message: &Arc<Message>) {}

    /// Returns the messages of a conversation with seqs in the range, in the given order, up to a
    /// limit. Ranges beyond what exists give what exists; an unknown conversation gives none. Damaged
    /// seqs count as messages of the limit, and do not make the call fail.
    fn messages(
        &self,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
        limit: Limit,
        order: Order,
    ) -> StoreFuture<'_, MessagePage>;

    /// Reads pages of several conversations like as many calls of [`MessageStore::messages`], for
    /// engines to which each call costs more than the few messages it returns.
    fn message_pages(&self, requests: Vec<PageRequest>) -> StoreFuture<'_, Vec<MessagePage>> {
        Box::pin(async move {
            let mut pages = Vec::with_capacity(requests.len());
            for PageRequest { conversation, range, limit } in requests {
                pages.push(self.messages(&conversation, range, limit, Order::Ascending).await?);
            }
            Ok(pages)
        })
    }

    /// Recalls a message in one atomic operation: asks `may` about the message as it is, sets who
    /// recalled it and when, deletes its content for good, and writes the change under the next
    /// change seq. Durable when it returns, and the listener receives the change. A message that
    /// was recalled before is returned as it is, without another change; an unknown one is
    /// `MessageNotFound`.
    fn recall(
        &self,
        id: MessageId,
        asker: Actor,
        may: MayRecall,
    ) -> StoreFuture<'_, Result<Arc<Message>, Reason>>;

    /// Returns the seqs in the range of the messages by other senders that mention `user`, mention
    /// everybody, or reply to `user`. Ascending, up to `limit`.
    fn mentions(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Seq>>;

    /// Returns up to `limit` changes of a conversation after a change seq, oldest first. They end before
    /// the first that is damaged; if that is the very next one, the call fails as damaged.
    fn changes(
        &self,
        conversation: &ConversationId,
        after: Seq,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Arc<Change>>>;
}
