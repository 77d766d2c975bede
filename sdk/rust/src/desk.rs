//! Everything that belongs to one person on this device.
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::acks::Acks;
use crate::chance::{new_name, wall_ms};
use crate::conversation::Conversation;
use crate::core::Core;
use crate::entry::Entry;
use crate::error::Error;
use crate::events::{Ears, Event};
use crate::frames::{ClientFrame, Limits};
use crate::jobs::Inside;
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::storage::Keeper;
use crate::sync::Sync;
use crate::tokens::SignIn;
use crate::types::{Content, Message, MessageState, Target};
use crate::typing::Typing;
use crate::wire::Wire;

/// Who waits for a message to be saved.
type Waiter = oneshot::Sender<Result<Arc<Message>, Error>>;

/// Everything that belongs to one person on this device, from signing in to signing out.
pub(crate) struct Desk {
    pub(crate) me: String,
    pub(crate) now: Instant,
    pub(crate) ears: Ears,
    pub(crate) inside: Inside,
    pub(crate) sign_in: SignIn,
    pub(crate) wire: Wire,
    pub(crate) conversations: HashMap<String, Conversation>,
    /// Told as sending or as a preview: when they get their place that is no new message.
    pub(crate) shown: HashSet<String>,
    /// Conversations whose line changed; told once for many changes.
    pub(crate) touched: BTreeSet<String>,
    pub(crate) outbox: Outbox,
    pub(crate) acks: Acks,
    pub(crate) sync: Sync,
    pub(crate) typing: Typing,
    /// Whether the conversations are known that there are.
    pub(crate) is_ready: bool,
    pub(crate) keep: usize,
    waiters: HashMap<String, Vec<Waiter>>,
}

impl Desk {
    pub(crate) fn new(me: &str, core: &Core, inside: Inside, store: Keeper, keep: usize) -> Self {
        let (now, timing) = (core.now, &core.timing);
        Self {
            me: me.to_owned(),
            now,
            ears: core.ears.clone(),
            inside,
            sign_in: core.sign_in.clone(),
            wire: Wire::new(now),
            conversations: HashMap::new(),
            shown: HashSet::new(),
            touched: BTreeSet::new(),
            outbox: Outbox::new(me, timing.clone(), store, now),
            acks: Acks::new(timing),
            sync: Sync::new(timing, now),
            typing: Typing::new(timing),
            is_ready: false,
            keep,
            waiters: HashMap::new(),
        }
    }

    /// What an earlier run left unsent is shown again.
    pub(crate) fn load(&mut self) {
        for entry in self.outbox.load(self.now) {
            let message = self.sending(&entry);
            self.ears.tell(&Event::Message(message));
        }
    }

    pub(crate) fn online(&mut self, limits: &Limits, line: mpsc::UnboundedSender<String>) {
        self.wire.up(line);
        self.wire.frames.limit(limits.connection_frames_per_second, self.now);
        self.outbox.online(limits, self.now);
        self.sync.online();
        self.catch_up();
    }

    pub(crate) fn offline(&mut self) {
        self.wire.down();
        self.outbox.offline();
        self.acks.offline();
        self.sync.offline();
        self.drop_previews();
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        let due = [self.outbox.due(), self.acks.due(), self.sync.due(), self.typing.due()];
        due.into_iter().flatten().min()
    }

    /// Does what is due, and tells what changed.
    pub(crate) fn tick(&mut self) {
        let last_of = |id: &str| last_of(&self.conversations, id);
        self.outbox.tick(&mut self.wire, last_of, self.now);
        for entry in self.outbox.take_given_up() {
            let message = self.sending(&entry);
            self.update(message);
        }
        self.acks.tick(&mut self.conversations, &mut self.wire, self.now);
        self.tick_sync();
        for (conversation_id, user_id) in self.typing.tick(self.now) {
            self.ears.tell(&Event::Typing { conversation_id, user_id, on: false });
        }
        for id in std::mem::take(&mut self.touched) {
            if let Some(conversation) = self.conversations.get(&id) {
                self.ears.tell(&Event::Conversation(Arc::new(conversation.line())));
            }
        }
    }

