//! Recalling a message, and reading a conversation's changes.

use std::sync::Arc;

use crate::audit::{self, Act};
use crate::chat::Chat;
use crate::ids::{ConversationId, MessageId, Seq};
use crate::model::{Caller, Change, Message};
use crate::policy::recall::may_recall;
use crate::read::{self, Page};
use crate::reason::{Error, Reason};
use crate::store::{Actor, RecallFacts};

/// Recalls a message. Repeating it returns the same result.
pub async fn recall(chat: &Chat, caller: &Caller, id: MessageId) -> Result<Arc<Message>, Error> {
    if !chat.send_throttle.take(caller.user.clone(), chat.clock.ticks()) {
        return Err(Reason::TooManyRequests.into()); // a recall costs what a send costs
    }
    let now = chat.clock.now();
    let actor = Actor { user: caller.user.clone(), at: now, origin: caller.connection };
    let (rules, by) = (chat.rules.clone(), caller.user.clone());
    let may = Box::new(move |facts: RecallFacts<'_>| may_recall(&rules, &by, facts, now));
    let recalled = chat.store.recall(id, actor, may).await??;
    chat.meters.count_recall();
    let is_new = recalled.recalled.as_ref().is_some_and(|it| it.by == caller.user && it.at == now);
    if is_new && recalled.sender != caller.user {
        let act = Act::by_user(&caller.user, "message_recalled", None);
        let act = Act { target: format!("message:{id}"), ..act };
        let act = act.with("conversation", recalled.conversation.as_str());
        audit::record_now(chat, &act.with("sender", recalled.sender.as_str())).await?;
    }
    Ok(recalled)
}

/// The changes of a conversation after a change seq that the caller may see, oldest first.
pub async fn changes(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    after: Seq,
    limit: usize,
) -> Result<Page<Arc<Change>>, Error> {
    let standing = read::standing(chat, caller, conversation).await?;
    let after = after.max(standing.window.change_min.previous());
    let mut changes = chat.store.changes(conversation, after, limit + 1).await?;
    changes.retain(|change| change.seq <= standing.visible_change_max());
    Ok(Page::cut(changes, limit))
}
