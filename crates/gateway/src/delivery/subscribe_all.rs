//! Subscribes a socket to all groups of its user.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use nexo_chat::ids::{ConversationId, Seq};
use nexo_chat::model::{Receive, Standing};
use nexo_chat::{Chat, Error, sync};

use crate::delivery::subscriptions::Subscriptions;
use crate::socket::connection::Connection;

/// Before each further read of the standings, longer each time.
const RETRY_PAUSE: Duration = Duration::from_millis(2);

impl Subscriptions {
    /// Subscribes a socket to the groups its user is in, and records what the user has blocked. The
    /// socket must be in `Connections` already: changes during the reads then reach it, and are
    /// noticed here as a reason to read again.
    pub(crate) async fn subscribe_all(
        &self,
        chat: &Chat,
        connection: &Arc<Connection>,
    ) -> Result<(), Error> {
        let mut was_new_on_bus = false;
        for attempt in 0.. {
            tokio::time::sleep(RETRY_PAUSE * attempt).await;
            let (changes, closed) = (connection.standing_changes(), self.closed_groups());
            let (mut blocked, mut groups, mut is_current) = (HashSet::new(), Vec::new(), true);
            for standing in sync::standings(chat, &connection.user).await? {
                // A user who was removed meanwhile must not be subscribed, not even until the next
                // attempt.
                is_current &= self.subscribe_standing(&standing, connection, || {
                    changes == connection.standing_changes()
                });
                if standing.conversation.group().is_some() {
                    if standing.is_active() {
                        groups.push(standing.conversation.clone());
                    } else {
                        let Standing { conversation, change_seq, .. } = &standing;
                        self.unsubscribe_before(conversation, connection, *change_seq);
                    }
                }
                if standing.settings.receive == Receive::Blocked {
                    blocked.insert(standing.conversation);
                }
            }
            connection.replace_blocked(blocked);
            if closed != self.closed_groups() {
                self.unsubscribe_ended(chat, connection).await?;
            }
            // The catch-up that follows reads messages published before this returns; changes
            // published before it need another attempt.
            let is_new_on_bus = self.bus.subscribe_groups(groups.clone()).await;
            for group in groups.iter().filter(|group| self.known_change_seq(group).is_none()) {
                self.bus.unsubscribe_group(group); // its last subscriber has gone meanwhile
            }
            if let (Some(online), true) = (&self.online, is_new_on_bus) {
                for group in &groups {
                    self.publish(online.ask(group));
                }
            }
            if changes != connection.standing_changes() {
                self.remove_connection(connection);
                was_new_on_bus = false;
            } else if is_current && (!is_new_on_bus || was_new_on_bus) {
                return Ok(()); // new twice in a row: the bus is down, and a resync will follow
            } else {
                was_new_on_bus = is_new_on_bus;
            }
        }
        Ok(())
    }

    /// Subscribes a socket to the group of a standing, if the user is a member. Returns `false` if
    /// this node has applied newer changes than the standing was read at.
    fn subscribe_standing(
        &self,
        standing: &Standing,
        connection: &Arc<Connection>,
        is_current: impl FnOnce() -> bool,
    ) -> bool {
        let Standing { conversation, window, change_seq, .. } = standing;
        if !standing.is_active() || conversation.group().is_none() {
            return true;
        }
        self.subscribe_if(conversation, connection, *window, *change_seq, is_current)
    }

    /// Unsubscribes a socket whose user was not a member at change `read_at`, unless the user has
    /// joined again since.
    fn unsubscribe_before(
        &self,
        conversation: &ConversationId,
        connection: &Connection,
        read_at: Seq,
    ) {
        if self.subscribed_since(conversation, connection).is_some_and(|since| since <= read_at) {
            self.unsubscribe(conversation, connection);
        }
    }

    /// Unsubscribes a socket from groups that were dissolved while the standings were read: the
    /// standings may be older, but the store knows of the end by now.
    async fn unsubscribe_ended(&self, chat: &Chat, connection: &Connection) -> Result<(), Error> {
        for conversation in connection.groups() {
            let Some(id) = conversation.group() else { continue };
            if chat.store.group(&id).await?.is_none_or(|group| group.ended.is_some()) {
                self.unsubscribe(&conversation, connection);
            }
        }
        Ok(())
    }
}
