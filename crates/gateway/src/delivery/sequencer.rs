//! Applies the events of a group in the order they were stored.
//!
//! Nodes receive each other's events in no certain order: a message may arrive before the change
//! that removed a member from its group. Changes are numbered, and a message says after which change
//! it was stored. An event that arrives too early waits in the reorder buffer while this node reads
//! the missing changes from the store.

use std::sync::Arc;

use nexo_chat::event::Event;
use nexo_chat::ids::{ConnectionId, ConversationId, UserId};
use nexo_chat::model::{Change, ChangeKind, Message, Window};
use nexo_chat::store::{Store, StoreError};

use crate::delivery::backfill::Backfills;
use crate::delivery::background::Background;
use crate::delivery::fanout::Fanout;
use crate::delivery::reorder_buffer::ReorderBuffer;
use crate::delivery::subscriptions::ChangeOrder;
use crate::delivery::wake_batch::WakeBatch;

/// Changes read from the store at a time.
const CHANGES_PAGE: usize = 200;

pub(crate) struct Sequencer {
    pub(super) fanout: Arc<Fanout>,
    pub(super) background: Background,
    pub(super) reorder_buffer: ReorderBuffer,
    pub(super) backfills: Backfills,
}

impl Sequencer {
    pub(crate) fn new(fanout: Arc<Fanout>, background: Background) -> Self {
        Self {
            fanout,
            background,
            reorder_buffer: ReorderBuffer::default(),
            backfills: Backfills::default(),
        }
    }

    /// Pushes a message, or buffers it behind the changes that this node has not applied yet.
    pub(crate) fn deliver_message(
        self: &Arc<Self>,
        event: &Event,
        message: &Message,
        skipped: &[ConnectionId],
        wakes: &mut WakeBatch,
    ) {
        let conversation = &message.conversation;
        self.backfills.note_arrival(message);
        if self.reorder_buffer.is_waiting(conversation)
            || !self.fanout.push_message(event, skipped, wakes)
        {
            self.buffer(event, conversation);
        }
    }

    /// Applies a change if it is the next one of its group.
    pub(crate) fn deliver_change(
        self: &Arc<Self>,
        event: &Event,
        change: &Change,
        wakes: &mut WakeBatch,
    ) {
        self.fanout.subscriptions.apply_in_order(change, |order| match order {
            ChangeOrder::Next => self.apply_change(event, change, wakes),
            ChangeOrder::NoSubscribers => {
                self.backfill_after(change, || self.apply_change(event, change, wakes));
            }
            ChangeOrder::Seen => self.fanout.recalls.note(change),
            ChangeOrder::Gap => {
                self.fanout.recalls.note(change);
                self.buffer(event, &change.conversation);
            }
        });
    }

    /// Subscribes new members before the change is pushed, and unsubscribes former ones after it, so
    /// that both receive it.
    fn apply_change(&self, event: &Event, change: &Change, wakes: &mut WakeBatch) {
        let conversation = &change.conversation;
        let Fanout { connections, subscriptions, recalls, .. } = &*self.fanout;
        recalls.note(change);
        if let ChangeKind::Joined { users, from } = &change.kind {
            let window = Window { min: *from, change_min: change.seq, ..Window::ALL };
            for user in users {
                connections.for_each_of(user, |connection| {
                    subscriptions.subscribe(conversation, connection, window, change.seq);
                });
            }
        }
        self.fanout.push(event, wakes);
        match &change.kind {
            ChangeKind::Left => self.unsubscribe_user(conversation, &change.by),
            ChangeKind::Kicked { user } => self.unsubscribe_user(conversation, user),
            ChangeKind::Dissolved | ChangeKind::Dismissed => {
                subscriptions.close_group(conversation);
            }
            _ => {}
        }
    }

    fn unsubscribe_user(&self, conversation: &ConversationId, user: &UserId) {
        self.fanout.connections.for_each_of(user, |connection| {
            connection.note_standing_change();
            self.fanout.subscriptions.unsubscribe(conversation, connection);
        });
    }

    /// Reads the changes of a group that this node has not applied yet, and applies them.
    pub(crate) async fn read_changes(
        self: &Arc<Self>,
        store: &dyn Store,
        conversation: &ConversationId,
    ) -> Result<(), StoreError> {
        while let Some(known) = self.fanout.subscriptions.known_change_seq(conversation) {
            let changes = store.changes(conversation, known, CHANGES_PAGE).await?;
            let is_last = changes.len() < CHANGES_PAGE;
            let mut members = 0;
            if let (Some(id), false) = (conversation.group(), changes.is_empty()) {
                members = store.group(&id).await?.map_or(0, |group| group.members);
            }
            self.deliver_changes(changes, members);
            if is_last {
                break;
            }
        }
        Ok(())
    }

    fn deliver_changes(self: &Arc<Self>, changes: Vec<Arc<Change>>, members: u32) {
        let mut wakes = WakeBatch::default();
        for change in changes {
            let event = Event::Change { change: Arc::clone(&change), origin: None, members };
            self.deliver_change(&event, &change, &mut wakes);
        }
    }
}
