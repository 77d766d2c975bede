//! Decides which connections get a place, so that a flood of them takes neither the store's file descriptors nor
//! the places of people who are signed in.
//!
//! Connections that have not authenticated share a part of the places. When that part is full, the one that has waited
//! longest, of the address that has most of them, makes room for a newcomer from an address that has fewer. So a flood
//! from one address pushes out only itself. Among equals it makes room once it had some time to sign in: when everybody
//! reconnects at once, those who are about to be let in stay, and a flood from many addresses has to be faster than a
//! sign-in takes. A connection that has authenticated is never pushed out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nexo_chat::ids::Millis;
use tokio::sync::Notify;

/// Connections that were pushed out and are not closed yet. With so many, newcomers are refused instead: each
/// still has a descriptor.
pub(crate) const CLOSING_MAX: usize = 8;

/// How many connections get a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdmissionLimits {
    pub(crate) connections: usize,
    /// Those that have not authenticated.
    pub(crate) unauthenticated: usize,
    /// Those of one address; zero is no limit.
    pub(crate) per_address: usize,
    /// How long one may take to authenticate before it makes room for another of the same address, or of an
    /// address that has as many.
    pub(crate) patience_ms: u64,
}

/// Why a connection gets no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// All places are taken.
    Full,
    /// The client's address has as many as it may have.
    Address,
}

pub(crate) struct Admission {
    limits: AdmissionLimits,
    state: Mutex<AdmissionState>,
}

#[derive(Default)]
struct AdmissionState {
    /// Connections with a place. Those that were pushed out are counted as `closing` until they are closed.
    open: usize,
    unauthenticated: usize,
    closing: usize,
    addresses: HashMap<IpAddr, AddressEntry>,
    /// The addresses of unauthenticated connections: last is the one with most of them, of equals the one whose
    /// oldest has waited longest.
    by_weight: BTreeSet<(usize, Reverse<u64>, IpAddr)>,
    /// Numbers connections in the order in which they began to wait.
    next_number: u64,
}

#[derive(Default)]
struct AddressEntry {
    /// Connections that count against the limit per address.
    open: usize,
    /// Its unauthenticated connections, oldest first.
    unauthenticated: BTreeMap<u64, WaitingPlace>,
}

struct WaitingPlace {
    place: Arc<PlaceState>,
    since: Millis,
}

/// What admission knows of one connection. Its fields change only while [`Admission::state`] is locked.
struct PlaceState {
    evicted: Notify,
    fields: Mutex<PlaceFields>,
}

#[derive(Clone, Copy, Default)]
struct PlaceFields {
    /// The address whose limit it counts against.
    counted: Option<IpAddr>,
    /// The address and number under which it waits, until it authenticates.
    waiting: Option<(IpAddr, u64)>,
    is_evicted: bool,
}

