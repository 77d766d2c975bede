//! What the tasks of one node share.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use nexo_chat::bus::{Listener, Place};
use nexo_chat::ids::UserId;
use tokio::sync::oneshot;

use super::address::Addresses;
use super::alive::Alive;
use super::breaker::Breaker;
use super::clerk::Renewal;
use super::errand::{Errands, Removal};
use super::link::Lot;
use super::meters::Meters;
use super::names::{Names, NodeId};
use super::options::RedisOptions;
use super::outgoing::Outgoing;
use super::own::{Held, Own};
use super::payload::Seal;
use super::routes::{Row, rows};

/// One node's side of the bus.
pub(crate) struct Node {
    pub(crate) options: RedisOptions,
    pub(crate) addresses: Addresses,
    pub(crate) names: Names,
    pub(crate) seal: Seal,
    pub(crate) breaker: Breaker,
    pub(crate) own: Own,
    pub(crate) alive: Alive,
    pub(crate) errands: Errands,
    pub(crate) outgoing: Outgoing,
    pub(crate) renewal: Renewal,
    pub(crate) listener: OnceLock<Arc<dyn Listener>>,
    pub(crate) meters: Arc<Meters>,
}

impl Node {
    pub(crate) fn id(&self) -> NodeId {
        self.options.node
    }

    /// Tells those here that events may have been missed.
    pub(crate) fn lost(&self) {
        self.meters.lost.increment(1);
        tracing::info!(target: "nexo::bus", "events of other nodes may have been missed");
        if let Some(listener) = self.listener.get() {
            listener.lost();
        }
    }

    /// The rows before a claim that are on other nodes; nothing if Redis is away.
    pub(crate) async fn claimed(&self, answer: oneshot::Receiver<Vec<Row>>) -> Option<Vec<Row>> {
        // Whoever writes to Redis notices first if that does not answer; it may also only be busy
        // here.
        let limit = self.options.call_timeout * 2;
        let steps = async { self.only_living(answer.await.ok()?).await };
        tokio::time::timeout(limit, steps).await.ok().flatten()
    }

    /// A user's rows on other nodes; nothing if Redis is away.
    pub(crate) async fn elsewhere(&self, user: &UserId) -> Option<Vec<Row>> {
        let limit = self.options.call_timeout;
        let steps = async {
            let mut lot = Lot::default();
            lot.ask("HGETALL", &self.names.places(user));
            let hash = self.breaker.run(lot, limit).await?.pop()?;
            self.only_living(rows(user, hash)).await
        };
        self.breaker.within(limit, steps).await
    }

    /// Leaves out what is here, which is known better here, and takes out what is nowhere.
    async fn only_living(&self, rows: Vec<Row>) -> Option<Vec<Row>> {
        let others: Vec<Row> = rows.into_iter().filter(|row| row.node != self.id()).collect();
        let nodes: HashSet<NodeId> = others.iter().map(|row| row.node).collect();
        let limit = self.options.call_timeout;
        let living = self.alive.living(&self.breaker, &self.names, nodes, limit).await?;
        let (there, dead): (Vec<Row>, Vec<Row>) =
            others.into_iter().partition(|row| living.contains(&row.node));
        for Row { place, .. } in dead {
            self.errands.remove(Removal::place(&self.names, &place.user, place.connection));
        }
        Some(there)
    }
}

/// Puts the places here and elsewhere into one order, the oldest first. What has no number yet has
/// only just come.
pub(crate) fn merge(here: Vec<Held>, elsewhere: Vec<Row>) -> Vec<Place> {
    let here = here.into_iter().map(|held| (held.order.unwrap_or(u64::MAX), held.place));
    let elsewhere = elsewhere.into_iter().map(|row| (row.order, row.place));
    let mut all: Vec<(u64, Place)> = elsewhere.chain(here).collect();
    all.sort_by_key(|(order, _)| *order);
    all.into_iter().map(|(_, place)| place).collect()
}
