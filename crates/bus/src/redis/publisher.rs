//! The one task that publishes: takes everything that waits, looks up together where it goes, and
//! sends each node one payload. One batch after the other, so that order is kept.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use nexo_chat::command::Event;
use redis::{Value, from_redis_value};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::audience::{topics, weight};
use super::errand::Removal;
use super::link::Lot;
use super::names::{NodeId, Topic};
use super::node::Node;
use super::outgoing::BATCH_EVENTS;
use super::payload::encode;
use super::routes::rows;

const GAPS_APART: Duration = Duration::from_secs(1);

/// The publisher's own state.
pub(crate) struct Publisher {
    node: Arc<Node>,
    queue: mpsc::Receiver<Event>,
    /// The number of the last payload to each node. Never forgotten: a node that was taken for dead
    /// and is not would refuse to begin again.
    numbers: HashMap<NodeId, u64>,
    /// When others may be told again that they missed something: they have work with that, so it
    /// must not be said with every batch of a time that has too many.
    gap_at: Instant,
}

/// Which events of a batch go where, in their order.
type Plan = BTreeMap<NodeId, Vec<usize>>;

impl Publisher {
    pub(crate) fn new(node: Arc<Node>, queue: mpsc::Receiver<Event>) -> Self {
        Self { node, queue, numbers: HashMap::new(), gap_at: Instant::now() }
    }

    /// Works until it is stopped.
    pub(crate) async fn work(mut self) {
        let node = Arc::clone(&self.node);
        let mut batch = Vec::with_capacity(BATCH_EVENTS);
        loop {
            let must_tell = node.outgoing.has_missed() && node.breaker.is_closed();
            let until = must_tell.then_some(self.gap_at);
            node.outgoing.take(&mut self.queue, &mut batch, until).await;
            self.publish_all(&batch).await;
            node.outgoing.done(&batch);
            batch.clear();
        }
    }

    /// Publishes what was taken, not too much at a time: others use the connection too.
    async fn publish_all(&mut self, batch: &[Event]) {
        self.tell_of_gap_if_needed().await;
        for part in parts(batch, self.node.options.payload_bytes, weight) {
            if self.publish(part).await.is_none() {
                self.node.outgoing.drop_events(part.len());
            }
        }
    }

    /// Publishes a batch; nothing if Redis is away.
    async fn publish(&mut self, batch: &[Event]) -> Option<()> {
        let plan = self.plan(batch).await?;
        self.send(batch, plan).await
    }

    /// Looks up in one go where everything goes.
    async fn plan(&self, batch: &[Event]) -> Option<Plan> {
        let mut numbers: HashMap<Topic, usize> = HashMap::new();
        let mut named: Vec<Vec<usize>> = Vec::with_capacity(batch.len());
        for event in batch {
            let mut here = Vec::new();
            topics(event, |topic| {
                let next = numbers.len();
                here.push(*numbers.entry(topic).or_insert(next));
            });
            named.push(here);
        }
        let mut topics: Vec<(Topic, usize)> = numbers.into_iter().collect();
        topics.sort_unstable_by_key(|(_, number)| *number);
        let nodes = self.nodes(topics.into_iter().map(|(topic, _)| topic).collect()).await?;
        let mut plan = Plan::new();
        for (event, topics) in named.iter().enumerate() {
            for node in topics.iter().flat_map(|topic| &nodes[*topic]) {
                let events = plan.entry(*node).or_default();
                if events.last() != Some(&event) {
                    events.push(event);
                }
            }
        }
        Some(plan)
    }

    /// The other nodes of each topic. Those that are not there any more are taken out.
    async fn nodes(&self, topics: Vec<Topic>) -> Option<Vec<HashSet<NodeId>>> {
        let node = &self.node;
        let limit = node.options.publish_timeout;
        let mut lot = Lot::default();
        for topic in &topics {
            let command = match topic {
                Topic::User(_) => "HGETALL",
                Topic::Group(_) => "SMEMBERS",
            };
            lot.ask(command, &node.names.topic(topic));
        }
        let answers = node.breaker.run(lot, limit).await?;
        let found: Vec<Vec<(NodeId, Removal)>> =
            topics.iter().zip(answers).map(|(topic, answer)| self.read(topic, answer)).collect();
        let all = found.iter().flatten().map(|(other, _)| *other).collect();
        let living = node.alive.living(&node.breaker, &node.names, all, limit).await?;
        let dead = found.iter().flatten().filter(|(other, _)| !living.contains(other));
        dead.for_each(|(_, removal)| node.errands.remove(removal.clone()));
        let others = found.into_iter().map(|found| {
            found
                .into_iter()
                .map(|(other, _)| other)
                .filter(|other| living.contains(other))
                .collect()
        });
        Some(others.collect())
    }

