//! Options become clients, before anything is connected.

use std::path::Path;

use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::io::tcp::TcpSettings;
use redis::{Client, ConnectionInfo, IntoConnectionInfo, RedisError, TlsCertificates};

use super::options::{BadOptions, RedisOptions};

/// Where commands go.
pub enum Address {
    /// To one server.
    Single(Box<Client>),
    /// To whichever node of the cluster has the key.
    Cluster(Box<ClusterClient>),
}

/// Where to connect.
pub struct Addresses {
    /// For commands.
    pub commands: Address,
    /// For the subscription: a cluster passes what is published on to all its nodes, so any will do.
    pub subscription: Vec<Client>,
}

impl Addresses {
    /// Reads the options.
    pub fn new(options: &RedisOptions) -> Result<Self, BadOptions> {
        let authority = options.ca_file.as_deref().map(authority).transpose()?;
        let hosts = options.urls.iter().enumerate();
        let hosts: Vec<ConnectionInfo> =
            hosts.map(|(i, url)| host(i + 1, url)).collect::<Result<_, _>>()?;
        let subscription: Vec<Client> =
            hosts.iter().map(|host| client(host, authority.as_ref())).collect::<Result<_, _>>()?;
        let first = subscription.first().ok_or(BadOptions::NoUrl)?;
        let commands = if options.is_cluster {
            Address::Cluster(Box::new(cluster(hosts, authority)?))
        } else {
            Address::Single(Box::new(first.clone()))
        };
        Ok(Self { commands, subscription })
    }
}

fn host(number: usize, url: &str) -> Result<ConnectionInfo, BadOptions> {
    let info = url.into_connection_info().map_err(|_| BadOptions::Url { number })?;
    Ok(info.set_tcp_settings(tcp()))
}

/// Commands are small and somebody waits for each of them.
fn tcp() -> TcpSettings {
    TcpSettings::default().set_nodelay(true)
}

fn client(host: &ConnectionInfo, authority: Option<&Vec<u8>>) -> Result<Client, BadOptions> {
    let is_tls = matches!(host.addr(), redis::ConnectionAddr::TcpTls { .. });
    let made = match authority {
        Some(root) if is_tls => Client::build_with_tls(host.clone(), certificates(root.clone())),
        _ => Client::open(host.clone()),
    };
    made.map_err(|e| unusable(&e))
}

fn cluster(
    hosts: Vec<ConnectionInfo>,
    authority: Option<Vec<u8>>,
) -> Result<ClusterClient, BadOptions> {
    // Few tries: whoever waits has little time, and the breaker does the rest.
    let builder = ClusterClientBuilder::new(hosts).tcp_settings(tcp()).retries(3);
    let builder = match authority {
        Some(root) => builder.certs(certificates(root)),
        None => builder,
    };
    builder.build().map_err(|e| unusable(&e))
}

fn certificates(root: Vec<u8>) -> TlsCertificates {
    TlsCertificates { client_tls: None, root_cert: Some(root) }
}

fn authority(file: &Path) -> Result<Vec<u8>, BadOptions> {
    std::fs::read(file)
        .map_err(|e| BadOptions::Authority { file: file.to_owned(), why: e.to_string() })
}

fn unusable(error: &RedisError) -> BadOptions {
    BadOptions::Client(error.to_string())
}

/// Encryption has to be chosen once per process; whoever did it before us knew why.
pub(crate) fn choose_cryptography() {
    let provider = rustls::crypto::ring::default_provider();
    if provider.install_default().is_err() {
        tracing::debug!(target: "nexo::bus", "another cryptography is in place already");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::names::NodeId;

    #[test]
    fn bad_options_say_what_is_wrong_and_no_password() {
        let check = |urls: &[&str], ca_file: Option<&str>, expect: &str| {
            let mut options = RedisOptions::new("", NodeId([0; 16]));
            options.urls = urls.iter().map(|&url| url.to_owned()).collect();
            options.ca_file = ca_file.map(Into::into);
            let told = Addresses::new(&options).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(told.starts_with(expect), "{urls:?}: {told}");
            assert!(!told.contains("s3cret"), "{told}");
        };
        check(&[], None, "no redis url");
        check(&["redis://a", "http://:s3cret@b"], None, "redis url 2 is not");
        check(&["redis://:s3cret@a:b:c"], None, "redis url 1 is not");
        check(&["rediss://a"], Some("nowhere"), "the redis ca file nowhere cannot be used");
        check(&["redis://:s3cret@a"], None, "");
    }
}
