//! What is said, until it is saved or refused.
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use tokio::time::Instant;

use crate::entry::Entry;
use crate::frames::Limits;
use crate::lane::Lane;
use crate::pace::Pace;
use crate::reason::Reason;
use crate::storage::Keeper;
use crate::timing::{Timing, ms};
use crate::wire::Wire;

/// Says everything until it is saved or refused, under the same name each time. Many messages of a
/// conversation are on the wire at once; whatever goes wrong, the unanswered ones go again in order.
pub(crate) struct Outbox {
    user_id: String,
    timing: Arc<Timing>,
    store: Keeper,
    lanes: BTreeMap<String, Lane>,
    /// Where each unanswered one is: its conversation and its order.
    places: HashMap<String, (String, u64)>,
    refused: HashMap<String, Entry>,
    /// Refused for good, and nobody has been told yet.
    given_up: Vec<Entry>,
    sends: Pace,
    is_online: bool,
    frame_bytes_max: usize,
    written: u64,
    order: u64,
    /// The conversation that wrote last: the one after it is next.
    turn: String,
    /// Too fast: goes on then.
    pacing: Option<Instant>,
    /// There may be something to write.
    is_ready: bool,
}

impl Outbox {
    pub(crate) fn new(user_id: &str, timing: Arc<Timing>, store: Keeper, now: Instant) -> Self {
        Self {
            user_id: user_id.to_owned(),
            timing,
            store,
            lanes: BTreeMap::new(),
            places: HashMap::new(),
            refused: HashMap::new(),
            given_up: Vec::new(),
            sends: Pace::new(now),
            is_online: false,
            frame_bytes_max: usize::MAX,
            written: 0,
            order: 0,
            turn: String::new(),
            pacing: None,
            is_ready: false,
        }
    }

