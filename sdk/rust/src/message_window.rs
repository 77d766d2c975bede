//! The messages of a conversation on this device.
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::types::Message;

/// An unread count of the server for messages up to a seq: of all messages, or of mentions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerUnread {
    pub(crate) up_to: u64,
    pub(crate) read: u64,
    pub(crate) count: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct UnreadCount {
    unread: i64,
    mentions: i64,
}

/// The messages of a conversation on this device: a range of seqs without a gap, and how many of
/// them are unread. Unread messages before the range are only known from the server's count.
pub(crate) struct MessageWindow {
    /// The range begins after this seq.
    start: u64,
    messages: VecDeque<Arc<Message>>,
    seq_by_id: HashMap<String, u64>,
    before: UnreadCount,
    within: UnreadCount,
    /// Counts of the server that wait until the messages they count have arrived.
    server_unread: Option<ServerUnread>,
    server_mentions: Option<ServerUnread>,
    read: u64,
}

impl MessageWindow {
    pub(crate) fn new(start: u64) -> Self {
        Self {
            start,
            messages: VecDeque::new(),
            seq_by_id: HashMap::new(),
            before: UnreadCount::default(),
            within: UnreadCount::default(),
            server_unread: None,
            server_mentions: None,
            read: 0,
        }
    }

    pub(crate) fn all(&self) -> &VecDeque<Arc<Message>> {
        &self.messages
    }

    /// The first seq of the range, also while it is empty.
    pub(crate) fn first(&self) -> u64 {
        self.start + 1
    }

    pub(crate) fn last(&self) -> u64 {
        self.start + self.messages.len() as u64
    }

    pub(crate) fn read(&self) -> u64 {
        self.read
    }

    pub(crate) fn unread(&self) -> u64 {
        (self.before.unread + self.within.unread).cast_unsigned()
    }

    pub(crate) fn mentions(&self) -> u64 {
        (self.before.mentions + self.within.mentions).cast_unsigned()
    }

    pub(crate) fn at(&self, seq: u64) -> Option<&Arc<Message>> {
        self.messages.get(self.index(seq)?)
    }

    /// The last message up to this seq that has an id.
    pub(crate) fn last_readable(&self, seq: u64) -> Option<&Arc<Message>> {
        let end = self.index(seq)?.checked_add(1)?.min(self.messages.len());
        self.messages.range(..end).rev().find(|message| !message.is_damaged)
    }

    pub(crate) fn find(&self, server_msg_id: &str) -> Option<&Arc<Message>> {
        self.at(*self.seq_by_id.get(server_msg_id)?)
    }

    /// Appends the next message.
    pub(crate) fn append(&mut self, message: Arc<Message>) {
        debug_assert_eq!(message.seq, self.last() + 1, "a gap in the message window");
        self.count(&message, 1);
        self.seq_by_id.insert(message.server_msg_id.clone(), message.seq);
        self.messages.push_back(message);
        self.apply_server_counts();
    }

    /// Prepends older messages; they must end where the range begins.
    pub(crate) fn prepend(&mut self, older: &[Arc<Message>]) {
        let counted = self.within;
        for message in older.iter().rev() {
            debug_assert_eq!(message.seq, self.start, "a gap in the message window");
            self.count(message, 1);
            self.seq_by_id.insert(message.server_msg_id.clone(), message.seq);
            self.messages.push_front(message.clone());
            self.start -= 1;
        }
        self.shift_before(counted);
        self.clamp_before();
    }

    /// Drops the oldest messages; they can be loaded again.
    pub(crate) fn trim(&mut self, keep: usize) {
        let counted = self.within;
        while self.messages.len() > keep {
            let Some(message) = self.messages.pop_front() else { break };
            self.count(&message, -1);
            self.seq_by_id.remove(&message.server_msg_id);
            self.start += 1;
        }
        self.shift_before(counted);
    }

