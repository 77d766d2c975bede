//! Who knows which message before it is saved: whoever sent it and was told that it is accepted, and
//! whoever was shown it. They are told its place, or that it will never have one.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use nexo_chat::command::Dropped;
use nexo_chat::ids::{ClientMsgId, ConversationId, MessageId, Millis, UserId};
use nexo_chat::model::Message;

use crate::connection::Connection;

/// Messages remembered on a node. Beyond that nothing is accepted, and nobody is shown anything.
const MAX: usize = 250_000;
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
    /// Sends of it that are not answered yet: their answer tells what became of them.
    asked: u32,
    /// Whether it was told of it, so that it waits for more.
    knows: bool,
    /// Whether it is the sender's, and has to hear a refusal as such.
    has_sent: bool,
    /// What became of it before the send was answered.
    fate: Option<Fate>,
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is saved.
    Saved(Arc<Message>),
    /// It will not be, unless it is sent again.
    Dropped(Dropped),
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

/// A socket that is about to be told what became of a message.
pub(crate) struct Told {
    pub(crate) connection: Arc<Connection>,
    /// Whether the message was sent through it.
    pub(crate) has_sent: bool,
}

impl Unsettled {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anything was ever told here before it was saved.
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::SeqCst)
    }

    /// A socket sends a message; whether there is room to remember it.
    pub(crate) fn ask(&self, it: &Named<'_>, connection: &Arc<Connection>, now: Millis) -> bool {
        self.is_used.store(true, Ordering::SeqCst);
        let mut state = self.state();
        let Some(knower) = state.knower(it, connection, now) else { return false };
        knower.asked += 1;
        knower.has_sent = true;
        true
    }

    /// Shows a message to a socket, unless it knows it, or it is settled, or there is no room.
    /// Nothing else that the socket is told of it comes before; `show` tells whether it worked.
    pub(crate) fn show(
        &self,
        it: &Named<'_>,
        connection: &Arc<Connection>,
        now: Millis,
        show: impl FnOnce() -> bool,
    ) {
        self.is_used.store(true, Ordering::SeqCst);
        let mut state = self.state();
        if state.settled.iter().any(|settled| settled.contains(&it.id)) {
            return;
        }
        if let Some(knower) = state.knower(it, connection, now)
            && !knower.knows
        {
            knower.knows = show();
        }
        state.tidy(it.id);
    }

    /// A send was accepted: tells the socket so, unless it is saved by now; returns what became of
    /// it meanwhile. Nothing else that the socket is told of it comes between.
    pub(crate) fn accepted(
        &self,
        id: MessageId,
        connection: &Arc<Connection>,
        tell: impl FnOnce(),
    ) -> Option<Fate> {
        let mut state = self.state();
        let knower = state.find(id, connection)?;
        knower.asked = knower.asked.saturating_sub(1);
        let fate = if knower.asked == 0 { knower.fate.take() } else { knower.fate.clone() };
        if !matches!(fate, Some(Fate::Saved(_))) {
            knower.knows = true;
            tell();
        }
        state.tidy(id);
        fate
    }

    /// A send was answered otherwise.
    pub(crate) fn answered(&self, id: MessageId, connection: &Arc<Connection>) {
        let mut state = self.state();
        if let Some(knower) = state.find(id, connection) {
            knower.asked = knower.asked.saturating_sub(1);
        }
        state.tidy(id);
    }

    /// The sockets that know a message, which are about to be told what became of it. Those whose
    /// send is not answered yet hear it as the answer.
    pub(crate) fn take(&self, id: MessageId, fate: &Fate) -> Vec<Told> {
        if !self.is_used() {
            return Vec::new();
        }
        let mut state = self.state();
        if state.settled[0].len() >= SETTLED {
            state.settled.swap(0, 1);
            state.settled[0].clear();
        }
        state.settled[0].insert(id);
        let mut told = Vec::new();
        for knower in state.messages.get_mut(&id).into_iter().flat_map(|it| &mut it.sockets) {
            if knower.asked > 0 {
                knower.fate = Some(fate.clone());
            }
            if std::mem::take(&mut knower.knows)
                && let Some(connection) = knower.socket.upgrade()
            {
                told.push(Told { connection, has_sent: knower.has_sent });
            }
        }
        state.tidy(id);
        told
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
        if self.messages.len() >= MAX && !self.messages.contains_key(&it.id) {
            return None;
        }
        let known = self.messages.entry(it.id).or_insert_with(|| Known {
            conversation: it.conversation.clone(),
            sender: it.sender.clone(),
            client_id: it.client_id.clone(),
            since: now,
            looked_at: now,
            sockets: Vec::new(),
        });
        let at = known.sockets.iter().position(|knower| knower.is(connection));
        let at = at.unwrap_or_else(|| {
            known.sockets.push(Knower::new(connection));
            known.sockets.len() - 1
        });
        known.sockets.get_mut(at)
    }

    fn find(&mut self, id: MessageId, connection: &Arc<Connection>) -> Option<&mut Knower> {
        let sockets = &mut self.messages.get_mut(&id)?.sockets;
        sockets.iter_mut().find(|knower| knower.is(connection))
    }

    /// Forgets who waits for nothing any more.
    fn tidy(&mut self, id: MessageId) {
        let Some(known) = self.messages.get_mut(&id) else { return };
        known.sockets.retain(|knower| knower.asked > 0 || knower.knows);
        if known.sockets.is_empty() {
            self.messages.remove(&id);
        }
    }
}

impl Knower {
    fn new(connection: &Arc<Connection>) -> Self {
        let socket = Arc::downgrade(connection);
        Self { socket, asked: 0, knows: false, has_sent: false, fate: None }
    }

    fn is(&self, connection: &Arc<Connection>) -> bool {
        std::ptr::eq(self.socket.as_ptr(), Arc::as_ptr(connection))
    }
}

#[cfg(test)]
#[path = "unsettled_tests.rs"]
mod tests;
