//! One conversation as this device knows it.
use std::collections::HashSet;
use std::sync::Arc;

use serde::Deserialize;

use crate::arrange::{arrange, latest};
use crate::cursors::Cursors;
use crate::events::Receipt;
use crate::held::{Held, Told};
use crate::line::{About, ConversationLine};
use crate::prefix::Prefix;
use crate::reads::{GroupReads, Progress};
use crate::types::{Address, Change, Message, Receive};
use crate::unplaced::Unplaced;

/// A conversation that began while we were signed in here is taken from its beginning, up to this
/// length.
const SHORT: u64 = 200;

/// A head as HTTP tells it.
#[derive(Debug, Clone, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is told by the server on its own")]
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
}

/// One conversation as this device knows it. Pure state: it asks nobody and tells nobody.
pub(crate) struct Conversation {
    pub(crate) id: String,
    me: String,
    pub(crate) address: Address,
    pub(crate) held: Held,
    /// What has arrived, and what is said to exist.
    pub(crate) arrived: Prefix<Arc<Message>>,
    pub(crate) changes: Prefix<Arc<Change>>,
    /// Whether it is known where the run of messages starts; until then nothing is a hole.
    pub(crate) has_begun: bool,
    /// The first place we may see.
    pub(crate) min: u64,
    pub(crate) about: About,
    /// About so many messages stay on this device.
    pub(crate) keep: usize,
    /// Ours on their way, and others' without a place.
    pub(crate) outgoing: Unplaced,
    pub(crate) previews: Unplaced,
    /// What had been delivered when this device came: history, no news.
    pub(crate) old_up_to: u64,
    pub(crate) cursors: Cursors,
    /// Of a group: how far each member is.
    pub(crate) reads: Option<GroupReads>,
    /// Taken back before they arrived here.
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
            held: Held::new(0),
            arrived: Prefix::new(0),
            changes: Prefix::new(0),
            has_begun: false,
            min: 1,
            about: About::default(),
            keep,
            outgoing: Unplaced::default(),
            previews: Unplaced::default(),
            old_up_to: 0,
            cursors: Cursors::default(),
            reads: is_group.then(|| GroupReads::new(me)),
            recalled: HashSet::new(),
        }
    }

    /// The run of messages starts after this place.
    pub(crate) fn begin(&mut self, after: u64, change_seq: u64) -> Vec<Arc<Message>> {
        if self.has_begun {
            return Vec::new();
        }
        self.has_begun = true;
        self.held = Held::new(after);
        self.held.read_to(self.cursors.read());
        self.changes.skip_to(change_seq);
        // What others said may have been taken back before the changes we shall hear of: pulled anew.
        if change_seq > 0 {
            self.arrived.forget_early(|message| message.mine);
        }
        let ready = self.arrived.skip_to(after);
        self.hold(ready)
    }

    /// Where a conversation that is new to this device starts. If the device has just come: with what
    /// nobody has received yet, and at least with its last message; what is older is history, loaded
    /// when somebody looks. If it was signed in here before, everything is news.
    pub(crate) fn begin_at_if_new(&mut self, head: &Head, is_first: bool) -> Vec<Arc<Message>> {
        if self.has_begun {
            return Vec::new();
        }
        let start = head.min_seq.saturating_sub(1);
        let first_change = head.min_change_seq.saturating_sub(1);
        if !is_first && head.max_seq.saturating_sub(start) <= SHORT {
            self.old_up_to = start;
            return self.begin(start, first_change);
        }
        self.old_up_to = head.delivered_seq;
        let unseen = head.delivered_seq.min(head.max_seq.saturating_sub(1));
        let few = head.change_seq < head.min_change_seq.saturating_add(SHORT);
        let is_new = head.delivered_seq <= start && few;
        self.begin(unseen.max(start), if is_new { first_change } else { head.change_seq })
    }

    /// Takes a message and returns those that are now in order, itself or more.
    pub(crate) fn take(&mut self, mut message: Message) -> Vec<Arc<Message>> {
        self.previews.remove(&message.server_msg_id);
        if message.mine {
            self.outgoing.remove(&message.client_msg_id);
            self.progress_at(message.seq).put(&mut message);
        }
        if self.recalled.remove(&message.server_msg_id) {
            message.take_back();
        }
        // A push says whether it speaks to us; of a pulled answer we find out.
        let answered = message.reply_to.as_ref().and_then(|id| self.held.find(id));
        message.important |= !message.mine && answered.is_some_and(|one| one.mine);
        if !self.has_begun && message.seq == 1 {
            self.begin(0, 0);
        }
        let ready = self.arrived.add(message.seq, Arc::new(message));
        if self.has_begun { self.hold(ready) } else { Vec::new() }
    }

    /// Older ones, in order, up to the oldest that is held.
    pub(crate) fn take_older(&mut self, older: Vec<Message>) -> Vec<Arc<Message>> {
        let mut fresh = Vec::with_capacity(older.len());
        for mut message in older {
            if self.recalled.contains(&message.server_msg_id) {
                message.take_back();
            }
            if message.mine {
                self.progress_at(message.seq).put(&mut message);
            }
            fresh.push(Arc::new(message));
        }
        self.held.prepend(&fresh);
        self.keep = self.keep.saturating_add(fresh.len()); // somebody wants to see them
        fresh
    }

    /// Compares with what the server has; what is now in order, if a new window let it be.
    pub(crate) fn hear_head(&mut self, head: &Head) -> Vec<Arc<Message>> {
        self.choose(head.is_pinned, head.recv_msg_opt);
        self.about.left = !head.is_active;
        self.about.ended = head.is_ended;
        self.about.hidden_seq = head.is_hidden.then_some(head.max_seq);
        self.about.updated_at = self.about.updated_at.max(head.updated_at);
        let ready = self.reopen(head.min_seq, head.min_change_seq);
        self.arrived.expect(head.max_seq);
        self.changes.expect(head.change_seq);
        self.cursors.hear_head(head);
        self.held.read_to(self.cursors.read());
        let (up_to, read, many) = (head.max_seq, head.read_seq, head.unread_count);
        self.held.hear(Told { up_to, read, many });
        ready
    }

    pub(crate) fn choose(&mut self, pinned: bool, receive: u8) {
        self.about.pinned = pinned;
        self.about.receive = Receive::of(receive);
    }

    /// We have read up to here, for sure or as it seems.
    pub(crate) fn read_to(&mut self, seq: u64, is_sure: bool) {
        self.cursors.read_to(seq, is_sure);
        self.held.read_to(self.cursors.read().max(self.held.read()));
    }

    /// Somebody has received or read up to here; ours that this changes.
    pub(crate) fn hear_receipt(
        &mut self,
        user_id: &str,
        kind: Receipt,
        seq: u64,
    ) -> Vec<Arc<Message>> {
        let before = match &mut self.reads {
            Some(reads) => reads.hear(user_id, kind, seq),
            None => self.cursors.hear_receipt(kind, seq),
        };
        self.recount(before.saturating_add(1), seq)
    }

    /// Compares our own messages between two places with what receipts say of them; those that change.
    pub(crate) fn recount(&mut self, from: u64, to: u64) -> Vec<Arc<Message>> {
        let mut changed = Vec::new();
        for at in from.max(self.held.first())..=to.min(self.held.last()) {
            let Some(message) = self.held.at(at).filter(|one| one.mine) else { continue };
            let progress = self.progress_at(at);
            if progress != Progress::of(message) {
                changed.extend(self.held.change(at, |message| progress.put(message)));
            }
        }
        changed
    }

    /// How far one of ours at this place has come.
    pub(crate) fn progress_at(&self, seq: u64) -> Progress {
        match &self.reads {
            Some(reads) => reads.at(seq),
            None => Progress { state: self.cursors.state_at(seq), read_by: None },
        }
    }

    /// It was taken back: the message as it is now, if it is here.
    pub(crate) fn recall(&mut self, server_msg_id: &str) -> Option<Arc<Message>> {
        if let Some(held) = self.held.find(server_msg_id) {
            let (seq, revoked) = (held.seq, held.revoked);
            return if revoked { None } else { self.held.change(seq, Message::take_back) };
        }
        self.recalled.insert(server_msg_id.to_owned());
        for early in self.arrived.early_mut() {
            if early.server_msg_id == server_msg_id {
                Arc::make_mut(early).take_back();
            }
        }
        None
    }

    /// Applies what happened to the group; what is now in order, if a new window let it be.
    pub(crate) fn hear_change(&mut self, change: &Change) -> Vec<Arc<Message>> {
        let is_me = change.user_ids.contains(&self.me);
        match change.kind.as_str() {
            "joined" => {
                self.about.is_known = false; // how many there are now, the server says
                let from = change.seq.unwrap_or(self.held.last() + 1);
                if let Some(reads) = &mut self.reads {
                    reads.join(change, from);
                }
                if is_me {
                    self.about.left = false;
                    self.about.hidden_seq = None;
                    return self.reopen(self.min.max(change.seq.unwrap_or(1)), change.change_seq);
                }
            }
            "left" | "kicked" => {
                self.about.is_known = false;
                self.about.left |= is_me;
                if let Some(reads) = &mut self.reads {
                    reads.leave(change);
                }
            }
            "updated" => {
                let field = |name: &str| change.group.as_ref()?.get(name).cloned();
                self.about.name = field("name").unwrap_or_else(|| self.about.name.clone());
                self.about.avatar = field("avatar").unwrap_or_else(|| self.about.avatar.clone());
            }
            "dissolved" | "dismissed" => (self.about.left, self.about.ended) = (true, true),
            _ => {}
        }
        Vec::new()
    }

    /// Everything to show, in order.
    pub(crate) fn list(&self) -> Vec<Arc<Message>> {
        let mine = self.arrived.early().filter(|message| message.mine);
        arrange(&self.held, mine.chain(self.previews.all()).chain(self.outgoing.all()))
    }

    /// One of ours by its name, wherever it is.
    pub(crate) fn find_mine(&self, client_msg_id: &str) -> Option<Arc<Message>> {
        let is_it = |one: &&Arc<Message>| one.mine && one.client_msg_id == client_msg_id;
        let early = || self.arrived.early().find(is_it);
        let held = || self.held.all().iter().rev().find(is_it);
        self.outgoing.get(client_msg_id).or_else(early).or_else(held).cloned()
    }

    /// Whether there is anything to it: a name somebody mistyped once is no conversation.
    pub(crate) fn is_there(&self) -> bool {
        self.has_begun || !self.outgoing.is_empty() || !self.previews.is_empty()
    }

    /// Whether it was hidden, and nothing was said since.
    fn is_hidden(&self) -> bool {
        let is_last = |seq| self.arrived.last() <= seq;
        let is_quiet = self.outgoing.is_empty() && self.previews.is_empty();
        is_quiet && self.about.hidden_seq.is_some_and(is_last)
    }

    /// Whether it is in the list.
    pub(crate) fn is_listed(&self) -> bool {
        self.is_there() && !self.about.ended && !self.is_hidden()
    }

    /// Whether something is missing. Nothing is of a blocked conversation, until it is unblocked.
    pub(crate) fn is_behind(&self) -> bool {
        if self.about.receive == Receive::Blocked {
            return false;
        }
        self.arrived.hole().is_some() || self.changes.hole().is_some()
    }

    /// How far messages and changes are here.
    pub(crate) fn place(&self) -> (u64, u64) {
        (self.arrived.last(), self.changes.last())
    }

    pub(crate) fn line(&self) -> ConversationLine {
        let last_message = latest(&self.held, &self.previews, &self.outgoing);
        let about = &self.about;
        let name = if about.name.is_empty() { self.address.id() } else { &about.name };
        let at = last_message.as_ref().map_or(0, |message| message.at);
        ConversationLine {
            id: self.id.clone(),
            address: self.address.clone(),
            name: name.to_owned(),
            avatar: about.avatar.clone(),
            member_count: about.member_count,
            unread: self.held.unread(),
            mention_unread: self.held.mentions(),
            last_message,
            pinned: about.pinned,
            receive: about.receive,
            active: !about.left,
            ended: about.ended,
            hidden: self.is_hidden(),
            last_seq: self.held.last(),
            read_seq: self.held.read(),
            peer_delivered_seq: self.cursors.peer_delivered,
            peer_read_seq: self.cursors.peer_read,
            updated_at: about.updated_at.max(at),
        }
    }

    fn hold(&mut self, ready: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
        for message in &ready {
            self.held.append(message.clone());
        }
        ready
    }

    /// A new window: we left and came back, and see only what came since.
    fn reopen(&mut self, min: u64, min_change: u64) -> Vec<Arc<Message>> {
        self.min = min;
        self.changes.skip_to(min_change.saturating_sub(1));
        if !self.has_begun || min <= self.held.first() {
            return Vec::new();
        }
        let ready = self.arrived.skip_to(min - 1);
        self.held.cut_before(min);
        self.hold(ready)
    }
}