    /// Drops the messages before this seq, which the user may no longer see.
    pub(crate) fn cut_before(&mut self, seq: u64) {
        if seq <= self.first() {
            return;
        }
        let keep = (self.last() + 1).saturating_sub(seq);
        self.trim(usize::try_from(keep).unwrap_or(usize::MAX));
        if self.messages.is_empty() {
            self.start = seq - 1;
        }
        self.before = UnreadCount::default();
    }

    /// Changes a message; returns the new one.
    pub(crate) fn update(
        &mut self,
        seq: u64,
        change: impl FnOnce(&mut Message),
    ) -> Option<Arc<Message>> {
        let index = self.index(seq)?;
        let message = self.messages.get_mut(index)?;
        change(Arc::make_mut(message));
        Some(message.clone())
    }

    /// Moves the read cursor; the server may also move it back.
    pub(crate) fn read_to(&mut self, seq: u64) {
        if seq == self.read {
            return;
        }
        let (from, to) = (seq.min(self.read), seq.max(self.read));
        let by = if seq < self.read { 1 } else { -1 };
        for at in (from + 1).max(self.first())..=to.min(self.last()) {
            let Some(message) = self.at(at).filter(|message| !message.is_mine) else { continue };
            let important = message.is_important;
            self.within.unread += by;
            self.within.mentions += if important { by } else { 0 };
        }
        self.read = seq;
        self.clamp_before();
    }

    /// Sets the server's unread count, to know how many are before the range.
    pub(crate) fn set_server_unread(&mut self, server: ServerUnread) {
        self.server_unread = Some(server);
        self.apply_server_counts();
    }

    /// Sets the server's count of unread mentions.
    pub(crate) fn set_server_mentions(&mut self, server: ServerUnread) {
        self.server_mentions = Some(server);
        self.apply_server_counts();
    }

    fn index(&self, seq: u64) -> Option<usize> {
        usize::try_from(seq.checked_sub(self.first())?).ok()
    }

    fn apply_server_counts(&mut self) {
        let (last, read) = (self.last(), self.read);
        let is_here = |server: &mut ServerUnread| server.up_to <= last;
        if let Some(server) =
            self.server_unread.take_if(is_here).filter(|server| server.read == read)
        {
            let within = self.within.unread - self.unread_after(server).unread;
            self.before.unread = server.count.cast_signed() - within;
            self.clamp_before();
        }
        if let Some(server) =
            self.server_mentions.take_if(is_here).filter(|server| server.read == read)
        {
            let within = self.within.mentions - self.unread_after(server).mentions;
            self.before.mentions = server.count.cast_signed() - within;
            self.clamp_before();
        }
    }

    /// Counts unread messages after those the server counted.
    fn unread_after(&self, server: ServerUnread) -> UnreadCount {
        let range = (server.up_to + 1).max(self.first())..=self.last();
        let later = range.filter_map(|at| self.at(at)).filter(|one| self.is_unread(one));
        later.fold(UnreadCount::default(), |count, one| UnreadCount {
            unread: count.unread + 1,
            mentions: count.mentions + i64::from(one.is_important),
        })
    }

    /// Moves unread counts between `before` and `within` after messages entered or left the range.
    fn shift_before(&mut self, counted: UnreadCount) {
        self.before.unread += counted.unread - self.within.unread;
        self.before.mentions += counted.mentions - self.within.mentions;
    }

    /// If the read cursor is within the range, nothing before it is unread.
    fn clamp_before(&mut self) {
        if self.read >= self.start {
            self.before = UnreadCount::default();
        }
        self.before.unread = self.before.unread.max(0);
        self.before.mentions = self.before.mentions.max(0);
    }

    fn is_unread(&self, message: &Message) -> bool {
        !message.is_mine && message.seq > self.read
    }

    fn count(&mut self, message: &Message, by: i64) {
        if self.is_unread(message) {
            self.within.unread += by;
            self.within.mentions += if message.is_important { by } else { 0 };
        }
    }
}

#[cfg(test)]
mod tests;
