//! The sockets that know a message before it is saved: the sender's, which was told that the message
//! is accepted, and those that were shown a preview. They wait for its resolution: its seq, or that
//! it was dropped.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use nexo_chat::event::Dropped;
use nexo_chat::ids::{ClientMsgId, ConversationId, MessageId, Millis, UserId};
use nexo_chat::model::Message;

use crate::socket::connection::Connection;
use crate::socket::timings::SendTimes;

/// Waiting messages per node. At the limit sends are refused and previews are not shown.
const WAITING_MAX: usize = 250_000;
/// Resolved messages remembered per generation.
const RESOLVED_MAX: usize = 32_768;

#[derive(Default)]
pub(crate) struct TwoPhaseWaiters {
    messages: Mutex<WaitingMessages>,
    /// Set by the first waiter; without two-phase sends the lock is never taken.
    is_used: AtomicBool,
}

#[derive(Default)]
struct WaitingMessages {
    waiting: HashMap<MessageId, WaitingMessage>,
    /// Messages resolved a moment ago, in two generations: a late preview of them is not shown.
    resolved: [HashSet<MessageId>; 2],
}

/// A message that is not resolved yet.
struct WaitingMessage {
    conversation: ConversationId,
    sender: UserId,
    client_id: ClientMsgId,
    since: Millis,
    checked_at: Millis,
    sockets: Vec<WaitingSocket>,
}

struct WaitingSocket {
    connection: Weak<Connection>,
    /// Sends of the message by this socket that are not answered yet. The resolution becomes their
    /// answer.
    unanswered: u32,
    /// Whether the socket was told of the message, so that it has to be told the resolution.
    was_told: bool,
    /// Whether the socket sent the message, so that a drop is told as a refusal.
    is_sender: bool,
    /// The resolution, if it came before the send was answered.
    resolution: Option<Resolution>,
    /// The times of the send that was accepted, to log them when it is saved.
    times: Option<SendTimes>,
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    Saved(Arc<Message>),
    /// It will not be saved, unless it is sent again.
    Dropped(Dropped),
}

pub(crate) struct MessageRef<'a> {
    pub(crate) id: MessageId,
    pub(crate) conversation: &'a ConversationId,
    pub(crate) sender: &'a UserId,
    pub(crate) client_id: &'a ClientMsgId,
}

/// A message whose resolution is late.
pub(crate) struct OverdueMessage {
    pub(crate) id: MessageId,
    pub(crate) conversation: ConversationId,
    pub(crate) sender: UserId,
    pub(crate) client_id: ClientMsgId,
    pub(crate) age_ms: u64,
}

/// A socket that has to be told the resolution of a message.
pub(crate) struct ResolvedSocket {
    pub(crate) connection: Arc<Connection>,
    pub(crate) is_sender: bool,
    /// The times of its send, if it was told that the message is accepted.
    pub(crate) times: Option<SendTimes>,
}

