//! Saying something: facts, policy, append. What became durable is announced by the store itself
//! (see [`crate::announce`]), so a sender who disconnects takes nothing away from the receiver.

use std::sync::Arc;

use bytes::Bytes;

use crate::Boxed;
use crate::chat::Chat;
use crate::command::{Outgoing, Saved};
use crate::ids::ConversationId;
use crate::model::{Caller, Draft, Message};
use crate::policy::send::{Facts, may_send};
use crate::reason::{Error, Reason};
use crate::store::Appended;

/// Sends a message. When this returns, the message has its place in the order; the inner future
/// gives the answer once it is durable.
pub async fn send(
    chat: &Chat,
    caller: &Caller,
    outgoing: Outgoing,
) -> Result<Boxed<'static, Result<Saved, Error>>, Error> {
    if !chat.sends.take(caller.user.clone(), chat.clock.ticks()) {
        return Err(Reason::TooManyRequests.into());
    }
    let facts = Facts { receiver_exists: chat.store.user(&outgoing.to).await?.is_some() };
    let permit = may_send(&chat.rules, &caller.user, &outgoing, facts)?;
    let cleaned = chat.rules.words.as_ref().and_then(|words| words.clean(&outgoing.content));
    let as_sent = outgoing.content.body.clone();
    let draft = Draft {
        conversation: ConversationId::private(&caller.user, &outgoing.to),
        sender: caller.user.clone(),
        client_id: outgoing.client_id,
        content: outgoing.content,
        cleaned,
        sent_at: chat.clock.now(),
        origin: caller.connection,
    };
    let appended = chat.store.append(permit, draft);
    Ok(Box::pin(async move {
        match appended.await? {
            Appended::Stored(message) => Ok(saved(message, &as_sent, false)),
            Appended::Duplicate(message) => Ok(saved(message, &as_sent, true)),
            Appended::Conflict => Err(Reason::ClientMsgIdConflict.into()),
        }
    }))
}

/// The answer: the same for every retry, whatever the word list says by then.
fn saved(message: Arc<Message>, as_sent: &Bytes, duplicate: bool) -> Saved {
    let cleaned = message.recalled.is_none() && message.content.body != *as_sent;
    Saved { message, duplicate, cleaned }
}
