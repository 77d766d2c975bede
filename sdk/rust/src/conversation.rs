//! The state of one conversation on this device.
use std::collections::HashSet;
use std::sync::Arc;

use serde::Deserialize;

use crate::arrange::{arrange, latest};
use crate::contiguous::Contiguous;
use crate::conversation_summary::{ConversationDetails, ConversationSummary};
use crate::cursors::Cursors;
use crate::events::Receipt;
use crate::message_window::{MessageWindow, ServerUnread};
use crate::reads::{GroupReads, MessageProgress};
use crate::types::{Address, Change, ChangeKind, Message, Receive};
use crate::unsequenced::Unsequenced;

/// A conversation that is created while signed in is loaded from its beginning, up to this many
/// messages.
const SHORT: u64 = 200;

/// A head of a conversation, as HTTP returns it.
#[derive(Debug, Clone, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "the server sends each on its own")]
pub(crate) struct Head {
    pub(crate) conversation_id: String,
    pub(crate) min_seq: u64,
    pub(crate) max_seq: u64,
    pub(crate) delivered_seq: u64,
    pub(crate) read_seq: u64,
    pub(crate) min_change_seq: u64,
    pub(crate) change_seq: u64,
    pub(crate) unread_count: u64,
    pub(crate) is_active: bool,
    #[serde(default)]
    pub(crate) is_ended: bool,
    #[serde(default)]
    pub(crate) is_hidden: bool,
    pub(crate) is_pinned: bool,
    pub(crate) recv_msg_opt: u8,
    pub(crate) updated_at: u64,
    /// When the user joined; absent in a private conversation.
    pub(crate) joined_at: Option<u64>,
}

/// The state of one conversation on this device. Pure state without I/O or events.
pub(crate) struct Conversation {
    pub(crate) id: String,
    me: String,
    pub(crate) address: Address,
    pub(crate) messages: MessageWindow,
    /// Messages that have arrived, and up to which seq they exist; the same for changes.
    pub(crate) arrived: Contiguous<Arc<Message>>,
    pub(crate) changes: Contiguous<Arc<Change>>,
    /// Whether the start of the message window is set; until then a missing seq is no gap.
    pub(crate) has_begun: bool,
    /// The first seq the user may see.
    pub(crate) min_seq: u64,
    pub(crate) details: ConversationDetails,
    /// About this many messages stay in memory.
    pub(crate) keep: usize,
    /// Own messages in the outbox, and previews of others; neither has a seq.
    pub(crate) outgoing: Unsequenced,
    pub(crate) previews: Unsequenced,
    /// Messages up to this seq were delivered before this device signed in: history, no events.
    pub(crate) history_up_to: u64,
    pub(crate) cursors: Cursors,
    /// In a group: the cursors of the members.
    pub(crate) reads: Option<GroupReads>,
    /// Ids of messages recalled before they arrived.
    recalled: HashSet<String>,
}

impl Conversation {
    pub(crate) fn new(id: &str, me: &str, keep: usize) -> Self {
        let address = Address::of(me, id);
        let is_group = matches!(address, Address::Group { .. });
        Self {
            id: id.to_owned(),
            me: me.to_owned(),
            address,
            messages: MessageWindow::new(0),
            arrived: Contiguous::new(0),
            changes: Contiguous::new(0),
            has_begun: false,
            min_seq: 1,
            details: ConversationDetails::default(),
            keep,
            outgoing: Unsequenced::default(),
            previews: Unsequenced::default(),
            history_up_to: 0,
            cursors: Cursors::default(),
            reads: is_group.then(|| GroupReads::new(me)),
            recalled: HashSet::new(),
        }
    }

    /// Sets the start of the message window: after this seq.
    pub(crate) fn begin(&mut self, after: u64, change_seq: u64) -> Vec<Arc<Message>> {
        if self.has_begun {
            return Vec::new();
        }
        self.has_begun = true;
        self.messages = MessageWindow::new(after);
        self.messages.read_to(self.cursors.read());
        self.changes.skip_to(change_seq);
        // Buffered messages of others may have been recalled by a change before `change_seq`, so
        // they are pulled again.
        if change_seq > 0 {
            self.arrived.retain_buffered(|message| message.is_mine);
        }
        let ready = self.arrived.skip_to(after);
        self.append_all(ready)
    }

    /// Chooses where a new conversation starts on this device. Right after sign-in: with the
    /// messages that no device of the user has received yet, and at least with the last one; older
    /// ones are history, loaded on demand. Later: with its first message.
    pub(crate) fn begin_from_head(&mut self, head: &Head, is_first: bool) -> Vec<Arc<Message>> {
        if self.has_begun {
            return Vec::new();
        }
        let start = head.min_seq.saturating_sub(1);
        if !is_first && head.max_seq.saturating_sub(start) <= SHORT {
            self.history_up_to = start;
            return self.begin(start, head.min_change_seq.saturating_sub(1));
        }
        self.history_up_to = head.delivered_seq;
        let unseen = head.delivered_seq.min(head.max_seq.saturating_sub(1));
        self.begin(unseen.max(start), head.change_seq)
    }

