//! Who knows which message before it is saved: whoever sent it and was told that it is accepted, and
//! whoever was shown it. They are told its place, or that it will never have one.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use nexo_chat::ids::{ClientMsgId, ConversationId, MessageId, Millis, UserId};

use crate::connection::Connection;

/// Messages remembered on a node. Beyond that nobody is told anything before it is saved.
const MAX: usize = 200_000;
/// Messages remembered for a moment after they were settled.
const SETTLED: usize = 32_768;

/// What is known without its place.
#[derive(Default)]
pub struct Unsettled {
    state: Mutex<State>,
    /// Nobody takes the lock where nothing is ever told before it is saved.
    is_used: AtomicBool,
}

#[derive(Default)]
struct State {
    messages: HashMap<MessageId, Known>,
    /// What was settled a moment ago, in two generations: nobody is shown it any more.
    settled: [HashSet<MessageId>; 2],
}

/// A message that is not saved yet, as far as is known here.
struct Known {
    conversation: ConversationId,
    sender: UserId,
    client_id: ClientMsgId,
    since: Millis,
    looked_at: Millis,
    sockets: Vec<Knower>,
}

/// A socket that knows a message, or asked for it.
struct Knower {
    socket: Weak<Connection>,
    /// Sends of it that are not answered yet.
    asked: u32,
    /// Whether it was told of it, so that it waits for more.
    knows: bool,
}

/// Names a message.
pub(crate) struct Named<'a> {
    pub(crate) id: MessageId,
    pub(crate) conversation: &'a ConversationId,
    pub(crate) sender: &'a UserId,
    pub(crate) client_id: &'a ClientMsgId,
}

/// A message that is looked for.
pub(crate) struct Asked {
    pub(crate) conversation: ConversationId,
    pub(crate) sender: UserId,
    pub(crate) client_id: ClientMsgId,
    pub(crate) age_ms: u64,
}

impl Unsettled {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A socket sends a message; whether there is room to remember it.
    pub(crate) fn ask(&self, it: &Named<'_>, connection: &Arc<Connection>, now: Millis) -> bool {
        self.is_used.store(true, Ordering::SeqCst);
        let mut state = self.state();
        let knower = state.knower(it, connection, now);
        knower.map(|knower| knower.asked += 1).is_some()
    }

    /// A socket is about to be shown a message; `false` if it knows it, or it is settled, or there is
    /// no room.
    pub(crate) fn show(&self, it: &Named<'_>, connection: &Arc<Connection>, now: Millis) -> bool {
        self.is_used.store(true, Ordering::SeqCst);
        let mut state = self.state();
        if state.settled.iter().any(|settled| settled.contains(&it.id)) {
            return false;
        }
        let knower = state.knower(it, connection, now);
        knower.is_some_and(|knower| !std::mem::replace(&mut knower.knows, true))
    }

    /// A send was accepted: tells the socket, unless it was told more than that. Nothing else it is
    /// told comes between.
    pub(crate) fn accepted(
        &self,
        id: MessageId,
        connection: &Arc<Connection>,
        tell: impl FnOnce(),
    ) {
        let mut state = self.state();
        let mut sockets =
            state.messages.get_mut(&id).into_iter().flat_map(|known| &mut known.sockets);
        if let Some(knower) = sockets.find(|knower| knower.is(connection)) {
            knower.asked = knower.asked.saturating_sub(1);
            knower.knows = true;
            tell();
        }
    }

    /// A send was answered otherwise, or a message could not be shown: the socket waits no more,
    /// unless for another reason. Whether nobody has told it anything yet.
    pub(crate) fn forget(&self, id: MessageId, connection: &Arc<Connection>) -> bool {
        let mut state = self.state();
        let Some(known) = state.messages.get_mut(&id) else { return false };
        let Some(at) = known.sockets.iter().position(|knower| knower.is(connection)) else {
            return false;
        };
        let knower = &mut known.sockets[at];
        if knower.asked == 0 {
            knower.knows = false;
        }
        knower.asked = knower.asked.saturating_sub(1);
        if knower.asked == 0 && !knower.knows {
            known.sockets.swap_remove(at);
        }
        if known.sockets.is_empty() {
            state.messages.remove(&id);
        }
        true
    }

    /// The sockets that know a message, which are about to be told what became of it.
    pub(crate) fn take(&self, id: MessageId) -> Vec<Arc<Connection>> {
        if !self.is_used.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let mut state = self.state();
        if state.settled[0].len() >= SETTLED {
            state.settled.swap(0, 1);
            state.settled[0].clear();
        }
        state.settled[0].insert(id);
        let known = state.messages.remove(&id);
        let sockets = known.into_iter().flat_map(|known| known.sockets);
        sockets.filter_map(|knower| knower.socket.upgrade()).collect()
    }

    /// Up to `limit` messages that nobody looked for since a while; they count as looked for.
    /// Those whose sockets are all gone are forgotten.
    pub(crate) fn due(&self, now: Millis, after_ms: u64, limit: usize) -> Vec<(MessageId, Asked)> {
        let mut state = self.state();
        let is_there = |knower: &Knower| knower.socket.strong_count() > 0;
        state.messages.retain(|_, known| known.sockets.iter().any(is_there));
        let due =
            state.messages.iter_mut().filter(|(_, known)| now.since(known.looked_at) >= after_ms);
        due.take(limit)
            .map(|(id, known)| {
                known.looked_at = now;
                let asked = Asked {
                    conversation: known.conversation.clone(),
                    sender: known.sender.clone(),
                    client_id: known.client_id.clone(),
                    age_ms: now.since(known.since),
                };
                (*id, asked)
            })
            .collect()
    }
}

impl State {
    /// What is noted of a socket and a message, if there is room.
    fn knower(
        &mut self,
        it: &Named<'_>,
        connection: &Arc<Connection>,
        now: Millis,
    ) -> Option<&mut Knower> {
        let messages = &mut self.messages;
        if messages.len() >= MAX && !messages.contains_key(&it.id) {
            return None;
        }
        let known = messages.entry(it.id).or_insert_with(|| Known {
            conversation: it.conversation.clone(),
            sender: it.sender.clone(),
            client_id: it.client_id.clone(),
            since: now,
            looked_at: now,
            sockets: Vec::new(),
        });
        let at = known.sockets.iter().position(|knower| knower.is(connection));
        let at = at.unwrap_or_else(|| {
            let socket = Arc::downgrade(connection);
            known.sockets.push(Knower { socket, asked: 0, knows: false });
            known.sockets.len() - 1
        });
        known.sockets.get_mut(at)
    }
}

impl Knower {
    fn is(&self, connection: &Arc<Connection>) -> bool {
        std::ptr::eq(self.socket.as_ptr(), Arc::as_ptr(connection))
    }
}
