//! Starts two-phase acknowledgement: opens the log of accepted messages, and saves what an earlier run
//! left in it before new messages are accepted.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use nexo_chat::Chat;
use nexo_chat::two_phase::TwoPhase;
use nexo_two_phase::log::{AcceptedLog, LogUnavailable};
use nexo_two_phase::{Coordinator, LocalLog, RedisLog, RedisLogOptions};
use tokio::time::timeout;

use crate::config::{SHARDS_MAX, TwoPhaseSettings};
use crate::wiring::RedisAccess;

/// How long startup waits for Redis, to learn what the log holds.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long startup waits for the backlog of an earlier run to be saved.
const DRAIN: Duration = Duration::from_mins(1);

/// The coordinator, not started yet, and the backlog to save first.
pub(crate) struct TwoPhaseStartup {
    coordinator: Arc<Coordinator>,
    backlog: Option<Backlog>,
}

/// What an earlier run left in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EarlierRun {
    /// Redis has not answered yet.
    Unknown,
    /// The log was never used.
    Nothing,
    /// The log was used with this many shards.
    Shards(usize),
}

impl EarlierRun {
    async fn of(log: &RedisLog) -> Result<Self, LogUnavailable> {
        Ok(log.recorded_shards(SHARDS_MAX).await?.map_or(Self::Nothing, Self::Shards))
    }
}

/// Messages that an earlier run accepted and may not have saved.
struct Backlog {
    log: Arc<RedisLog>,
    earlier: EarlierRun,
    enabled: bool,
    shards: usize,
}

impl TwoPhaseStartup {
    /// Opens the log if two-phase acknowledgement is enabled, or if an earlier run with it enabled left a
    /// log in Redis, whose messages still have to be saved.
    pub(crate) async fn open(
        settings: &TwoPhaseSettings,
        access: Option<RedisAccess>,
        chat: &Chat,
    ) -> anyhow::Result<Option<Self>> {
        let build = |log: Arc<dyn AcceptedLog>| {
            let (store, bus) = (Arc::clone(&chat.store), Arc::clone(&chat.bus));
            let (clock, instance) = (Arc::clone(&chat.clock), Arc::clone(&chat.instance));
            Coordinator::new(log, store, bus, clock, settings.options(), instance)
        };
        let Some(RedisAccess { options: bus, key }) = access else {
            let log = || LocalLog::new(settings.shards, settings.shard_max());
            let coordinator = settings.enabled.then(|| build(log()));
            return Ok(coordinator.map(|coordinator| Self { coordinator, backlog: None }));
        };
        let options = RedisLogOptions {
            redis: bus.redis,
            accepts: settings.enabled,
            shards: settings.shards,
            shard_max: settings.shard_max(),
            lease: Duration::from_millis(settings.lease_ms),
        };
        let log = RedisLog::connect(options, key).context("cannot use redis")?;
        let reached = log.wait_reachable(PATIENCE).await;
        let earlier = if reached { EarlierRun::of(&log).await.ok() } else { None };
        let earlier = earlier.unwrap_or(EarlierRun::Unknown);
        match earlier {
            EarlierRun::Nothing if !settings.enabled => {
                log.leave().await;
                return Ok(None);
            }
            EarlierRun::Nothing => log.set_leasable_shards(settings.shards),
            EarlierRun::Shards(shards) => {
                log.raise_shards(shards);
                log.set_leasable_shards(shards.max(settings.shards));
            }
            // The number of shards is not known yet: prepare for the most there can be.
            EarlierRun::Unknown => log.raise_shards(SHARDS_MAX),
        }
        let coordinator = build(Arc::clone(&log) as Arc<dyn AcceptedLog>);
        let backlog = Backlog { log, earlier, enabled: settings.enabled, shards: settings.shards };
        Ok(Some(Self { coordinator, backlog: Some(backlog) }))
    }

    /// The coordinator as the domain sees it.
    pub(crate) fn contract(&self) -> Arc<dyn TwoPhase> {
        Arc::clone(&self.coordinator) as Arc<dyn TwoPhase>
    }

    /// Starts the workers. If two-phase acknowledgement was turned off, or the number of shards changed,
    /// waits until the backlog is saved. If that takes long, or Redis does not answer, the workers save
    /// the rest later, and the log takes no new messages before.
    pub(crate) async fn start(self) -> anyhow::Result<Arc<Coordinator>> {
        self.coordinator
            .start()
            .context("cannot start the workers of two-phase acknowledgement")?;
        if let Some(backlog) = self.backlog {
            // Do not wait for a Redis that does not answer.
            let is_known = backlog.earlier != EarlierRun::Unknown;
            let limit = if is_known { DRAIN } else { Duration::ZERO };
            let mut clearing = tokio::spawn(backlog.clear());
            if timeout(limit, &mut clearing).await.is_err() {
                tracing::warn!("messages that an earlier run accepted, if any, are saved later");
            }
        }
        Ok(self.coordinator)
    }
}

impl Backlog {
    /// Waits until the backlog is saved, then lets the log take new messages.
    async fn clear(self) {
        while let Err(error) = self.try_clear().await {
            tracing::debug!(%error, "cannot look for messages of an earlier run yet");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn try_clear(&self) -> Result<(), LogUnavailable> {
        self.log.wait_reachable(Duration::MAX).await;
        let earlier = match self.earlier {
            EarlierRun::Unknown => EarlierRun::of(&self.log).await?,
            earlier => earlier,
        };
        let recorded = if let EarlierRun::Shards(shards) = earlier { shards } else { 0 };
        self.log.set_leasable_shards(if self.enabled {
            recorded.max(self.shards)
        } else {
            recorded
        });
        if let EarlierRun::Shards(shards) = earlier
            && !(self.enabled && shards == self.shards)
        {
            self.log.wait_drained().await?;
        }
        self.log.start_accepting().await
    }
}
