//! Online status and typing, visible only to users who share a conversation.

use crate::blocks;
use crate::bus::Registration;
use crate::chat::Chat;
use crate::command::Target;
use crate::event::Event;
use crate::group;
use crate::ids::{ConversationId, Millis, UserId};
use crate::model::{Audience, Caller, Consent};
use crate::reason::{Error, Reason};
use crate::user_lookup;

/// A user's online status, as far as the caller may know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presence {
    pub user: UserId,
    /// Their sockets; empty if they share no conversation with the caller.
    pub registrations: Vec<Registration>,
    /// When they were last online, unless they are online now.
    pub last_seen: Option<Millis>,
}

/// The online status of these users.
pub async fn presence(
    chat: &Chat,
    caller: &Caller,
    mut users: Vec<UserId>,
) -> Result<Vec<Presence>, Error> {
    let mut shares = chat.store.share_conversation(&caller.user, users.clone()).await?;
    // Resolve only the ids that matched nothing as typed.
    let mut was_renamed = false;
    for (user, _) in users.iter_mut().zip(&shares).filter(|(_, is_shared)| !**is_shared) {
        let resolved = user_lookup::resolve_id(chat, user.clone()).await?;
        was_renamed |= resolved != *user;
        *user = resolved;
    }
    if was_renamed {
        shares = chat.store.share_conversation(&caller.user, users.clone()).await?;
    }
    let mut presences = Vec::with_capacity(users.len());
    for (user, is_shared) in users.into_iter().zip(shares) {
        let (mut registrations, mut last_seen) = (Vec::new(), None);
        if is_shared && !blocks::has_blocked(chat, &user, &caller.user).await? {
            let consent = match chat.store.user(&user).await? {
                Some(account) if user != caller.user => account.details.consent,
                _ => Consent::default(),
            };
            // They share a conversation, so only `Nobody` hides anything from the caller.
            if consent.online != Audience::Nobody {
                registrations = chat.bus.registrations(&user).await;
            }
            if registrations.is_empty() && consent.last_seen != Audience::Nobody {
                last_seen = chat.store.last_seen(&user).await?;
            }
        }
        presences.push(Presence { user, registrations, last_seen });
    }
    Ok(presences)
}

/// Publishes to the other user, or to a small group, that the caller is typing.
pub async fn typing(chat: &Chat, caller: &Caller, to: Target) -> Result<(), Error> {
    if !chat.typing_throttle.take(caller.user.clone(), chat.clock.ticks()) {
        return Ok(()); // published a moment ago
    }
    let to = user_lookup::resolve_target(chat, to).await?;
    let is_published = match &to {
        Target::User(user)
            if *user == caller.user || !has_private_conversation(chat, caller, user).await? =>
        {
            return Err(Reason::ConversationNotFound.into());
        }
        Target::User(_) => true,
        Target::Group(id) => {
            let group = chat.store.group(id).await?.ok_or(Reason::GroupNotFound)?;
            group::require_member(chat, id, &caller.user).await?;
            group.members <= chat.rules.groups.receipts_members_max
        }
    };
    if is_published {
        let from = caller.user.clone();
        chat.bus.publish(Event::Typing { from, to, at: chat.clock.now() });
    }
    Ok(())
}

async fn has_private_conversation(
    chat: &Chat,
    caller: &Caller,
    user: &UserId,
) -> Result<bool, Error> {
    let conversation = ConversationId::private(&caller.user, user);
    let standing = chat.store.standing(&caller.user, &conversation).await?;
    Ok(standing.is_some_and(|standing| standing.has_begun()))
}