impl TwoPhaseWaiters {
    fn messages(&self) -> MutexGuard<'_, WaitingMessages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether any socket has ever waited on this node.
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::SeqCst)
    }

    /// Adds a socket that is about to send a message. Returns `false` if there is no room.
    pub(crate) fn add_sender(
        &self,
        message: &MessageRef<'_>,
        connection: &Arc<Connection>,
        now: Millis,
    ) -> bool {
        self.is_used.store(true, Ordering::SeqCst);
        let mut messages = self.messages();
        let Some(socket) = messages.socket(message, connection, now) else { return false };
        socket.unanswered += 1;
        socket.is_sender = true;
        true
    }

    /// Calls `push` to show a preview to a socket, unless the socket was told of the message, or the
    /// message is resolved, or there is no room. Locked meanwhile, so that the resolution cannot be
    /// pushed first; `push` returns whether the outbox took the preview.
    pub(crate) fn show_preview(
        &self,
        message: &MessageRef<'_>,
        connection: &Arc<Connection>,
        now: Millis,
        push: impl FnOnce() -> bool,
    ) {
        self.is_used.store(true, Ordering::SeqCst);
        let mut messages = self.messages();
        if messages.resolved.iter().any(|resolved| resolved.contains(&message.id)) {
            return;
        }
        if let Some(socket) = messages.socket(message, connection, now)
            && !socket.was_told
        {
            socket.was_told = push();
        }
        messages.remove_done(message.id);
    }

    /// A send was accepted. Calls `push` to tell the socket so, unless the message is saved by now;
    /// returns a resolution that came meanwhile. Locked, so that no other resolution can be pushed
    /// between.
    pub(crate) fn accept(
        &self,
        id: MessageId,
        connection: &Arc<Connection>,
        times: SendTimes,
        push: impl FnOnce(),
    ) -> Option<Resolution> {
        let mut messages = self.messages();
        let socket = messages.find(id, connection)?;
        socket.unanswered = socket.unanswered.saturating_sub(1);
        let resolution = if socket.unanswered == 0 {
            socket.resolution.take()
        } else {
            socket.resolution.clone()
        };
        if !matches!(resolution, Some(Resolution::Saved(_))) {
            socket.was_told = true;
            socket.times = Some(times);
            push();
        }
        messages.remove_done(id);
        resolution
    }

    /// A send was answered with something other than accepted.
    pub(crate) fn end_send(&self, id: MessageId, connection: &Arc<Connection>) {
        let mut messages = self.messages();
        if let Some(socket) = messages.find(id, connection) {
            socket.unanswered = socket.unanswered.saturating_sub(1);
        }
        messages.remove_done(id);
    }

    /// Resolves a message; returns the sockets that were told of it and now have to be told the
    /// resolution. A socket whose send is not answered yet gets it as the answer.
    pub(crate) fn resolve(&self, id: MessageId, resolution: &Resolution) -> Vec<ResolvedSocket> {
        if !self.is_used() {
            return Vec::new();
        }
        let mut messages = self.messages();
        if messages.resolved[0].len() >= RESOLVED_MAX {
            messages.resolved.swap(0, 1);
            messages.resolved[0].clear();
        }
        messages.resolved[0].insert(id);
        let mut to_tell = Vec::new();
        for socket in messages.waiting.get_mut(&id).into_iter().flat_map(|it| &mut it.sockets) {
            if socket.unanswered > 0 {
                socket.resolution = Some(resolution.clone());
            }
            if std::mem::take(&mut socket.was_told)
                && let Some(connection) = socket.connection.upgrade()
            {
                let (is_sender, times) = (socket.is_sender, socket.times.take());
                to_tell.push(ResolvedSocket { connection, is_sender, times });
            }
        }
        messages.remove_done(id);
        to_tell
    }

    /// Takes up to `limit` messages that were added or checked at least `after_ms` ago, and marks
    /// them as checked. Removes messages whose sockets are all closed.
    pub(crate) fn take_overdue(
        &self,
        now: Millis,
        after_ms: u64,
        limit: usize,
    ) -> Vec<OverdueMessage> {
        let mut messages = self.messages();
        let is_open = |socket: &WaitingSocket| socket.connection.strong_count() > 0;
        messages.waiting.retain(|_, message| message.sockets.iter().any(is_open));
        let all = messages.waiting.iter_mut();
        let overdue = all.filter(|(_, message)| now.since(message.checked_at) >= after_ms);
        overdue
            .take(limit)
            .map(|(id, message)| {
                message.checked_at = now;
                OverdueMessage {
                    id: *id,
                    conversation: message.conversation.clone(),
                    sender: message.sender.clone(),
                    client_id: message.client_id.clone(),
                    age_ms: now.since(message.since),
                }
            })
            .collect()
    }
}

impl WaitingMessages {
    /// The entry of a socket and a message, which is added if there is room.
    fn socket(
        &mut self,
        message: &MessageRef<'_>,
        connection: &Arc<Connection>,
        now: Millis,
    ) -> Option<&mut WaitingSocket> {
        if self.waiting.len() >= WAITING_MAX && !self.waiting.contains_key(&message.id) {
            return None;
        }
        let waiting = self.waiting.entry(message.id).or_insert_with(|| WaitingMessage {
            conversation: message.conversation.clone(),
            sender: message.sender.clone(),
            client_id: message.client_id.clone(),
            since: now,
            checked_at: now,
            sockets: Vec::new(),
        });
        let at = waiting.sockets.iter().position(|socket| socket.is(connection));
        let at = at.unwrap_or_else(|| {
            waiting.sockets.push(WaitingSocket::new(connection));
            waiting.sockets.len() - 1
        });
        waiting.sockets.get_mut(at)
    }

    fn find(&mut self, id: MessageId, connection: &Arc<Connection>) -> Option<&mut WaitingSocket> {
        let sockets = &mut self.waiting.get_mut(&id)?.sockets;
        sockets.iter_mut().find(|socket| socket.is(connection))
    }

    /// Removes the sockets of a message that wait for nothing any more.
    fn remove_done(&mut self, id: MessageId) {
        let Some(message) = self.waiting.get_mut(&id) else { return };
        message.sockets.retain(|socket| socket.unanswered > 0 || socket.was_told);
        if message.sockets.is_empty() {
            self.waiting.remove(&id);
        }
    }
}

impl WaitingSocket {
    fn new(connection: &Arc<Connection>) -> Self {
        let connection = Arc::downgrade(connection);
        Self {
            connection,
            unanswered: 0,
            was_told: false,
            is_sender: false,
            resolution: None,
            times: None,
        }
    }

    fn is(&self, connection: &Arc<Connection>) -> bool {
        std::ptr::eq(self.connection.as_ptr(), Arc::as_ptr(connection))
    }
}

#[cfg(test)]
#[path = "two_phase_waiters_tests.rs"]
mod tests;
