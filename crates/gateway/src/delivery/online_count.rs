//! How many members of a group are online on all nodes, for the delivery strategy that depends on it.
//!
//! Each node publishes the members online there as a sketch: one bit per user, set by a hash of the
//! id, so that a user with devices on several nodes counts once and the size does not grow with the
//! number of users. A node publishes its sketch when the number has changed noticeably, and
//! periodically, since the bus may lose events and nodes come and go. Delivering a message asks no
//! other node: it uses a number that may be some seconds old.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use nexo_chat::event::Event;
use nexo_chat::ids::{ConversationId, Millis, UserId};
use nexo_chat::rules::{DeliveryStrategy, GroupRules};

use crate::delivery::subscriptions::{Subscribers, Subscriptions};

/// Changes smaller than this fraction of the lowest threshold are not published.
const STEPS: usize = 32;
/// A node's sketch expires if it is not published again for this long.
const EXPIRES_MS: u64 = 35_000;
/// Bits of a sketch. Twice the highest threshold gives an error of about one percent.
const BITS_MIN: usize = 1 << 10;
const BITS_MAX: usize = 1 << 16;

/// The sketches of this node and of the others.
pub(crate) struct OnlineCount {
    instance: Arc<str>,
    bits: usize,
    /// How many sockets have to come or go before the sketch is published again.
    pub(crate) step: usize,
    groups: RwLock<HashMap<ConversationId, GroupOnline>>,
}

/// A group that other nodes published, or that has many members online here.
#[derive(Default)]
struct GroupOnline {
    local: Sketch,
    others: HashMap<String, (Sketch, Millis)>,
    /// Users on all nodes; zero as long as no other node has published any.
    total: usize,
}

/// One bit per user: linear counting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sketch(Vec<u8>);

impl OnlineCount {
    /// `None` unless the delivery strategy depends on the number of members online.
    pub(crate) fn new(rules: &GroupRules, instance: &Arc<str>) -> Option<Self> {
        if rules.strategy != DeliveryStrategy::Auto {
            return None;
        }
        let (low, high) = (
            rules.notify_online.min(rules.none_online),
            rules.notify_online.max(rules.none_online),
        );
        let bits = high.saturating_mul(2).clamp(BITS_MIN, BITS_MAX).next_power_of_two();
        let (instance, step) = (Arc::clone(instance), (low / STEPS).max(1));
        Some(Self { instance, bits, step, groups: RwLock::default() })
    }

    /// Members of a group online on all nodes; zero if no other node has published any.
    pub(crate) fn total(&self, group: &ConversationId) -> usize {
        let groups = self.groups.read().unwrap_or_else(PoisonError::into_inner);
        groups.get(group).map_or(0, |online| online.total)
    }

    /// Sets the members online here; returns the event that tells the other nodes.
    pub(crate) fn set_local<'a>(
        &self,
        group: &ConversationId,
        users: impl Iterator<Item = &'a UserId>,
    ) -> Event {
        let sketch = Sketch::of(users, self.bits);
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        let online = groups.entry(group.clone()).or_default();
        online.local = sketch;
        online.count();
        self.event(group, &online.local, false)
    }

    /// The event that asks the other nodes for their sketches, when this node has just subscribed to
    /// a group. `None` if too few members are online here for it to matter, or if sketches of other
    /// nodes are known.
    pub(crate) fn ask(&self, group: &ConversationId) -> Option<Event> {
        let groups = self.groups.read().unwrap_or_else(PoisonError::into_inner);
        let online = groups.get(group)?;
        if online.local.is_empty() || !online.others.is_empty() {
            return None;
        }
        Some(self.event(group, &online.local, true))
    }

    /// Removes a group that has no subscribers here any more; returns the event that tells the other
    /// nodes, if this node had published any.
    pub(crate) fn remove(&self, group: &ConversationId) -> Option<Event> {
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        let online = groups.remove(group)?;
        (!online.local.is_empty()).then(|| self.event(group, &Sketch::default(), false))
    }

    /// Sets the sketch of another node. Returns this node's sketch as the answer if the other node
    /// asks for it or is new, since it may have missed earlier ones.
    pub(crate) fn set_remote(
        &self,
        group: &ConversationId,
        (instance, bits): (&str, &[u8]),
        asks: bool,
        now: Millis,
    ) -> Option<Event> {
        // Ignored: this node itself, and nodes whose thresholds give sketches of another size.
        if *instance == *self.instance || !(bits.is_empty() || bits.len() == self.bits / 8) {
            return None;
        }
        let sketch = Sketch(bits.to_vec());
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        let online = groups.entry(group.clone()).or_default();
        let is_new = if sketch.is_empty() {
            online.others.remove(instance);
            false
        } else {
            online.others.insert(instance.to_owned(), (sketch, now)).is_none()
        };
        online.count();
        ((is_new || asks) && !online.local.is_empty())
            .then(|| self.event(group, &online.local, false))
    }

    /// Drops expired sketches of other nodes; returns the events that publish this node's again.
    pub(crate) fn republish(&self, now: Millis) -> Vec<Event> {
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        let mut events = Vec::new();
        groups.retain(|group, online| {
            online.others.retain(|_, (_, at)| now.since(*at) < EXPIRES_MS);
            online.count();
            if !online.local.is_empty() {
                events.push(self.event(group, &online.local, false));
            }
            !online.local.is_empty() || !online.others.is_empty()
        });
        events
    }

    fn event(&self, group: &ConversationId, sketch: &Sketch, asks: bool) -> Event {
        Event::Online {
            group: group.clone(),
            instance: self.instance.as_ref().to_owned(),
            people: sketch.0.clone(),
            asks,
        }
    }
}

