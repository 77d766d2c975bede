//! Two-phase acknowledgement put together.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use nexo_chat::Chat;
use nexo_chat::intake::Intake;
use nexo_intake::log::Log;
use nexo_intake::{Local, RedisLog, RedisLogOptions, TwoPhase};

use crate::two_phase_settings::TwoPhase as Settings;
use crate::wiring::Shared;

/// How long the start waits for Redis, to learn what it holds.
const PATIENCE: Duration = Duration::from_secs(3);

/// What accepts messages, and what is left of earlier ones.
pub(crate) struct Early {
    two_phase: Arc<TwoPhase>,
    log: Option<Arc<RedisLog>>,
    /// Whether what is in the log has to be saved before anything else is.
    drains: bool,
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
            return Ok(two_phase.map(|two_phase| Self { two_phase, log: None, drains: false }));
        };
        let options = RedisLogOptions {
            redis,
            accepts: settings.enabled,
            shards: settings.shards,
            shard_max: settings.shard_max(),
            lease: Duration::from_millis(settings.lease_ms),
        };
        let log = RedisLog::connect(options, key).context("cannot use redis")?;
        let recorded = if log.reached(PATIENCE).await { log.recorded().await.ok() } else { None };
        if recorded == Some(None) && !settings.enabled {
            log.leave().await;
            return Ok(None);
        }
        if recorded.is_none() {
            tracing::warn!("redis is away: what was accepted before is saved when it is back");
        }
        let recorded = recorded.flatten();
        log.look_after(recorded.unwrap_or_default());
        let is_changed = !settings.enabled || recorded != Some(settings.shards);
        let drains = recorded.is_some() && is_changed;
        Ok(Some(Self {
            two_phase: build(Arc::clone(&log) as Arc<dyn Log>),
            log: Some(log),
            drains,
        }))
    }

    /// Who takes messages in.
    pub(crate) fn intake(&self) -> Arc<dyn Intake> {
        Arc::clone(&self.two_phase) as Arc<dyn Intake>
    }

    /// Starts the workers. When messages are not accepted any more, or in another number of shards,
    /// those that were are saved first.
    pub(crate) async fn start(self) -> anyhow::Result<Arc<TwoPhase>> {
        self.two_phase.start().context("the workers of two-phase acknowledgement do not start")?;
        if let (Some(log), true) = (&self.log, self.drains) {
            if let Err(error) = log.drained().await {
                tracing::warn!(%error, "not everything that was accepted before is saved yet");
            }
            if let Err(error) = log.record().await {
                tracing::debug!(%error, "the number of shards is not noted yet");
            }
        }
        Ok(self.two_phase)
    }
}
