//! Sends our delivered and read cursors to the server.
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use crate::conversation::Conversation;
use crate::frame_sender::FrameSender;
use crate::frames::ClientFrame;
use crate::timing::{Timing, ms};
use crate::types::Message;

/// Sends our cursors to the server: the last contiguous message and the last read one. At most once
/// per conversation and window of time, however much arrives.
pub(crate) struct Acks {
    window: Duration,
    waiting: BTreeSet<String>,
    due: Option<Instant>,
}

impl Acks {
    pub(crate) fn new(timing: &Timing) -> Self {
        Self { window: ms(timing.ack_window_ms), waiting: BTreeSet::new(), due: None }
    }

    /// Schedules an ACK for this conversation.
    pub(crate) fn schedule(&mut self, conversation_id: &str, now: Instant) {
        if !self.waiting.contains(conversation_id) {
            self.waiting.insert(conversation_id.to_owned());
        }
        self.due.get_or_insert(now + self.window);
    }

    /// Drops what is scheduled; comparing heads finds it again after reconnecting.
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
        frame_sender: &mut FrameSender,
        now: Instant,
    ) {
        if self.due.take_if(|at| *at <= now).is_none() {
            return;
        }
        while let Some(id) = self.waiting.pop_first() {
            let Some(conversation) = conversations.get_mut(&id) else { continue };
            if !needs_ack(conversation) {
                continue;
            }
            if let Err(wait) = frame_sender.rate.take(now) {
                self.waiting.insert(id);
                self.due = Some(now + wait);
                return;
            }
            send_acks(conversation, frame_sender);
        }
    }
}

fn needs_ack(conversation: &Conversation) -> bool {
    let Conversation { messages, cursors, .. } = conversation;
    messages.last() > cursors.acked_delivered || cursors.confirmed_read > cursors.acked_read
}

fn send_acks(conversation: &mut Conversation, frame_sender: &FrameSender) {
    let Conversation { messages, cursors, .. } = conversation;
    if let Some(read) = messages.last_readable(cursors.confirmed_read.min(messages.last()))
        && read.seq > cursors.acked_read
        && send_ack(frame_sender, "read", read)
    {
        cursors.acked_read = read.seq;
        cursors.acked_delivered = cursors.acked_delivered.max(read.seq);
    }
    if let Some(last) = messages.last_readable(messages.last())
        && last.seq > cursors.acked_delivered
        && send_ack(frame_sender, "delivered", last)
    {
        cursors.acked_delivered = last.seq;
    }
}

fn send_ack(frame_sender: &FrameSender, ack_type: &str, message: &Message) -> bool {
    let (server_msg_id, msg_seq) = (message.server_msg_id.as_str(), message.seq.to_string());
    frame_sender.send(&ClientFrame::Ack { ack_type, server_msg_id, msg_seq })
}
