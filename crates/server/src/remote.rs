//! Requests to a running server, with an API key.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use reqwest::{Body, Method};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::Config;

/// How long a server may take for one request. Deleting a user with all their messages takes long.
const ANSWER_WITHIN: Duration = Duration::from_mins(10);

#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    code: i64,
    message: String,
    #[serde(default)]
    data: Value,
}

/// A server and the key to ask it with.
pub(crate) struct RemoteServer {
    client: reqwest::Client,
    pub(crate) url: String,
    key: String,
}

impl RemoteServer {
    /// The server at `url`, or the one that listens where the settings say; with `key`, or the token in the
    /// data folder.
    pub(crate) fn new(
        config: &Config,
        url: Option<&str>,
        key: Option<&str>,
    ) -> anyhow::Result<Self> {
        let url = match url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => local_url(&config.listen)?,
        };
        let key = match (key, config.system.token.as_str()) {
            (Some(key), _) => key.to_owned(),
            (None, "") => {
                let path = Path::new(&config.data).join("system.token");
                let read = std::fs::read_to_string(&path);
                read.with_context(|| format!("cannot read {}", path.display()))?.trim().to_owned()
            }
            (None, token) => token.to_owned(),
        };
        Self::at(url, key)
    }

    pub(crate) fn at(url: String, key: String) -> anyhow::Result<Self> {
        // The server's part of the program may have installed it.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = reqwest::Client::builder().timeout(ANSWER_WITHIN).build()?;
        Ok(Self { client, url, key })
    }

    /// The data of the answer to a request.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Body>,
    ) -> anyhow::Result<T> {
        let url = format!("{}{path}", self.url);
        let mut request = self.client.request(method, &url).bearer_auth(&self.key);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let answer = request.send().await.with_context(|| {
            format!("cannot reach the server at {}: give --server if it is elsewhere", self.url)
        })?;
        let status = answer.status();
        let body = answer.bytes().await?;
        let envelope: Envelope = serde_json::from_slice(&body)
            .with_context(|| format!("{url} answered {status}, and is no Nexo"))?;
        if !status.is_success() || envelope.code != 0 {
            bail!("the server refused: {}", envelope.message);
        }
        Ok(serde_json::from_value(envelope.data)?)
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
