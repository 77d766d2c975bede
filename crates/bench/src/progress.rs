//! Progress bars on stderr; a pipe gets none.

use anyhow::Result;
use futures_util::{StreamExt, TryStreamExt, stream};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgressDisplay {
    shown: bool,
}

impl ProgressDisplay {
    /// `shown` is off for `--json`; indicatif itself shows nothing when stderr is no terminal.
    pub(crate) fn new(shown: bool) -> Self {
        Self { shown }
    }

    /// A bar that counts items.
    pub(crate) fn counting(self, what: &str, count: usize) -> ProgressBar {
        self.bar(count as u64, what, "{msg:>28} {wide_bar} {pos}/{len} {eta:>4}")
    }

    /// A bar that counts steps of time.
    pub(crate) fn timing(self, what: &str, steps: u64) -> ProgressBar {
        self.bar(steps, what, "{msg:>28} {wide_bar} {elapsed:>4}")
    }

    fn bar(self, length: u64, what: &str, template: &str) -> ProgressBar {
        if !self.shown {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new(length)
            .with_message(what.to_owned())
            .with_finish(ProgressFinish::AndClear);
        match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            // A plain bar will do.
            Err(_) => bar,
        }
    }
}

/// Runs futures, `at_once` at a time, and returns their results in order.
pub(crate) async fn run_all<T, F>(
    things: impl ExactSizeIterator<Item = F>,
    at_once: usize,
    what: &str,
    progress: ProgressDisplay,
) -> Result<Vec<T>>
where
    F: Future<Output = Result<T>>,
{
    let bar = progress.counting(what, things.len());
    let done =
        stream::iter(things).buffered(at_once).inspect_ok(|_| bar.inc(1)).try_collect().await;
    bar.finish_and_clear();
    done
}
