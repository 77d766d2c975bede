//! The clients made from the options, before anything is connected.

use std::path::Path;

use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::io::tcp::TcpSettings;
use redis::{Client, ConnectionInfo, IntoConnectionInfo, RedisError, TlsCertificates};

use crate::options::{RedisOptions, RedisOptionsError};

/// Where commands go: to one server, or to the node of the cluster that has the key.
pub enum Address {
    Single(Box<Client>),
    Cluster(Box<ClusterClient>),
}

/// Where to connect.
pub struct Addresses {
    pub commands: Address,
    /// For the subscription. A cluster forwards what is published to all its nodes, so any of them
    /// will do.
    pub subscription: Vec<Client>,
}

impl Addresses {
    /// Checks the options and makes the clients.
    pub fn new(options: &RedisOptions) -> Result<Self, RedisOptionsError> {
        install_crypto_provider();
        options.check_prefix()?;
        let authority = options.ca_file.as_deref().map(authority).transpose()?;
        let hosts = options.urls.iter().enumerate();
        let hosts: Vec<ConnectionInfo> =
            hosts.map(|(i, url)| host(i + 1, url)).collect::<Result<_, _>>()?;
        let subscription: Vec<Client> =
            hosts.iter().map(|host| client(host, authority.as_ref())).collect::<Result<_, _>>()?;
        let first = subscription.first().ok_or(RedisOptionsError::NoUrl)?;
        let commands = if options.is_cluster {
            Address::Cluster(Box::new(cluster(hosts, authority)?))
        } else {
            Address::Single(Box::new(first.clone()))
        };
        Ok(Self { commands, subscription })
    }
}

fn host(number: usize, url: &str) -> Result<ConnectionInfo, RedisOptionsError> {
    let info = url.into_connection_info().map_err(|_| RedisOptionsError::Url { number })?;
    Ok(info.set_tcp_settings(tcp()))
}

/// No Nagle delay: commands are small, and a task waits for each reply.
fn tcp() -> TcpSettings {
    TcpSettings::default().set_nodelay(true)
}

fn client(host: &ConnectionInfo, authority: Option<&Vec<u8>>) -> Result<Client, RedisOptionsError> {
    let is_tls = matches!(host.addr(), redis::ConnectionAddr::TcpTls { .. });
    let client = match authority {
        Some(root) if is_tls => Client::build_with_tls(host.clone(), certificates(root.clone())),
        _ => Client::open(host.clone()),
    };
    client.map_err(|e| client_error(&e))
}

fn cluster(
    hosts: Vec<ConnectionInfo>,
    authority: Option<Vec<u8>>,
) -> Result<ClusterClient, RedisOptionsError> {
    // Few retries: the caller has a short time limit, and the breaker handles longer outages.
    let builder = ClusterClientBuilder::new(hosts).tcp_settings(tcp()).retries(3);
    let builder = match authority {
        Some(root) => builder.certs(certificates(root)),
        None => builder,
    };
    builder.build().map_err(|e| client_error(&e))
}

fn certificates(root: Vec<u8>) -> TlsCertificates {
    TlsCertificates { client_tls: None, root_cert: Some(root) }
}

fn authority(file: &Path) -> Result<Vec<u8>, RedisOptionsError> {
    std::fs::read(file)
        .map_err(|e| RedisOptionsError::Authority { file: file.to_owned(), why: e.to_string() })
}

fn client_error(error: &RedisError) -> RedisOptionsError {
    RedisOptionsError::Client(error.to_string())
}

/// Installs the TLS crypto provider. rustls has one per process; if one is installed already, it
/// stays.
fn install_crypto_provider() {
    let provider = rustls::crypto::ring::default_provider();
    if provider.install_default().is_err() {
        tracing::debug!(target: "nexo::bus", "a crypto provider is installed already");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_id::NodeId;

    #[test]
    fn bad_options_say_what_is_wrong_and_no_password() {
        let check = |urls: &[&str], ca_file: Option<&str>, expect: &str| {
            let mut options = RedisOptions::new("", NodeId([0; 16]));
            options.urls = urls.iter().map(|&url| url.to_owned()).collect();
            options.ca_file = ca_file.map(Into::into);
            let error = Addresses::new(&options).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(error.starts_with(expect), "{urls:?}: {error}");
            assert!(!error.contains("s3cret"), "{error}");
        };
        check(&[], None, "no redis url");
        check(&["redis://a", "http://:s3cret@b"], None, "redis url 2 is not");
        check(&["redis://:s3cret@a:b:c"], None, "redis url 1 is not");
        check(&["rediss://a"], Some("nowhere"), "the redis ca file nowhere cannot be used");
        check(&["redis://:s3cret@a"], None, "");
    }
}
