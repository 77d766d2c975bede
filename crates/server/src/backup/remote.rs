//! Asks a running server for a backup, with the operator's token.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use nexo_wire::http::admin::BackupStatus;
use serde::Deserialize;

use super::BackupPlan;
use super::progress::{bar, show, size};
use crate::config::Config;
use crate::copy::print_line;

const POLL_EVERY: Duration = Duration::from_millis(300);
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
struct Envelope {
    message: String,
    data: Option<BackupStatus>,
}

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
    let server = Server::new(config, server)?;
    let begun = server.ask(true).await?;
    let bar = bar();
    let status = loop {
        let status = server.ask(false).await?;
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

struct Server {
    client: reqwest::Client,
    url: String,
    token: String,
}

impl Server {
    fn new(config: &Config, url: Option<&str>) -> anyhow::Result<Self> {
        // The server's part of the program may have installed it.
        drop(rustls::crypto::ring::default_provider().install_default());
        let url = match url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => local_url(&config.listen)?,
        };
        let token = match config.system.token.as_str() {
            "" => {
                let path = Path::new(&config.data).join("system.token");
                let read = std::fs::read_to_string(&path);
                read.with_context(|| format!("cannot read {}", path.display()))?.trim().to_owned()
            }
            token => token.to_owned(),
        };
        let client = reqwest::Client::builder().timeout(ANSWER_WITHIN).build()?;
        Ok(Self { client, url, token })
    }

    /// Begins a backup, or looks how it is doing.
    async fn ask(&self, begin: bool) -> anyhow::Result<BackupStatus> {
        let url = format!("{}/admin/backup", self.url);
        let request = if begin { self.client.post(&url) } else { self.client.get(&url) };
        let answer = request.bearer_auth(&self.token).send().await.with_context(|| {
            format!("cannot reach the server at {}: give --server if it is elsewhere", self.url)
        })?;
        let status = answer.status();
        let body = answer.bytes().await?;
        let envelope: Envelope = serde_json::from_slice(&body)
            .with_context(|| format!("{url} answered {status}, and is no Nexo"))?;
        match envelope.data {
            Some(data) if status.is_success() => Ok(data),
            _ => bail!("the server refused: {}", envelope.message),
        }
    }
}

/// The address to reach a server that listens here.
fn local_url(listen: &str) -> anyhow::Result<String> {
    let mut address: SocketAddr = listen.parse().context("listen")?;
    if address.ip().is_unspecified() {
        address.set_ip([127, 0, 0, 1].into());
    }
    if address.port() == 0 {
        bail!("the server listens on a port of its choice: give its address with --server");
    }
    Ok(format!("http://{address}"))
}
