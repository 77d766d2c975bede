//! The state of one signed-in user.
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::acks::Acks;
use crate::clock::{new_client_msg_id, wall_ms};
use crate::conversation::Conversation;
use crate::core::Core;
use crate::error::Error;
use crate::events::{Event, Listeners};
use crate::frame_sender::FrameSender;
use crate::frames::{ClientFrame, Limits};
use crate::jobs::AccountJobs;
use crate::outbox::Outbox;
use crate::outbox_entry::OutboxEntry;
use crate::own_joins::OwnJoins;
use crate::reason::Reason;
use crate::storage::BestEffortStore;
use crate::sync::Sync;
use crate::tokens::SignIn;
use crate::types::{Content, Message, MessageState, Target};
use crate::typing::Typing;

/// Resolves a pending call of `Client::saved`.
type SavedSender = oneshot::Sender<Result<Arc<Message>, Error>>;

/// The state of one signed-in user, from sign-in to sign-out.
pub(crate) struct AccountState {
    pub(crate) me: String,
    pub(crate) now: Instant,
    pub(crate) listeners: Listeners,
    pub(crate) jobs: AccountJobs,
    pub(crate) sign_in: SignIn,
    pub(crate) frame_sender: FrameSender,
    pub(crate) conversations: HashMap<String, Conversation>,
    /// Ids of messages emitted as outgoing or as previews: getting a seq is an update, not a new
    /// message.
    pub(crate) already_shown: HashSet<String>,
    /// Conversations whose summary changed; emitted once per tick.
    pub(crate) touched: BTreeSet<String>,
    pub(crate) outbox: Outbox,
    pub(crate) acks: Acks,
    pub(crate) sync: Sync,
    pub(crate) own_joins: OwnJoins,
    pub(crate) typing: Typing,
    /// Whether the list of conversations was loaded once.
    pub(crate) is_ready: bool,
    pub(crate) keep: usize,
    saved_waiters: HashMap<String, Vec<SavedSender>>,
}

impl AccountState {
    pub(crate) fn new(
        me: &str,
        core: &Core,
        jobs: AccountJobs,
        store: BestEffortStore,
        keep: usize,
    ) -> Self {
        let (now, timing) = (core.now, &core.timing);
        Self {
            me: me.to_owned(),
            now,
            listeners: core.listeners.clone(),
            jobs,
            sign_in: core.sign_in.clone(),
            frame_sender: FrameSender::new(now),
            conversations: HashMap::new(),
            already_shown: HashSet::new(),
            touched: BTreeSet::new(),
            own_joins: OwnJoins::new(me, store.clone()),
            outbox: Outbox::new(me, timing.clone(), store, now),
            acks: Acks::new(timing),
            sync: Sync::new(timing, now),
            typing: Typing::new(timing),
            is_ready: false,
            keep,
            saved_waiters: HashMap::new(),
        }
    }

    /// Shows again what an earlier run left unsent.
    pub(crate) fn load(&mut self) {
        for entry in self.outbox.load(self.now) {
            let message = self.show_outgoing(&entry);
            self.listeners.emit(&Event::Message(message));
        }
    }

    pub(crate) fn online(&mut self, limits: &Limits, sender: mpsc::UnboundedSender<String>) {
        self.frame_sender.connect(sender);
        self.frame_sender.rate.set_rate(limits.connection_frames_per_second, self.now);
        self.outbox.online(limits, self.now);
        self.sync.online();
        self.catch_up();
    }

    pub(crate) fn offline(&mut self) {
        self.frame_sender.disconnect();
        self.outbox.offline();
        self.acks.offline();
        self.sync.offline();
        self.drop_previews();
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        let due = [self.outbox.due(), self.acks.due(), self.sync.due(), self.typing.due()];
        due.into_iter().flatten().min()
    }

    /// Runs what is due and emits what changed.
    pub(crate) fn tick(&mut self) {
        let last_of = |id: &str| last_seq_of(&self.conversations, id);
        self.outbox.tick(&mut self.frame_sender, last_of, self.now);
        for entry in self.outbox.take_newly_refused() {
            let message = self.show_outgoing(&entry);
            self.update(message);
        }
        self.acks.tick(&mut self.conversations, &mut self.frame_sender, self.now);
        self.tick_sync();
        for (conversation_id, user_id) in self.typing.tick(self.now) {
            self.listeners.emit(&Event::Typing { conversation_id, user_id, is_typing: false });
        }
        for id in std::mem::take(&mut self.touched) {
            if let Some(conversation) = self.conversations.get(&id) {
                self.listeners.emit(&Event::Conversation(Arc::new(conversation.summary())));
            }
        }
    }

