//! Enforces how many devices of a user may be connected at once.

use crate::auth::{active_login, publish_logins_ended};
use crate::bus::Registration;
use crate::chat::Chat;
use crate::event::{Event, Logins};
use crate::ids::{ConnectionId, LoginId, Millis};
use crate::model::{Caller, Login};
use crate::policy::session;
use crate::reason::{Error, Reason};
use crate::rules::SessionPolicy;

/// Registers a socket and closes those that the session policy excludes: a newer sign-in wins over an
/// older one. The socket must already receive events, so that an end of its sign-in that is published
/// from now on reaches it; an end just before is found here.
pub async fn connect(chat: &Chat, caller: &Caller, connection: ConnectionId) -> Result<(), Error> {
    let registration = registration_of(caller, connection);
    let others = chat.bus.register(registration.clone()).await;
    let connected = enforce_session_policy(chat, caller, &registration, &others).await;
    if connected.is_err() {
        chat.bus.unregister(&caller.user, connection);
    }
    connected
}

async fn enforce_session_policy(
    chat: &Chat,
    caller: &Caller,
    registration: &Registration,
    others: &[Registration],
) -> Result<(), Error> {
    active_login(chat, caller.login).await?;
    let closing = session::connections_to_close(&chat.rules, registration, others)?;
    let ended = end_older_logins(chat, caller.login, caller.signed_in_at, registration).await?;
    let (same, rest): (Vec<&Registration>, Vec<&Registration>) =
        closing.into_iter().partition(|other| other.login == caller.login);
    for other in rest.iter().filter(|other| !ended.contains(&other.login)) {
        // Either its sign-in has ended and its socket is about to close, or it is newer than this one.
        if active_login(chat, other.login).await.is_ok() {
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

/// Ends the older sign-ins that a new one excludes, connected or not.
async fn end_older_logins(
    chat: &Chat,
    login: LoginId,
    since: Millis,
    registration: &Registration,
) -> Result<Vec<LoginId>, Error> {
    let policy = chat.rules.session_policy;
    if policy == SessionPolicy::Multi {
        return Ok(Vec::new());
    }
    let newcomer = registration.clone();
    let which = move |other: &Login| {
        let other_registration =
            Registration { platform: other.platform, login: other.id, ..newcomer.clone() };
        (other.created_at, other.id) < (since, login)
            && session::excludes(policy, &newcomer, &other_registration)
    };
    let ended = chat.store.end_logins(&registration.user, Box::new(which)).await?;
    if !ended.is_empty() {
        publish_logins_ended(
            chat,
            &registration.user,
            Logins::These(ended.clone()),
            Reason::Kicked,
        );
    }
    Ok(ended)
}

/// Ends the connected sign-ins that a new one excludes, at once rather than when its socket connects.
pub(crate) async fn end_excluded_logins(chat: &Chat, login: &Login) -> Result<(), Error> {
    let newcomer = Registration {
        user: login.user.clone(),
        connection: ConnectionId(0),
        login: login.id,
        platform: login.platform,
    };
    let policy = chat.rules.session_policy;
    let registrations = chat.bus.registrations(&login.user).await;
    if registrations.iter().any(|registration| session::excludes(policy, &newcomer, registration)) {
        end_older_logins(chat, login.id, login.created_at, &newcomer).await?;
    }
    Ok(())
}

/// Removes a socket's registration and records when the user was last seen.
pub fn disconnect(chat: &Chat, caller: &Caller, connection: ConnectionId) {
    chat.bus.unregister(&caller.user, connection);
    // The store queues the write when called; the future need not be awaited.
    drop(chat.store.record_seen(&caller.user, chat.clock.now()));
}

fn registration_of(caller: &Caller, connection: ConnectionId) -> Registration {
    Registration {
        user: caller.user.clone(),
        connection,
        login: caller.login,
        platform: caller.platform,
    }
}