impl GroupOnline {
    fn count(&mut self) {
        self.total = 0;
        if !self.others.is_empty() {
            let others = self.others.values().map(|(sketch, _)| sketch);
            self.total = Sketch::union(others.chain(std::iter::once(&self.local))).people();
        }
    }
}

impl Sketch {
    fn of<'a>(users: impl Iterator<Item = &'a UserId>, bits: usize) -> Self {
        let mut bytes = vec![0; bits / 8];
        for user in users {
            let hash = blake3::hash(user.as_str().as_bytes());
            let number = hash.as_bytes().first_chunk().map_or(0, |it| u32::from_be_bytes(*it));
            let bit = usize::try_from(number).unwrap_or_default() % bits;
            bytes[bit / 8] |= 1 << (bit % 8);
        }
        Self(bytes)
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|byte| *byte == 0)
    }

    fn union<'a>(sketches: impl Iterator<Item = &'a Self>) -> Self {
        let mut all = Self::default();
        for sketch in sketches {
            if all.0.is_empty() {
                all.0.clone_from(&sketch.0);
            }
            all.0.iter_mut().zip(&sketch.0).for_each(|(all, one)| *all |= one);
        }
        all
    }

    /// Estimates the number of users by the number of bits that are not set.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a sketch has at most 2^16 bits"
    )]
    fn people(&self) -> usize {
        let bits = self.0.len() * 8;
        let zeros: usize = self.0.iter().map(|byte| byte.count_zeros() as usize).sum();
        match (bits, zeros) {
            (0, _) => 0,
            (_, 0) => usize::MAX,
            _ => (-(bits as f64) * (zeros as f64 / bits as f64).ln()).round() as usize,
        }
    }
}

impl Subscriptions {
    /// How many members of a group are online on all nodes. Below `enough` it may count sockets
    /// instead of members; the sketches of other nodes may be some seconds old.
    pub(crate) fn online_people(
        &self,
        group: &ConversationId,
        subscribers: &Subscribers,
        enough: usize,
    ) -> usize {
        let everywhere = self.online.as_ref().map_or(0, |online| online.total(group));
        count_people(subscribers, enough).max(everywhere)
    }

    /// Another node published who is online in a group there.
    pub(crate) fn on_remote_online(
        &self,
        group: &ConversationId,
        people: (&str, &[u8]),
        asks: bool,
        now: Millis,
    ) {
        if let Some(online) = &self.online
            && self.known_change_seq(group).is_some()
        {
            self.publish(online.set_remote(group, people, asks, now));
        }
    }

    /// Publishes again who is online here, in all groups that were published before.
    pub(crate) fn republish_online(&self, now: Millis) {
        if let Some(online) = &self.online {
            self.bus.publish_all(&online.republish(now));
        }
    }
}

/// The number of users behind these sockets. Fewer than `enough` sockets are not deduplicated by
/// user: their users are fewer than `enough` as well.
fn count_people(subscribers: &Subscribers, enough: usize) -> usize {
    if subscribers.len() < enough {
        return subscribers.len();
    }
    let users = subscribers.values().map(|subscription| &subscription.connection.user);
    users.collect::<HashSet<_>>().len()
}

#[cfg(test)]
#[path = "online_count_tests.rs"]
mod tests;
