//! `/admin/backup`: how backups of a running server are doing.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How backups of this server are doing.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct BackupStatus {
    /// Where they go; empty if they are not set up.
    pub target: String,
    /// Counts the backups that were begun since the server started.
    pub run: u64,
    /// Whether the last of them is still being made.
    pub running: bool,
    /// Bytes it has handled, and those of all its files.
    pub done_bytes: u64,
    pub total_bytes: u64,
    /// Bytes that it had to write: no earlier backup had them.
    pub written_bytes: u64,
    /// Why the last one failed; empty if it did not.
    pub error: String,
    /// The newest complete backup that this process made or found; empty if there is none.
    pub backup_id: String,
    /// The moment whose data it has, in milliseconds.
    pub backup_time: u64,
    /// When the next one is due, in milliseconds; 0 if none is planned.
    pub next_time: u64,
}
