//! A connection for commands, to one Redis server or to a Redis Cluster.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::try_join_all;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{Route, SingleNodeRoutingInfo, SlotAddr};
use redis::{AsyncConnectionConfig, Cmd, RedisResult, Value};
use tokio::time::timeout;

use crate::address::Address;
use crate::pipeline::Pipeline;

/// A connection that many tasks use at once. It does not reconnect: after a failure the owner makes
/// a new one.
#[derive(Clone)]
pub enum RedisLink {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl RedisLink {
    /// Connects. Nothing here has a time limit: callers use [`answer_within`].
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

    /// Pings the server, or every node of the cluster that holds keys.
    pub async fn ping(&mut self) -> RedisResult<()> {
        self.query(&redis::cmd("PING")).await.map(drop)
    }

    /// The channels that have a subscriber now, on any node of the cluster.
    pub async fn pubsub_channels(&mut self, pattern: &str) -> RedisResult<Vec<Vec<u8>>> {
        let mut cmd = redis::cmd("PUBSUB");
        let channels = self.query(cmd.arg("CHANNELS").arg(pattern)).await?;
        Ok(redis::from_redis_value(channels)?)
    }

    /// Runs one command.
    pub async fn query(&mut self, cmd: &Cmd) -> RedisResult<Value> {
        match self {
            Self::Single(single) => cmd.query_async(single).await,
            Self::Cluster(cluster) => cmd.query_async(cluster).await,
        }
    }

    /// Runs a pipeline and returns its replies in the same order. A command that Redis refuses has a
    /// [`Value::ServerError`] as its reply.
    pub async fn run(&mut self, pipeline: Pipeline) -> RedisResult<Vec<Value>> {
        match self {
            Self::Single(single) => {
                let count = pipeline.len();
                let mut packed = redis::Pipeline::with_capacity(count);
                for (_, cmd) in pipeline.commands {
                    packed.add_command(cmd);
                }
                single.req_packed_commands(&packed, 0, count).await
            }
            Self::Cluster(cluster) => run_in_cluster(cluster, pipeline).await,
        }
    }
}

/// Sends one pipeline per key, all at once: a pipeline cannot span several nodes of the cluster, and
/// nothing orders two pipelines. A channel counts as a key, so that all payloads to a node stay in
/// order.
async fn run_in_cluster(
    cluster: &ClusterConnection,
    pipeline: Pipeline,
) -> RedisResult<Vec<Value>> {
    let mut replies = vec![Value::Nil; pipeline.len()];
    let mut by_key: HashMap<String, (Vec<usize>, redis::Pipeline)> = HashMap::new();
    for (index, (key, cmd)) in pipeline.commands.into_iter().enumerate() {
        let (indices, packed) = by_key.entry(key).or_default();
        indices.push(index);
        packed.add_command(cmd);
    }
    let pipelines = by_key.into_iter().map(|(key, (indices, packed))| {
        let mut cluster = cluster.clone();
        async move {
            let route = Route::with_key(&key, SlotAddr::Master);
            let to = SingleNodeRoutingInfo::SpecificNode(route);
            let values = cluster.route_pipeline(packed, 0, indices.len(), to).await?;
            RedisResult::Ok(indices.into_iter().zip(values))
        }
    });
    for (index, value) in try_join_all(pipelines).await?.into_iter().flatten() {
        replies[index] = value;
    }
    Ok(replies)
}

/// Waits for Redis until `limit` is over. The error says what failed, or that no answer came.
pub async fn answer_within<T>(
    limit: Duration,
    answer: impl Future<Output = RedisResult<T>>,
) -> Result<T, String> {
    match timeout(limit, answer).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(no_answer(limit)),
    }
}

/// The reason given when an answer did not come in time.
pub fn no_answer(limit: Duration) -> String {
    format!("no answer in {} ms", limit.as_millis())
}
