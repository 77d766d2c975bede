//! The routes of this node: the registrations and group subscriptions it has, whether Redis knows
//! them or not. Redis may lose them, so they are written there again and again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nexo_chat::bus::Registration;
use nexo_chat::ids::{ConnectionId, ConversationId, UserId};

/// A registration on this node.
#[derive(Clone, Debug)]
pub(crate) struct LocalRegistration {
    pub(crate) registration: Registration,
    /// Its order number, once Redis has it.
    pub(crate) order: Option<u64>,
}

#[derive(Default)]
pub(crate) struct LocalRoutes {
    registrations: Mutex<HashMap<UserId, Vec<LocalRegistration>>>,
    /// The groups this node is subscribed to, and whether Redis knows.
    groups: Mutex<HashMap<ConversationId, bool>>,
}

impl LocalRoutes {
    fn lock_registrations(&self) -> MutexGuard<'_, HashMap<UserId, Vec<LocalRegistration>>> {
        self.registrations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_groups(&self) -> MutexGuard<'_, HashMap<ConversationId, bool>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a registration and returns those the user had on this node before.
    pub(crate) fn register(&self, registration: &Registration) -> Vec<LocalRegistration> {
        let mut registrations = self.lock_registrations();
        let own = registrations.entry(registration.user.clone()).or_default();
        own.retain(|other| other.registration.connection != registration.connection);
        let before = own.clone();
        own.push(LocalRegistration { registration: registration.clone(), order: None });
        before
    }

    /// Removes a registration. Returns whether it was there.
    pub(crate) fn unregister(&self, user: &UserId, connection: ConnectionId) -> bool {
        let mut registrations = self.lock_registrations();
        let Some(own) = registrations.get_mut(user) else { return false };
        let before = own.len();
        own.retain(|own| own.registration.connection != connection);
        let is_gone = own.len() < before;
        if own.is_empty() {
            registrations.remove(user);
        }
        is_gone
    }

    /// A user's registrations on this node, the oldest first.
    pub(crate) fn registrations(&self, user: &UserId) -> Vec<LocalRegistration> {
        self.lock_registrations().get(user).cloned().unwrap_or_default()
    }

    /// Stores the order number that Redis gave to a registration.
    pub(crate) fn set_order(&self, registration: &Registration, order: u64) {
        let mut registrations = self.lock_registrations();
        let own = registrations.get_mut(&registration.user).into_iter().flatten();
        for local in own.filter(|own| own.registration.connection == registration.connection) {
            local.order = Some(order);
        }
    }

    /// The users that have a registration on this node.
    pub(crate) fn users(&self) -> Vec<UserId> {
        self.lock_registrations().keys().cloned().collect()
    }

    /// Subscribes to groups and returns those that Redis does not know of yet.
    pub(crate) fn subscribe_groups(&self, groups: Vec<ConversationId>) -> Vec<ConversationId> {
        let mut known = self.lock_groups();
        groups.into_iter().filter(|group| !*known.entry(group.clone()).or_default()).collect()
    }

    /// Redis knows these subscriptions, except those that have ended meanwhile.
    pub(crate) fn mark_groups_written(&self, groups: &[ConversationId]) {
        let mut known = self.lock_groups();
        for group in groups {
            if let Some(is_written) = known.get_mut(group) {
                *is_written = true;
            }
        }
    }

    /// Whether Redis knows of this subscription.
    pub(crate) fn is_group_written(&self, group: &ConversationId) -> bool {
        self.lock_groups().get(group).copied().unwrap_or_default()
    }

    /// Ends a subscription. Returns whether there was one.
    pub(crate) fn unsubscribe_group(&self, group: &ConversationId) -> bool {
        self.lock_groups().remove(group).is_some()
    }

    pub(crate) fn is_subscribed(&self, group: &ConversationId) -> bool {
        self.lock_groups().contains_key(group)
    }

    pub(crate) fn groups(&self) -> Vec<ConversationId> {
        self.lock_groups().keys().cloned().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock_registrations().is_empty() && self.lock_groups().is_empty()
    }
}