    /// The other nodes an answer names, and how each would be taken out.
    fn read(&self, topic: &Topic, answer: Value) -> Vec<(NodeId, Removal)> {
        let (names, here) = (&self.node.names, self.node.id());
        let found: Vec<(NodeId, Removal)> = match topic {
            Topic::User(user) => rows(user, answer)
                .into_iter()
                .map(|row| (row.node, Removal::place(names, user, row.place.connection)))
                .collect(),
            Topic::Group(group) => from_redis_value::<Vec<Vec<u8>>>(answer)
                .unwrap_or_default()
                .iter()
                .filter_map(|member| NodeId::parse(member))
                .map(|other| (other, Removal::interest(names, group, other)))
                .collect(),
        };
        found.into_iter().filter(|(other, _)| *other != here).collect()
    }

    /// Sends every node what it is to hear.
    async fn send(&mut self, batch: &[Event], plan: Plan) -> Option<()> {
        let mut encoded: Vec<Option<Vec<u8>>> = vec![None; batch.len()];
        let (mut lot, mut sent) = (Lot::default(), 0);
        for (to, events) in plan {
            for &event in &events {
                encoded[event] = encoded[event].take().or_else(|| encode(&batch[event]));
            }
            let events: Vec<&[u8]> = events.iter().filter_map(|i| encoded[*i].as_deref()).collect();
            for part in parts(&events, self.node.options.payload_bytes, |event| event.len()) {
                self.add_payload(&mut lot, to, 1, part);
            }
            sent += events.len() as u64;
        }
        self.node.breaker.run(lot, self.node.options.publish_timeout).await?;
        self.node.meters.published.increment(sent);
        Some(())
    }

    async fn tell_of_gap_if_needed(&mut self) {
        let outgoing = &self.node.outgoing;
        let is_time = Instant::now() >= self.gap_at && self.node.breaker.is_closed();
        if !is_time || !outgoing.has_missed() {
            return;
        }
        outgoing.forget_missed();
        self.gap_at = Instant::now() + GAPS_APART;
        if self.tell_of_gap().await.is_none() {
            self.node.outgoing.drop_events(0); // Still to be told.
        }
    }

    /// Something was never sent: every node that listens gets an empty payload whose number shows
    /// that one is missing.
    async fn tell_of_gap(&mut self) -> Option<()> {
        let node = Arc::clone(&self.node);
        let (limit, pattern) = (node.options.publish_timeout, node.names.channels());
        let channels = node.breaker.ask(limit, async |link| link.channels(&pattern).await).await;
        let listening = channels.unwrap_or_default();
        let listening = listening.iter().filter_map(|channel| node.names.channel_of(channel));
        // If nobody may know who listens, those who were told something before have to do.
        let others: HashSet<NodeId> = listening.chain(self.numbers.keys().copied()).collect();
        let mut lot = Lot::default();
        for to in others.into_iter().filter(|other| *other != node.id()) {
            self.add_payload(&mut lot, to, 2, &[]);
        }
        node.breaker.run(lot, limit).await.map(drop)
    }

    fn add_payload(&mut self, lot: &mut Lot, to: NodeId, step: u64, events: &[&[u8]]) {
        let number = self.numbers.entry(to).or_default();
        *number += step;
        if let Some(payload) = self.node.seal.close(self.node.id(), to, *number, events) {
            lot.add("PUBLISH", &self.node.names.channel(to), payload);
            if !events.is_empty() {
                #[expect(clippy::cast_precision_loss, reason = "a count, for a histogram")]
                self.node.meters.payload_events.record(events.len() as f64);
            }
        }
    }
}

/// Cuts events into parts of about so many bytes, each with at least one event.
fn parts<T>(events: &[T], bytes_max: usize, size: impl Fn(&T) -> usize) -> Vec<&[T]> {
    let (mut parts, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (i, event) in events.iter().enumerate() {
        let more = size(event);
        if i > start && bytes + more > bytes_max {
            parts.push(&events[start..i]);
            (start, bytes) = (i, 0);
        }
        bytes += more;
    }
    if start < events.len() {
        parts.push(&events[start..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_cut_by_size_and_nothing_is_left_out() {
        let check = |sizes: &[usize], expect: &[usize]| {
            let parts = parts(sizes, 10, |size| *size);
            let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
            assert_eq!(lengths, expect, "{sizes:?}");
        };
        check(&[], &[]);
        check(&[4, 4, 4], &[2, 1]);
        check(&[50, 50], &[1, 1]);
        check(&[10, 0, 1], &[2, 1]);
    }
}
