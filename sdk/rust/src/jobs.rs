//! How everybody reaches the one task that owns the state.
use tokio::sync::{mpsc, oneshot};

use crate::core::Core;
use crate::desk::Desk;
use crate::error::Error;

/// A piece of work for the one task that owns the state.
pub(crate) type Job = Box<dyn FnOnce(&mut Core) + Send>;

/// Gives work to the task that owns the state.
#[derive(Clone)]
pub(crate) struct Jobs(pub(crate) mpsc::UnboundedSender<Job>);

impl Jobs {
    /// Has it done some time; not at all if the client is gone.
    pub(crate) fn put(&self, job: impl FnOnce(&mut Core) + Send + 'static) {
        self.0.send(Box::new(job)).ok();
    }

    /// Has it done and waits for what comes of it.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Core) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (tell, told) = oneshot::channel();
        self.put(move |core| {
            tell.send(job(core)).ok(); // whoever asked may be gone
        });
        told.await.map_err(|_| Error::Closed)
    }
}

/// The same for one sign-in: when that is over, nothing is done any more.
#[derive(Clone)]
pub(crate) struct Inside {
    pub(crate) jobs: Jobs,
    pub(crate) number: u64,
}

impl Inside {
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Desk) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let number = self.number;
        let asked = self.jobs.ask(move |core| core.desk_of(number).map(job)).await?;
        asked.ok_or(Error::Closed)
    }
}
