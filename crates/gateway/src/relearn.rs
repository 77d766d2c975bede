//! After a silence of the bus: what this node knows of others may be old, and its sockets may lack
//! what was said meanwhile. Each looks again.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use nexo_chat::model::Receive;
use nexo_chat::{Chat, Error, Reason, auth, sync};

use crate::connection::Connection;
use crate::groups::Groups;

/// Sockets that look at the same time.
const AT_ONCE: usize = 16;

/// Lets every socket look again.
pub(crate) async fn relearn(chat: Arc<Chat>, groups: Arc<Groups>, sockets: Vec<Arc<Connection>>) {
    let count = sockets.len();
    let looks = stream::iter(sockets).for_each_concurrent(AT_ONCE, |connection| {
        let (chat, groups) = (&chat, &groups);
        async move {
            if let Err(error) = look(chat, groups, &connection).await {
                // A new connection starts from the store, whenever it answers again.
                tracing::debug!(target: "nexo::push", %error, "a socket has to start anew");
                connection.end(match error.reason() {
                    Reason::SessionInvalid => Reason::SessionInvalid,
                    _ => Reason::ShuttingDown,
                });
            }
        }
    });
    looks.await;
    tracing::info!(target: "nexo::push", sockets = count, "looked again after a silence");
}

/// Is its sign-in still alive, which groups does it hear, and what has not reached it?
async fn look(chat: &Chat, groups: &Groups, connection: &Arc<Connection>) -> Result<(), Error> {
    auth::still_signed_in(chat, connection.login).await?;
    groups.forget(connection);
    groups.attend(chat, connection).await?;
    for standing in sync::standings(chat, &connection.user).await? {
        let delivered = standing.cursors.delivered.max(standing.window.min.previous());
        if standing.visible_max() > delivered && standing.settings.receive != Receive::Blocked {
            connection.miss(&standing.conversation, delivered.next());
        }
    }
    Ok(())
}
