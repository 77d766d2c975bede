//! What things are called in Redis. The keys of a shard are in one place of a cluster.

/// Names that begin with a prefix.
#[derive(Clone, Debug)]
pub(super) struct Names {
    prefix: String,
}

impl Names {
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

    /// Message id to what stands for its content, or `+` once it is saved.
    pub(super) fn open(&self, shard: usize) -> String {
        self.of(shard, "open")
    }

    /// The ids of the last saved messages, to forget the oldest.
    pub(super) fn saved(&self, shard: usize) -> String {
        self.of(shard, "saved")
    }

    /// The node that looks after the shard.
    pub(super) fn owner(&self, shard: usize) -> String {
        self.of(shard, "owner")
    }

    /// The stream of messages that could not be saved.
    pub(super) fn dead(&self, shard: usize) -> String {
        self.of(shard, "dead")
    }

    /// How many shards there are.
    pub(super) fn shards(&self) -> String {
        format!("{}:accept:shards", self.prefix)
    }
}
