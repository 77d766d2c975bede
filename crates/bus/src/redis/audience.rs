//! Whose nodes have to hear of an event.

use nexo_chat::change::ChangeKind;
use nexo_chat::command::Event;
use nexo_chat::policy::delivery::who_hears;

use super::names::Topic;

/// Names everybody whose nodes an event goes to, some perhaps twice. Beside those who hear it, these
/// are the people it names who are not yet where it is told: newcomers to a group, and those who
/// decide on wishes to join. Who was put out or left is still there.
pub(crate) fn topics(event: &Event, mut name: impl FnMut(Topic)) {
    let audience = who_hears(event);
    audience.users.into_iter().flatten().for_each(|user| name(Topic::User(user)));
    audience.group.into_iter().for_each(|group| name(Topic::Group(group)));
    if let Event::Profile { user, within, .. } = event {
        for conversation in within {
            match conversation.peer_of(user) {
                Some(peer) => name(Topic::User(peer)),
                None => name(Topic::Group(conversation.clone())),
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
        name(Topic::User(user.clone()));
    }
}

/// About how many bytes an event holds while it waits.
pub(crate) fn weight(event: &Event) -> usize {
    const SMALL: usize = 256;
    const PERSON: usize = 80;
    match event {
        Event::Message { message, .. }
        | Event::Preview { message, .. }
        | Event::Settled { message } => message.weight(),
        Event::Change { change, .. } => match &change.kind {
            ChangeKind::Joined { users, .. } => SMALL + users.len() * PERSON,
            ChangeKind::Updated(_) => 4 * SMALL,
            _ => SMALL,
        },
        Event::Online { people, .. } => SMALL + people.len(),
        Event::Profile { nickname, avatar, within, .. } => {
            SMALL + nickname.len() + avatar.len() + within.len() * 2 * PERSON
        }
        Event::JoinRequested { request, to } => SMALL + request.message.len() + to.len() * PERSON,
        _ => SMALL,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nexo_chat::Reason;
    use nexo_chat::change::Change;
    use nexo_chat::command::{Logins, Target};
    use nexo_chat::ids::{ConversationId, GroupId, Millis, Seq, UserId};
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
            let mut told = Vec::new();
            topics(event, |topic| {
                told.push(match topic {
                    Topic::User(user) => user.to_string(),
                    Topic::Group(group) => group.to_string(),
                });
            });
            assert_eq!(told, expect, "{event:?}");
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
