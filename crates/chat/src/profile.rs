//! How people are seen.

use std::sync::Arc;

use crate::chat::Chat;
use crate::command::Event;
use crate::ids::{ConversationId, UserId};
use crate::model::{Caller, Profile, ProfileChange, User};
use crate::people;
use crate::policy::account;
use crate::reason::{Error, Reason};
use crate::sync;

/// Conversations of one event, so that none grows without bound.
const TOLD_AT_ONCE: usize = 500;

/// The public side of the account that a name means.
pub async fn profile(chat: &Chat, named: &UserId) -> Result<Arc<User>, Error> {
    Ok(people::account(&*chat.store, named).await?.ok_or(Reason::UserNotFound)?)
}

/// Changes the caller's own profile. Those who see them hear of a new name or picture.
pub async fn update(
    chat: &Chat,
    caller: &Caller,
    mut change: ProfileChange,
) -> Result<Arc<User>, Error> {
    if let Some(nickname) = &mut change.nickname {
        *nickname = account::good_nickname(nickname)?;
    }
    let user = chat.store.user(&caller.user).await?.ok_or(Reason::UserNotFound)?;
    let mut wanted = user.profile.clone();
    wanted.apply(change.clone());
    account::good_profile(&wanted)?;
    let updated = chat.store.update_profile(&caller.user, change, chat.clock.now()).await?;
    let updated = updated.ok_or(Reason::UserNotFound)?;
    let (before, after) = (&user.profile, &updated.profile);
    if (&before.nickname, &before.avatar) != (&after.nickname, &after.avatar)
        && let Err(error) = tell(chat, &updated.id).await
    {
        // The change is stored: others find it when they next look.
        tracing::warn!(user = %updated.id, %error, "nobody was told of a new profile");
    }
    Ok(updated)
}

/// Tells everybody online who shares a private conversation or a group that is not too large.
async fn tell(chat: &Chat, id: &UserId) -> Result<(), Error> {
    let mut within = Vec::new();
    for standing in sync::standings(chat, id).await? {
        let is_small = match standing.conversation.group() {
            None => true,
            Some(_) if !standing.is_active() => false,
            Some(group) => chat.store.group(&group).await?.is_some_and(|group| {
                group.ended.is_none() && group.members <= chat.rules.groups.receipts_members_max
            }),
        };
        if is_small {
            within.push(standing.conversation);
        }
    }
    // As they are now: of two changes at once, whichever is told last tells both.
    let user = profile(chat, id).await?;
    let Profile { nickname, avatar, .. } = &user.profile;
    let event = |within: &[ConversationId]| Event::Profile {
        user: id.clone(),
        nickname: nickname.clone(),
        avatar: avatar.clone(),
        within: within.to_vec(),
        at: chat.clock.now(),
    };
    let events = within.chunks(TOLD_AT_ONCE).map(event).collect::<Vec<_>>();
    // Without any conversation their own devices are told.
    chat.bus.publish_all(if events.is_empty() { vec![event(&[])] } else { events });
    Ok(())
}
