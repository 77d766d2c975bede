//! Serves one shard while this node holds its lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::context::TwoPhaseContext;
use crate::log::{LeaseLost, ShardDepth, ShardLease};
use crate::meters::Meters;
use crate::{deliver, save};

/// The pause after a lost lease before the next attempt.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves a shard and restarts after a panic: a bug that one message triggers must not keep all
/// others from being saved.
pub(crate) async fn run(context: Arc<TwoPhaseContext>, shard: usize) {
    loop {
        if let Err(error) = tokio::spawn(serve_shard(Arc::clone(&context), shard)).await {
            tracing::error!(target: "nexo::two_phase", shard, %error, "a worker has panicked");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Serves a shard under one lease after the other.
async fn serve_shard(context: Arc<TwoPhaseContext>, shard: usize) {
    loop {
        let lease = context.log.acquire_lease(shard).await;
        tracing::info!(target: "nexo::two_phase", shard, "this node has the lease of the shard");
        let LeaseLost(why) = work_until_lost(&context, &*lease, shard).await;
        tracing::info!(target: "nexo::two_phase", shard, why, "the lease of the shard is lost");
        tokio::time::sleep(PAUSE).await;
    }
}

async fn work_until_lost(
    context: &TwoPhaseContext,
    lease: &dyn ShardLease,
    shard: usize,
) -> LeaseLost {
    let before = AtomicU64::new(0);
    let report = |depth: ShardDepth| {
        Meters::set_depth(shard, depth);
        let before = before.swap(depth.pending, Ordering::Relaxed);
        context.pending.fetch_add(depth.pending.wrapping_sub(before), Ordering::Relaxed);
    };
    let previews = context.options.deliver_before_saved;
    let lost = tokio::select! {
        lost = lease.renew_until_lost(&report) => lost,
        lost = save::save(context, lease) => lost,
        lost = deliver::deliver(context, lease), if previews => lost,
    };
    report(ShardDepth::default());
    lost
}
