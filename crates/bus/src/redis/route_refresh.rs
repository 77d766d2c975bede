//! Requests to write all routes of this node again.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use tokio::sync::Notify;

use super::local_routes::LocalRoutes;

pub(crate) const NONE: u8 = 0;
const REFRESH: u8 = 1;
/// Events may have been lost: the listener is told after the refresh.
pub(crate) const REFRESH_AFTER_LOSS: u8 = 2;

/// A request to write all routes again.
#[derive(Default)]
pub(crate) struct RouteRefresh {
    /// The highest level requested since the last refresh: [`NONE`], [`REFRESH`] or
    /// [`REFRESH_AFTER_LOSS`].
    requested: AtomicU8,
    /// Whether all routes were written once.
    has_written_once: AtomicBool,
    wake: Notify,
}

impl RouteRefresh {
    /// Requests a refresh that only keeps the routes from expiring.
    pub(crate) fn request(&self) {
        self.requested.fetch_max(REFRESH, Ordering::SeqCst);
    }

    /// Requests a refresh after a time in which events could not reach this node; `reachable` ends
    /// that time. The listener is told of the loss afterwards, except at the start of a node
    /// without sockets, where nothing was there to lose.
    pub(crate) fn request_after_absence(
        &self,
        local_routes: &LocalRoutes,
        reachable: impl FnOnce(),
    ) {
        let may_have_lost =
            self.has_written_once.load(Ordering::SeqCst) || !local_routes.is_empty();
        let level = if may_have_lost { REFRESH_AFTER_LOSS } else { REFRESH };
        self.requested.fetch_max(level, Ordering::SeqCst);
        reachable();
        self.wake.notify_one();
    }

    /// Waits until a refresh after an absence is requested.
    pub(crate) async fn wait_requested(&self) {
        self.wake.notified().await;
    }

    /// Takes the request: returns its level.
    pub(crate) fn take(&self) -> u8 {
        self.requested.swap(NONE, Ordering::SeqCst)
    }

    /// The refresh failed: requests it again.
    pub(crate) fn put_back(&self, level: u8) {
        self.requested.fetch_max(level, Ordering::SeqCst);
    }

    pub(crate) fn mark_written(&self) {
        self.has_written_once.store(true, Ordering::SeqCst);
    }
}
