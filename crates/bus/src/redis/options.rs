//! Where Redis is, and how patient we are with it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::address::{Addresses, choose_cryptography};
use super::names::{Names, NodeId};

/// How to reach Redis and what to call things there.
#[derive(Clone)]
pub struct RedisOptions {
    /// One server, or some nodes of a cluster: `redis://` or `rediss://`, with user, password and
    /// database where there are any.
    pub urls: Vec<String>,
    /// Whether they are a Redis Cluster.
    pub is_cluster: bool,
    /// Whom `rediss://` trusts, instead of whom the system trusts.
    pub ca_file: Option<PathBuf>,
    /// What every key and channel begins with, so that several systems can share a Redis.
    pub prefix: String,
    /// This node's name, drawn anew at every start.
    pub node: NodeId,
    /// A node that did not say so for this long is not there any more.
    pub node_ttl: Duration,
    /// How often it says so. Three times in a row unheard, the subscription counts as dead.
    pub heartbeat: Duration,
    /// How long places and interests live without being written again.
    pub route_ttl: Duration,
    /// How often they are written again.
    pub refresh: Duration,
    /// How long publishing waits for an answer.
    pub publish_timeout: Duration,
    /// How long anybody else waits for an answer, once: after that Redis counts as away.
    pub call_timeout: Duration,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How many events may wait to be published.
    pub queue_events: usize,
    /// How many bytes of them.
    pub queue_bytes: usize,
    /// About how large one payload may be. A larger event travels alone.
    pub payload_bytes: usize,
}

/// Why options are of no use.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadOptions {
    /// Nothing to connect to.
    #[error("no redis url is given")]
    NoUrl,
    /// Not a URL of Redis. It is not repeated, since it may hold a password.
    #[error("redis url {number} is not of the form redis://[user:password@]host[:port][/database]")]
    Url {
        /// Which of them, from one.
        number: usize,
    },
    /// A word that would not be safe in keys.
    #[error("the redis prefix may only have letters, digits, '.', '-', '_' and ':'")]
    Prefix,
    /// The file with the authority cannot be used.
    #[error("the redis ca file {file} cannot be used: {why}")]
    Authority {
        /// Which file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The client cannot be made.
    #[error("no redis client can be made: {0}")]
    Client(String),
}

impl RedisOptions {
    /// The usual patience with the Redis at a URL: `redis://…` and `rediss://…` are one server,
    /// `redis+cluster://user:password@a:7000,b:7000` and `rediss+cluster://…` nodes of a cluster.
    pub fn new(url: &str, node: NodeId) -> Self {
        let (urls, is_cluster) = read(url);
        Self {
            urls,
            is_cluster,
            ca_file: None,
            prefix: "nexo".into(),
            node,
            node_ttl: Duration::from_secs(10),
            heartbeat: Duration::from_secs(3),
            route_ttl: Duration::from_mins(1),
            refresh: Duration::from_secs(20),
            publish_timeout: Duration::from_millis(500),
            call_timeout: Duration::from_millis(250),
            connect_timeout: Duration::from_secs(2),
            queue_events: 65_536,
            queue_bytes: 64 << 20,
            payload_bytes: 1 << 20,
        }
    }

    /// Why they are of no use, as far as that shows without a Redis.
    pub fn check(&self) -> Result<(), BadOptions> {
        choose_cryptography();
        Names::new(&self.prefix).ok_or(BadOptions::Prefix)?;
        Addresses::new(self).map(drop)
    }
}

/// Takes the one setting apart: the credentials stand for every host of the list.
fn read(url: &str) -> (Vec<String>, bool) {
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

/// Where it is, without anybody's password.
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

/// Host, port and database: a query could hold a password too.
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
        let check = |url: &str, urls: &[&str], is_cluster, told: &str| {
            let options = RedisOptions::new(url, NodeId([7; 16]));
            assert_eq!(options.urls, urls);
            assert_eq!(options.is_cluster, is_cluster, "{url}");
            assert_eq!(options.to_string(), told);
            assert_eq!(format!("{options:?}"), told);
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
}
