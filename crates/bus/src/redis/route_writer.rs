//! The one task that writes this node's routes to Redis, so that updates stay in order. It writes
//! all routes again from time to time, because they expire, and when Redis comes back, because it
//! may have lost them.

use std::collections::VecDeque;
use std::sync::Arc;

use nexo_chat::ids::{ConversationId, UserId};
use nexo_redis_link::Pipeline;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::node::BusNode;
use super::registration_rows;
use super::route_refresh::{NONE, REFRESH_AFTER_LOSS};
use super::route_update::{RouteCommands, RouteRemoval, RouteUpdate, UPDATES_MAX, is_success};

/// How many users or groups one pipeline writes. Small, because other tasks use the connection too.
const BATCH: usize = 256;

pub(crate) struct RouteWriter {
    node: Arc<BusNode>,
    updates: mpsc::Receiver<RouteUpdate>,
    /// Removals that wait until Redis is back.
    waiting_removals: VecDeque<RouteRemoval>,
}

impl RouteWriter {
    pub(crate) fn new(node: Arc<BusNode>, updates: mpsc::Receiver<RouteUpdate>) -> Self {
        Self { node, updates, waiting_removals: VecDeque::new() }
    }

    /// Runs until it is aborted.
    pub(crate) async fn run(mut self) {
        let mut tick = interval(self.node.options.refresh);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut updates = Vec::with_capacity(BATCH);
        let node = Arc::clone(&self.node);
        loop {
            tokio::select! {
                _ = self.updates.recv_many(&mut updates, BATCH) => {}
                () = node.route_refresh.wait_requested() => {}
                _ = tick.tick() => node.route_refresh.request(),
            }
            self.write_updates(&mut updates).await;
            self.refresh_if_requested().await;
        }
    }

    /// Writes updates in their order. While Redis is away only removals are kept: the refresh
    /// afterwards writes the rest.
    async fn write_updates(&mut self, updates: &mut Vec<RouteUpdate>) {
        let node = Arc::clone(&self.node);
        let mut commands = node.route_commands();
        let sizes: Vec<usize> = updates.iter().map(|update| commands.add(update)).collect();
        let answers = match self.write_waiting_removals().await {
            Some(()) => self.send(commands.pipeline).await,
            None => None,
        };
        let Some(answers) = answers else { return self.keep_removals(updates) };
        let mut answers = answers.into_iter();
        for (update, size) in updates.drain(..).zip(sizes) {
            let answers: Vec<_> = answers.by_ref().take(size).collect();
            match update {
                RouteUpdate::Register { registration, done } => {
                    let answer = answers.into_iter().next().unwrap_or_default();
                    if let Some((order, before)) =
                        registration_rows::parse_register_reply(&registration.user, answer)
                    {
                        node.local_routes.set_order(&registration, order);
                        drop(done.send(before)); // The caller may be gone.
                    }
                }
                RouteUpdate::SubscribeGroups { groups, done } if answers.iter().all(is_success) => {
                    node.local_routes.mark_groups_written(&groups);
                    done.send(()).unwrap_or_default(); // The caller may be gone too.
                }
                RouteUpdate::SubscribeGroups { .. } | RouteUpdate::Remove(_) => {}
            }
        }
    }

    /// Writes the removals that were kept while Redis was away.
    async fn write_waiting_removals(&mut self) -> Option<()> {
        while !self.waiting_removals.is_empty() {
            let count = self.waiting_removals.len().min(BATCH);
            let mut pipeline = Pipeline::default();
            self.waiting_removals
                .iter()
                .take(count)
                .for_each(|removal| removal.add_to(&mut pipeline));
            self.send(pipeline).await?;
            self.waiting_removals.drain(..count);
        }
        Some(())
    }

    /// Redis is away: drops the updates, which answers their callers, but keeps the removals.
    fn keep_removals(&mut self, updates: &mut Vec<RouteUpdate>) {
        let removals = updates.drain(..).filter_map(|update| match update {
            RouteUpdate::Remove(removal) => Some(removal),
            _ => None,
        });
        self.waiting_removals.extend(removals);
        self.waiting_removals.truncate(UPDATES_MAX);
    }

    /// Writes all routes again, if that is requested and the bus works in both directions. Only
    /// then is the listener told of a loss: what it reads now cannot be overtaken by events it
    /// still misses.
    async fn refresh_if_requested(&mut self) {
        let node = Arc::clone(&self.node);
        if node.breaker.health().is_err() {
            return;
        }
        let level = node.route_refresh.take();
        if level == NONE {
            return;
        }
        let Some(has_vanished) = self.refresh().await else {
            node.route_refresh.put_back(level);
            return;
        };
        node.route_refresh.mark_written();
        if level == REFRESH_AFTER_LOSS || has_vanished {
            node.report_loss();
        }
    }

