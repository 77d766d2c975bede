//! Resends to a client what it has missed, page by page. The next page is read only when the last
//! one is in the outbox, and the outbox takes it only while it is below its low water mark.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::chat::SessionState;
use nexo_chat::command::{Command, HandleOutcome, ResendPage};
use nexo_chat::ids::{ConversationId, Seq};
use nexo_chat::model::Message;
use nexo_chat::policy::delivery::is_important;
use nexo_wire::dialect::Echo;

use crate::socket::close::SocketClose;
use crate::socket::session::Session;

/// The resend page that is being written, and the request for another one.
#[derive(Default)]
pub(super) struct ResendQueue {
    items: VecDeque<ResendItem>,
    /// What the client requested while a page was being written. Only the latest request counts.
    requested: Option<BTreeMap<ConversationId, Seq>>,
}

enum ResendItem {
    Message(Arc<Message>),
    PageEnd { has_more: bool },
}

impl ResendQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn request(&mut self, cursors: BTreeMap<ConversationId, Seq>) {
        self.requested = Some(cursors);
    }
}

impl Session {
    /// Reads and queues the first page after these cursors; without any, after those in the store.
    pub(super) async fn resend(
        &mut self,
        cursors: BTreeMap<ConversationId, Seq>,
    ) -> Result<(), SocketClose> {
        let command = Command::Resend { cursors };
        match self.gateway.chat.handle(&mut self.state, command).await {
            Ok(HandleOutcome::Ready(reply)) => self.reply(&reply, &Echo::default(), self.now()),
            Ok(HandleOutcome::Pending(_)) => {}
            Err(error) => return self.refuse_error(&error, &Echo::default(), self.now()),
        }
        Ok(())
    }

    /// Whether the last page is in the outbox and another one is due.
    pub(super) fn needs_page(&self) -> bool {
        let queue = &self.resend_queue;
        queue.is_empty() && (queue.requested.is_some() || self.connection.can_recover())
    }

    /// Reads the pushes that a full outbox dropped, else what the client requested meanwhile.
    pub(super) async fn read_next_page(&mut self) -> Result<(), SocketClose> {
        if self.connection.can_recover() {
            let missed = self.connection.take_missed();
            let SessionState { caller, catchup, .. } = &mut self.state;
            match catchup.recover(&self.gateway.chat, caller, missed).await {
                Ok(Some(page)) => self.queue_page(&page),
                Ok(None) => {}
                // The record of dropped pushes is gone: a new connection starts from the cursors.
                Err(error) => {
                    let user = &self.connection.user;
                    tracing::warn!(userId = %user, %error, "dropped pushes cannot be read again");
                    return Err(self.close(Reason::SlowConsumer));
                }
            }
        }
        if self.resend_queue.is_empty()
            && let Some(cursors) = self.resend_queue.requested.take()
        {
            self.resend(cursors).await?;
        }
        Ok(())
    }

    pub(super) fn queue_page(&mut self, page: &ResendPage) {
        self.gateway.meters.resent.increment(page.messages.len() as u64);
        let items = &mut self.resend_queue.items;
        items.extend(page.messages.iter().map(Arc::clone).map(ResendItem::Message));
        items.push_back(ResendItem::PageEnd { has_more: page.has_more });
    }

    /// Moves the page into the outbox as far as there is room.
    pub(super) fn feed_outbox(&mut self) {
        if self.resend_queue.is_empty() {
            return;
        }
        let now = self.now();
        while self.connection.outbox.has_room() {
            match self.resend_queue.items.pop_front() {
                Some(ResendItem::Message(message)) => {
                    self.gateway.fanout.recalls.write_current(&message, |message| {
                        let is_important = is_important(message, &self.connection.user);
                        self.push_reply(self.dialect().message(message, is_important));
                    });
                }
                Some(ResendItem::PageEnd { has_more }) => {
                    self.push_reply(self.dialect().page_end(has_more, now));
                }
                None => break,
            }
        }
        if self.resend_queue.is_empty() {
            self.resend_queue.items = VecDeque::new(); // an idle socket keeps no buffer
        }
    }
}
