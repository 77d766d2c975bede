//! Asks a running server for a backup.

use std::time::Duration;

use anyhow::bail;
use nexo_wire::http::admin::backup::BackupStatus;
use reqwest::Method;

use super::BackupPlan;
use super::progress::{bar, show, size};
use crate::config::Config;
use crate::copy::print_line;
use crate::remote::RemoteServer;

const POLL_EVERY: Duration = Duration::from_millis(300);
const PATH: &str = "/admin/backup";

/// Has the server make a backup and waits for it.
pub(super) async fn create(
    config: &Config,
    plan: &BackupPlan,
    server: Option<&str>,
) -> anyhow::Result<()> {
    let target = &config.backup.target;
    if target.is_empty() || plan.target != nexo_backup::Target::parse(target)? {
        bail!(
            "a server is using {}, and it writes only to the backup.target of its settings: set it \
             to {} there, or stop the server",
            plan.data.display(),
            plan.target
        );
    }
    if plan.with_secrets && !config.backup.with_secrets {
        bail!("a running server decides by its settings: set backup.with_secrets there");
    }
    let server = RemoteServer::new(config, server, None)?;
    let begun: BackupStatus = server.ask(Method::POST, PATH, None).await?;
    let bar = bar();
    let status = loop {
        let status: BackupStatus = server.ask(Method::GET, PATH, None).await?;
        if !status.running || status.run != begun.run {
            break status;
        }
        show(&bar, status.done_bytes, status.total_bytes);
        tokio::time::sleep(POLL_EVERY).await;
    };
    bar.finish_and_clear();
    if !status.error.is_empty() {
        bail!("the server made no backup: {}", status.error);
    }
    print_line(&format!(
        "Backup {} is in {}: {}, of which {} were new. It was read back.",
        status.backup_id,
        status.target,
        size(status.total_bytes),
        size(status.written_bytes),
    ))
}
