//! Telling the server how far we are.
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use crate::conversation::Conversation;
use crate::frames::ClientFrame;
use crate::timing::{Timing, ms};
use crate::types::Message;
use crate::wire::Wire;

/// Tells the server how far we are: the end of what is here without a hole, and what was read of it.
/// At most once per conversation in a window of time, however much arrives.
pub(crate) struct Acks {
    window: Duration,
    waiting: BTreeSet<String>,
    due: Option<Instant>,
}

impl Acks {
    pub(crate) fn new(timing: &Timing) -> Self {
        Self { window: ms(timing.ack_window_ms), waiting: BTreeSet::new(), due: None }
    }

    /// There may be something to tell.
    pub(crate) fn soon(&mut self, conversation_id: &str, now: Instant) {
        if !self.waiting.contains(conversation_id) {
            self.waiting.insert(conversation_id.to_owned());
        }
        self.due.get_or_insert(now + self.window);
    }

    /// Nobody hears us. What is not told is found by comparing heads.
    pub(crate) fn offline(&mut self) {
        self.due = None;
        self.waiting.clear();
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(crate) fn tick(
        &mut self,
        conversations: &mut HashMap<String, Conversation>,
        wire: &mut Wire,
        now: Instant,
    ) {
        if self.due.take_if(|at| *at <= now).is_none() {
            return;
        }
        while let Some(id) = self.waiting.pop_first() {
            let Some(conversation) = conversations.get_mut(&id) else { continue };
            if !is_behind(conversation) {
                continue;
            }
            if let Err(wait) = wire.frames.take(now) {
                self.waiting.insert(id);
                self.due = Some(now + wait);
                return;
            }
            tell(conversation, wire);
        }
    }
}

fn is_behind(conversation: &Conversation) -> bool {
    let Conversation { held, cursors, .. } = conversation;
    held.last() > cursors.acked_delivered || cursors.sure_read > cursors.acked_read
}

fn tell(conversation: &mut Conversation, wire: &Wire) {
    let Conversation { held, cursors, .. } = conversation;
    if let Some(read) = held.at(cursors.sure_read.min(held.last()))
        && read.seq > cursors.acked_read
        && ack(wire, "read", read)
    {
        cursors.acked_read = read.seq;
        cursors.acked_delivered = cursors.acked_delivered.max(read.seq);
    }
    if let Some(last) = held.at(held.last())
        && last.seq > cursors.acked_delivered
        && ack(wire, "delivered", last)
    {
        cursors.acked_delivered = last.seq;
    }
}

fn ack(wire: &Wire, ack_type: &str, message: &Message) -> bool {
    let (server_msg_id, msg_seq) = (message.server_msg_id.as_str(), message.seq.to_string());
    wire.send(&ClientFrame::Ack { ack_type, server_msg_id, msg_seq })
}