    /// Adds a message and returns those that are now contiguous.
    pub(crate) fn add_message(&mut self, mut message: Message) -> Vec<Arc<Message>> {
        self.previews.remove(&message.server_msg_id);
        if message.is_mine {
            self.outgoing.remove(&message.client_msg_id);
            self.progress_at(message.seq).apply_to(&mut message);
        }
        if self.recalled.remove(&message.server_msg_id) {
            message.clear_recalled();
        }
        // A push says whether it is important; for a pulled reply it is derived here.
        let replied_to = message.reply_to.as_ref().and_then(|id| self.messages.find(id));
        message.is_important |= !message.is_mine && replied_to.is_some_and(|one| one.is_mine);
        if !self.has_begun && message.seq == 1 {
            self.begin(0, 0);
        }
        let ready = self.arrived.add(message.seq, Arc::new(message));
        if self.has_begun { self.append_all(ready) } else { Vec::new() }
    }

    /// Prepends older messages, which end before the oldest one here.
    pub(crate) fn prepend_older(&mut self, older: Vec<Message>) -> Vec<Arc<Message>> {
        let mut fresh = Vec::with_capacity(older.len());
        for mut message in older {
            if self.recalled.contains(&message.server_msg_id) {
                message.clear_recalled();
            }
            if message.is_mine {
                self.progress_at(message.seq).apply_to(&mut message);
            }
            fresh.push(Arc::new(message));
        }
        self.messages.prepend(&fresh);
        self.keep = self.keep.saturating_add(fresh.len()); // the user loaded them, so they stay in memory
        fresh
    }

    /// Applies a head of the server; returns messages that a new visibility window made contiguous.
    pub(crate) fn apply_head(&mut self, head: &Head) -> Vec<Arc<Message>> {
        self.set_settings(head.is_pinned, head.recv_msg_opt);
        self.details.left = !head.is_active;
        self.details.is_ended = head.is_ended;
        self.details.hidden_seq = head.is_hidden.then_some(head.max_seq);
        self.details.updated_at = self.details.updated_at.max(head.updated_at);
        let ready = self.reopen(head.min_seq, head.min_change_seq);
        self.arrived.expect(head.max_seq);
        self.changes.expect(head.change_seq);
        self.cursors.apply_head(head);
        self.messages.read_to(self.cursors.read());
        let (up_to, read, count) = (head.max_seq, head.read_seq, head.unread_count);
        self.messages.set_server_unread(ServerUnread { up_to, read, count });
        ready
    }

    pub(crate) fn set_settings(&mut self, pinned: bool, receive: u8) {
        self.details.is_pinned = pinned;
        self.details.receive = Receive::of(receive);
    }

    /// Moves our read cursor, confirmed or assumed.
    pub(crate) fn read_to(&mut self, seq: u64, is_confirmed: bool) {
        self.cursors.read_to(seq, is_confirmed);
        self.messages.read_to(self.cursors.read().max(self.messages.read()));
    }

    /// Applies a receipt; returns the own messages it changes.
    pub(crate) fn apply_receipt(
        &mut self,
        user_id: &str,
        kind: Receipt,
        seq: u64,
    ) -> Vec<Arc<Message>> {
        let before = match &mut self.reads {
            Some(reads) => reads.apply_receipt(user_id, kind, seq),
            None => self.cursors.apply_receipt(kind, seq),
        };
        self.recount(before.saturating_add(1), seq)
    }

    /// Recalculates state and `read_by` of our messages in a range; returns those that changed.
    pub(crate) fn recount(&mut self, from: u64, to: u64) -> Vec<Arc<Message>> {
        let mut changed = Vec::new();
        for at in from.max(self.messages.first())..=to.min(self.messages.last()) {
            let Some(message) = self.messages.at(at).filter(|one| one.is_mine) else { continue };
            let progress = self.progress_at(at);
            if progress != MessageProgress::of(message) {
                changed.extend(self.messages.update(at, |message| progress.apply_to(message)));
            }
        }
        changed
    }

    /// The progress of our message at this seq.
    pub(crate) fn progress_at(&self, seq: u64) -> MessageProgress {
        match &self.reads {
            Some(reads) => reads.at(seq),
            None => MessageProgress { state: self.cursors.state_at(seq), read_by: None },
        }
    }

    /// Recalls a message; returns the changed one if it is here.
    pub(crate) fn recall(&mut self, server_msg_id: &str) -> Option<Arc<Message>> {
        if let Some(message) = self.messages.find(server_msg_id) {
            let (seq, revoked) = (message.seq, message.is_recalled);
            return if revoked { None } else { self.messages.update(seq, Message::clear_recalled) };
        }
        self.recalled.insert(server_msg_id.to_owned());
        for buffered in self.arrived.buffered_mut() {
            if buffered.server_msg_id == server_msg_id {
                Arc::make_mut(buffered).clear_recalled();
            }
        }
        None
    }

