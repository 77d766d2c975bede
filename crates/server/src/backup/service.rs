//! Makes backups while the server runs: on the schedule of the settings, or when asked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context;
use metrics::{counter, gauge};
use nexo_backup::{BackupError, Keep, Manifest, Repository, Transfer, create, history_id, prune};
use nexo_chat::clock::Clock;
use nexo_gateway::Backups;
use nexo_store::Embedded;
use nexo_wire::http::admin::backup::BackupStatus;
use tokio::sync::Notify;

use super::archiver::{self, ArchivePlan};
use super::{BackupPlan, backup_options};
use crate::clock::{SystemClock, SystemRng};
use crate::config::Config;

/// How long a failed backup of the schedule waits at first; then twice as long each time, up to the
/// time between two backups.
const RETRY_AFTER: Duration = Duration::from_mins(1);
/// The niceness of the threads that copy.
const NICENESS: i32 = 10;

/// The part of the server that makes backups. Its threads have a low priority.
pub(crate) struct BackupService {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What the threads and the callers share.
pub(super) struct Shared {
    pub(super) plan: BackupPlan,
    pub(super) store: Arc<Embedded>,
    state: Mutex<State>,
    wake: Condvar,
    pub(super) is_stopping: AtomicBool,
    /// Wakes whatever the threads wait for.
    pub(super) stopped: Notify,
    clock: SystemClock,
}

#[derive(Default)]
struct State {
    status: BackupStatus,
    is_wanted: bool,
    /// Of the backup that is being made, or of the last one.
    transfer: Arc<Transfer>,
    due: Option<Instant>,
    failures: u32,
}

impl BackupService {
    /// Starts it, if the settings have a target.
    pub(crate) fn start(
        config: &Config,
        store: Option<Arc<Embedded>>,
    ) -> anyhow::Result<Option<Arc<Self>>> {
        let (Some(store), Some(plan)) = (store, BackupPlan::new(config)?) else { return Ok(None) };
        // Before there are two threads that need it.
        history_id(&plan.data, &SystemRng)?;
        let settings = &config.backup;
        let every = seconds(settings.every_seconds);
        let archive = seconds(settings.archive_log_seconds)
            .map(|every| ArchivePlan { every, pin: store.pin_log() });
        let keep = settings.keep();
        let shared = Arc::new(Shared {
            plan,
            store,
            state: Mutex::default(),
            wake: Condvar::new(),
            is_stopping: AtomicBool::new(false),
            stopped: Notify::new(),
            clock: SystemClock::new(),
        });
        shared.state().status.target = shared.plan.target.to_string();
        let mut threads = Vec::new();
        let (maker, has_archive) = (Arc::clone(&shared), archive.is_some());
        threads.push(spawn("nexo-backup", move |runtime| {
            run(&maker, runtime, every, keep, has_archive);
        })?);
        if let Some(archive) = archive {
            let archiver = Arc::clone(&shared);
            threads.push(spawn("nexo-log-copy", move |runtime| {
                archiver::run(&archiver, runtime, archive);
            })?);
        }
        Ok(Some(Arc::new(Self { shared, threads: Mutex::new(threads) })))
    }

    /// Ends a backup that is being made; the next one goes on where it was.
    pub(crate) async fn stop(&self) {
        {
            let state = self.shared.state();
            self.shared.is_stopping.store(true, Ordering::SeqCst);
            state.transfer.stop();
        }
        self.shared.wake.notify_all();
        // Each thread waits for one permit at most; one that does not wait yet looks at the flag.
        self.shared.stopped.notify_waiters();
        let threads: Vec<_> =
            self.threads.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect();
        let joined =
            tokio::task::spawn_blocking(|| threads.into_iter().all(|thread| thread.join().is_ok()));
        if !joined.await.unwrap_or(false) {
            tracing::error!(target: "nexo::backup", "a thread of the backups panicked");
        }
    }
}

impl Backups for BackupService {
    fn start(&self) -> Result<BackupStatus, String> {
        self.shared.request();
        Ok(self.status())
    }

