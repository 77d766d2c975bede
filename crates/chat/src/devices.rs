//! Which devices of a user may be there at once.

use crate::auth::{end, live_login};
use crate::bus::Place;
use crate::chat::Chat;
use crate::command::{Event, Logins};
use crate::ids::{ConnectionId, LoginId, Millis};
use crate::model::{Caller, Login};
use crate::policy::session;
use crate::reason::{Error, Reason};
use crate::rules::SessionPolicy;

/// Takes a place for a socket: whoever the session policy excludes gives way, the older sign-in to
/// the newer. The socket must already be reachable by events, so that an end that comes meanwhile
/// finds it; one that came just before is found here.
pub async fn enter(chat: &Chat, caller: &Caller, connection: ConnectionId) -> Result<(), Error> {
    let place = place_of(caller, connection);
    let others = chat.bus.claim(place.clone()).await;
    let entered = settle(chat, caller, &place, &others).await;
    if entered.is_err() {
        chat.bus.release(&caller.user, connection);
    }
    entered
}

async fn settle(
    chat: &Chat,
    caller: &Caller,
    place: &Place,
    others: &[Place],
) -> Result<(), Error> {
    live_login(chat, caller.login).await?;
    let going = session::who_gives_way(&chat.rules, place, others)?;
    let ended = end_older(chat, caller.login, caller.signed_in_at, place).await?;
    let (same, rest): (Vec<&Place>, Vec<&Place>) =
        going.into_iter().partition(|other| other.login == caller.login);
    for other in rest.iter().filter(|other| !ended.contains(&other.login)) {
        // Either it ended before and its socket is just closing, or it is newer than this one.
        if live_login(chat, other.login).await.is_ok() {
            return Err(Reason::Kicked.into());
        }
    }
    if !same.is_empty() {
        let connections = same.iter().map(|other| other.connection).collect();
        let user = caller.user.clone();
        chat.bus.publish(Event::Closed { user, connections, reason: Reason::Kicked });
    }
    Ok(())
}

/// Ends the older sign-ins that a newcomer excludes, connected or not.
async fn end_older(
    chat: &Chat,
    login: LoginId,
    since: Millis,
    place: &Place,
) -> Result<Vec<LoginId>, Error> {
    let policy = chat.rules.session_policy;
    if policy == SessionPolicy::Multi {
        return Ok(Vec::new());
    }
    let newcomer = place.clone();
    let which = move |other: &Login| {
        let its_place = Place { platform: other.platform, login: other.id, ..newcomer.clone() };
        (other.created_at, other.id) < (since, login)
            && session::excludes(policy, &newcomer, &its_place)
    };
    let ended = chat.store.end_logins(&place.user, Box::new(which)).await?;
    if !ended.is_empty() {
        end(chat, &place.user, Logins::These(ended.clone()), Reason::Kicked);
    }
    Ok(ended)
}

/// A new sign-in ends the connected ones it excludes at once, before its own socket comes.
pub(crate) async fn close_excluded(chat: &Chat, login: &Login) -> Result<(), Error> {
    let newcomer = Place {
        user: login.user.clone(),
        connection: ConnectionId(0),
        login: login.id,
        platform: login.platform,
    };
    let policy = chat.rules.session_policy;
    let places = chat.bus.places(&login.user).await;
    if places.iter().any(|place| session::excludes(policy, &newcomer, place)) {
        end_older(chat, login.id, login.created_at, &newcomer).await?;
    }
    Ok(())
}

/// Gives a socket's place back.
pub fn leave(chat: &Chat, caller: &Caller, connection: ConnectionId) {
    chat.bus.release(&caller.user, connection);
    // Taken by the store when it is called; nobody waits for it.
    drop(chat.store.seen(&caller.user, chat.clock.now()));
}

fn place_of(caller: &Caller, connection: ConnectionId) -> Place {
    Place { user: caller.user.clone(), connection, login: caller.login, platform: caller.platform }
}