    /// Applies a change of the group; returns messages that a new visibility window made
    /// contiguous.
    pub(crate) fn apply_change(&mut self, change: &Change) -> Vec<Arc<Message>> {
        let is_me = change.user_ids.contains(&self.me);
        match change.kind {
            ChangeKind::Joined => {
                self.details.has_info = false; // reload: the member count changed
                let from = change.seq.unwrap_or(self.messages.last() + 1);
                if let Some(reads) = &mut self.reads {
                    reads.join(change, from);
                }
                if is_me {
                    self.details.left = false;
                    self.details.hidden_seq = None;
                    return self
                        .reopen(self.min_seq.max(change.seq.unwrap_or(1)), change.change_seq);
                }
            }
            ChangeKind::Left | ChangeKind::Kicked => {
                self.details.has_info = false;
                self.details.left |= is_me;
                if let Some(reads) = &mut self.reads {
                    reads.leave(change);
                }
            }
            ChangeKind::Updated => {
                let field = |name: &str| change.group.as_ref()?.get(name).cloned();
                self.details.name = field("name").unwrap_or_else(|| self.details.name.clone());
                self.details.avatar =
                    field("avatar").unwrap_or_else(|| self.details.avatar.clone());
            }
            ChangeKind::Dissolved | ChangeKind::Dismissed => {
                (self.details.left, self.details.is_ended) = (true, true);
            }
            _ => {}
        }
        Vec::new()
    }

    /// All messages in display order.
    pub(crate) fn list(&self) -> Vec<Arc<Message>> {
        let mine = self.arrived.buffered().filter(|message| message.is_mine);
        arrange(&self.messages, mine.chain(self.previews.all()).chain(self.outgoing.all()))
    }

    /// The own message with this client message id.
    pub(crate) fn find_mine(&self, client_msg_id: &str) -> Option<Arc<Message>> {
        let is_it = |one: &&Arc<Message>| one.is_mine && one.client_msg_id == client_msg_id;
        let buffered = || self.arrived.buffered().find(is_it);
        let in_window = || self.messages.all().iter().rev().find(is_it);
        self.outgoing.get(client_msg_id).or_else(buffered).or_else(in_window).cloned()
    }

    /// Whether it has any messages: looking up a mistyped user id must not create a visible
    /// conversation.
    pub(crate) fn has_content(&self) -> bool {
        self.has_begun || !self.outgoing.is_empty() || !self.previews.is_empty()
    }

    /// Whether it was hidden and has no newer message.
    fn is_hidden(&self) -> bool {
        let is_last = |seq| self.arrived.last() <= seq;
        let is_quiet = self.outgoing.is_empty() && self.previews.is_empty();
        is_quiet && self.details.hidden_seq.is_some_and(is_last)
    }

    /// Whether it is in the list.
    pub(crate) fn is_listed(&self) -> bool {
        self.has_content() && !self.details.is_ended && !self.is_hidden()
    }

    /// Whether messages or changes are missing. A blocked conversation fetches nothing until it is
    /// unblocked.
    pub(crate) fn is_behind(&self) -> bool {
        if self.details.receive == Receive::Blocked {
            return false;
        }
        self.arrived.gap().is_some() || self.changes.gap().is_some()
    }

    /// The last contiguous message seq and change seq.
    pub(crate) fn cursor(&self) -> (u64, u64) {
        (self.arrived.last(), self.changes.last())
    }

    pub(crate) fn summary(&self) -> ConversationSummary {
        let last_message = latest(&self.messages, &self.previews, &self.outgoing);
        let details = &self.details;
        let name = if details.name.is_empty() { self.address.id() } else { &details.name };
        let at = last_message.as_ref().map_or(0, |message| message.at);
        ConversationSummary {
            id: self.id.clone(),
            address: self.address.clone(),
            name: name.to_owned(),
            avatar: details.avatar.clone(),
            member_count: details.member_count,
            unread: self.messages.unread(),
            mention_unread: self.messages.mentions(),
            last_message,
            is_pinned: details.is_pinned,
            receive: details.receive,
            is_active: !details.left,
            is_ended: details.is_ended,
            is_hidden: self.is_hidden(),
            last_seq: self.messages.last(),
            read_seq: self.messages.read(),
            peer_delivered_seq: self.cursors.peer_delivered,
            peer_read_seq: self.cursors.peer_read,
            updated_at: details.updated_at.max(at),
        }
    }

    fn append_all(&mut self, ready: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
        for message in &ready {
            self.messages.append(message.clone());
        }
        ready
    }

    /// Opens a new visibility window: the user left the group and rejoined, and sees only what came
    /// since.
    fn reopen(&mut self, min: u64, min_change: u64) -> Vec<Arc<Message>> {
        self.min_seq = min;
        self.changes.skip_to(min_change.saturating_sub(1));
        if !self.has_begun || min <= self.messages.first() {
            return Vec::new();
        }
        let ready = self.arrived.skip_to(min - 1);
        self.messages.cut_before(min);
        self.append_all(ready)
    }
}
