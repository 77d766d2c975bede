//! Two-phase acknowledgement put together.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use nexo_chat::Chat;
use nexo_chat::intake::Intake;
use nexo_intake::log::{Away, Log};
use nexo_intake::{Local, RedisLog, RedisLogOptions, TwoPhase};
use tokio::time::timeout;

use crate::two_phase_settings::{SHARDS_MAX, TwoPhase as Settings};
use crate::wiring::Shared;

/// How long the start waits for Redis, to learn what it holds.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long it waits until what was accepted before is saved.
const DRAIN: Duration = Duration::from_mins(1);

/// What accepts messages, and what is left of earlier ones.
pub(crate) struct Early {
    two_phase: Arc<TwoPhase>,
    ahead: Option<Ahead>,
}

/// What an earlier run left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// That is not known yet.
    Unknown,
    /// Nothing was ever accepted.
    Nothing,
    /// So many shards.
    Shards(usize),
}

impl Before {
    async fn of(log: &RedisLog) -> Result<Self, Away> {
        Ok(log.recorded(SHARDS_MAX).await?.map_or(Self::Nothing, Self::Shards))
    }
}

/// What comes before anything new is accepted.
struct Ahead {
    log: Arc<RedisLog>,
    before: Before,
    enabled: bool,
    shards: usize,
}

impl Early {
    /// Accepts messages, if that is wanted; else looks after what was accepted when it was.
    pub(crate) async fn open(
        settings: &Settings,
        shared: Option<Shared>,
        chat: &Chat,
    ) -> anyhow::Result<Option<Self>> {
        let build = |log: Arc<dyn Log>| {
            let (store, bus) = (Arc::clone(&chat.store), Arc::clone(&chat.bus));
            TwoPhase::new(log, store, bus, Arc::clone(&chat.clock), settings.options())
        };
        let Some((redis, key)) = shared else {
            let log = || Local::new(settings.shards, settings.shard_max());
            let two_phase = settings.enabled.then(|| build(log()));
            return Ok(two_phase.map(|two_phase| Self { two_phase, ahead: None }));
        };
        let options = RedisLogOptions {
            redis,
            accepts: settings.enabled,
            shards: settings.shards,
            shard_max: settings.shard_max(),
            lease: Duration::from_millis(settings.lease_ms),
        };
        let log = RedisLog::connect(options, key).context("cannot use redis")?;
        let reached = log.reached(PATIENCE).await;
        let before = if reached { Before::of(&log).await.ok() } else { None };
        let before = before.unwrap_or(Before::Unknown);
        match before {
            Before::Nothing if !settings.enabled => {
                log.leave().await;
                return Ok(None);
            }
            Before::Nothing => log.tend_to(settings.shards),
            Before::Shards(shards) => {
                log.look_after(shards);
                log.tend_to(shards.max(settings.shards));
            }
            // As many as there can be, once it is known how many there are.
            Before::Unknown => log.look_after(SHARDS_MAX),
        }
        let two_phase = build(Arc::clone(&log) as Arc<dyn Log>);
        let ahead = Ahead { log, before, enabled: settings.enabled, shards: settings.shards };
        Ok(Some(Self { two_phase, ahead: Some(ahead) }))
    }

    /// Who takes messages in.
    pub(crate) fn intake(&self) -> Arc<dyn Intake> {
        Arc::clone(&self.two_phase) as Arc<dyn Intake>
    }

    /// Starts the workers. When messages are not accepted any more, or in another number of shards,
    /// those that were are saved first; if that takes long, or Redis is away, the rest is saved later,
    /// and nothing is put into the log before.
    pub(crate) async fn start(self) -> anyhow::Result<Arc<TwoPhase>> {
        self.two_phase.start().context("the workers of two-phase acknowledgement do not start")?;
        if let Some(ahead) = self.ahead {
            // Nobody waits for a Redis that is away.
            let limit = if ahead.before == Before::Unknown { Duration::ZERO } else { DRAIN };
            let mut ahead = tokio::spawn(ahead.clear());
            if timeout(limit, &mut ahead).await.is_err() {
                tracing::warn!("what was accepted before, if anything, is saved later");
            }
        }
        Ok(self.two_phase)
    }
}

impl Ahead {
    /// Lets what an earlier run accepted be saved before anything new is.
    async fn clear(self) {
        while let Err(error) = self.try_clear().await {
            tracing::debug!(%error, "what was accepted before cannot be looked for yet");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn try_clear(&self) -> Result<(), Away> {
        self.log.reached(Duration::MAX).await;
        let before = match self.before {
            Before::Unknown => Before::of(&self.log).await?,
            before => before,
        };
        let recorded = if let Before::Shards(shards) = before { shards } else { 0 };
        self.log.tend_to(if self.enabled { recorded.max(self.shards) } else { recorded });
        if let Before::Shards(shards) = before
            && !(self.enabled && shards == self.shards)
        {
            self.log.drained().await?;
        }
        self.log.begin().await
    }
}
