//! The one task that writes in Redis who is here and what is heard here, so that a later word is
//! never overtaken by an earlier one. It writes everything again from time to time, and when Redis
//! comes back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use nexo_chat::ids::{ConversationId, UserId};
use tokio::sync::{Notify, mpsc};
use tokio::time::{MissedTickBehavior, interval};

use super::errand::{ERRANDS_MAX, Errand, Removal, Round, is_done};
use super::link::Lot;
use super::node::Node;
use super::own::Own;
use super::routes;

/// How many users or groups are written at once: others wait meanwhile.
const LOT: usize = 256;

/// Whether everything has to be written again.
#[derive(Default)]
pub(crate) struct Renewal {
    /// Zero is no, one is yes, two is yes and then those here are told that they missed something.
    wanted: AtomicU8,
    /// Whether everything was written once.
    has_begun: AtomicBool,
    word: Notify,
}

impl Renewal {
    /// Nobody here was out of reach: just to keep it from expiring.
    fn want(&self) {
        self.wanted.fetch_max(1, Ordering::SeqCst);
    }

    /// Those here are out of reach until `reachable` says that they are not. At the very start
    /// there is nobody yet who could have missed anything.
    pub(crate) fn after_absence(&self, own: &Own, reachable: impl FnOnce()) {
        let has_somebody = self.has_begun.load(Ordering::SeqCst) || !own.is_empty();
        self.wanted.fetch_max(if has_somebody { 2 } else { 1 }, Ordering::SeqCst);
        reachable();
        self.word.notify_one();
    }
}

/// The clerk's own state.
pub(crate) struct Clerk {
    node: Arc<Node>,
    errands: mpsc::Receiver<Errand>,
    /// Removals that wait for Redis.
    held: VecDeque<Removal>,
}

impl Clerk {
    pub(crate) fn new(node: Arc<Node>, errands: mpsc::Receiver<Errand>) -> Self {
        Self { node, errands, held: VecDeque::new() }
    }

    /// Works until it is stopped.
    pub(crate) async fn work(mut self) {
        let mut tick = interval(self.node.options.refresh);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut errands = Vec::with_capacity(LOT);
        let node = Arc::clone(&self.node);
        loop {
            tokio::select! {
                _ = self.errands.recv_many(&mut errands, LOT) => {}
                () = node.renewal.word.notified() => {}
                _ = tick.tick() => node.renewal.want(),
            }
            self.run(&mut errands).await;
            self.renew_if_wanted().await;
        }
    }

    /// Does what waits, in its order. Nothing waits for Redis but what is to be removed there.
    async fn run(&mut self, errands: &mut Vec<Errand>) {
        let node = Arc::clone(&self.node);
        let mut round = node.round();
        let sizes: Vec<usize> = errands.iter().map(|errand| round.add(errand)).collect();
        let answers = match self.remove_held().await {
            Some(()) => self.write(round.lot).await,
            None => None,
        };
        let Some(answers) = answers else { return self.set_aside(errands) };
        let mut answers = answers.into_iter();
        for (errand, size) in errands.drain(..).zip(sizes) {
            let answers: Vec<_> = answers.by_ref().take(size).collect();
            match errand {
                Errand::Claim { place, done } => {
                    let answer = answers.into_iter().next().unwrap_or_default();
                    if let Some((order, before)) = routes::claimed(&place.user, answer) {
                        node.own.number(&place, order);
                        drop(done.send(before)); // The socket may be gone again.
                    }
                }
                Errand::TuneIn { groups, done } if answers.iter().all(is_done) => {
                    node.own.registered(&groups);
                    done.send(()).unwrap_or_default(); // The same.
                }
                Errand::TuneIn { .. } | Errand::Remove(_) => {}
            }
        }
    }

    /// Catches up with what could not be removed before.
    async fn remove_held(&mut self) -> Option<()> {
        while !self.held.is_empty() {
            let count = self.held.len().min(LOT);
            let mut lot = Lot::default();
            self.held.iter().take(count).for_each(|removal| removal.add_to(&mut lot));
            self.write(lot).await?;
            self.held.drain(..count);
        }
        Some(())
    }

    /// Redis is away: whoever waits is let go, what is gone must not be forgotten.
    fn set_aside(&mut self, errands: &mut Vec<Errand>) {
        let removals = errands.drain(..).filter_map(|errand| match errand {
            Errand::Remove(removal) => Some(removal),
            _ => None,
        });
        self.held.extend(removals);
        self.held.truncate(ERRANDS_MAX);
    }

