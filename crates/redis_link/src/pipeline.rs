//! Commands that are sent together.

use redis::{Cmd, ToRedisArgs};

/// Commands that are sent together, each with its key. Commands with the same key run in the order
/// they were added.
#[derive(Default)]
pub struct Pipeline {
    pub(crate) commands: Vec<(String, Cmd)>,
}

impl Pipeline {
    /// Adds `command key`.
    pub fn add_key(&mut self, command: &str, key: &str) {
        let mut cmd = redis::cmd(command);
        cmd.arg(key);
        self.push(key, cmd);
    }

    /// Adds `command key arguments…`.
    pub fn add(&mut self, command: &str, key: &str, arguments: impl ToRedisArgs) {
        let mut cmd = redis::cmd(command);
        cmd.arg(key).arg(arguments);
        self.push(key, cmd);
    }

    /// Adds a Lua script with one key.
    pub fn add_script(&mut self, code: &str, key: &str, arguments: impl ToRedisArgs) {
        let mut cmd = script(code, &[key]);
        cmd.arg(arguments);
        self.push(key, cmd);
    }

    /// Adds a command that is routed by `key`.
    pub fn push(&mut self, key: &str, cmd: Cmd) {
        self.commands.push((key.to_owned(), cmd));
    }

    pub fn len(&self) -> usize {
        self.commands.len()
    }

    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }
}

/// A Lua script with its keys; the caller adds the arguments. In a cluster, all keys must hash to
/// the same slot.
pub fn script(code: &str, keys: &[&str]) -> Cmd {
    let mut cmd = redis::cmd("EVAL");
    cmd.arg(code).arg(keys.len()).arg(keys);
    cmd
}
