//! Resends the messages that were stored just before this node subscribed to a group.
//!
//! A node subscribes to a group on the bus when the first member connects or joins here. Messages
//! stored elsewhere before the other nodes know of the subscription never arrive. The backfill
//! waits briefly for those that are on their way, so that they are not sent twice, and lets the
//! sockets resend the rest from the store.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nexo_chat::ids::{ConversationId, Seq};
use nexo_chat::model::{Change, ChangeKind, Message};
use nexo_chat::{Chat, Reason};

use crate::delivery::sequencer::Sequencer;

/// Arrivals remembered per group; further ones may be sent twice.
const ARRIVALS_MAX: usize = 1000;
/// How often, and how long each time, the backfill waits for messages that are on their way.
const WAITS: u32 = 8;
const WAIT: Duration = Duration::from_millis(40);

/// The backfills that are running, and the messages of their groups that arrived since.
#[derive(Default)]
pub(crate) struct Backfills {
    arrivals: Mutex<HashMap<ConversationId, BTreeSet<Seq>>>,
    /// Number of groups in the map, so that the common case, none, takes no lock.
    count: AtomicUsize,
}

impl Backfills {
    fn arrivals(&self) -> MutexGuard<'_, HashMap<ConversationId, BTreeSet<Seq>>> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, conversation: &ConversationId) {
        let mut arrivals = self.arrivals();
        arrivals.insert(conversation.clone(), BTreeSet::new());
        self.count.store(arrivals.len(), Ordering::SeqCst);
    }

    fn end(&self, conversation: &ConversationId) {
        let mut arrivals = self.arrivals();
        arrivals.remove(conversation);
        self.count.store(arrivals.len(), Ordering::SeqCst);
    }

    /// Notes that a message arrived by the bus.
    pub(crate) fn note_arrival(&self, message: &Message) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        if let Some(arrived) = self.arrivals().get_mut(&message.conversation)
            && arrived.len() < ARRIVALS_MAX
        {
            arrived.insert(message.seq);
        }
    }

    /// The first seq after `after`, up to `until`, that has not arrived.
    fn first_missing(&self, conversation: &ConversationId, after: Seq, until: Seq) -> Option<Seq> {
        let arrivals = self.arrivals();
        let has_arrived =
            |seq| arrivals.get(conversation).is_some_and(|arrived| arrived.contains(&seq));
        let mut next = after.next();
        while next <= until && has_arrived(next) {
            next = next.next();
        }
        (next <= until).then_some(next)
    }
}

impl Sequencer {
    /// Applies a change of a group that had no subscribers on this node. If the change added some,
    /// subscribes this node on the bus and starts a backfill.
    pub(super) fn backfill_after(self: &Arc<Self>, change: &Change, apply: impl FnOnce()) {
        let conversation = &change.conversation;
        if !matches!(change.kind, ChangeKind::Joined { .. }) {
            return apply();
        }
        self.backfills.begin(conversation);
        apply();
        if self.fanout.subscriptions.known_change_seq(conversation).is_none() {
            return self.backfills.end(conversation); // no new member is connected here
        }
        let (sequencer, conversation) = (Arc::clone(self), conversation.clone());
        self.background.spawn(async move {
            if let Some(chat) = sequencer.background.chat()
                && chat.bus.subscribe_groups(vec![conversation.clone()]).await
            {
                sequencer.backfill(&chat, &conversation).await;
            }
            sequencer.backfills.end(&conversation);
        });
    }

    /// Brings all subscribers of a group up to what was stored before the subscription.
    async fn backfill(self: &Arc<Self>, chat: &Chat, conversation: &ConversationId) {
        let read = self.read_changes(&*chat.store, conversation).await;
        let mut waiting = Vec::new();
        for connection in self.fanout.subscriptions.connections_of(conversation) {
            match chat.store.standing(&connection.user, conversation).await {
                Ok(Some(standing)) if read.is_ok() => {
                    let first = standing.window.min.previous();
                    let delivered = standing.cursors.delivered.max(first);
                    waiting.push((connection, delivered, standing.visible_max()));
                }
                // What it misses is unknown: a new connection starts from the store.
                _ => connection.close(Reason::ShuttingDown),
            }
        }
        let first_missing = |after, until| self.backfills.first_missing(conversation, after, until);
        for _ in 0..WAITS {
            waiting.retain(|(_, delivered, until)| first_missing(*delivered, *until).is_some());
            if waiting.is_empty() {
                return;
            }
            tokio::time::sleep(WAIT).await;
        }
        for (connection, delivered, until) in waiting {
            if let Some(first) = first_missing(delivered, until) {
                connection.record_missed(conversation, first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use nexo_chat::ids::{ClientMsgId, GroupId, MessageId, Millis, UserId};
    use nexo_chat::model::{Content, Draft};

    use super::*;

    fn message(conversation: &ConversationId, seq: u64) -> Message {
        let (sender, client_id) = (UserId::parse("ann").unwrap(), ClientMsgId::parse("c").unwrap());
        let id = MessageId::of(&sender, &client_id);
        let draft = Draft {
            conversation: conversation.clone(),
            sender,
            client_id,
            content: Content::text("words"),
            cleaned: None,
            sent_at: Millis(1),
            origin: None,
            marks_read: true,
        };
        draft.into_message(id, Seq(seq))
    }

    #[test]
    fn messages_that_arrived_are_not_missing() {
        let backfills = Backfills::default();
        let group = GroupId::parse("g1").unwrap().conversation();
        backfills.note_arrival(&message(&group, 3)); // no backfill is running
        backfills.begin(&group);
        assert_eq!(backfills.first_missing(&group, Seq(2), Seq(2)), None, "there is no message");
        assert_eq!(backfills.first_missing(&group, Seq(2), Seq(4)), Some(Seq(3)));
        for seq in [4, 3, 6] {
            backfills.note_arrival(&message(&group, seq));
        }
        assert_eq!(backfills.first_missing(&group, Seq(2), Seq(4)), None);
        assert_eq!(backfills.first_missing(&group, Seq(2), Seq(6)), Some(Seq(5)), "a gap");
        backfills.end(&group);
        assert_eq!(backfills.first_missing(&group, Seq(2), Seq(4)), Some(Seq(3)));
        assert!(backfills.arrivals().is_empty());
    }
}