    /// Returns whether Redis had lost routes that were written before: other nodes did not send
    /// their events here meanwhile.
    async fn refresh(&mut self) -> Option<bool> {
        let (users, groups) = (self.node.local_routes.users(), self.node.local_routes.groups());
        let mut has_vanished = false;
        for users in users.chunks(BATCH) {
            has_vanished |= self.refresh_registrations(users).await?;
            self.write_new_updates().await;
        }
        for groups in groups.chunks(BATCH) {
            has_vanished |= self.refresh_groups(groups).await?;
            self.write_new_updates().await;
        }
        Some(has_vanished)
    }

    /// Writes the updates that came meanwhile, so that they do not wait for the whole refresh.
    async fn write_new_updates(&mut self) {
        let mut updates = Vec::new();
        while let Ok(update) = self.updates.try_recv() {
            updates.push(update);
            if updates.len() == BATCH {
                break;
            }
        }
        self.write_updates(&mut updates).await;
    }

    async fn refresh_registrations(&self, users: &[UserId]) -> Option<bool> {
        let node = &self.node;
        let (mut commands, mut unnumbered, mut claims) =
            (node.route_commands(), node.route_commands(), Vec::new());
        for local in users.iter().flat_map(|user| node.local_routes.registrations(user)) {
            if let Some(order) = local.order {
                commands.renew(&local.registration, order);
            } else {
                unnumbered.register(&local.registration);
                claims.push(local.registration);
            }
        }
        let has_vanished = self.send(commands.pipeline).await?.iter().step_by(2).any(is_new);
        let answers = self.send(unnumbered.pipeline).await?;
        for (registration, answer) in claims.into_iter().zip(answers) {
            if let Some((order, _)) =
                registration_rows::parse_register_reply(&registration.user, answer)
            {
                node.local_routes.set_order(&registration, order);
            }
        }
        Some(has_vanished)
    }

    async fn refresh_groups(&self, groups: &[ConversationId]) -> Option<bool> {
        let node = &self.node;
        let groups: Vec<ConversationId> =
            groups.iter().filter(|group| node.local_routes.is_subscribed(group)).cloned().collect();
        let mut commands = node.route_commands();
        for group in &groups {
            commands.subscribe_group(group);
        }
        let answers = self.send(commands.pipeline).await?;
        let written = groups.iter().zip(answers.iter().step_by(2));
        let mut gone = written.filter(|(_, answer)| is_new(answer));
        let has_vanished = gone.any(|(group, _)| node.local_routes.is_group_written(group));
        node.local_routes.mark_groups_written(&groups);
        Some(has_vanished)
    }

    async fn send(&self, pipeline: Pipeline) -> Option<Vec<redis::Value>> {
        self.node.breaker.run(pipeline, self.node.options.call_timeout).await
    }
}

/// Whether `HSETNX` or `SADD` replied that the value was not there before.
fn is_new(answer: &redis::Value) -> bool {
    *answer == redis::Value::Int(1)
}

/// Removes all routes of this node from Redis, as far as Redis can be reached.
pub(crate) async fn remove_all(node: &BusNode) {
    let users = node.local_routes.users();
    let registrations = users
        .iter()
        .flat_map(|user| node.local_routes.registrations(user))
        .map(|local| local.registration);
    let mut removals: Vec<RouteRemoval> = registrations
        .map(|registration| {
            RouteRemoval::registration(&node.keys, &registration.user, registration.connection)
        })
        .collect();
    let groups = node.local_routes.groups();
    let subscription = |group| RouteRemoval::subscription(&node.keys, group, node.id());
    removals.extend(groups.iter().map(subscription));
    for removals in removals.chunks(BATCH) {
        let mut pipeline = Pipeline::default();
        for removal in removals {
            removal.add_to(&mut pipeline);
        }
        node.breaker.run(pipeline, node.options.call_timeout).await;
    }
    let mut pipeline = Pipeline::default();
    pipeline.add_key("DEL", &node.keys.node(node.id()));
    node.breaker.run(pipeline, node.options.call_timeout).await;
}

impl BusNode {
    fn route_commands(&self) -> RouteCommands<'_> {
        let ttl_ms = u64::try_from(self.options.route_ttl.as_millis()).unwrap_or(u64::MAX);
        RouteCommands { keys: &self.keys, node: self.id(), ttl_ms, pipeline: Pipeline::default() }
    }
}
