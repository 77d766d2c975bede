//! Reading messages and changes.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use nexo_chat::ids::{ConversationId, MessageId, Seq};
use nexo_chat::model::{Change, Message};
use nexo_chat::store::{Limit, Order, StoreError};

use super::append::EVERYBODY;
use super::core::Core;
use super::cursors::Place;
use super::fault::{Fault, damaged};
use super::row::{self, CHANGE, Fields, MESSAGE};
use super::sql::values;

/// Rows read at a time where their size matters.
const PAGE: usize = 64;

/// The message with this id.
pub(crate) async fn message(
    core: &Core,
    id: MessageId,
) -> Result<Option<Arc<Message>>, StoreError> {
    let sql = format!("SELECT {MESSAGE} FROM messages WHERE id = ?");
    let rows = core.rows(&sql, values![&id.0[..]]).await?;
    let message = rows.into_iter().next().map(row::message).transpose()?;
    Ok(message.map(|(message, _)| Arc::new(message)))
}

/// A range of a conversation. A hole is never served as if it were the history.
pub(crate) async fn messages(
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

fn hole(conversation: &ConversationId, near: Seq) -> Fault {
    damaged(format!("a hole in {conversation} near {near}"))
}

/// Changes of a conversation after a place.
pub(crate) async fn changes(
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
    Ok(changes.collect::<Result<_, Fault>>()?)
}

/// Places of messages that speak to somebody.
pub(crate) async fn mentions(
    core: &Core,
    place: &Place,
    range: RangeInclusive<Seq>,
    limit: usize,
) -> Result<Vec<Seq>, StoreError> {
    let (user, conversation) = place;
    let mut found = BTreeSet::new();
    let sql = "SELECT seq FROM mentions WHERE user_id = ? AND conversation_id = ? \
         AND seq BETWEEN ? AND ? AND sender <> ? ORDER BY seq LIMIT ?";
    for who in [user.as_str(), EVERYBODY] {
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
