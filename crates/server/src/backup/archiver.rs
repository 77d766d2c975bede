//! Copies the log to the target of the backups, again and again.

use std::time::Duration;

use metrics::counter;
use nexo_backup::{BackupError, LogArchive, Repository, Transfer, history_id};
use nexo_store::embedded::LogPin;
use tokio::runtime::Runtime;

use super::service::{Shared, until_stopped};
use crate::clock::SystemRng;

/// While the target is away the log is kept, but not more segments than this (about 1 GiB).
const SEGMENTS_MAX: usize = 64;

pub(super) struct ArchivePlan {
    pub(super) every: Duration,
    /// Keeps the log from the start of the server on.
    pub(super) pin: LogPin,
}

/// Runs until the server stops.
pub(super) fn run(shared: &Shared, runtime: &Runtime, archive: ArchivePlan) {
    let ArchivePlan { every, pin } = archive;
    let (mut archive, mut pin) = (None, Some(pin));
    while !shared.is_stopping() {
        let copied = runtime.block_on(until_stopped(shared, copy(shared, &mut archive, &mut pin)));
        match copied {
            Ok(false) => {}
            Ok(true) => {
                tracing::warn!(target: "nexo::backup", "entries between the archived log and the \
                    log of today are missing: a new backup is made");
                shared.request();
            }
            Err(BackupError::Stopped) => return,
            Err(error) => {
                counter!("nexo_backup_failures_total", "kind" => "log").increment(1);
                tracing::error!(target: "nexo::backup", %error, "the log is not archived");
                if shared.store.log_segments() > SEGMENTS_MAX {
                    tracing::warn!(target: "nexo::backup", "the log is let go: until the next \
                        backup, a restore cannot reach what is not archived");
                    pin = None;
                    if let Some(archive) = &mut archive {
                        archive.keep(None);
                    }
                }
            }
        }
        let pause = async {
            tokio::time::sleep(every).await;
            Ok(())
        };
        if runtime.block_on(until_stopped(shared, pause)).is_err() {
            return;
        }
    }
}

/// Copies what is new. Returns whether entries are missing before it.
async fn copy(
    shared: &Shared,
    archive: &mut Option<LogArchive>,
    pin: &mut Option<LogPin>,
) -> Result<bool, BackupError> {
    let plan = &shared.plan;
    let archive = match archive {
        Some(archive) => archive,
        None => {
            let repository = Repository::create(&plan.target, &plan.s3).await?;
            let history = history_id(&plan.data, &SystemRng)?;
            let opened = LogArchive::open(repository, history).await?;
            let opened = archive.insert(opened);
            opened.keep(pin.take());
            opened
        }
    };
    archive.run(&shared.store, &Transfer::new(plan.mib_per_second)).await
}
