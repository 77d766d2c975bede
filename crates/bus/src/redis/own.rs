//! What is on this node: known here whether Redis is there or not, and written there again and
//! again, since Redis may forget.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nexo_chat::bus::Place;
use nexo_chat::ids::{ConnectionId, ConversationId, UserId};

/// A place here.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) place: Place,
    /// Its number in Redis, once it was written there.
    pub(crate) order: Option<u64>,
}

/// The sockets and the groups of this node.
#[derive(Default)]
pub(crate) struct Own {
    places: Mutex<HashMap<UserId, Vec<Held>>>,
    /// Groups heard here, and whether Redis knows.
    groups: Mutex<HashMap<ConversationId, bool>>,
}

impl Own {
    fn all_places(&self) -> MutexGuard<'_, HashMap<UserId, Vec<Held>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all_groups(&self) -> MutexGuard<'_, HashMap<ConversationId, bool>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a place and returns those the user had here before.
    pub(crate) fn claim(&self, place: &Place) -> Vec<Held> {
        let mut places = self.all_places();
        let held = places.entry(place.user.clone()).or_default();
        held.retain(|other| other.place.connection != place.connection);
        let before = held.clone();
        held.push(Held { place: place.clone(), order: None });
        before
    }

    /// Forgets a place; whether it was there.
    pub(crate) fn release(&self, user: &UserId, connection: ConnectionId) -> bool {
        let mut places = self.all_places();
        let Some(held) = places.get_mut(user) else { return false };
        let before = held.len();
        held.retain(|held| held.place.connection != connection);
        let is_gone = held.len() < before;
        if held.is_empty() {
            places.remove(user);
        }
        is_gone
    }

    /// A user's places here, the oldest first.
    pub(crate) fn places(&self, user: &UserId) -> Vec<Held> {
        self.all_places().get(user).cloned().unwrap_or_default()
    }

    /// A place got its number.
    pub(crate) fn number(&self, place: &Place, order: u64) {
        let mut places = self.all_places();
        let held = places.get_mut(&place.user).into_iter().flatten();
        for held in held.filter(|held| held.place.connection == place.connection) {
            held.order = Some(order);
        }
    }

    /// Everybody who has a place here.
    pub(crate) fn users(&self) -> Vec<UserId> {
        self.all_places().keys().cloned().collect()
    }

    /// Notes that groups are heard here, and returns those Redis does not know of.
    pub(crate) fn tune_in(&self, groups: Vec<ConversationId>) -> Vec<ConversationId> {
        let mut known = self.all_groups();
        groups.into_iter().filter(|group| !*known.entry(group.clone()).or_default()).collect()
    }

    /// Redis knows, unless nobody hears them any more.
    pub(crate) fn registered(&self, groups: &[ConversationId]) {
        let mut known = self.all_groups();
        for group in groups {
            if let Some(is_registered) = known.get_mut(group) {
                *is_registered = true;
            }
        }
    }

    /// Whether Redis was told that a group is heard here.
    pub(crate) fn is_registered(&self, group: &ConversationId) -> bool {
        self.all_groups().get(group).copied().unwrap_or_default()
    }

    /// A group is not heard here any more; whether it was.
    pub(crate) fn tune_out(&self, group: &ConversationId) -> bool {
        self.all_groups().remove(group).is_some()
    }

    /// Whether a group is heard here.
    pub(crate) fn hears(&self, group: &ConversationId) -> bool {
        self.all_groups().contains_key(group)
    }

    /// All groups heard here.
    pub(crate) fn groups(&self) -> Vec<ConversationId> {
        self.all_groups().keys().cloned().collect()
    }

    /// Whether there is nothing here.
    pub(crate) fn is_empty(&self) -> bool {
        self.all_places().is_empty() && self.all_groups().is_empty()
    }
}
