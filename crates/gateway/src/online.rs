//! How many members of a group are online on all nodes together, for the strategy that depends on it.
//!
//! Each node tells the others, through the bus, who hears a group there: not by their ids but as a
//! sketch, a bit for each person, so that somebody with devices on several nodes counts once however
//! many there are. It is told when that has changed by more than a little, and again from time to
//! time, since the bus may lose it and nodes come and go. Nothing is asked for a message: it finds a
//! number that may be a moment old.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use nexo_chat::command::Event;
use nexo_chat::ids::{ConversationId, Millis, UserId};
use nexo_chat::rules::{GroupRules, Strategy};

/// Changes smaller than this part of the lowest threshold are not told.
const STEPS: usize = 32;
/// What a node told is forgotten if it was not told again for so long.
const FORGET_AFTER_MS: u64 = 35_000;
/// Bits of a sketch: twice the highest threshold is exact to about a hundredth.
const BITS_MIN: usize = 1 << 10;
const BITS_MAX: usize = 1 << 16;

/// What nodes have told each other.
pub(crate) struct Online {
    instance: Arc<str>,
    bits: usize,
    /// How many sockets have to come or go before it is told.
    pub(crate) step: usize,
    groups: RwLock<HashMap<ConversationId, Heard>>,
}

/// A group that is heard on several nodes, or by many here.
#[derive(Default)]
struct Heard {
    own: Sketch,
    others: HashMap<String, (Sketch, Millis)>,
    /// People on all nodes; zero as long as no other node has told of any.
    total: usize,
}

/// A bit for each person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sketch(Vec<u8>);

