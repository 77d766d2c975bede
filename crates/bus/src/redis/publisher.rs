//! The task that publishes: it takes all queued events, looks up their routes together, and sends
//! each node one payload. One batch after the other, which keeps the order.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use nexo_chat::event::Event;
use nexo_redis_link::{NodeId, Pipeline};
use redis::{Value, from_redis_value};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::node::BusNode;
use super::payload::encode_event;
use super::publish_queue::{BATCH_EVENTS, weight};
use super::registration_rows::parse_rows;
use super::route_keys::{RouteKey, route_keys};
use super::route_update::RouteRemoval;

const GAP_NOTICE_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct Publisher {
    node: Arc<BusNode>,
    queue: mpsc::Receiver<Event>,
    /// The number of the last payload to each node. Never removed: a node that was taken for dead
    /// by mistake would refuse numbers that start at 1 again.
    numbers: HashMap<NodeId, u64>,
    /// The earliest time of the next gap notice. A notice makes every node read from the store, so
    /// under overload it must not follow every batch.
    next_gap_notice: Instant,
}

/// The indices of the events that each node gets, in their order.
type EventsByNode = BTreeMap<NodeId, Vec<usize>>;

impl Publisher {
    pub(crate) fn new(node: Arc<BusNode>, queue: mpsc::Receiver<Event>) -> Self {
        Self { node, queue, numbers: HashMap::new(), next_gap_notice: Instant::now() }
    }

    /// Runs until it is aborted.
    pub(crate) async fn run(mut self) {
        let node = Arc::clone(&self.node);
        let mut batch = Vec::with_capacity(BATCH_EVENTS);
        loop {
            let must_notify = node.publish_queue.has_unreported_drops() && node.breaker.is_closed();
            let until = must_notify.then_some(self.next_gap_notice);
            node.publish_queue.take(&mut self.queue, &mut batch, until).await;
            self.publish_all(&batch).await;
            node.publish_queue.release(&batch);
            batch.clear();
        }
    }

    /// Publishes a batch in parts of limited size, because other tasks use the connection too.
    async fn publish_all(&mut self, batch: &[Event]) {
        self.send_gap_notices_if_due().await;
        for part in parts(batch, self.node.options.payload_bytes, weight) {
            if self.publish(part).await.is_none() {
                self.node.publish_queue.drop_events(part.len());
            }
        }
    }

    /// Publishes events; nothing if Redis is away.
    async fn publish(&mut self, batch: &[Event]) -> Option<()> {
        let by_node = self.events_by_node(batch).await?;
        self.send(batch, by_node).await
    }

    /// Looks up the routes of all events together.
    async fn events_by_node(&self, batch: &[Event]) -> Option<EventsByNode> {
        let mut index_of: HashMap<RouteKey, usize> = HashMap::new();
        let mut routes_of: Vec<Vec<usize>> = Vec::with_capacity(batch.len());
        for event in batch {
            let mut indices = Vec::new();
            route_keys(event, |route| {
                let next = index_of.len();
                indices.push(*index_of.entry(route).or_insert(next));
            });
            routes_of.push(indices);
        }
        let mut routes: Vec<(RouteKey, usize)> = index_of.into_iter().collect();
        routes.sort_unstable_by_key(|(_, index)| *index);
        let nodes =
            self.nodes_of_routes(routes.into_iter().map(|(route, _)| route).collect()).await?;
        let mut by_node = EventsByNode::new();
        for (event, routes) in routes_of.iter().enumerate() {
            for node in routes.iter().flat_map(|route| &nodes[*route]) {
                let events = by_node.entry(*node).or_default();
                if events.last() != Some(&event) {
                    events.push(event);
                }
            }
        }
        Some(by_node)
    }

    /// The other nodes of each route. Nodes that are not alive are left out, and removed from
    /// Redis.
    async fn nodes_of_routes(&self, routes: Vec<RouteKey>) -> Option<Vec<HashSet<NodeId>>> {
        let node = &self.node;
        let limit = node.options.publish_timeout;
        let mut pipeline = Pipeline::default();
        for route in &routes {
            let command = match route {
                RouteKey::User(_) => "HGETALL",
                RouteKey::Group(_) => "SMEMBERS",
            };
            pipeline.add_key(command, &node.keys.route(route));
        }
        let answers = node.breaker.run(pipeline, limit).await?;
        let found: Vec<Vec<(NodeId, RouteRemoval)>> = routes
            .iter()
            .zip(answers)
            .map(|(route, answer)| self.parse_nodes(route, answer))
            .collect();
        let all = found.iter().flatten().map(|(other, _)| *other).collect();
        let live = node.live_nodes.filter_live(&node.breaker, &node.keys, all, limit).await?;
        let dead = found.iter().flatten().filter(|(other, _)| !live.contains(other));
        dead.for_each(|(_, removal)| node.route_updates.remove(removal.clone()));
        let others = found.into_iter().map(|found| {
            found.into_iter().map(|(other, _)| other).filter(|other| live.contains(other)).collect()
        });
        Some(others.collect())
    }

