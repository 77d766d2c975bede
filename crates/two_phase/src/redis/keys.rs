//! The names of keys in Redis. The keys of a shard have the same part in braces, so that a Redis
//! Cluster keeps them on one node and a script can use them together.

#[derive(Clone, Debug)]
pub(super) struct LogKeys {
    prefix: String,
}

impl LogKeys {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    fn of(&self, shard: usize, what: &str) -> String {
        format!("{}:accept:{{{shard}}}:{what}", self.prefix)
    }

    /// The stream of messages that are not saved yet.
    pub(super) fn log(&self, shard: usize) -> String {
        self.of(shard, "log")
    }

    /// A hash: message id to the fingerprint and entry id of a waiting message, or `+` once it is
    /// saved.
    pub(super) fn open(&self, shard: usize) -> String {
        self.of(shard, "open")
    }

    /// A list of the ids of the last saved messages, to remove the oldest from `open`.
    pub(super) fn saved(&self, shard: usize) -> String {
        self.of(shard, "saved")
    }

    /// The node that has the lease of the shard.
    pub(super) fn owner(&self, shard: usize) -> String {
        self.of(shard, "owner")
    }

    /// The stream of dead letters.
    pub(super) fn dead(&self, shard: usize) -> String {
        self.of(shard, "dead")
    }

    /// How many shards there are.
    pub(super) fn shards(&self) -> String {
        format!("{}:accept:shards", self.prefix)
    }
}
