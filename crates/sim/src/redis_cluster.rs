//! Three Redis that share what they hold.

use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::port::Port;
use crate::redis::Redis;
use crate::service::{poll, program, run};

/// A running cluster of three masters, each with a third of the slots and without a replica: what
/// one of them holds is away while it is down.
pub struct RedisCluster {
    members: Vec<Member>,
}

struct Member {
    redis: Redis,
    /// Where the members talk to each other. Said explicitly, because the usual one, 10000 higher,
    /// may be taken or not exist.
    _bus: Port,
}

impl RedisCluster {
    /// Starts a cluster and waits until it is whole.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts one whose members have further options, such as `--requirepass secret`.
    pub fn start_with(options: &[&str]) -> Self {
        let members = std::iter::repeat_with(|| Member::start(options)).take(3).collect();
        let cluster = Self { members };
        let addresses = cluster.members.iter().map(|it| format!("127.0.0.1:{}", it.redis.port()));
        run(cluster.client().args(["--cluster", "create"]).args(addresses).arg("--cluster-yes"));
        cluster.wait_until_whole();
        cluster
    }

    /// One for all tests of this process: they keep apart by the prefix of their keys.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<RedisCluster> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// Where all of it is, as a server is told.
    pub fn url(&self) -> String {
        let members =
            self.members.iter().map(|member| format!("127.0.0.1:{}", member.redis.port()));
        format!("redis+cluster://{}", members.collect::<Vec<_>>().join(","))
    }

    /// Where the members are.
    pub fn urls(&self) -> Vec<String> {
        self.members.iter().map(|member| member.redis.url()).collect()
    }

    /// One of the members, to ask it alone.
    pub fn member(&self, which: usize) -> &Redis {
        &self.members[which].redis
    }

    /// Gives a command to whichever member is responsible; returns the answer, also a refusal.
    pub fn command(&self, words: &[&str]) -> String {
        let port = self.member(0).port().to_string();
        run(self.client().args(["-c", "-h", "127.0.0.1", "-p", &port]).args(words))
    }

    /// Removes everything the members hold.
    pub fn flush(&self) {
        self.members.iter().for_each(|member| member.redis.flush());
    }

    /// Kills a member at once.
    pub fn kill(&mut self, which: usize) {
        self.members[which].redis.kill();
    }

    /// Starts a member again and waits until it answers; returns how long that took. The cluster
    /// takes it back a little later: see [`RedisCluster::wait_until_whole`].
    pub fn start_again(&mut self, which: usize) -> Duration {
        self.members[which].redis.start_again()
    }

    /// Waits until every member finds that all slots are served.
    pub fn wait_until_whole(&self) {
        let is_whole = |member: &Member| {
            let info = member.redis.command(&["CLUSTER", "INFO"]);
            let says = |line: &str| info.lines().any(|said| said.trim_end() == line);
            says("cluster_state:ok") && says("cluster_known_nodes:3") && says("cluster_size:3")
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

impl Member {
    fn start(options: &[&str]) -> Self {
        let bus = Port::free();
        let number = bus.number().to_string();
        // The timeout is short, so that a lost member is noticed before a test gives up.
        let mut all = vec!["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
        all.extend(["--cluster-port", &number]);
        all.extend(options);
        Self { redis: Redis::start_with(&all), _bus: bus }
    }
}
