//! The messages of a conversation that are on this device.
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::types::Message;

/// What the server counts of what is unread, up to a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    pub(crate) up_to: u64,
    pub(crate) read: u64,
    pub(crate) many: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    unread: i64,
    mentions: i64,
}

/// The messages of a conversation that are on this device: a run of places without a hole, and how
/// many of them are unread. What is unread before the run is only known from the server's count.
pub(crate) struct Held {
    /// The run begins after this place.
    start: u64,
    messages: VecDeque<Arc<Message>>,
    places: HashMap<String, u64>,
    before: Count,
    within: Count,
    /// Counts that wait until everything is here that they count.
    told: Option<Told>,
    told_mentions: Option<Told>,
    read: u64,
}

impl Held {
    pub(crate) fn new(start: u64) -> Self {
        Self {
            start,
            messages: VecDeque::new(),
            places: HashMap::new(),
            before: Count::default(),
            within: Count::default(),
            told: None,
            told_mentions: None,
            read: 0,
        }
    }

    pub(crate) fn all(&self) -> &VecDeque<Arc<Message>> {
        &self.messages
    }

    /// The first place of the run, even if it is empty yet.
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

    pub(crate) fn find(&self, server_msg_id: &str) -> Option<&Arc<Message>> {
        self.at(*self.places.get(server_msg_id)?)
    }

    /// Puts the next one at the end.
    pub(crate) fn append(&mut self, message: Arc<Message>) {
        debug_assert_eq!(message.seq, self.last() + 1, "a hole in what is held");
        self.count(&message, 1);
        self.places.insert(message.server_msg_id.clone(), message.seq);
        self.messages.push_back(message);
        self.compare();
    }

    /// Puts older ones before the others; they end where the run begins.
    pub(crate) fn prepend(&mut self, older: &[Arc<Message>]) {
        let known = self.within;
        for message in older.iter().rev() {
            debug_assert_eq!(message.seq, self.start, "a hole in what is held");
            self.count(message, 1);
            self.places.insert(message.server_msg_id.clone(), message.seq);
            self.messages.push_front(message.clone());
            self.start -= 1;
        }
        self.moved(known);
        self.floor();
    }

    /// Lets go of the oldest; they can be loaded again.
    pub(crate) fn trim(&mut self, keep: usize) {
        let known = self.within;
        while self.messages.len() > keep {
            let Some(message) = self.messages.pop_front() else { break };
            self.count(&message, -1);
            self.places.remove(&message.server_msg_id);
            self.start += 1;
        }
        self.moved(known);
    }

    /// Nothing before this place is ours to see any more.
    pub(crate) fn cut_before(&mut self, seq: u64) {
        if seq <= self.first() {
            return;
        }
        let keep = (self.last() + 1).saturating_sub(seq);
        self.trim(usize::try_from(keep).unwrap_or(usize::MAX));
        if self.messages.is_empty() {
            self.start = seq - 1;
        }
        self.before = Count::default();
    }

    /// News about one that is held; the message as it is now.
    pub(crate) fn change(
        &mut self,
        seq: u64,
        news: impl FnOnce(&mut Message),
    ) -> Option<Arc<Message>> {
        let index = self.index(seq)?;
        let message = self.messages.get_mut(index)?;
        news(Arc::make_mut(message));
        Some(message.clone())
    }

    /// Moves the read cursor, rarely also back.
    pub(crate) fn read_to(&mut self, seq: u64) {
        if seq == self.read {
            return;
        }
        let (from, to) = (seq.min(self.read), seq.max(self.read));
        let by = if seq < self.read { 1 } else { -1 };
        for at in (from + 1).max(self.first())..=to.min(self.last()) {
            let Some(message) = self.at(at).filter(|message| !message.mine) else { continue };
            let important = message.important;
            self.within.unread += by;
            self.within.mentions += if important { by } else { 0 };
        }
        self.read = seq;
        self.floor();
    }

    /// What the server counts as unread, for what is before the run.
    pub(crate) fn hear(&mut self, told: Told) {
        self.told = Some(told);
        self.compare();
    }

    /// The same for what speaks to us in particular.
    pub(crate) fn hear_mentions(&mut self, told: Told) {
        self.told_mentions = Some(told);
        self.compare();
    }

    fn index(&self, seq: u64) -> Option<usize> {
        usize::try_from(seq.checked_sub(self.first())?).ok()
    }

    fn compare(&mut self) {
        let (last, read) = (self.last(), self.read);
        let is_here = |told: &mut Told| told.up_to <= last;
        if let Some(told) = self.told.take_if(is_here).filter(|told| told.read == read) {
            let within = self.within.unread - self.later(told).unread;
            self.before.unread = told.many.cast_signed() - within;
            self.floor();
        }
        if let Some(told) = self.told_mentions.take_if(is_here).filter(|told| told.read == read) {
            let within = self.within.mentions - self.later(told).mentions;
            self.before.mentions = told.many.cast_signed() - within;
            self.floor();
        }
    }

    /// What is unread and came after what was counted.
    fn later(&self, told: Told) -> Count {
        let since = (told.up_to + 1).max(self.first())..=self.last();
        let later = since.filter_map(|at| self.at(at)).filter(|one| self.is_unread(one));
        later.fold(Count::default(), |count, one| Count {
            unread: count.unread + 1,
            mentions: count.mentions + i64::from(one.important),
        })
    }

    /// What has come into the run, or left it, is no longer, or again, before it.
    fn moved(&mut self, known: Count) {
        self.before.unread += known.unread - self.within.unread;
        self.before.mentions += known.mentions - self.within.mentions;
    }

    /// Once everything unread is held, the count is ours alone.
    fn floor(&mut self) {
        if self.read >= self.start {
            self.before = Count::default();
        }
        self.before.unread = self.before.unread.max(0);
        self.before.mentions = self.before.mentions.max(0);
    }

    fn is_unread(&self, message: &Message) -> bool {
        !message.mine && message.seq > self.read
    }

    fn count(&mut self, message: &Message, by: i64) {
        if self.is_unread(message) {
            self.within.unread += by;
            self.within.mentions += if message.important { by } else { 0 };
        }
    }
}

#[cfg(test)]
mod tests;
