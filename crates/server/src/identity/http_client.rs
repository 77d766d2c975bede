//! Requests to identity providers: short, bounded, and only to the addresses of the settings.

use std::time::Duration;

use anyhow::bail;
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, StatusCode, header};

use crate::process_metrics::VERSION;

/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// A client that follows no redirects: they could lead into the operator's own network.
pub(crate) fn client() -> anyhow::Result<Client> {
    // Another part of the program may have installed it.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = Client::builder()
        .user_agent(format!("nexo/{VERSION}"))
        .redirect(Policy::none())
        .connect_timeout(CONNECT_WITHIN)
        .timeout(ANSWER_WITHIN)
        .build()?;
    Ok(client)
}

/// The status and the body of an answer in JSON.
pub(crate) async fn ask(request: RequestBuilder) -> anyhow::Result<(StatusCode, Vec<u8>)> {
    // Errors of this library repeat the address, which may have a password in it.
    let without_url = reqwest::Error::without_url;
    let request = request.header(header::ACCEPT, "application/json");
    let mut answer = request.send().await.map_err(without_url)?;
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(without_url)? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            bail!("the answer has more than {ANSWER_BYTES_MAX} bytes");
        }
        body.extend_from_slice(&chunk);
    }
    Ok((answer.status(), body))
}

/// The body of a document.
pub(crate) async fn get(client: &Client, url: &str) -> anyhow::Result<Vec<u8>> {
    let (status, body) = ask(client.get(url)).await?;
    if status != StatusCode::OK {
        bail!("the answer was {status}");
    }
    Ok(body)
}
