//! What people are told of a decision about a group, the same by every engine.

use nexo_chat::ids::UserId;
use nexo_chat::model::Kept;
use nexo_chat::store::{Asker, Decided};

/// Everything: changes, wishes, and what became of wishes.
pub(crate) fn told(decided: &Decided, by: &Asker) -> Vec<Kept> {
    let (origin, members) = (by.origin, decided.group.members);
    let changes = decided.changes.iter().cloned();
    let changes = changes.map(|change| Kept::Change { change, origin, members });
    changes.chain(wishes(decided, by)).collect()
}

/// The wishes among it, and what became of them.
pub(crate) fn wishes(decided: &Decided, by: &Asker) -> Vec<Kept> {
    let group = &decided.group;
    let to: Vec<UserId> = [&group.owner].into_iter().chain(&group.admins).cloned().collect();
    let new = decided.asked.iter().cloned();
    let new = new.map(|request| Kept::Asked { request, to: to.clone() });
    let settled = decided.settled.iter().cloned().map(|request| Kept::Answered {
        accepted: decided.joined.contains(&request.user),
        request,
        by: by.user.clone(),
        at: by.at,
    });
    new.chain(settled).collect()
}
