//! Looks after one shard for as long as this node is the one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::log::{Depth, Lost, Tenure};
use crate::meters::Meters;
use crate::two_phase::Shared;
use crate::{deliver, save};

/// How long a shard is left alone after it was lost.
const PAUSE: Duration = Duration::from_millis(100);

/// Looks after a shard whatever happens: a defect that one message finds must not leave all others
/// unsaved.
pub(crate) async fn for_good(shared: Arc<Shared>, number: usize) {
    loop {
        if let Err(error) = tokio::spawn(tend(Arc::clone(&shared), number)).await {
            tracing::error!(target: "nexo::intake", shard = number, %error, "a worker has ended");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Works until it is stopped.
async fn tend(shared: Arc<Shared>, number: usize) {
    loop {
        let tenure = shared.log.tend(number).await;
        tracing::info!(target: "nexo::intake", shard = number, "looking after accepted messages");
        let Lost(why) = work(&shared, &*tenure, number).await;
        tracing::info!(target: "nexo::intake", shard = number, why, "not looking after them any more");
        tokio::time::sleep(PAUSE).await;
    }
}

async fn work(shared: &Shared, tenure: &dyn Tenure, number: usize) -> Lost {
    let before = AtomicU64::new(0);
    let tell = |depth: Depth| {
        Meters::depth(number, depth);
        let before = before.swap(depth.pending, Ordering::Relaxed);
        shared.pending.fetch_add(depth.pending.wrapping_sub(before), Ordering::Relaxed);
    };
    let shows = shared.options.deliver_before_saved;
    let lost = tokio::select! {
        lost = tenure.keep(&tell) => lost,
        lost = save::save(shared, tenure) => lost,
        lost = deliver::deliver(shared, tenure), if shows => lost,
    };
    tell(Depth::default());
    lost
}