impl Online {
    /// Nothing, where the number of those online decides nothing.
    pub(crate) fn new(rules: &GroupRules, instance: &Arc<str>) -> Option<Self> {
        if rules.strategy != Strategy::Auto {
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

    /// People of a group on all nodes, as far as others told; zero if none did.
    pub(crate) fn total(&self, group: &ConversationId) -> usize {
        let groups = self.groups.read().unwrap_or_else(PoisonError::into_inner);
        groups.get(group).map_or(0, |heard| heard.total)
    }

    /// Who hears a group here now; returns what the other nodes are told.
    pub(crate) fn own<'a>(
        &self,
        group: &ConversationId,
        users: impl Iterator<Item = &'a UserId>,
    ) -> Event {
        let sketch = Sketch::of(users, self.bits);
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        let heard = groups.entry(group.clone()).or_default();
        heard.own = sketch;
        heard.count();
        self.word(group, &heard.own)
    }

    /// This node begins to hear of a group what others say: what it tells them to be told the same,
    /// if enough hear the group here for that to matter now.
    pub(crate) fn ask(&self, group: &ConversationId) -> Option<Event> {
        let groups = self.groups.read().unwrap_or_else(PoisonError::into_inner);
        let heard = groups.get(group)?;
        if heard.own.is_empty() || !heard.others.is_empty() {
            return None;
        }
        Some(self.told(group, &heard.own, true))
    }

    /// Nobody here hears a group any more; returns what the other nodes are told, if they were told
    /// of anybody.
    pub(crate) fn forget(&self, group: &ConversationId) -> Option<Event> {
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        let heard = groups.remove(group)?;
        (!heard.own.is_empty()).then(|| self.word(group, &Sketch::default()))
    }

    /// Another node told who hears a group there. Returns what it is to be told in turn if it asks
    /// or was not known before: it may have come only now.
    pub(crate) fn heard(
        &self,
        group: &ConversationId,
        (instance, bits): (&str, &[u8]),
        asks: bool,
        now: Millis,
    ) -> Option<Event> {
        // A node with other thresholds makes other sketches; it does not count.
        if *instance == *self.instance || !(bits.is_empty() || bits.len() == self.bits / 8) {
            return None;
        }
        let sketch = Sketch(bits.to_vec());
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        let heard = groups.entry(group.clone()).or_default();
        let is_new = if sketch.is_empty() {
            heard.others.remove(instance);
            false
        } else {
            heard.others.insert(instance.to_owned(), (sketch, now)).is_none()
        };
        heard.count();
        ((is_new || asks) && !heard.own.is_empty()).then(|| self.word(group, &heard.own))
    }

    /// Forgets what was not told again, and tells everything that was told here once more.
    pub(crate) fn again(&self, now: Millis) -> Vec<Event> {
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        let mut events = Vec::new();
        groups.retain(|group, heard| {
            heard.others.retain(|_, (_, at)| now.since(*at) < FORGET_AFTER_MS);
            heard.count();
            if !heard.own.is_empty() {
                events.push(self.word(group, &heard.own));
            }
            !heard.own.is_empty() || !heard.others.is_empty()
        });
        events
    }

    fn word(&self, group: &ConversationId, sketch: &Sketch) -> Event {
        self.told(group, sketch, false)
    }

    fn told(&self, group: &ConversationId, sketch: &Sketch, asks: bool) -> Event {
        Event::Online {
            group: group.clone(),
            instance: self.instance.as_ref().to_owned(),
            people: sketch.0.clone(),
            asks,
        }
    }
}

impl Heard {
    fn count(&mut self) {
        self.total = 0;
        if !self.others.is_empty() {
            let others = self.others.values().map(|(sketch, _)| sketch);
            self.total = Sketch::union(others.chain(std::iter::once(&self.own))).people();
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

    /// How many people this is, by how many bits nobody has set.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn people(numbers: std::ops::Range<usize>) -> Vec<UserId> {
        numbers.map(|number| UserId::parse(&format!("u{number}")).unwrap()).collect()
    }

    #[test]
    fn people_are_counted_once_and_nearly_exactly() {
        let sketch = |numbers| Sketch::of(people(numbers).iter(), 4096);
        for count in [0, 1, 3, 10, 500, 2000] {
            let told = sketch(0..count).people();
            assert!(told.abs_diff(count) <= count / 20, "{count}: {told}");
        }
        // Half of them are on both nodes.
        let both = [sketch(0..1000), sketch(500..1500)];
        let told = Sketch::union(both.iter()).people();
        assert!(told.abs_diff(1500) < 60, "{told}");
        assert_eq!(Sketch(vec![255; 8]).people(), usize::MAX);
    }

    #[test]
    fn nodes_tell_each_other_once_and_forget_who_is_silent() {
        let rules = GroupRules { notify_online: 3, none_online: 4, ..GroupRules::default() };
        let node = |name: &str| Online::new(&rules, &name.into()).unwrap();
        let (a, b) = (node("a"), node("b"));
        let group = ConversationId::parse("sg_g").unwrap();
        let tell = |event: &Event, to: &Online, now| {
            let Event::Online { group, instance, people, asks } = event else {
                panic!("{event:?}")
            };
            to.heard(group, (instance, people), *asks, Millis(now))
        };
        let first = a.own(&group, people(0..2).iter());
        assert!(tell(&first, &a, 0).is_none(), "its own word");
        assert_eq!(a.total(&group), 0, "nobody else told of anybody");
        assert!(tell(&first, &b, 0).is_none(), "nothing to answer");
        let second = b.own(&group, people(1..3).iter());
        let answer = tell(&second, &a, 0).expect("a newcomer is answered");
        assert!(tell(&answer, &b, 0).is_none(), "and that is all");
        assert_eq!((a.total(&group), b.total(&group)), (3, 3));
        assert!(a.ask(&group).is_none(), "nothing to ask for");
        let c = node("c");
        c.own(&group, people(0..1).iter());
        assert!(tell(&c.ask(&group).unwrap(), &a, 0).is_some());
        assert!(tell(&c.ask(&group).unwrap(), &a, 0).is_some(), "as often as it asks");
        assert_eq!(a.again(Millis(FORGET_AFTER_MS - 1)).len(), 1);
        assert_eq!(a.total(&group), 3);
        a.again(Millis(FORGET_AFTER_MS));
        assert_eq!(a.total(&group), 0, "a node that is gone does not count");
        let gone = b.forget(&group).expect("others are told");
        tell(&second, &a, 0);
        assert_eq!(a.total(&group), 3);
        tell(&gone, &a, 0);
        assert_eq!(a.total(&group), 0);
        assert!(b.forget(&group).is_none());
    }

    #[test]
    fn it_is_only_for_the_strategy_that_counts() {
        let rules = GroupRules { strategy: Strategy::Push, ..GroupRules::default() };
        assert!(Online::new(&rules, &"a".into()).is_none());
        let usual = Online::new(&GroupRules::default(), &"a".into()).unwrap();
        assert_eq!((usual.step, usual.bits), (15, 4096));
    }
}
