//! Messages and changes: written by the committer of the conversation, read from the tables.

use std::collections::BTreeSet;
use std::future::ready;
use std::ops::RangeInclusive;
use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::ids::{ConversationId, MessageId, Seq, UserId};
use nexo_chat::model::{Change, Draft, Message};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{
    Actor, Appended, Limit, MayRecall, MessagePage, MessageStore, Order, StoreError, StoreFuture,
};

use super::append::MENTION_ALL;
use super::committer::WriteRequest;
use super::core::Core;
use super::fault::{SqlFault, damaged};
use super::fields::Fields;
use super::recall::RecallRequest;
use super::row::{CHANGE, MESSAGE};
use super::sql::values;
use super::{MySql, row};
use crate::member_key::MemberKey;
use crate::prepared::Prepared;

/// Rows read at a time where their size matters.
const PAGE: usize = 64;

impl MessageStore for MySql {
    fn append(&self, _permit: Permit, draft: Draft) -> StoreFuture<'static, Appended> {
        let prepared = Box::new(Prepared::new(draft));
        self.submit(prepared.bytes(), |answer| WriteRequest::Append(prepared, answer))
    }

    fn append_run(
        &self,
        _permit: Permit,
        drafts: Vec<Draft>,
    ) -> StoreFuture<'static, Vec<Appended>> {
        if drafts.is_empty() {
            return Box::pin(ready(Ok(Vec::new())));
        }
        let run: Vec<Prepared> = drafts.into_iter().map(Prepared::new).collect();
        let bytes = run.iter().map(Prepared::bytes).sum();
        self.submit(bytes, |answer| WriteRequest::AppendRun(run, answer))
    }

    fn message(&self, id: MessageId) -> StoreFuture<'_, Option<Arc<Message>>> {
        self.spawn_read(async move |core| {
            let sql = format!("SELECT {MESSAGE} FROM messages WHERE id = ?");
            let rows = core.rows(&sql, values![&id.0[..]]).await?;
            let message = rows.into_iter().next().map(row::message).transpose()?;
            Ok(message.map(|(message, _)| Arc::new(message)))
        })
    }

    fn message_location(&self, id: MessageId) -> StoreFuture<'_, Option<Arc<Message>>> {
        if let Some(message) = self.core.recent_messages.get(&id) {
            return Box::pin(ready(Ok(Some(message))));
        }
        self.message(id)
    }

    fn note_remote_message(&self, message: &Arc<Message>) {
        self.core.remember_message(message);
    }

    fn messages(
        &self,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
        limit: Limit,
        order: Order,
    ) -> StoreFuture<'_, MessagePage> {
        let conversation = conversation.clone();
        self.spawn_read(async move |core| {
            let found = read_messages(&core, &conversation, range, limit, order).await;
            found.map(MessagePage::from)
        })
    }

    fn recall(
        &self,
        id: MessageId,
        asker: Actor,
        may: MayRecall,
    ) -> StoreFuture<'_, Result<Arc<Message>, Reason>> {
        Box::pin(async move {
            let mut message = self.message(id).await?;
            if message.is_none() {
                // Its append may still be queued, and the recall comes after it.
                self.barrier().await;
                message = self.message(id).await?;
            }
            let Some(message) = message else { return Ok(Err(Reason::MessageNotFound)) };
            let conversation = message.conversation.clone();
            let request = RecallRequest { id, conversation, asker, may };
            self.submit(0, |answer| WriteRequest::Recall(request, answer)).await
        })
    }

    fn mentions(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Seq>> {
        let member_key = (user.clone(), conversation.clone());
        self.spawn_read(async move |core| read_mentions(&core, &member_key, range, limit).await)
    }

    fn changes(
        &self,
        conversation: &ConversationId,
        after: Seq,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Arc<Change>>> {
        let conversation = conversation.clone();
        self.spawn_read(async move |core| read_changes(&core, &conversation, after, limit).await)
    }
}

/// Reads a range of a conversation. A hole is never served as if it were the history.
async fn read_messages(
    core: &Core,
    conversation: &ConversationId,
    range: RangeInclusive<Seq>,
    limit: Limit,
    order: Order,
) -> Result<Vec<Arc<Message>>, StoreError> {
    let (mut from, mut to) = (Seq(1).max(*range.start()), *range.end());
    let direction = match order {
        Order::Ascending => "ASC",
        Order::Descending => "DESC",
    };
    let sql = format!(
        "SELECT {MESSAGE} FROM messages WHERE conversation_id = ? AND seq BETWEEN ? AND ? \
         ORDER BY seq {direction} LIMIT ?",
    );
    let mut messages: Vec<Arc<Message>> = Vec::new();
    let mut left = limit.bytes;
    while from <= to && messages.len() < limit.count {
        let page = (limit.count - messages.len()).min(PAGE);
        let params = values![conversation.as_str(), from.0, to.0, page as u64];
        let rows = core.rows(&sql, params).await?;
        let is_last = rows.len() < page;
        for row in rows {
            let (message, _) = row::message(row)?;
            if message.weight() > left && !messages.is_empty() {
                return Ok(messages);
            }
            left = left.saturating_sub(message.weight());
            if messages.last().is_some_and(|last| last.seq.0.abs_diff(message.seq.0) != 1) {
                return Err(hole(conversation, message.seq).into());
            }
            match order {
                Order::Ascending if messages.is_empty() && message.seq != from => {
                    return Err(hole(conversation, message.seq).into());
                }
                Order::Ascending => from = message.seq.next(),
                Order::Descending => to = message.seq.previous(),
            }
            messages.push(Arc::new(message));
        }
        if is_last {
            break;
        }
    }
    Ok(messages)
}

fn hole(conversation: &ConversationId, near: Seq) -> SqlFault {
    damaged(format!("a hole in {conversation} near {near}"))
}

/// Reads changes of a conversation after a change seq.
async fn read_changes(
    core: &Core,
    conversation: &ConversationId,
    after: Seq,
    limit: usize,
) -> Result<Vec<Arc<Change>>, StoreError> {
    let sql = format!(
        "SELECT {CHANGE} FROM changes WHERE conversation_id = ? AND seq > ? ORDER BY seq LIMIT ?"
    );
    let rows = core.rows(&sql, values![conversation.as_str(), after.0, limit as u64]).await?;
    let change = |row| row::change(&mut Fields::from(row), conversation.clone());
    let changes = rows.into_iter().map(|row| change(row).map(Arc::new));
    Ok(changes.collect::<Result<_, SqlFault>>()?)
}

/// Reads the seqs of messages by others that mention a member.
async fn read_mentions(
    core: &Core,
    member_key: &MemberKey,
    range: RangeInclusive<Seq>,
    limit: usize,
) -> Result<Vec<Seq>, StoreError> {
    let (user, conversation) = member_key;
    let mut found = BTreeSet::new();
    let sql = "SELECT seq FROM mentions WHERE user_id = ? AND conversation_id = ? \
         AND seq BETWEEN ? AND ? AND sender <> ? ORDER BY seq LIMIT ?";
    for who in [user.as_str(), MENTION_ALL] {
        let params = values![
            who,
            conversation.as_str(),
            range.start().0,
            range.end().0,
            user.as_str(),
            limit as u64,
        ];
        for row in core.rows(sql, params).await? {
            found.insert(Fields::from(row).seq()?);
        }
    }
    Ok(found.into_iter().take(limit).collect())
}
