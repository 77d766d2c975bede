//! Messages, as an operator sees and recalls them.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::audit::{self, Act};
use crate::chat::Chat;
use crate::ids::{ConversationId, MessageId, Seq, UserId};
use crate::keys::{Operator, Scope};
use crate::model::Message;
use crate::reason::{Error, Reason};
use crate::store::{Actor, Limit, MessagePage, Order};
use crate::sync;

const READ_PAGE: usize = 200;

/// A message by its id. Reading it is recorded, its text is not.
pub async fn get(chat: &Chat, operator: &Operator, id: MessageId) -> Result<Arc<Message>, Error> {
    operator.require(Scope::Admin)?;
    let message = chat.store.message(id).await?.ok_or(Reason::MessageNotFound)?;
    record(chat, operator, "message_read", &message).await?;
    Ok(message)
}

/// The messages around one, oldest first: up to so many before and after it.
pub async fn around(
    chat: &Chat,
    operator: &Operator,
    id: MessageId,
    before: usize,
    after: usize,
) -> Result<Vec<Arc<Message>>, Error> {
    let message = get(chat, operator, id).await?;
    let first = Seq(message.seq.0.saturating_sub(before as u64).max(1));
    let last = Seq(message.seq.0.saturating_add(after as u64));
    let limit = before + after + 1;
    Ok(read(chat, &message.conversation, first..=last, limit).await?.messages)
}

async fn read(
    chat: &Chat,
    conversation: &ConversationId,
    range: RangeInclusive<Seq>,
    count: usize,
) -> Result<MessagePage, Error> {
    let limit = Limit { count, bytes: chat.rules.page_bytes_max };
    Ok(chat.store.messages(conversation, range, limit, Order::Ascending).await?)
}

/// Recalls a message of any sender and any age; all members receive the recall.
pub async fn recall(
    chat: &Chat,
    operator: &Operator,
    id: MessageId,
) -> Result<Arc<Message>, Error> {
    operator.require(Scope::Admin)?;
    let message = recall_as_system(chat, id).await?;
    record(chat, operator, "message_recalled", &message).await?;
    Ok(message)
}

async fn recall_as_system(chat: &Chat, id: MessageId) -> Result<Arc<Message>, Error> {
    let actor = Actor { user: UserId::system(), at: chat.clock.now(), origin: None };
    let recalled = chat.store.recall(id, actor, Box::new(|_| Ok(()))).await??;
    chat.meters.count_recall();
    Ok(recalled)
}

/// Recalls everything that a user has ever sent.
pub(crate) async fn recall_all_of(chat: &Chat, user: &UserId) -> Result<(), Error> {
    for standing in sync::standings(chat, user).await? {
        let mut from = Seq(1);
        loop {
            let range = from..=Seq(u64::MAX);
            let page = read(chat, &standing.conversation, range, READ_PAGE).await?;
            let Some(last) = page.end(Order::Ascending) else { break };
            from = last.next();
            for message in &page.messages {
                if message.sender == *user && message.recalled.is_none() {
                    recall_as_system(chat, message.id).await?;
                }
            }
        }
    }
    Ok(())
}

async fn record(
    chat: &Chat,
    operator: &Operator,
    action: &'static str,
    message: &Message,
) -> Result<(), Error> {
    let act = Act::by(operator, action, format!("message:{}", message.id));
    let act = act
        .with("conversation", message.conversation.as_str())
        .with("sender", message.sender.as_str());
    audit::record_now(chat, &act).await
}
