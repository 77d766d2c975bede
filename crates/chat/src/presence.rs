//! Who is there, and who is writing. Told only to people who share a conversation; never stored.

use crate::bus::Place;
use crate::chat::Chat;
use crate::command::Event;
use crate::ids::{ConversationId, UserId};
use crate::model::Caller;
use crate::reason::{Error, Reason};

/// Where somebody is online now, as far as the caller may know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presence {
    /// Who.
    pub user: UserId,
    /// Their sockets; none for a stranger, whether they are online or not.
    pub places: Vec<Place>,
}

/// Where these people are online.
pub async fn presence(
    chat: &Chat,
    caller: &Caller,
    users: Vec<UserId>,
) -> Result<Vec<Presence>, Error> {
    let mut seen = Vec::with_capacity(users.len());
    for user in users {
        let may_see = user == caller.user || shares(chat, caller, &user).await?;
        let places = if may_see { chat.bus.places(&user).await } else { Vec::new() };
        seen.push(Presence { user, places });
    }
    Ok(seen)
}

/// Tells the other person that the caller is writing.
pub async fn typing(chat: &Chat, caller: &Caller, to: UserId) -> Result<(), Error> {
    if to == caller.user || !shares(chat, caller, &to).await? {
        return Err(Reason::ConversationNotFound.into());
    }
    let from = caller.user.clone();
    chat.bus.publish(Event::Typing { from, to, at: chat.clock.now() });
    Ok(())
}

async fn shares(chat: &Chat, caller: &Caller, user: &UserId) -> Result<bool, Error> {
    let conversation = ConversationId::private(&caller.user, user);
    Ok(chat.store.standing(&caller.user, &conversation).await?.is_some())
}
