//! The routes an event takes: the users and groups whose nodes receive it.

use nexo_chat::change::ChangeKind;
use nexo_chat::event::Event;
use nexo_chat::ids::{ConversationId, UserId};
use nexo_chat::policy::delivery::audience_of;

/// What the routes of an event are looked up by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RouteKey {
    /// The nodes where this user has a socket.
    User(UserId),
    /// The nodes that are subscribed to this group.
    Group(ConversationId),
}

/// Calls `add` with every route of an event, some perhaps twice. Beside its audience these are the
/// users it names who are not in the audience yet: new members of a group, and the admins who decide on
/// join requests. Users who left or were removed are still in the audience.
pub(crate) fn route_keys(event: &Event, mut add: impl FnMut(RouteKey)) {
    let audience = audience_of(event);
    audience.users.into_iter().flatten().for_each(|user| add(RouteKey::User(user)));
    audience.group.into_iter().for_each(|group| add(RouteKey::Group(group)));
    if let Event::Profile { user, within, .. } = event {
        for conversation in within {
            match conversation.peer_of(user) {
                Some(peer) => add(RouteKey::User(peer)),
                None => add(RouteKey::Group(conversation.clone())),
            }
        }
    }
    let named = match event {
        Event::JoinRequested { to, .. } => to.as_slice(),
        Event::Change { change, .. } => match &change.kind {
            ChangeKind::Joined { users, .. } => users.as_slice(),
            _ => &[],
        },
        _ => &[],
    };
    for user in named {
        add(RouteKey::User(user.clone()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nexo_chat::Reason;
    use nexo_chat::change::Change;
    use nexo_chat::command::Target;
    use nexo_chat::event::Logins;
    use nexo_chat::ids::{GroupId, Millis, Seq};
    use nexo_chat::membership::JoinRequest;

    use super::*;

    fn user(id: &str) -> UserId {
        UserId::parse(id).unwrap()
    }

    fn change(conversation: &str, kind: ChangeKind) -> Event {
        let conversation = ConversationId::parse(conversation).unwrap();
        let (by, at) = (user("ann"), Millis(1));
        let change = Change { conversation, seq: Seq(1), by, at, kind };
        Event::Change { change: Arc::new(change), origin: None, members: 3 }
    }

    #[test]
    fn an_event_goes_to_those_who_hear_it_and_those_it_brings_in() {
        let check = |event: &Event, expect: &[&str]| {
            let mut found = Vec::new();
            route_keys(event, |key| {
                found.push(match key {
                    RouteKey::User(user) => user.to_string(),
                    RouteKey::Group(group) => group.to_string(),
                });
            });
            assert_eq!(found, expect, "{event:?}");
        };
        let people = || vec![user("bob"), user("cat")];
        let joined = ChangeKind::Joined { users: people(), from: Seq(1) };
        check(&change("sg_g", joined), &["sg_g", "bob", "cat"]);
        check(&change("sg_g", ChangeKind::Kicked { user: user("bob") }), &["sg_g"]);
        check(&change("si_ann_bob", ChangeKind::Left), &["ann", "bob"]);
        let (from, to) = (user("ann"), Target::Group(GroupId::parse("g").unwrap()));
        check(&Event::Typing { from, to, at: Millis(1) }, &["sg_g"]);
        let group = GroupId::parse("g").unwrap();
        let request =
            JoinRequest { group, user: user("ann"), message: String::new(), at: Millis(1) };
        check(&Event::JoinRequested { request, to: people() }, &["bob", "cat"]);
        let ended = Event::Ended { user: user("ann"), logins: Logins::All, reason: Reason::Kicked };
        check(&ended, &["ann"]);
        let profile = Event::Profile {
            user: user("ann"),
            nickname: "Ann".into(),
            avatar: String::new(),
            within: ["si_ann_bob", "sg_g"].map(|id| ConversationId::parse(id).unwrap()).into(),
            at: Millis(1),
        };
        check(&profile, &["ann", "bob", "sg_g"]);
    }
}
