//! One phase of load: its plan, what is measured of it, and what the server used meanwhile.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::ledger::Counters;
use crate::measure::{Load, Tally};
use crate::options::{Flow, Span};
pub(crate) use crate::pace::Crew;
use crate::pace::Plan;
use crate::process::Place;
use crate::progress::Progress;

/// A phase that has begun.
pub(crate) struct Stage {
    pub(crate) plan: Arc<Plan>,
    pub(crate) tally: Arc<Tally>,
    rate: Option<u64>,
    beat: JoinHandle<()>,
    watcher: JoinHandle<()>,
    meter: JoinHandle<Option<f64>>,
}

impl Stage {
    /// Begins a phase.
    pub(crate) fn begin(
        name: &str,
        crew: Crew,
        span: &Span,
        flow: &Flow,
        place: &Place,
        progress: Progress,
    ) -> Result<Self> {
        let plan = Arc::new(Plan::begin(crew, span, flow));
        let tally = Arc::new(Tally::new(plan.measured())?);
        let beat = Arc::clone(&plan);
        let beat = tokio::task::spawn_blocking(move || beat.beat());
        let length = span.warmup + span.duration;
        let watcher = watch(Arc::clone(&tally), name.to_owned(), length, progress);
        let meter = meter(place.clone(), span.clone());
        Ok(Self {
            plan,
            tally,
            rate: flow.rate,
            beat,
            watcher: tokio::spawn(watcher),
            meter: tokio::spawn(meter),
        })
    }

    /// Sums up, once all who took part are done.
    pub(crate) async fn end(self, counters: Counters) -> Result<Ended> {
        self.beat.await?;
        self.watcher.abort();
        // Aborted on purpose: it would go on for the rest of its bar.
        drop(self.watcher.await);
        let cpu_seconds = self.meter.await?;
        let tally = Arc::into_inner(self.tally).context("somebody still measures")?;
        Ok(Ended { tally, rate: self.rate, cpu_seconds, counters })
    }
}

/// A phase that is over.
pub(crate) struct Ended {
    tally: Tally,
    rate: Option<u64>,
    cpu_seconds: Option<f64>,
    counters: Counters,
}

impl Ended {
    /// The figures.
    pub(crate) fn close(self) -> Load {
        self.tally.close(self.rate, self.cpu_seconds, self.counters)
    }

    /// Phases that ran at the same time, as one. They shared the server's processor time.
    pub(crate) fn of_all(ended: Vec<Self>) -> Result<Self> {
        let mut ended = ended.into_iter();
        let mut first = ended.next().context("no phase")?;
        for other in ended {
            first.tally.add(other.tally)?;
            first.rate = first.rate.zip(other.rate).map(|(one, two)| one + two);
            first.counters.add(&other.counters);
        }
        Ok(first)
    }
}

/// What the server uses of the processor while it is measured.
async fn meter(place: Place, span: Span) -> Option<f64> {
    sleep(span.warmup).await;
    let before = place.cpu_seconds()?;
    sleep(span.duration).await;
    Some(place.cpu_seconds()? - before)
}

/// Shows how far the phase is and how fast.
async fn watch(tally: Arc<Tally>, name: String, length: Duration, progress: Progress) {
    const STEP: Duration = Duration::from_millis(250);
    let steps = length.as_millis() / STEP.as_millis();
    let bar = progress.timing(&name, u64::try_from(steps).unwrap_or(u64::MAX));
    loop {
        let before = tally.seen();
        sleep(STEP).await;
        let rate = (tally.seen() - before) * 4;
        bar.set_message(format!("{name} {rate} steps/s"));
        bar.inc(1);
    }
}
