//! The events of a decision about a group, the same for every engine.

use nexo_chat::event::Event;
use nexo_chat::ids::UserId;
use nexo_chat::store::{Actor, GroupOutcome};

/// All events: changes, new join requests, and answered ones.
pub(crate) fn group_events(outcome: &GroupOutcome, by: &Actor) -> Vec<Event> {
    let (origin, members) = (by.origin, outcome.group.members);
    let changes = outcome.changes.iter().cloned();
    let changes = changes.map(|change| Event::Change { change, origin, members });
    changes.chain(join_request_events(outcome, by)).collect()
}

/// The events of new and answered join requests.
pub(crate) fn join_request_events(outcome: &GroupOutcome, by: &Actor) -> Vec<Event> {
    let group = &outcome.group;
    let to: Vec<UserId> = [&group.owner].into_iter().chain(&group.admins).cloned().collect();
    let new = outcome.asked.iter().cloned();
    let new = new.map(|request| Event::JoinRequested { request, to: to.clone() });
    let settled = outcome.settled.iter().cloned().map(|request| Event::JoinAnswered {
        accepted: outcome.joined.contains(&request.user),
        request,
        by: by.user.clone(),
        at: by.at,
    });
    new.chain(settled).collect()
}
