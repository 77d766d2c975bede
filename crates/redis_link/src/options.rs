//! Where Redis is, and what this node calls itself there.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use redis::{ConnectionAddr, IntoConnectionInfo};

use crate::address::Addresses;
use crate::node_id::NodeId;

/// How to reach Redis, and the prefix of the keys there.
#[derive(Clone)]
pub struct RedisOptions {
    /// One server, or some nodes of a cluster: `redis://` or `rediss://`, with user, password and
    /// database where there are any.
    pub urls: Vec<String>,
    pub is_cluster: bool,
    /// The certificate authority that `rediss://` trusts, instead of those of the system.
    pub ca_file: Option<PathBuf>,
    /// Every key and channel begins with it, so that several systems can share one Redis.
    pub prefix: String,
    /// This node's id, drawn anew at every start.
    pub node: NodeId,
    pub connect_timeout: Duration,
}

/// Why options cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RedisOptionsError {
    #[error("no redis url is given")]
    NoUrl,
    /// The URL is named by its number, from one, and not repeated: it may hold a password.
    #[error("redis url {number} is not of the form redis://[user:password@]host[:port][/database]")]
    Url { number: usize },
    #[error("the redis prefix may only have letters, digits, '.', '-', '_' and ':'")]
    Prefix,
    #[error("the redis ca file {file} cannot be used: {why}")]
    Authority { file: PathBuf, why: String },
    #[error("no redis client can be made: {0}")]
    Client(String),
}

impl RedisOptions {
    /// The usual options for the Redis at a URL: `redis://…` and `rediss://…` are one server,
    /// `redis+cluster://user:password@a:7000,b:7000` and `rediss+cluster://…` nodes of a cluster.
    pub fn new(url: &str, node: NodeId) -> Self {
        let (urls, is_cluster) = split_url(url);
        Self {
            urls,
            is_cluster,
            ca_file: None,
            prefix: "nexo".into(),
            node,
            connect_timeout: Duration::from_secs(2),
        }
    }

    /// Returns what is wrong with them, as far as that shows without connecting.
    pub fn check(&self) -> Result<(), RedisOptionsError> {
        Addresses::new(self).map(drop)
    }

    /// The hosts whose connections are not encrypted.
    pub fn plain_text_hosts(&self) -> Vec<String> {
        let hosts = self.urls.iter().filter_map(|url| url.as_str().into_connection_info().ok());
        let plain = hosts.filter_map(|host| match host.addr() {
            ConnectionAddr::Tcp(host, _) => Some(host.clone()),
            _ => None,
        });
        plain.collect()
    }

    /// Refuses a prefix that has a special meaning in keys (`{}`) or in patterns (`*`).
    pub(crate) fn check_prefix(&self) -> Result<(), RedisOptionsError> {
        let is_safe = |b: u8| b.is_ascii_alphanumeric() || b".-_:".contains(&b);
        let fits = !self.prefix.is_empty() && self.prefix.bytes().all(is_safe);
        if fits { Ok(()) } else { Err(RedisOptionsError::Prefix) }
    }
}

/// Splits the one setting into URLs: its credentials apply to every host of the list.
fn split_url(url: &str) -> (Vec<String>, bool) {
    let Some((scheme, rest)) = url.split_once("+cluster://") else {
        return (vec![url.to_owned()], false);
    };
    let (credentials, hosts) = match rest.rsplit_once('@') {
        Some((credentials, hosts)) => (format!("{credentials}@"), hosts),
        None => (String::new(), rest),
    };
    let hosts = hosts.trim_end_matches('/').split(',');
    (hosts.map(|host| format!("{scheme}://{credentials}{host}")).collect(), true)
}

/// Shows where Redis is, without the password.
impl fmt::Display for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<&str> = self.urls.iter().map(|url| without_credentials(url)).collect();
        f.write_str(if self.is_cluster { "redis cluster at " } else { "redis at " })?;
        f.write_str(&hosts.join(", "))
    }
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Host, port and database. The query is cut off too, since it could hold a password.
fn without_credentials(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    rest.split_once('?').map_or(rest, |(host, _)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_setting_names_a_server_or_a_cluster() {
        let check = |url: &str, urls: &[&str], is_cluster, shown: &str| {
            let options = RedisOptions::new(url, NodeId([7; 16]));
            assert_eq!(options.urls, urls);
            assert_eq!(options.is_cluster, is_cluster, "{url}");
            assert_eq!(options.to_string(), shown);
            assert_eq!(format!("{options:?}"), shown);
        };
        check("redis://a:1/2", &["redis://a:1/2"], false, "redis at a:1/2");
        check("rediss://:s3cret@a", &["rediss://:s3cret@a"], false, "redis at a");
        check("redis://a?password=s3cret", &["redis://a?password=s3cret"], false, "redis at a");
        check(
            "redis+cluster://u:s3cret@a:1,b:2/",
            &["redis://u:s3cret@a:1", "redis://u:s3cret@b:2"],
            true,
            "redis cluster at a:1, b:2",
        );
        check("rediss+cluster://a", &["rediss://a"], true, "redis cluster at a");
    }

    #[test]
    fn a_connection_is_plain_without_tls_or_a_socket() {
        for (url, expect) in [
            ("redis://:s3cret@r:6379/0", &["r"][..]),
            ("rediss://:s3cret@r", &[]),
            ("redis+unix:///run/redis.sock", &[]),
            ("redis+cluster://a:1,b:2", &["a", "b"]),
            ("rediss+cluster://a:1,b:2", &[]),
        ] {
            let options = RedisOptions::new(url, NodeId([7; 16]));
            assert_eq!(options.plain_text_hosts(), expect, "{url}");
        }
    }

    #[test]
    fn the_prefix_is_safe_in_keys_and_patterns() {
        let check = |prefix: &str| {
            let options = RedisOptions::new("redis://a", NodeId([7; 16]));
            RedisOptions { prefix: prefix.to_owned(), ..options }.check()
        };
        assert_eq!(check("a.b"), Ok(()));
        for bad in ["", "a*", "a{b}", "a b"] {
            assert_eq!(check(bad), Err(RedisOptionsError::Prefix), "{bad}");
        }
    }
}
