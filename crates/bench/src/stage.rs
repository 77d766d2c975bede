//! One phase of load: its schedule, its samples, and the server's processor time.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::endpoint::Endpoint;
use crate::ledger::Counters;
use crate::measure::{Load, Recorder};
use crate::options::{Flow, Span};
use crate::progress::ProgressDisplay;
pub(crate) use crate::schedule::Participants;
use crate::schedule::Schedule;

/// A running phase.
pub(crate) struct Stage {
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) recorder: Arc<Recorder>,
    rate: Option<u64>,
    timer: JoinHandle<()>,
    watcher: JoinHandle<()>,
    meter: JoinHandle<Option<f64>>,
}

impl Stage {
    pub(crate) fn begin(
        name: &str,
        participants: Participants,
        span: &Span,
        flow: &Flow,
        endpoint: &Endpoint,
        progress: ProgressDisplay,
    ) -> Result<Self> {
        let schedule = Arc::new(Schedule::begin(participants, span, flow));
        let recorder = Arc::new(Recorder::new(schedule.measured())?);
        let timer = Arc::clone(&schedule);
        let timer = tokio::task::spawn_blocking(move || timer.run_timer());
        let length = span.warmup + span.duration;
        let watcher = watch(Arc::clone(&recorder), name.to_owned(), length, progress);
        let meter = meter(endpoint.clone(), span.clone());
        Ok(Self {
            schedule,
            recorder,
            rate: flow.rate,
            timer,
            watcher: tokio::spawn(watcher),
            meter: tokio::spawn(meter),
        })
    }

    /// Ends the phase, once all its tasks are done.
    pub(crate) async fn end(self, counters: Counters) -> Result<EndedStage> {
        self.timer.await?;
        self.watcher.abort();
        // The task was aborted: it would run to the end of its bar.
        drop(self.watcher.await);
        let cpu_seconds = self.meter.await?;
        let recorder = Arc::into_inner(self.recorder).context("a task still records samples")?;
        Ok(EndedStage { recorder, rate: self.rate, cpu_seconds, counters })
    }
}

/// A phase that is over.
pub(crate) struct EndedStage {
    recorder: Recorder,
    rate: Option<u64>,
    cpu_seconds: Option<f64>,
    counters: Counters,
}

impl EndedStage {
    pub(crate) fn close(self) -> Load {
        self.recorder.close(self.rate, self.cpu_seconds, self.counters)
    }

    /// Merges phases that ran at the same time and shared the server's processor time.
    pub(crate) fn of_all(ended: Vec<Self>) -> Result<Self> {
        let mut ended = ended.into_iter();
        let mut first = ended.next().context("no phase")?;
        for other in ended {
            first.recorder.add(other.recorder)?;
            first.rate = first.rate.zip(other.rate).map(|(one, two)| one + two);
            first.counters.add(&other.counters);
        }
        Ok(first)
    }
}

/// The server's processor time during the measured part.
async fn meter(endpoint: Endpoint, span: Span) -> Option<f64> {
    sleep(span.warmup).await;
    let before = endpoint.cpu_seconds()?;
    sleep(span.duration).await;
    Some(endpoint.cpu_seconds()? - before)
}

/// Shows the progress and the rate of the phase.
async fn watch(recorder: Arc<Recorder>, name: String, length: Duration, progress: ProgressDisplay) {
    const STEP: Duration = Duration::from_millis(250);
    let steps = length.as_millis() / STEP.as_millis();
    let bar = progress.timing(&name, u64::try_from(steps).unwrap_or(u64::MAX));
    loop {
        let before = recorder.seen();
        sleep(STEP).await;
        let rate = (recorder.seen() - before) * 4;
        bar.set_message(format!("{name} {rate} steps/s"));
        bar.inc(1);
    }
}
