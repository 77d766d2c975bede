//! A server process that is started to be measured, then stopped or killed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::sleep;

use crate::endpoint::Endpoint;
use crate::http::{authority, is_ready};

const ASK_EVERY: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_mins(2);

/// A process that printed its address; it is killed when dropped.
pub struct Started {
    child: Child,
    address: String,
}

impl Started {
    /// Starts the process, and waits until it prints its address.
    pub fn new(command: &mut Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim().rsplit(' ').next().filter(|word| word.starts_with("http://"));
        let address = address.with_context(|| format!("it did not start: {line}"))?.to_owned();
        Ok(Self { child, address })
    }

    pub fn endpoint(&self) -> Endpoint {
        Endpoint { address: self.address.clone(), pid: Some(self.child.id()) }
    }

    /// Waits until `/readyz` answers 200; returns its `host:port`.
    pub(crate) async fn ready(&self) -> Result<String> {
        let authority = authority(&self.address)?;
        let since = Instant::now();
        while !is_ready(&authority).await {
            ensure!(since.elapsed() < PATIENCE, "it is not ready after {PATIENCE:?}");
            sleep(ASK_EVERY).await;
        }
        Ok(authority)
    }

    /// Sends SIGTERM, and waits for the process to end.
    pub async fn stop(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let since = Instant::now();
        loop {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("it ended with {status}"),
                None if since.elapsed() > PATIENCE => bail!("it does not stop"),
                None => sleep(ASK_EVERY).await,
            }
        }
    }

    /// Kills the process at once.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // The process may have ended already, which is fine.
        if self.child.kill().is_ok() {
            drop(self.child.wait());
        }
    }
}
