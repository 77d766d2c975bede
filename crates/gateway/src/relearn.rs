//! After a silence of the bus: what this node knows of others may be old, and its sockets may lack
//! what was said meanwhile. Each looks again; so it is done now and then as long as the silence lasts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use nexo_chat::model::Receive;
use nexo_chat::{Chat, Error, Reason, auth, sync};

use crate::behind;
use crate::connection::Connection;
use crate::delivery::Delivery;

/// Groups and sockets that are looked at at the same time.
const AT_ONCE: usize = 16;
/// Between two tries while the store does not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// One look at a time. Whoever wants another meanwhile gets one after it.
#[derive(Default)]
pub struct Relearning(AtomicU8);

const RUNS: u8 = 1;
const RUNS_AGAIN: u8 = 2;

impl Relearning {
    /// Whether the one who wants it has to begin.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.swap(RUNS_AGAIN, Ordering::SeqCst) == 0
    }

    fn begin(&self) {
        self.0.store(RUNS, Ordering::SeqCst);
    }

    fn is_over(&self) -> bool {
        self.0.compare_exchange(RUNS, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

/// Why one looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Others are heard again, after a silence.
    Heard,
    /// The silence goes on.
    Silence,
}

/// Lets the groups and every socket look again, until nobody wants another look.
pub(crate) async fn relearn(delivery: Arc<Delivery>, why: Why) {
    loop {
        delivery.relearning.begin();
        let Some(chat) = delivery.chat.upgrade() else { return };
        let groups = stream::iter(delivery.groups.heard());
        groups
            .for_each_concurrent(AT_ONCE, async |group| {
                if let Err(error) = behind::learn(&delivery, &*chat.store, &group).await {
                    tracing::debug!(target: "nexo::push", %error, "what changed cannot be read yet");
                }
            })
            .await;
        let mut sockets = Vec::new();
        delivery.roster.each(|connection| sockets.push(Arc::clone(connection)));
        let count = sockets.len();
        let looks = stream::iter(sockets);
        looks.for_each_concurrent(AT_ONCE, |it| look(&chat, &delivery, it, why)).await;
        tracing::info!(target: "nexo::push", sockets = count, ?why, "looked again");
        if delivery.relearning.is_over() {
            return;
        }
    }
}

/// Looks until there is an answer. Without a store the socket stays: it comes back.
async fn look(chat: &Chat, delivery: &Delivery, connection: Arc<Connection>, why: Why) {
    while connection.ending().is_none() {
        match try_look(chat, delivery, &connection, why).await {
            Ok(()) => return,
            Err(Error::Refused(_)) => connection.end(Reason::SessionInvalid),
            Err(error) => {
                tracing::debug!(target: "nexo::push", %error, "a socket has to look again");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Is its sign-in still alive, which groups does it hear, and what has not reached it?
async fn try_look(
    chat: &Chat,
    delivery: &Delivery,
    connection: &Arc<Connection>,
    why: Why,
) -> Result<(), Error> {
    auth::still_signed_in(chat, connection.login).await?;
    if !connection.dialect.is_brought_up() {
        // It keeps no cursor here, so what it lacks only it can tell.
        if why == Why::Heard {
            connection.end(Reason::ShuttingDown);
        }
        return Ok(());
    }
    delivery.groups.attend(chat, connection).await?;
    for standing in sync::standings(chat, &connection.user).await? {
        let delivered = standing.cursors.delivered.max(standing.window.min.previous());
        if standing.visible_max() > delivered && standing.settings.receive != Receive::Blocked {
            connection.miss(&standing.conversation, delivered.next());
        }
    }
    Ok(())
}