    /// What an earlier run left behind, in order.
    pub(crate) fn load(&mut self, now: Instant) -> Vec<Entry> {
        let kept = self.store.list::<Entry>(&format!("outbox/{}/", self.user_id));
        let mut entries: Vec<Entry> = kept.into_iter().map(|(_, entry)| entry).collect();
        for entry in &mut entries {
            // The server answers in the conversation of the address, whatever it was called here.
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

    /// Takes something to say, gives it its order, and keeps it.
    pub(crate) fn add(&mut self, mut entry: Entry, now: Instant) {
        self.order = (self.order + 1).max(entry.at * 1000);
        entry.order = self.order;
        self.store.set(&entry.key(&self.user_id), &entry);
        self.enter(entry, now);
    }

    /// A new connection: everything unanswered goes again.
    pub(crate) fn online(&mut self, limits: &Limits, now: Instant) {
        self.is_online = true;
        self.is_ready = true;
        self.sends.limit(limits.user_sends_per_second, now);
        let none = limits.frame_bytes_max == 0;
        self.frame_bytes_max = if none { usize::MAX } else { limits.frame_bytes_max };
        self.lanes.values_mut().for_each(Lane::anew);
    }

    pub(crate) fn offline(&mut self) {
        self.is_online = false;
        self.pacing = None;
        self.lanes.values_mut().for_each(Lane::rest);
    }

    /// The connection answered: what it should have answered before got lost.
    pub(crate) fn answered(&mut self, client_msg_id: &str) {
        if let Some((lane, order)) = self.find(client_msg_id) {
            lane.answered(order);
            self.is_ready = true;
        }
    }

    /// Taken, but not on disk: it stays, and is asked after if nothing more is heard.
    pub(crate) fn accepted(&mut self, client_msg_id: &str, now: Instant) -> bool {
        let found = self.find(client_msg_id);
        found.map(|(lane, order)| lane.accepted(order, now)).is_some()
    }

    /// On disk: it is done. Whether it was ours to wait for.
    pub(crate) fn saved(&mut self, client_msg_id: &str) -> bool {
        let Some((lane, _)) = self.find(client_msg_id) else { return false };
        lane.saved();
        self.leave(client_msg_id);
        true
    }

    /// Refused: for good, or until the server has time. `last_of` tells the last place of a conversation.
    pub(crate) fn refused(
        &mut self,
        client_msg_id: &str,
        reason: Reason,
        last_of: impl Fn(&str) -> u64,
        now: Instant,
    ) {
        let least = ms(self.timing.backoff_base_ms);
        let Some((lane, _)) = self.find(client_msg_id) else { return };
        lane.silences = 0;
        if reason.may_retry() {
            lane.pause(least, now);
        } else {
            self.finish(client_msg_id, reason, last_of);
        }
    }

    /// Tries a refused one again.
    pub(crate) fn retry(&mut self, client_msg_id: &str, now: Instant) -> Option<Entry> {
        let mut entry = self.refused.remove(client_msg_id)?;
        (entry.reason, entry.after) = (None, None);
        self.store.set(&entry.key(&self.user_id), &entry);
        self.enter(entry.clone(), now);
        Some(entry)
    }

    /// Forgets a refused one.
    pub(crate) fn discard(&mut self, client_msg_id: &str) -> Option<Entry> {
        let entry = self.refused.remove(client_msg_id)?;
        self.store.delete(&entry.key(&self.user_id));
        Some(entry)
    }

    /// Forgets everything, here and in the store.
    pub(crate) fn forget(&mut self) {
        for (key, _) in self.store.list::<Entry>(&format!("outbox/{}/", self.user_id)) {
            self.store.delete(&key);
        }
        self.lanes.clear();
        self.places.clear();
    }

    /// Those that were refused for good since the last time.
    pub(crate) fn take_given_up(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.given_up)
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.lanes.values().filter_map(Lane::due).chain(self.pacing).min()
    }

    /// Does what is due, and writes what may be written.
    pub(crate) fn tick(&mut self, wire: &mut Wire, last_of: impl Fn(&str) -> u64, now: Instant) {
        for lane in self.lanes.values_mut() {
            self.is_ready |= lane.tick(now);
        }
        self.is_ready |= self.pacing.take_if(|at| *at <= now).is_some();
        if self.is_ready && self.is_online && self.pacing.is_none() {
            self.is_ready = false;
            self.pump(wire, last_of, now);
        }
    }

    fn find(&mut self, client_msg_id: &str) -> Option<(&mut Lane, u64)> {
        let (conversation_id, order) = self.places.get(client_msg_id)?;
        Some((self.lanes.get_mut(conversation_id)?, *order))
    }

    fn enter(&mut self, entry: Entry, now: Instant) {
        self.is_ready = true;
        let place = (entry.conversation_id.clone(), entry.order);
        self.places.insert(entry.client_msg_id.clone(), place);
        let lane = self.lanes.entry(entry.conversation_id.clone());
        lane.or_insert_with(|| Lane::new(&self.timing)).enter(entry, now);
    }

    fn leave(&mut self, client_msg_id: &str) -> Option<Entry> {
        let (conversation_id, order) = self.places.remove(client_msg_id)?;
        let lane = self.lanes.get_mut(&conversation_id)?;
        let entry = lane.flights.remove(&order)?.entry;
        if lane.flights.is_empty() {
            self.lanes.remove(&conversation_id);
        }
        self.store.delete(&entry.key(&self.user_id));
        self.is_ready = true;
        Some(entry)
    }

    fn finish(&mut self, client_msg_id: &str, reason: Reason, last_of: impl Fn(&str) -> u64) {
        let Some(mut entry) = self.leave(client_msg_id) else { return };
        entry.reason = Some(reason);
        entry.after = Some(last_of(&entry.conversation_id));
        self.store.set(&entry.key(&self.user_id), &entry);
        self.refused.insert(entry.client_msg_id.clone(), entry.clone());
        self.given_up.push(entry);
    }

    /// Writes what may be written, one of each conversation in turn.
    fn pump(&mut self, wire: &mut Wire, last_of: impl Fn(&str) -> u64, now: Instant) {
        let mut idle = 0;
        while idle < self.lanes.len() {
            self.turn = self.after_turn();
            let Some(entry) = self.lanes.get(&self.turn).and_then(Lane::next) else {
                idle += 1;
                continue;
            };
            idle = 0;
            let (frame, order) = (entry.frame(), entry.order);
            // The server would end the connection, and we would try for ever.
            if frame.len() > self.frame_bytes_max {
                let name = entry.client_msg_id.clone();
                self.finish(&name, Reason::FrameTooLarge, &last_of);
                continue;
            }
            if let Err(wait) = wire.frames.take(now).and_then(|()| self.sends.take(now)) {
                self.pacing = Some(now + wait);
                return;
            }
            if !wire.write(frame) {
                return;
            }
            self.written += 1;
            if let Some(lane) = self.lanes.get_mut(&self.turn) {
                lane.written(order, self.written, now);
            }
        }
    }

    fn after_turn(&self) -> String {
        let after = (Excluded(self.turn.as_str()), Unbounded);
        let next = self.lanes.range::<str, _>(after).next();
        next.or_else(|| self.lanes.first_key_value()).map(|(id, _)| id.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