    /// The other nodes in a reply, each with the command that would remove it.
    fn parse_nodes(&self, route: &RouteKey, answer: Value) -> Vec<(NodeId, RouteRemoval)> {
        let (keys, here) = (&self.node.keys, self.node.id());
        let found: Vec<(NodeId, RouteRemoval)> = match route {
            RouteKey::User(user) => parse_rows(user, answer)
                .into_iter()
                .map(|row| {
                    (row.node, RouteRemoval::registration(keys, user, row.registration.connection))
                })
                .collect(),
            RouteKey::Group(group) => from_redis_value::<Vec<Vec<u8>>>(answer)
                .unwrap_or_default()
                .iter()
                .filter_map(|member| NodeId::parse(member))
                .map(|other| (other, RouteRemoval::subscription(keys, group, other)))
                .collect(),
        };
        found.into_iter().filter(|(other, _)| *other != here).collect()
    }

    /// Sends every node its events.
    async fn send(&mut self, batch: &[Event], by_node: EventsByNode) -> Option<()> {
        let mut encoded: Vec<Option<Vec<u8>>> = vec![None; batch.len()];
        let (mut pipeline, mut sent) = (Pipeline::default(), 0);
        for (to, events) in by_node {
            for &event in &events {
                encoded[event] = encoded[event].take().or_else(|| encode_event(&batch[event]));
            }
            let events: Vec<&[u8]> = events.iter().filter_map(|i| encoded[*i].as_deref()).collect();
            for part in parts(&events, self.node.options.payload_bytes, |event| event.len()) {
                self.add_payload(&mut pipeline, to, 1, part);
            }
            sent += events.len() as u64;
        }
        self.node.breaker.run(pipeline, self.node.options.publish_timeout).await?;
        self.node.meters.published.increment(sent);
        Some(())
    }

    async fn send_gap_notices_if_due(&mut self) {
        let publish_queue = &self.node.publish_queue;
        let is_time = Instant::now() >= self.next_gap_notice && self.node.breaker.is_closed();
        if !is_time || !publish_queue.has_unreported_drops() {
            return;
        }
        publish_queue.clear_unreported_drops();
        self.next_gap_notice = Instant::now() + GAP_NOTICE_INTERVAL;
        if self.send_gap_notices().await.is_none() {
            self.node.publish_queue.drop_events(0); // Try again later.
        }
    }

    /// Events were dropped: sends every node an empty payload and skips a number, so that the
    /// receiver sees a gap.
    async fn send_gap_notices(&mut self) -> Option<()> {
        let node = Arc::clone(&self.node);
        let (limit, pattern) = (node.options.publish_timeout, node.keys.channel_pattern());
        let channels =
            node.breaker.query(limit, async |link| link.pubsub_channels(&pattern).await).await;
        let listening = channels.unwrap_or_default();
        let listening = listening.iter().filter_map(|channel| node.keys.node_of_channel(channel));
        // If Redis does not list the channels, at least the nodes that got payloads before are
        // notified.
        let others: HashSet<NodeId> = listening.chain(self.numbers.keys().copied()).collect();
        let mut pipeline = Pipeline::default();
        for to in others.into_iter().filter(|other| *other != node.id()) {
            self.add_payload(&mut pipeline, to, 2, &[]);
        }
        node.breaker.run(pipeline, limit).await.map(drop)
    }

    fn add_payload(&mut self, pipeline: &mut Pipeline, to: NodeId, step: u64, events: &[&[u8]]) {
        let number = self.numbers.entry(to).or_default();
        *number += step;
        if let Some(payload) = self.node.codec.encode(self.node.id(), to, *number, events) {
            pipeline.add("PUBLISH", &self.node.keys.channel(to), payload);
            if !events.is_empty() {
                #[expect(clippy::cast_precision_loss, reason = "a count, for a histogram")]
                self.node.meters.payload_events.record(events.len() as f64);
            }
        }
    }
}

/// Splits events into parts of about `bytes_max`, each with at least one event.
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
