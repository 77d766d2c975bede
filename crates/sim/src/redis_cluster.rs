//! A Redis cluster for tests.

use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::port::Port;
use crate::redis::RedisServer;
use crate::service::{poll, program, run};

/// A running cluster of three masters without replicas, each with a third of the slots: its keys are
/// unavailable while a master is down.
pub struct RedisCluster {
    members: Vec<ClusterMember>,
}

struct ClusterMember {
    redis: RedisServer,
    /// The port of the cluster bus. Set explicitly, because the default, 10000 higher, may be taken or not
    /// exist.
    _bus: Port,
}

impl RedisCluster {
    /// Starts a cluster and waits until all slots are served.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a cluster whose members have additional options, such as `--requirepass secret`.
    pub fn start_with(options: &[&str]) -> Self {
        let members = std::iter::repeat_with(|| ClusterMember::start(options)).take(3).collect();
        let cluster = Self { members };
        let addresses = cluster.members.iter().map(|it| format!("127.0.0.1:{}", it.redis.port()));
        run(cluster.client().args(["--cluster", "create"]).args(addresses).arg("--cluster-yes"));
        cluster.wait_until_whole();
        cluster
    }

    /// One cluster for all tests of this process; key prefixes keep them apart.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<RedisCluster> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// The URL of the cluster, for a server's settings.
    pub fn url(&self) -> String {
        let members =
            self.members.iter().map(|member| format!("127.0.0.1:{}", member.redis.port()));
        format!("redis+cluster://{}", members.collect::<Vec<_>>().join(","))
    }

    /// The URLs of the members.
    pub fn urls(&self) -> Vec<String> {
        self.members.iter().map(|member| member.redis.url()).collect()
    }

    pub fn member(&self, which: usize) -> &RedisServer {
        &self.members[which].redis
    }

    /// Runs a command on the member that serves the key; returns the reply, also an error.
    pub fn command(&self, words: &[&str]) -> String {
        let port = self.member(0).port().to_string();
        run(self.client().args(["-c", "-h", "127.0.0.1", "-p", &port]).args(words))
    }

    pub fn flush(&self) {
        self.members.iter().for_each(|member| member.redis.flush());
    }

    pub fn kill(&mut self, which: usize) {
        self.members[which].redis.kill();
    }

    /// Restarts a member and waits until it responds; returns how long that took. The cluster serves its slots
    /// a little later: see [`RedisCluster::wait_until_whole`].
    pub fn start_again(&mut self, which: usize) -> Duration {
        self.members[which].redis.start_again()
    }

    /// Waits until every member reports that all slots are served.
    pub fn wait_until_whole(&self) {
        let is_whole = |member: &ClusterMember| {
            let info = member.redis.command(&["CLUSTER", "INFO"]);
            let reports = |line: &str| info.lines().any(|reported| reported.trim_end() == line);
            reports("cluster_state:ok")
                && reports("cluster_known_nodes:3")
                && reports("cluster_size:3")
        };
        let whole = poll(|| self.members.iter().all(is_whole));
        assert!(
            whole,
            "the cluster is not whole: {}",
            self.member(0).command(&["CLUSTER", "NODES"])
        );
    }

    fn client(&self) -> Command {
        let mut client = program("redis-cli");
        client.envs(self.member(0).password().map(|password| ("REDISCLI_AUTH", password)));
        client
    }
}

impl ClusterMember {
    fn start(options: &[&str]) -> Self {
        let bus = Port::free();
        let number = bus.number().to_string();
        // A short timeout, so that the others notice a lost member before a test times out.
        let mut all = vec!["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
        all.extend(["--cluster-port", &number]);
        all.extend(options);
        Self { redis: RedisServer::start_with(&all), _bus: bus }
    }
}