    fn status(&self) -> BackupStatus {
        let state = self.shared.state();
        let (status, transfer) = (state.status.clone(), &state.transfer);
        BackupStatus {
            done_bytes: transfer.done(),
            total_bytes: transfer.total(),
            written_bytes: transfer.written(),
            ..status
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    /// Begins a backup, unless one is being made.
    pub(super) fn request(&self) {
        let mut state = self.state();
        if !state.status.running {
            state.begin(self.plan.mib_per_second);
            self.wake.notify_all();
        }
    }

    /// Waits until a backup is wanted or due; `None` when the server stops.
    fn next(&self) -> Option<Arc<Transfer>> {
        let mut state = self.state();
        loop {
            if self.is_stopping() {
                return None;
            }
            let left = state.due.map(|due| due.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) && !state.is_wanted {
                state.begin(self.plan.mib_per_second);
            }
            if std::mem::take(&mut state.is_wanted) {
                state.due = None;
                return Some(Arc::clone(&state.transfer));
            }
            let wait = left.unwrap_or(Duration::from_hours(1));
            let woken = self.wake.wait_timeout(state, wait);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Plans the next backup.
    fn plan_next(&self, after: Option<Duration>) {
        let mut state = self.state();
        state.due = after.map(|after| Instant::now() + after);
        state.status.next_time = after.map_or(0, |after| {
            self.clock.now().0.saturating_add(u64::try_from(after.as_millis()).unwrap_or(u64::MAX))
        });
    }

    fn finish(&self, made: Result<Manifest, BackupError>, every: Option<Duration>, took: Duration) {
        let failures = {
            let mut state = self.state();
            state.status.running = false;
            match made {
                Ok(manifest) => {
                    state.failures = 0;
                    state.found(&manifest);
                    gauge!("nexo_backup_duration_seconds").set(took.as_secs_f64());
                    #[allow(clippy::cast_precision_loss, reason = "a size needs no more digits")]
                    gauge!("nexo_backup_written_bytes").set(manifest.written_bytes as f64);
                    let (id, bytes, written) =
                        (manifest.id, manifest.bytes, manifest.written_bytes);
                    tracing::info!(target: "nexo::backup", id, bytes, written, ?took, "backup made");
                }
                Err(error @ BackupError::Stopped) => {
                    state.status.error = error.to_string();
                    tracing::info!(target: "nexo::backup", "the backup ends with the server");
                }
                Err(error) => {
                    state.failures += 1;
                    state.status.error = error.to_string();
                    counter!("nexo_backup_failures_total", "kind" => "backup").increment(1);
                    tracing::error!(target: "nexo::backup", %error, "no backup was made");
                }
            }
            state.failures
        };
        let retry = RETRY_AFTER.saturating_mul(1 << failures.clamp(1, 16).saturating_sub(1));
        self.plan_next(every.map(|every| if failures == 0 { every } else { every.min(retry) }));
    }
}

impl State {
    fn begin(&mut self, mib_per_second: u64) {
        self.is_wanted = true;
        self.transfer = Arc::new(Transfer::new(mib_per_second));
        self.status.run += 1;
        self.status.running = true;
        self.status.error.clear();
    }

    fn found(&mut self, manifest: &Manifest) {
        self.status.backup_id.clone_from(&manifest.id);
        self.status.backup_time = manifest.taken_ms;
        let at = Duration::from_millis(manifest.taken_ms).as_secs_f64();
        gauge!("nexo_backup_last_success_timestamp_seconds").set(at);
    }
}

fn run(
    shared: &Shared,
    runtime: &tokio::runtime::Runtime,
    every: Option<Duration>,
    keep: Keep,
    has_archive: bool,
) {
    if every.is_some() || has_archive {
        let newest = runtime.block_on(until_stopped(shared, newest_backup(shared)));
        match newest {
            Ok(Some(manifest)) => {
                let age = shared.clock.now().0.saturating_sub(manifest.taken_ms);
                shared.state().found(&manifest);
                shared.plan_next(every.map(|it| it.saturating_sub(Duration::from_millis(age))));
            }
            // An archived log is worth nothing without a backup to begin from.
            Ok(None) => shared.plan_next(Some(Duration::ZERO)),
            Err(error) => {
                tracing::warn!(target: "nexo::backup", %error, "cannot look for earlier backups");
                shared.plan_next(Some(every.unwrap_or(RETRY_AFTER).min(RETRY_AFTER)));
            }
        }
    }
    while let Some(transfer) = shared.next() {
        let began = Instant::now();
        let made = runtime.block_on(until_stopped(shared, make(shared, &transfer, keep)));
        shared.finish(made, every, began.elapsed());
    }
}

/// Returns the newest backup of this data folder.
async fn newest_backup(shared: &Shared) -> Result<Option<Manifest>, BackupError> {
    let plan = &shared.plan;
    let repository = Repository::create(&plan.target, &plan.s3).await?;
    let history = history_id(&plan.data, &SystemRng)?;
    let backups = repository.backups().await?.backups;
    Ok(backups.into_iter().rfind(|manifest| manifest.history == history))
}

async fn make(shared: &Shared, transfer: &Transfer, keep: Keep) -> Result<Manifest, BackupError> {
    let plan = &shared.plan;
    let repository = Repository::create(&plan.target, &plan.s3).await?;
    let made = create(&repository, &shared.store, &backup_options(plan), transfer).await?;
    if !made.damaged.is_empty() {
        counter!("nexo_backup_failures_total", "kind" => "damage").increment(1);
        let tables = made.damaged.join(", ");
        tracing::error!(target: "nexo::backup", tables, "files of the data folder are damaged: no \
            older backup is deleted, since one may have them whole");
        return Ok(made);
    }
    let now = shared.clock.now().0;
    if let Err(error) = prune(&repository, keep, now, None).await {
        counter!("nexo_backup_failures_total", "kind" => "prune").increment(1);
        tracing::warn!(target: "nexo::backup", %error, "old backups are not deleted");
    }
    Ok(made)
}

/// Runs until the work is done or the server stops.
pub(super) async fn until_stopped<T>(
    shared: &Shared,
    work: impl Future<Output = Result<T, BackupError>>,
) -> Result<T, BackupError> {
    let stopped = shared.stopped.notified();
    tokio::pin!(stopped);
    // Registered before the flag is looked at, so that no stop is missed.
    stopped.as_mut().enable();
    if shared.is_stopping() {
        return Err(BackupError::Stopped);
    }
    tokio::select! {
        done = work => done,
        () = stopped => Err(BackupError::Stopped),
    }
}

/// Starts a thread of low priority with a runtime of its own; the threads of that inherit it.
fn spawn(
    name: &str,
    work: impl FnOnce(&tokio::runtime::Runtime) + Send + 'static,
) -> anyhow::Result<JoinHandle<()>> {
    let body = move || {
        if let Err(error) = rustix::process::nice(NICENESS) {
            tracing::debug!(target: "nexo::backup", %error, "no lower priority");
        }
        match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => work(&runtime),
            Err(error) => tracing::error!(target: "nexo::backup", %error, "no backups are made"),
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(body).context("cannot start a thread")
}

fn seconds(seconds: u64) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds))
}
