//! What is done every second: probe the database, renew the node's lease, delete old rows.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::core::Core;
use super::fault::SqlFault;
use super::nodes::{self, NodeLease};

const MAINTAIN_EVERY: Duration = Duration::from_secs(1);
/// Deletes the ids of transactions after an hour: nobody asks for their outcome for so long.
const DELETE_OLD_ACTS: &str =
    "DELETE FROM acts WHERE at < CURRENT_TIMESTAMP - INTERVAL 1 HOUR LIMIT 10000";
/// How often old rows are deleted, in seconds.
const DELETE_EVERY: u64 = 5;

/// Maintains the database until the store is dropped or asks for the end. Then releases the lease
/// and drops the sender, which tells the store that the lease is gone.
pub(super) async fn run(
    core: Arc<Core>,
    lease: NodeLease,
    mut stop: mpsc::Receiver<oneshot::Sender<()>>,
) {
    for second in 0.. {
        if let Ok(asked) = timeout(MAINTAIN_EVERY, stop.recv()).await {
            if let Some(answer) = asked {
                if let Err(error) = lease.release(&core).await {
                    tracing::debug!(target: "nexo::store", %error, "the database does not answer");
                }
                drop(answer);
            }
            return;
        }
        let maintained = maintain(&core, &lease, second).await;
        // Lock conflicts with other nodes that delete the same rows are no trouble.
        let trouble = maintained.err().filter(|fault| matches!(fault, SqlFault::Unreachable(_)));
        core.pool.set_trouble(trouble.as_ref());
    }
}

async fn maintain(core: &Core, lease: &NodeLease, second: u64) -> Result<(), SqlFault> {
    let mut connection = core.pool.acquire().await?;
    if second.is_multiple_of(DELETE_EVERY) {
        connection.run_unprepared(DELETE_OLD_ACTS).await?;
        connection.run_unprepared(nodes::DELETE_EXPIRED).await?;
    }
    if second.is_multiple_of(nodes::RENEW_EVERY) {
        return lease.renew(&mut connection).await;
    }
    connection.run_unprepared("SELECT 1").await
}
