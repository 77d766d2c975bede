//! User profiles.

use std::sync::Arc;

use crate::chat::Chat;
use crate::event::Event;
use crate::ids::{ConversationId, UserId};
use crate::model::{Caller, Profile, ProfileChange, User};
use crate::policy::account;
use crate::reason::{Error, Reason};
use crate::sync;
use crate::user_lookup;

/// Bounds the size of one event.
const CONVERSATIONS_PER_EVENT: usize = 500;

/// The account for a typed id; callers show its profile.
pub async fn profile(chat: &Chat, typed: &UserId) -> Result<Arc<User>, Error> {
    Ok(user_lookup::find_account(&*chat.store, typed).await?.ok_or(Reason::UserNotFound)?)
}

/// Changes the caller's own profile, and publishes a new nickname or avatar.
pub async fn update(
    chat: &Chat,
    caller: &Caller,
    mut change: ProfileChange,
) -> Result<Arc<User>, Error> {
    if let Some(nickname) = &mut change.nickname {
        *nickname = account::normalize_nickname(nickname)?;
    }
    let user = chat.store.user(&caller.user).await?.ok_or(Reason::UserNotFound)?;
    let mut updated_profile = user.profile.clone();
    updated_profile.apply(change.clone());
    account::check_profile(&updated_profile)?;
    let updated = chat.store.update_profile(&caller.user, change, chat.clock.now()).await?;
    let updated = updated.ok_or(Reason::UserNotFound)?;
    let (before, after) = (&user.profile, &updated.profile);
    if (&before.nickname, &before.avatar) != (&after.nickname, &after.avatar)
        && let Err(error) = publish_profile(chat, &updated.id).await
    {
        // The change is stored; other clients see it with their next request.
        tracing::warn!(user = %updated.id, %error, "a new profile could not be published");
    }
    Ok(updated)
}

/// Publishes the profile to all private conversations and small groups of the user.
pub(crate) async fn publish_profile(chat: &Chat, id: &UserId) -> Result<(), Error> {
    let mut within = Vec::new();
    for standing in sync::standings(chat, id).await? {
        let is_small = match standing.conversation.group() {
            None => standing.has_begun(), // who only has settings for a user says nothing to them
            Some(_) if !standing.is_active() => false,
            Some(group) => chat.store.group(&group).await?.is_some_and(|group| {
                group.ended.is_none() && group.members <= chat.rules.groups.receipts_members_max
            }),
        };
        if is_small {
            within.push(standing.conversation);
        }
    }
    // Read again: of two concurrent changes, the event published last contains both.
    let user = profile(chat, id).await?;
    let Profile { nickname, avatar, .. } = &user.profile;
    let event = |within: &[ConversationId]| Event::Profile {
        user: id.clone(),
        nickname: nickname.clone(),
        avatar: avatar.clone(),
        within: within.to_vec(),
        at: chat.clock.now(),
    };
    let events = within.chunks(CONVERSATIONS_PER_EVENT).map(event).collect::<Vec<_>>();
    // Without any conversation only the user's own devices receive it.
    chat.bus.publish_all(&if events.is_empty() { vec![event(&[])] } else { events });
    Ok(())
}