    /// Writes everything again, if that is wanted and others are told and heard: those here then
    /// miss nothing more, and can look up what they missed.
    async fn renew_if_wanted(&mut self) {
        let node = Arc::clone(&self.node);
        if node.breaker.health().is_err() {
            return;
        }
        let wanted = node.renewal.wanted.swap(0, Ordering::SeqCst);
        if wanted == 0 {
            return;
        }
        let Some(has_vanished) = self.renew().await else {
            node.renewal.wanted.fetch_max(wanted, Ordering::SeqCst);
            return;
        };
        node.renewal.has_begun.store(true, Ordering::SeqCst);
        if wanted == 2 || has_vanished {
            node.lost();
        }
    }

    /// Tells whether something had vanished that was written before: nobody knew to tell it then.
    async fn renew(&mut self) -> Option<bool> {
        let (users, groups) = (self.node.own.users(), self.node.own.groups());
        let mut has_vanished = false;
        for users in users.chunks(LOT) {
            has_vanished |= self.renew_places(users).await?;
            self.take_turns().await;
        }
        for groups in groups.chunks(LOT) {
            has_vanished |= self.renew_groups(groups).await?;
            self.take_turns().await;
        }
        Some(has_vanished)
    }

    /// Does what came meanwhile.
    async fn take_turns(&mut self) {
        let mut errands = Vec::new();
        while let Ok(errand) = self.errands.try_recv() {
            errands.push(errand);
            if errands.len() == LOT {
                break;
            }
        }
        self.run(&mut errands).await;
    }

    async fn renew_places(&self, users: &[UserId]) -> Option<bool> {
        let node = &self.node;
        let (mut round, mut unnumbered, mut claims) = (node.round(), node.round(), Vec::new());
        for held in users.iter().flat_map(|user| node.own.places(user)) {
            if let Some(order) = held.order {
                round.renew(&held.place, order);
            } else {
                unnumbered.claim(&held.place);
                claims.push(held.place);
            }
        }
        let has_vanished = self.write(round.lot).await?.iter().step_by(2).any(is_new);
        let answers = self.write(unnumbered.lot).await?;
        for (place, answer) in claims.into_iter().zip(answers) {
            if let Some((order, _)) = routes::claimed(&place.user, answer) {
                node.own.number(&place, order);
            }
        }
        Some(has_vanished)
    }

    async fn renew_groups(&self, groups: &[ConversationId]) -> Option<bool> {
        let node = &self.node;
        let groups: Vec<ConversationId> =
            groups.iter().filter(|group| node.own.hears(group)).cloned().collect();
        let mut round = node.round();
        for group in &groups {
            round.tune_in(group);
        }
        let answers = self.write(round.lot).await?;
        let written = groups.iter().zip(answers.iter().step_by(2));
        let mut gone = written.filter(|(_, answer)| is_new(answer));
        let has_vanished = gone.any(|(group, _)| node.own.is_registered(group));
        node.own.registered(&groups);
        Some(has_vanished)
    }

    async fn write(&self, lot: Lot) -> Option<Vec<redis::Value>> {
        self.node.breaker.run(lot, self.node.options.call_timeout).await
    }
}

/// Whether Redis says that this was not there.
fn is_new(answer: &redis::Value) -> bool {
    *answer == redis::Value::Int(1)
}

/// Takes everything of this node out of Redis, as far as it can be reached.
pub(crate) async fn clear(node: &Node) {
    let users = node.own.users();
    let places = users.iter().flat_map(|user| node.own.places(user)).map(|held| held.place);
    let mut removals: Vec<Removal> =
        places.map(|place| Removal::place(&node.names, &place.user, place.connection)).collect();
    let groups = node.own.groups();
    let interest = |group| Removal::interest(&node.names, group, node.id());
    removals.extend(groups.iter().map(interest));
    for removals in removals.chunks(LOT) {
        let mut lot = Lot::default();
        for removal in removals {
            removal.add_to(&mut lot);
        }
        node.breaker.run(lot, node.options.call_timeout).await;
    }
    let mut lot = Lot::default();
    lot.ask("DEL", &node.names.node(node.id()));
    node.breaker.run(lot, node.options.call_timeout).await;
}

impl Node {
    /// Commands in this node's name.
    fn round(&self) -> Round<'_> {
        let ttl_ms = u64::try_from(self.options.route_ttl.as_millis()).unwrap_or(u64::MAX);
        Round { names: &self.names, node: self.id(), ttl_ms, lot: Lot::default() }
    }
}
