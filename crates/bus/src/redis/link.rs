//! A connection for commands, to one server or to a cluster.

use std::collections::HashMap;

use futures_util::future::try_join_all;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{Route, SingleNodeRoutingInfo, SlotAddr};
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisResult, ToRedisArgs, Value};

use super::address::Address;

/// Commands that go out together, each with the key it is about. Those about the same key are done
/// in their order.
#[derive(Default)]
pub struct Lot {
    commands: Vec<(String, Cmd)>,
}

impl Lot {
    /// Adds `command key`.
    pub fn ask(&mut self, command: &str, key: &str) {
        let mut cmd = redis::cmd(command);
        cmd.arg(key);
        self.commands.push((key.to_owned(), cmd));
    }

    /// Adds `command key arguments…`.
    pub fn add(&mut self, command: &str, key: &str, arguments: impl ToRedisArgs) {
        let mut cmd = redis::cmd(command);
        cmd.arg(key).arg(arguments);
        self.commands.push((key.to_owned(), cmd));
    }

    /// Adds a script about one key.
    pub fn add_script(&mut self, code: &str, key: &str, arguments: impl ToRedisArgs) {
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(code).arg(1).arg(key).arg(arguments);
        self.commands.push((key.to_owned(), cmd));
    }

    /// Adds any command about a key.
    pub fn push(&mut self, key: &str, cmd: Cmd) {
        self.commands.push((key.to_owned(), cmd));
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }
}

/// A connection that many can use at once. It does not heal: when it fails, another is made.
#[derive(Clone)]
pub enum Link {
    /// To one server.
    Single(MultiplexedConnection),
    /// To a cluster.
    Cluster(ClusterConnection),
}

impl Link {
    /// Connects. Whoever calls this or anything below sets the time it may take.
    pub async fn connect(address: &Address) -> RedisResult<Self> {
        match address {
            Address::Single(client) => {
                let config = AsyncConnectionConfig::new()
                    .set_connection_timeout(None)
                    .set_response_timeout(None);
                let single = client.get_multiplexed_async_connection_with_config(&config);
                Ok(Self::Single(single.await?))
            }
            Address::Cluster(client) => Ok(Self::Cluster(client.get_async_connection().await?)),
        }
    }

    /// Asks whether it is there: of a cluster, all that hold keys.
    pub async fn ping(&mut self) -> RedisResult<()> {
        self.ask(&redis::cmd("PING")).await.map(drop)
    }

    /// The channels that somebody hears now, on any node.
    pub async fn channels(&mut self, pattern: &str) -> RedisResult<Vec<Vec<u8>>> {
        let mut cmd = redis::cmd("PUBSUB");
        let channels = self.ask(cmd.arg("CHANNELS").arg(pattern)).await?;
        Ok(redis::from_redis_value(channels)?)
    }

    /// Does one command.
    pub async fn ask(&mut self, cmd: &Cmd) -> RedisResult<Value> {
        match self {
            Self::Single(single) => cmd.query_async(single).await,
            Self::Cluster(cluster) => cmd.query_async(cluster).await,
        }
    }

    /// Does a lot of commands and returns their answers in the same order; what Redis refuses is a
    /// [`Value::ServerError`] in its place.
    pub async fn run(&mut self, lot: Lot) -> RedisResult<Vec<Value>> {
        match self {
            Self::Single(single) => {
                let mut pipeline = Pipeline::with_capacity(lot.len());
                let count = lot.len();
                for (_, cmd) in lot.commands {
                    pipeline.add_command(cmd);
                }
                single.req_packed_commands(&pipeline, 0, count).await
            }
            Self::Cluster(cluster) => run_in_cluster(cluster, lot).await,
        }
    }
}

/// One pipeline per key, all at once: a pipeline cannot go to several nodes, and no order is kept
/// between pipelines. A channel counts as a key, so that all payloads to a node take one way.
async fn run_in_cluster(cluster: &ClusterConnection, lot: Lot) -> RedisResult<Vec<Value>> {
    let mut answers = vec![Value::Nil; lot.len()];
    let mut by_key: HashMap<String, (Vec<usize>, Pipeline)> = HashMap::new();
    for (index, (key, cmd)) in lot.commands.into_iter().enumerate() {
        let (indices, pipeline) = by_key.entry(key).or_default();
        indices.push(index);
        pipeline.add_command(cmd);
    }
    let pipelines = by_key.into_iter().map(|(key, (indices, pipeline))| {
        let mut cluster = cluster.clone();
        async move {
            let route = Route::with_key(&key, SlotAddr::Master);
            let to = SingleNodeRoutingInfo::SpecificNode(route);
            let values = cluster.route_pipeline(pipeline, 0, indices.len(), to).await?;
            RedisResult::Ok(indices.into_iter().zip(values))
        }
    });
    for (index, value) in try_join_all(pipelines).await?.into_iter().flatten() {
        answers[index] = value;
    }
    Ok(answers)
}
