//! What the tasks of one node share.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use nexo_chat::bus::{Listener, Registration};
use nexo_chat::ids::UserId;
use nexo_redis_link::{Addresses, NodeId, Pipeline};
use tokio::sync::oneshot;

use super::breaker::Breaker;
use super::keys::BusKeys;
use super::live_nodes::LiveNodes;
use super::local_routes::{LocalRegistration, LocalRoutes};
use super::meters::Meters;
use super::options::RedisBusOptions;
use super::payload::PayloadCodec;
use super::publish_queue::PublishQueue;
use super::registration_rows::{RegistrationRow, parse_rows};
use super::route_refresh::RouteRefresh;
use super::route_update::{RouteRemoval, RouteUpdateQueue};

pub(crate) struct BusNode {
    pub(crate) options: RedisBusOptions,
    pub(crate) addresses: Addresses,
    pub(crate) keys: BusKeys,
    pub(crate) codec: PayloadCodec,
    pub(crate) breaker: Breaker,
    pub(crate) local_routes: LocalRoutes,
    pub(crate) live_nodes: LiveNodes,
    pub(crate) route_updates: RouteUpdateQueue,
    pub(crate) publish_queue: PublishQueue,
    pub(crate) route_refresh: RouteRefresh,
    pub(crate) listener: OnceLock<Arc<dyn Listener>>,
    pub(crate) meters: Arc<Meters>,
}

impl BusNode {
    pub(crate) fn id(&self) -> NodeId {
        self.options.node()
    }

    /// Tells the listener that events of other nodes may have been lost.
    pub(crate) fn report_loss(&self) {
        self.meters.lost.increment(1);
        tracing::info!(target: "nexo::bus", "events of other nodes may have been missed");
        if let Some(listener) = self.listener.get() {
            listener.on_loss();
        }
    }

    /// The registrations on other nodes that existed before a new one; nothing if Redis is away.
    pub(crate) async fn remote_before(
        &self,
        answer: oneshot::Receiver<Vec<RegistrationRow>>,
    ) -> Option<Vec<RegistrationRow>> {
        // Twice the limit of one command: the route writer waits for Redis itself and notices first
        // if it is away; or its queue is only long.
        let limit = self.options.call_timeout * 2;
        let steps = async { self.keep_live_remote(answer.await.ok()?).await };
        tokio::time::timeout(limit, steps).await.ok().flatten()
    }

    /// A user's registrations on other nodes; nothing if Redis is away.
    pub(crate) async fn remote_registrations(&self, user: &UserId) -> Option<Vec<RegistrationRow>> {
        let limit = self.options.call_timeout;
        let steps = async {
            let mut pipeline = Pipeline::default();
            pipeline.add_key("HGETALL", &self.keys.registrations(user));
            let hash = self.breaker.run(pipeline, limit).await?.pop()?;
            self.keep_live_remote(parse_rows(user, hash)).await
        };
        self.breaker.within(limit, steps).await
    }

    /// Drops the rows of this node, which `local_routes` knows better, and those of dead nodes,
    /// which are also removed from Redis.
    async fn keep_live_remote(&self, rows: Vec<RegistrationRow>) -> Option<Vec<RegistrationRow>> {
        let others: Vec<RegistrationRow> =
            rows.into_iter().filter(|row| row.node != self.id()).collect();
        let nodes: HashSet<NodeId> = others.iter().map(|row| row.node).collect();
        let limit = self.options.call_timeout;
        let live = self.live_nodes.filter_live(&self.breaker, &self.keys, nodes, limit).await?;
        let (found, dead): (Vec<RegistrationRow>, Vec<RegistrationRow>) =
            others.into_iter().partition(|row| live.contains(&row.node));
        for RegistrationRow { registration, .. } in dead {
            self.route_updates.remove(RouteRemoval::registration(
                &self.keys,
                &registration.user,
                registration.connection,
            ));
        }
        Some(found)
    }
}

/// Merges the registrations of this and of other nodes, the oldest first. One that has no order
/// number yet is the newest.
pub(crate) fn merge_registrations(
    here: Vec<LocalRegistration>,
    elsewhere: Vec<RegistrationRow>,
) -> Vec<Registration> {
    let here = here.into_iter().map(|local| (local.order.unwrap_or(u64::MAX), local.registration));
    let elsewhere = elsewhere.into_iter().map(|row| (row.order, row.registration));
    let mut all: Vec<(u64, Registration)> = elsewhere.chain(here).collect();
    all.sort_by_key(|(order, _)| *order);
    all.into_iter().map(|(_, registration)| registration).collect()
}
