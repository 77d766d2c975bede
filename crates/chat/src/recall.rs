//! Taking a message back, and learning of changes.

use std::sync::Arc;

use crate::chat::Chat;
use crate::ids::{ConversationId, MessageId, Seq};
use crate::model::{Caller, Change, Message};
use crate::policy::recall::may_recall;
use crate::read::{self, Listed};
use crate::reason::{Error, Reason};
use crate::store::Asker;

/// Takes a message back. Repeating it gives the same answer.
pub async fn recall(chat: &Chat, caller: &Caller, id: MessageId) -> Result<Arc<Message>, Error> {
    if !chat.sends.take(caller.user.clone(), chat.clock.ticks()) {
        return Err(Reason::TooManyRequests.into()); // a recall costs what a send costs
    }
    let now = chat.clock.now();
    let asker = Asker { user: caller.user.clone(), at: now, origin: caller.connection };
    let (rules, by) = (chat.rules.clone(), caller.user.clone());
    let may = Box::new(move |message: &Message| may_recall(&rules, &by, message, now));
    Ok(chat.store.recall(id, asker, may).await??)
}

/// The changes of a conversation after a place, oldest first.
pub async fn changes(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    after: Seq,
    limit: usize,
) -> Result<Listed<Arc<Change>>, Error> {
    read::standing(chat, caller, conversation).await?;
    let changes = chat.store.changes(conversation, after, limit + 1).await?;
    Ok(Listed::cut(changes, limit))
}