    pub(crate) fn find(&mut self, target: &Target) -> Option<&mut Conversation> {
        self.conversations.get_mut(&target.conversation_id(&self.me))
    }

    pub(crate) fn send(&mut self, target: &Target, content: Content) -> Arc<Message> {
        let address = target.address(&self.me);
        let entry = OutboxEntry {
            order: 0,
            client_msg_id: new_client_msg_id(),
            conversation_id: address.conversation_id(&self.me),
            address,
            kind: content.kind,
            body: content.body,
            extra: content.extra,
            mentions: content.mentions,
            reply_to: content.reply_to,
            at: wall_ms(),
            reason: None,
            after: None,
        };
        let message = self.show_outgoing(&entry);
        self.listeners.emit(&Event::Message(message.clone()));
        self.outbox.add(entry, self.now);
        message
    }

    /// Handles the refusal of a sent message.
    pub(crate) fn refused(&mut self, client_msg_id: &str, reason: Reason) {
        let last_of = |id: &str| last_seq_of(&self.conversations, id);
        self.outbox.refused(client_msg_id, reason, last_of, self.now);
    }

    /// Resolves `waiter` when the message is saved or refused.
    pub(crate) fn notify_when_saved(&mut self, message: &Message, waiter: SavedSender) {
        let client_msg_id = &message.client_msg_id;
        let conversation = self.conversations.get(&message.conversation_id);
        let current = conversation.and_then(|one| one.find_mine(client_msg_id));
        self.saved_waiters.entry(client_msg_id.clone()).or_default().push(waiter);
        if let Some(current) = current {
            self.resolve_waiters(&current);
        }
    }

    pub(crate) fn retry(&mut self, client_msg_id: &str) {
        if let Some(entry) = self.outbox.retry(client_msg_id, self.now) {
            let message = self.show_outgoing(&entry);
            self.update(message);
        }
    }

    pub(crate) fn discard(&mut self, client_msg_id: &str) {
        let Some(entry) = self.outbox.discard(client_msg_id) else { return };
        let OutboxEntry { conversation_id, client_msg_id, .. } = entry;
        self.get_or_create(&conversation_id).outgoing.remove(&client_msg_id);
        self.touch(&conversation_id);
        let server_msg_id = String::new();
        self.listeners.emit(&Event::Removed { conversation_id, client_msg_id, server_msg_id });
    }

    /// Marks as read. Returns the conversation and seq if the cursor must be sent over HTTP.
    pub(crate) fn mark_read(&mut self, target: &Target, seq: Option<u64>) -> Option<(String, u64)> {
        let conversation = self.find(target)?;
        let id = conversation.id.clone();
        let last = conversation.messages.last();
        let up_to = seq.unwrap_or(last).min(last);
        conversation.read_to(up_to, true);
        let is_here = up_to >= conversation.messages.first();
        self.touch(&id);
        if is_here {
            self.acks.schedule(&id, self.now);
        }
        // An ACK needs the id of a message on this device; over HTTP the seq is enough.
        (!is_here).then_some((id, up_to))
    }

    /// Sends TYPING, at most once per interval.
    pub(crate) fn send_typing(&mut self, target: &Target) {
        let address = &target.address(&self.me);
        if self.typing.record_send_if_due(&address.conversation_id(&self.me), self.now) {
            self.frame_sender.send(&ClientFrame::Typing { address });
        }
    }

    /// Emits the changed message and resolves calls that wait for it.
    pub(crate) fn update(&mut self, message: Arc<Message>) {
        self.resolve_waiters(&message);
        self.listeners.emit(&Event::Update(message));
    }

    fn resolve_waiters(&mut self, message: &Arc<Message>) {
        if !message.is_mine || self.saved_waiters.is_empty() {
            return;
        }
        let answer = match message.reason.filter(|_| message.state == MessageState::Refused) {
            Some(reason) => Err(Error::refused(reason)),
            None if message.seq > 0 => Ok(message.clone()),
            None => return,
        };
        for waiter in self.saved_waiters.remove(&message.client_msg_id).unwrap_or_default() {
            waiter.send(answer.clone()).ok(); // the caller may have stopped waiting
        }
    }
}

/// The last seq of a conversation on this device.
fn last_seq_of(conversations: &HashMap<String, Conversation>, id: &str) -> u64 {
    conversations.get(id).map_or(0, |conversation| conversation.messages.last())
}
