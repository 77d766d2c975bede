//! Who is there, and who is writing. Told only to people who share a conversation.

use crate::bus::Place;
use crate::chat::Chat;
use crate::command::{Event, Target};
use crate::group;
use crate::ids::{ConversationId, Millis, UserId};
use crate::model::Caller;
use crate::people;
use crate::reason::{Error, Reason};

/// Where somebody is online now, as far as the caller may know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presence {
    /// Who.
    pub user: UserId,
    /// Their sockets; none for a stranger, whether they are online or not.
    pub places: Vec<Place>,
    /// When they were last here, unless they are here now.
    pub last_seen: Option<Millis>,
}

/// Where these people are online.
pub async fn presence(
    chat: &Chat,
    caller: &Caller,
    mut users: Vec<UserId>,
) -> Result<Vec<Presence>, Error> {
    let mut known = chat.store.acquainted(&caller.user, users.clone()).await?;
    // Only whoever is not known by the name as it was typed may be meant by another one.
    let mut was_renamed = false;
    for (user, _) in users.iter_mut().zip(&known).filter(|(_, is_known)| !**is_known) {
        let meant = people::meant(chat, user.clone()).await?;
        was_renamed |= meant != *user;
        *user = meant;
    }
    if was_renamed {
        known = chat.store.acquainted(&caller.user, users.clone()).await?;
    }
    let mut seen = Vec::with_capacity(users.len());
    for (user, is_known) in users.into_iter().zip(known) {
        let (mut places, mut last_seen) = (Vec::new(), None);
        if is_known {
            places = chat.bus.places(&user).await;
            if places.is_empty() {
                last_seen = chat.store.last_seen(&user).await?;
            }
        }
        seen.push(Presence { user, places, last_seen });
    }
    Ok(seen)
}

/// Tells the other person, or a small group, that the caller is writing.
pub async fn typing(chat: &Chat, caller: &Caller, to: Target) -> Result<(), Error> {
    if !chat.typings.take(caller.user.clone(), chat.clock.ticks()) {
        return Ok(()); // they know
    }
    let to = people::target(chat, to).await?;
    let is_heard = match &to {
        Target::User(user) if *user == caller.user || !talks(chat, caller, user).await? => {
            return Err(Reason::ConversationNotFound.into());
        }
        Target::User(_) => true,
        Target::Group(id) => {
            let group = chat.store.group(id).await?.ok_or(Reason::GroupNotFound)?;
            group::must_be_in(chat, id, &caller.user).await?;
            group.members <= chat.rules.groups.receipts_members_max
        }
    };
    if is_heard {
        let from = caller.user.clone();
        chat.bus.publish(Event::Typing { from, to, at: chat.clock.now() });
    }
    Ok(())
}

/// Whether the caller and somebody have a private conversation.
async fn talks(chat: &Chat, caller: &Caller, user: &UserId) -> Result<bool, Error> {
    let conversation = ConversationId::private(&caller.user, user);
    Ok(chat.store.standing(&caller.user, &conversation).await?.is_some())
}
