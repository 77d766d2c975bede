//! Runs closures on the task that owns the state.
use tokio::sync::{mpsc, oneshot};

use crate::account_state::AccountState;
use crate::core::Core;
use crate::error::Error;

/// A closure for the task that owns the state.
pub(crate) type Job = Box<dyn FnOnce(&mut Core) + Send>;

/// Sends jobs to the task that owns the state.
#[derive(Clone)]
pub(crate) struct Jobs(pub(crate) mpsc::UnboundedSender<Job>);

impl Jobs {
    /// Queues a job; it is dropped if the client is closed.
    pub(crate) fn put(&self, job: impl FnOnce(&mut Core) + Send + 'static) {
        self.0.send(Box::new(job)).ok();
    }

    /// Queues a job and waits for its result.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Core) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, receiver) = oneshot::channel();
        self.put(move |core| {
            sender.send(job(core)).ok(); // the caller may have stopped waiting
        });
        receiver.await.map_err(|_| Error::Closed)
    }
}

/// The same for one sign-in: fails once it has ended.
#[derive(Clone)]
pub(crate) struct AccountJobs {
    pub(crate) jobs: Jobs,
    pub(crate) account_number: u64,
}

impl AccountJobs {
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut AccountState) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let number = self.account_number;
        let result = self.jobs.call(move |core| core.account_of(number).map(job)).await?;
        result.ok_or(Error::Closed)
    }
}
