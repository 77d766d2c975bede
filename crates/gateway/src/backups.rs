//! What the gateway needs from the part of the server that makes backups.

use nexo_wire::http::admin::backup::BackupStatus;

/// Makes backups of this server.
pub trait Backups: Send + Sync {
    /// Begins a backup to the target of the settings, unless one is being made already. Returns how
    /// it is doing, or a sentence that says why there are no backups here.
    fn start(&self) -> Result<BackupStatus, String>;

    /// Returns how the last backup is doing.
    fn status(&self) -> BackupStatus;
}
