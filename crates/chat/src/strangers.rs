//! Beginning a private conversation: whom the receiver accepts, and how many conversations a user may begin. Once a
//! conversation has begun nothing is asked any more, so the path of an ordinary message costs one look into a set.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::chat::Chat;
use crate::ids::{ConversationId, UserId};
use crate::model::Audience;
use crate::reason::{Error, Reason};
use crate::store::StoreError;

/// Conversations remembered in each of two generations.
const KNOWN_MAX: usize = 50_000;

/// Private conversations of which something is known, such as that they have begun. Bounded: forgetting one costs a
/// read.
#[derive(Default)]
pub(crate) struct KnownConversations(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    younger: HashSet<ConversationId>,
    older: HashSet<ConversationId>,
}

impl KnownConversations {
    fn contains(&self, conversation: &ConversationId) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.younger.contains(conversation) || known.older.contains(conversation)
    }

    fn insert(&self, conversation: ConversationId) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.younger.len() >= KNOWN_MAX {
            known.older = std::mem::take(&mut known.younger);
        }
        known.younger.insert(conversation);
    }
}

/// Fails if `sender` may not begin a conversation with `receiver`.
pub(crate) async fn check_may_write(
    chat: &Chat,
    sender: &UserId,
    receiver: &UserId,
    conversation: &ConversationId,
) -> Result<(), Error> {
    if chat.begun.contains(conversation) {
        return Ok(());
    }
    let checked = check_first_message(chat, sender, receiver, conversation).await;
    match checked {
        // With two-phase acknowledgement, sending must work while the store is unavailable.
        Err(Error::Unavailable(_)) if chat.two_phase.is_some() => Ok(()),
        checked => checked,
    }
}

async fn check_first_message(
    chat: &Chat,
    sender: &UserId,
    receiver: &UserId,
    conversation: &ConversationId,
) -> Result<(), Error> {
    let standing = chat.store.standing(sender, conversation).await?;
    if standing.is_some_and(|standing| standing.has_begun()) {
        chat.begun.insert(conversation.clone());
        return Ok(());
    }
    let Some(account) = chat.store.user(receiver).await? else { return Ok(()) }; // the policy refuses
    let audience = account.details.consent.write;
    if !accepts(chat, receiver, audience, sender).await? {
        return Err(Reason::NotAccepting.into());
    }
    // Once for each conversation: a client may send more before its first message is stored.
    if !chat.counted_strangers.contains(conversation) {
        if !chat.stranger_throttle.take(sender.clone(), chat.clock.ticks()) {
            return Err(Reason::TooManyStrangers.into());
        }
        chat.counted_strangers.insert(conversation.clone());
    }
    Ok(())
}

/// Whether `other` is in the audience that `user` chose.
async fn accepts(
    chat: &Chat,
    user: &UserId,
    audience: Audience,
    other: &UserId,
) -> Result<bool, StoreError> {
    Ok(match audience {
        Audience::Everybody => true,
        // Contacts come with contact lists; until then they are the people one shares a conversation with.
        Audience::SharedGroup | Audience::Contacts => {
            chat.store.share_conversation(user, vec![other.clone()]).await?.contains(&true)
        }
        Audience::Nobody => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_bounded() {
        let known = KnownConversations::default();
        let conversation = |n: usize| {
            let user = |id: String| UserId::parse(&id).unwrap();
            ConversationId::private(&user("a".to_owned()), &user(format!("b{n}")))
        };
        for n in 0..3 * KNOWN_MAX {
            known.insert(conversation(n));
        }
        assert!(known.contains(&conversation(3 * KNOWN_MAX - 1)));
        assert!(!known.contains(&conversation(0)));
        let held = known.0.lock().unwrap();
        assert!(held.younger.len() + held.older.len() <= 2 * KNOWN_MAX);
    }
}
