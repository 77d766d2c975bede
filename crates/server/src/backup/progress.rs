//! Shows how far copying is.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use nexo_backup::Transfer;

const SHOW_EVERY: Duration = Duration::from_millis(200);

/// Shows a bar while the work runs; a pipe gets none.
pub(crate) async fn with_progress<T>(work: impl Future<Output = T>, transfer: &Transfer) -> T {
    let bar = bar();
    tokio::pin!(work);
    let done = loop {
        tokio::select! {
            done = &mut work => break done,
            () = tokio::time::sleep(SHOW_EVERY) => show(&bar, transfer.done(), transfer.total()),
        }
    };
    bar.finish_and_clear();
    done
}

pub(crate) fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    match ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta:>4}")
    {
        Ok(style) => bar.with_style(style),
        Err(_) => bar, // a plain bar will do
    }
}

pub(crate) fn show(bar: &ProgressBar, done: u64, total: u64) {
    bar.set_length(total);
    bar.set_position(done);
}

/// A size for people.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}
