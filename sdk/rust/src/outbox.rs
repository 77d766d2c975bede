//! Sends messages until they are saved or refused.
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use tokio::time::Instant;

use crate::frame_sender::FrameSender;
use crate::frames::Limits;
use crate::lane::Lane;
use crate::outbox_entry::OutboxEntry;
use crate::rate_limiter::RateLimiter;
use crate::reason::Reason;
use crate::storage::BestEffortStore;
use crate::timing::{Timing, ms};

/// Sends every message until it is saved or refused, each time with the same client message id.
/// Many messages of a conversation are in flight at once; after any failure the unanswered ones are
/// sent again in order.
pub(crate) struct Outbox {
    user_id: String,
    timing: Arc<Timing>,
    store: BestEffortStore,
    lanes: BTreeMap<String, Lane>,
    /// The conversation and order of each unanswered entry, by client message id.
    lane_by_id: HashMap<String, (String, u64)>,
    refused: HashMap<String, OutboxEntry>,
    /// Refused for good and not yet emitted.
    newly_refused: Vec<OutboxEntry>,
    sends: RateLimiter,
    is_online: bool,
    frame_bytes_max: usize,
    writes: u64,
    order: u64,
    /// The conversation written last: the one after it is next.
    last_written: String,
    /// Set while a rate limit is exhausted.
    rate_limited_until: Option<Instant>,
    /// Whether there may be something to write.
    may_have_work: bool,
}

impl Outbox {
    pub(crate) fn new(
        user_id: &str,
        timing: Arc<Timing>,
        store: BestEffortStore,
        now: Instant,
    ) -> Self {
        Self {
            user_id: user_id.to_owned(),
            timing,
            store,
            lanes: BTreeMap::new(),
            lane_by_id: HashMap::new(),
            refused: HashMap::new(),
            newly_refused: Vec::new(),
            sends: RateLimiter::new(now),
            is_online: false,
            frame_bytes_max: usize::MAX,
            writes: 0,
            order: 0,
            last_written: String::new(),
            rate_limited_until: None,
            may_have_work: false,
        }
    }

    /// Loads what an earlier run left, in order.
    pub(crate) fn load(&mut self, now: Instant) -> Vec<OutboxEntry> {
        let stored = self.store.list::<OutboxEntry>(&format!("outbox/{}/", self.user_id));
        let mut entries: Vec<OutboxEntry> = stored.into_iter().map(|(_, entry)| entry).collect();
        for entry in &mut entries {
            // The server answers in the conversation of the address, whatever id was stored here.
            entry.conversation_id = entry.address.conversation_id(&self.user_id);
            self.order = self.order.max(entry.order);
            if entry.reason.is_none() {
                self.enter(entry.clone(), now);
            } else {
                self.refused.insert(entry.client_msg_id.clone(), entry.clone());
            }
        }
        entries
    }

    /// Adds an entry, assigns its order and stores it.
    pub(crate) fn add(&mut self, mut entry: OutboxEntry, now: Instant) {
        self.order = (self.order + 1).max(entry.at * 1000);
        entry.order = self.order;
        self.store.set(&entry.key(&self.user_id), &entry);
        self.enter(entry, now);
    }

    /// Starts on a new connection: all unanswered entries are sent again.
    pub(crate) fn online(&mut self, limits: &Limits, now: Instant) {
        self.is_online = true;
        self.may_have_work = true;
        self.sends.set_rate(limits.user_sends_per_second, now);
        let none = limits.frame_bytes_max == 0;
        self.frame_bytes_max = if none { usize::MAX } else { limits.frame_bytes_max };
        self.lanes.values_mut().for_each(Lane::restart);
    }

    pub(crate) fn offline(&mut self) {
        self.is_online = false;
        self.rate_limited_until = None;
        self.lanes.values_mut().for_each(Lane::clear_timers);
    }

    /// Handles an answer of the connection: entries it should have answered before were lost.
    pub(crate) fn answered(&mut self, client_msg_id: &str) {
        if let Some((lane, order)) = self.find(client_msg_id) {
            lane.answered(order);
            self.may_have_work = true;
        }
    }

    /// The server accepted it, not yet on disk: it stays, and is sent again if nothing follows.
    pub(crate) fn accepted(&mut self, client_msg_id: &str, now: Instant) -> bool {
        let found = self.find(client_msg_id);
        found.map(|(lane, order)| lane.accepted(order, now)).is_some()
    }

    /// The server saved it: removes it. Returns whether it was in the outbox.
    pub(crate) fn saved(&mut self, client_msg_id: &str) -> bool {
        let Some((lane, _)) = self.find(client_msg_id) else { return false };
        lane.saved();
        self.leave(client_msg_id);
        true
    }

    /// The server refused it, for good or because it is busy. `last_seq_of` returns the last seq of
    /// a conversation.
    pub(crate) fn refused(
        &mut self,
        client_msg_id: &str,
        reason: Reason,
        last_seq_of: impl Fn(&str) -> u64,
        now: Instant,
    ) {
        let least = ms(self.timing.backoff_base_ms);
        let Some((lane, _)) = self.find(client_msg_id) else { return };
        lane.silent_rounds = 0;
        if reason.may_retry() {
            lane.pause(least, now);
        } else {
            self.refuse_for_good(client_msg_id, reason, last_seq_of);
        }
    }