impl PlaceState {
    fn fields(&self) -> MutexGuard<'_, PlaceFields> {
        self.fields.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one connection, free again when this is dropped.
pub(crate) struct Place {
    admission: Arc<Admission>,
    state: Arc<PlaceState>,
    /// The peer is a trusted proxy: its connections serve clients with addresses of their own.
    is_proxied: bool,
}

impl Admission {
    pub(crate) fn new(limits: AdmissionLimits) -> Arc<Self> {
        Arc::new(Self { limits, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, AdmissionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many connections have not authenticated.
    pub(crate) fn unauthenticated(&self) -> usize {
        self.state().unauthenticated
    }

    /// Gives a new connection a place. `peer` is the address it is counted under; the connections of a proxy
    /// itself count against no limit per address.
    pub(crate) fn admit(
        self: &Arc<Self>,
        peer: IpAddr,
        is_proxied: bool,
        now: Millis,
    ) -> Result<Place, NoPlace> {
        let mut state = self.state();
        let counted = (!is_proxied).then_some(peer);
        if counted.is_some_and(|peer| state.is_at_limit(peer, self.limits.per_address)) {
            return Err(NoPlace::Address);
        }
        let has_room = state.open < self.limits.connections
            && state.unauthenticated < self.limits.unauthenticated;
        if !has_room && !state.evict(&self.limits, peer, now) {
            return Err(NoPlace::Full);
        }
        state.open += 1;
        if let Some(peer) = counted {
            state.addresses.entry(peer).or_default().open += 1;
        }
        let fields = Mutex::new(PlaceFields { counted, ..PlaceFields::default() });
        let place = Arc::new(PlaceState { evicted: Notify::new(), fields });
        state.start_waiting(&place, peer, now);
        Ok(Place { admission: Arc::clone(self), state: place, is_proxied })
    }
}

impl AdmissionState {
    fn is_at_limit(&self, address: IpAddr, max: usize) -> bool {
        max > 0 && self.addresses.get(&address).is_some_and(|entry| entry.open >= max)
    }

    /// Changes the unauthenticated connections of an address, and its rank among the others.
    fn change_waiting(
        &mut self,
        address: IpAddr,
        change: impl FnOnce(&mut BTreeMap<u64, WaitingPlace>),
    ) {
        let entry = self.addresses.entry(address).or_default();
        let rank = |entry: &AddressEntry| {
            let oldest = entry.unauthenticated.first_key_value();
            oldest.map(|(number, _)| (entry.unauthenticated.len(), Reverse(*number), address))
        };
        let before = rank(entry);
        self.unauthenticated -= entry.unauthenticated.len();
        change(&mut entry.unauthenticated);
        self.unauthenticated += entry.unauthenticated.len();
        let after = rank(entry);
        if let Some(before) = before {
            self.by_weight.remove(&before);
        }
        if let Some(after) = after {
            self.by_weight.insert(after);
        }
        self.forget_if_empty(address);
    }

    fn forget_if_empty(&mut self, address: IpAddr) {
        let entry = self.addresses.get(&address);
        if entry.is_some_and(|entry| entry.open == 0 && entry.unauthenticated.is_empty()) {
            self.addresses.remove(&address);
        }
    }

    fn start_waiting(&mut self, place: &Arc<PlaceState>, address: IpAddr, since: Millis) {
        let number = self.next_number;
        self.next_number += 1;
        place.fields().waiting = Some((address, number));
        self.change_waiting(address, |waiting| {
            waiting.insert(number, WaitingPlace { place: Arc::clone(place), since });
        });
    }

    fn stop_waiting(&mut self, place: &PlaceState) {
        let waiting = place.fields().waiting.take();
        if let Some((address, number)) = waiting {
            self.change_waiting(address, |waiting| {
                waiting.remove(&number);
            });
        }
    }

    /// Pushes out the oldest unauthenticated connection of the address that has most of them, to make room for one
    /// from `newcomer`. `false` if there is none that has to, or if too many are still closing.
    fn evict(&mut self, limits: &AdmissionLimits, newcomer: IpAddr, now: Millis) -> bool {
        if self.closing >= CLOSING_MAX {
            return false;
        }
        let waiting_of = |address| self.addresses.get(&address).map(|entry| &entry.unauthenticated);
        let Some((most, _, address)) = self.by_weight.last().copied() else { return false };
        let oldest = waiting_of(address).and_then(|waiting| waiting.first_key_value());
        let Some((_, WaitingPlace { place, since })) = oldest else { return false };
        let has_fewer = waiting_of(newcomer).map_or(0, BTreeMap::len) < most.saturating_sub(1);
        if !has_fewer && now.since(*since) < limits.patience_ms {
            return false;
        }
        let place = Arc::clone(place);
        self.stop_waiting(&place);
        place.fields().is_evicted = true;
        self.open -= 1;
        self.closing += 1;
        place.evicted.notify_one();
        true
    }
}

impl Place {
    /// The connection has authenticated: it is not pushed out any more. `false` if it was just before.
    pub(crate) fn set_authenticated(&self) -> bool {
        if self.state.fields().waiting.is_some() {
            self.admission.state().stop_waiting(&self.state);
        }
        !self.state.fields().is_evicted
    }

    /// Whether the peer is a trusted proxy, so that each request has a client of its own.
    pub(crate) fn is_proxied(&self) -> bool {
        self.is_proxied
    }

    /// A proxy's connection now serves a request of this client, and waits under its address until the request is
    /// authenticated. Other connections serve one client for life.
    pub(crate) fn set_client(&self, client: IpAddr, now: Millis) {
        let mut state = self.admission.state();
        if !self.is_proxied || self.state.fields().is_evicted {
            return;
        }
        state.stop_waiting(&self.state);
        let limits = &self.admission.limits;
        if state.unauthenticated >= limits.unauthenticated {
            // Without anybody to push out it has its place anyway: it had one before.
            let _has_room = state.evict(limits, client, now);
        }
        state.start_waiting(&self.state, client, now);
    }

    /// Counts a proxy's connection against the limit of its client, since it becomes a WebSocket of that client.
    pub(crate) fn count_socket(&self, client: IpAddr) -> Result<(), NoPlace> {
        if !self.is_proxied {
            return Ok(()); // counted when it was accepted
        }
        let mut state = self.admission.state();
        if state.is_at_limit(client, self.admission.limits.per_address) {
            return Err(NoPlace::Address);
        }
        let before = self.state.fields().counted.replace(client);
        state.addresses.entry(client).or_default().open += 1;
        state.stop_counting(before);
        Ok(())
    }

    /// Returns when the connection has to make room for another.
    pub(crate) async fn evicted(&self) {
        self.state.evicted.notified().await;
    }
}

impl AdmissionState {
    fn stop_counting(&mut self, address: Option<IpAddr>) {
        let Some(address) = address else { return };
        if let Some(entry) = self.addresses.get_mut(&address) {
            entry.open = entry.open.saturating_sub(1);
        }
        self.forget_if_empty(address);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.admission.state();
        state.stop_waiting(&self.state);
        let PlaceFields { counted, is_evicted, .. } = *self.state.fields();
        state.stop_counting(counted);
        if is_evicted {
            state.closing -= 1;
        } else {
            state.open -= 1;
        }
    }
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