    pub(crate) fn find(&mut self, target: &Target) -> Option<&mut Conversation> {
        self.conversations.get_mut(&target.conversation_id(&self.me))
    }

    pub(crate) fn send(&mut self, target: &Target, content: Content) -> Arc<Message> {
        let address = target.address(&self.me);
        let entry = Entry {
            order: 0,
            client_msg_id: new_name(),
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
        let message = self.sending(&entry);
        self.ears.tell(&Event::Message(message.clone()));
        self.outbox.add(entry, self.now);
        message
    }

    /// The server refused something of ours.
    pub(crate) fn refused(&mut self, client_msg_id: &str, reason: Reason) {
        let last_of = |id: &str| last_of(&self.conversations, id);
        self.outbox.refused(client_msg_id, reason, last_of, self.now);
    }

    /// Tells when it is saved or refused.
    pub(crate) fn wait_for(&mut self, message: &Message, waiter: Waiter) {
        let name = &message.client_msg_id;
        let conversation = self.conversations.get(&message.conversation_id);
        let known = conversation.and_then(|one| one.find_mine(name));
        self.waiters.entry(name.clone()).or_default().push(waiter);
        if let Some(known) = known {
            self.answer(&known);
        }
    }

    pub(crate) fn retry(&mut self, client_msg_id: &str) {
        if let Some(entry) = self.outbox.retry(client_msg_id, self.now) {
            let message = self.sending(&entry);
            self.update(message);
        }
    }

    pub(crate) fn discard(&mut self, client_msg_id: &str) {
        let Some(entry) = self.outbox.discard(client_msg_id) else { return };
        let Entry { conversation_id, client_msg_id, .. } = entry;
        self.open(&conversation_id).outgoing.remove(&client_msg_id);
        self.touch(&conversation_id);
        let server_msg_id = String::new();
        self.ears.tell(&Event::Removed { conversation_id, client_msg_id, server_msg_id });
    }

    /// Marks as read; the place if the server has to be told of it in another way.
    pub(crate) fn mark_read(&mut self, target: &Target, seq: Option<u64>) -> Option<(String, u64)> {
        let conversation = self.find(target)?;
        let id = conversation.id.clone();
        let last = conversation.held.last();
        let up_to = seq.unwrap_or(last).min(last);
        conversation.read_to(up_to, true);
        let is_here = up_to >= conversation.held.first();
        self.touch(&id);
        if is_here {
            self.acks.soon(&id, self.now);
        }
        // What is not here nobody can name: the place itself will do.
        (!is_here).then_some((id, up_to))
    }

    /// You are writing; the others hear of it now and then.
    pub(crate) fn write_to(&mut self, target: &Target) {
        let address = &target.address(&self.me);
        if self.typing.may_tell(&address.conversation_id(&self.me), self.now) {
            self.wire.send(&ClientFrame::Typing { address });
        }
    }

    /// News about a message: the app hears of it, and whoever waits.
    pub(crate) fn update(&mut self, message: Arc<Message>) {
        self.answer(&message);
        self.ears.tell(&Event::Update(message));
    }

    fn answer(&mut self, message: &Arc<Message>) {
        if !message.mine || self.waiters.is_empty() {
            return;
        }
        let answer = match message.reason.filter(|_| message.state == MessageState::Refused) {
            Some(reason) => Err(Error::refused(reason)),
            None if message.seq > 0 => Ok(message.clone()),
            None => return,
        };
        for waiter in self.waiters.remove(&message.client_msg_id).unwrap_or_default() {
            waiter.send(answer.clone()).ok(); // whoever waited may be gone
        }
    }
}

/// The last place of a conversation that is here.
fn last_of(conversations: &HashMap<String, Conversation>, id: &str) -> u64 {
    conversations.get(id).map_or(0, |conversation| conversation.held.last())
}