    /// Sends a refused entry again.
    pub(crate) fn retry(&mut self, client_msg_id: &str, now: Instant) -> Option<OutboxEntry> {
        let mut entry = self.refused.remove(client_msg_id)?;
        (entry.reason, entry.after) = (None, None);
        self.store.set(&entry.key(&self.user_id), &entry);
        self.enter(entry.clone(), now);
        Some(entry)
    }

    /// Deletes a refused entry.
    pub(crate) fn discard(&mut self, client_msg_id: &str) -> Option<OutboxEntry> {
        let entry = self.refused.remove(client_msg_id)?;
        self.store.delete(&entry.key(&self.user_id));
        Some(entry)
    }

    /// Deletes everything, in memory and in the store.
    pub(crate) fn forget(&mut self) {
        for (key, _) in self.store.list::<OutboxEntry>(&format!("outbox/{}/", self.user_id)) {
            self.store.delete(&key);
        }
        self.lanes.clear();
        self.lane_by_id.clear();
    }

    /// Returns the entries refused for good since the last call.
    pub(crate) fn take_newly_refused(&mut self) -> Vec<OutboxEntry> {
        std::mem::take(&mut self.newly_refused)
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.lanes.values().filter_map(Lane::due).chain(self.rate_limited_until).min()
    }

    /// Runs what is due and writes what may be written.
    pub(crate) fn tick(
        &mut self,
        frame_sender: &mut FrameSender,
        last_seq_of: impl Fn(&str) -> u64,
        now: Instant,
    ) {
        for lane in self.lanes.values_mut() {
            self.may_have_work |= lane.tick(now);
        }
        self.may_have_work |= self.rate_limited_until.take_if(|at| *at <= now).is_some();
        if self.may_have_work && self.is_online && self.rate_limited_until.is_none() {
            self.may_have_work = false;
            self.pump(frame_sender, last_seq_of, now);
        }
    }

    fn find(&mut self, client_msg_id: &str) -> Option<(&mut Lane, u64)> {
        let (conversation_id, order) = self.lane_by_id.get(client_msg_id)?;
        Some((self.lanes.get_mut(conversation_id)?, *order))
    }

    fn enter(&mut self, entry: OutboxEntry, now: Instant) {
        self.may_have_work = true;
        let position = (entry.conversation_id.clone(), entry.order);
        self.lane_by_id.insert(entry.client_msg_id.clone(), position);
        let lane = self.lanes.entry(entry.conversation_id.clone());
        lane.or_insert_with(|| Lane::new(&self.timing)).enter(entry, now);
    }

    fn leave(&mut self, client_msg_id: &str) -> Option<OutboxEntry> {
        let (conversation_id, order) = self.lane_by_id.remove(client_msg_id)?;
        let lane = self.lanes.get_mut(&conversation_id)?;
        let entry = lane.pending.remove(&order)?.entry;
        if lane.pending.is_empty() {
            self.lanes.remove(&conversation_id);
        }
        self.store.delete(&entry.key(&self.user_id));
        self.may_have_work = true;
        Some(entry)
    }

    fn refuse_for_good(
        &mut self,
        client_msg_id: &str,
        reason: Reason,
        last_seq_of: impl Fn(&str) -> u64,
    ) {
        let Some(mut entry) = self.leave(client_msg_id) else { return };
        entry.reason = Some(reason);
        entry.after = Some(last_seq_of(&entry.conversation_id));
        self.store.set(&entry.key(&self.user_id), &entry);
        self.refused.insert(entry.client_msg_id.clone(), entry.clone());
        self.newly_refused.push(entry);
    }

    /// Writes what the windows and limits allow, one entry per conversation in turn.
    fn pump(
        &mut self,
        frame_sender: &mut FrameSender,
        last_seq_of: impl Fn(&str) -> u64,
        now: Instant,
    ) {
        let mut idle = 0;
        while idle < self.lanes.len() {
            self.last_written = self.next_lane();
            let Some(entry) = self.lanes.get(&self.last_written).and_then(Lane::next) else {
                idle += 1;
                continue;
            };
            idle = 0;
            let (frame, order) = (entry.frame(), entry.order);
            // The server would close the connection for it, at every attempt.
            if frame.len() > self.frame_bytes_max {
                let client_msg_id = entry.client_msg_id.clone();
                self.refuse_for_good(&client_msg_id, Reason::FrameTooLarge, &last_seq_of);
                continue;
            }
            if let Err(wait) = frame_sender.rate.take(now).and_then(|()| self.sends.take(now)) {
                self.rate_limited_until = Some(now + wait);
                return;
            }
            if !frame_sender.write(frame) {
                return;
            }
            self.writes += 1;
            if let Some(lane) = self.lanes.get_mut(&self.last_written) {
                lane.written(order, self.writes, now);
            }
        }
    }

    fn next_lane(&self) -> String {
        let after = (Excluded(self.last_written.as_str()), Unbounded);
        let next = self.lanes.range::<str, _>(after).next();
        next.or_else(|| self.lanes.first_key_value()).map(|(id, _)| id.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
