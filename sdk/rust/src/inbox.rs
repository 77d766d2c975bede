//! Puts pushed and pulled messages into their conversations and emits each once.
use std::sync::Arc;

use serde::Deserialize;

use crate::account_state::AccountState;
use crate::conversation::{Conversation, Head};
use crate::events::{Event, Receipt};
use crate::group::MemberReadState;
use crate::message_window::ServerUnread;
use crate::messages::MessageInfo;
use crate::outbox_entry::OutboxEntry;
use crate::types::{Address, Change, ChangeKind, Message, Receive};

/// An item of `/conversation/all`, as HTTP returns it.
#[derive(Debug, Deserialize)]
pub(crate) struct ConversationInfo {
    conversation_id: String,
    peer_nickname: Option<String>,
    peer_avatar: Option<String>,
    peer_delivered_seq: Option<u64>,
    peer_read_seq: Option<u64>,
    group_name: Option<String>,
    group_avatar: Option<String>,
    member_count: Option<u64>,
    max_seq: u64,
    read_seq: u64,
    #[serde(default)]
    mention_unread_count: u64,
    last_message: Option<MessageInfo>,
}

impl AccountState {
    /// The conversation with this id, created if it is new.
    pub(crate) fn get_or_create(&mut self, id: &str) -> &mut Conversation {
        if !self.conversations.contains_key(id) {
            self.conversations.insert(id.to_owned(), Conversation::new(id, &self.me, self.keep));
        }
        self.conversations.get_mut(id).expect("it was put there")
    }

    /// Marks the summary of a conversation as changed.
    pub(crate) fn touch(&mut self, id: &str) {
        if !self.touched.contains(id) {
            self.touched.insert(id.to_owned());
        }
    }

    /// Shows an outbox entry as an outgoing or refused message.
    pub(crate) fn show_outgoing(&mut self, entry: &OutboxEntry) -> Arc<Message> {
        let message = Arc::new(Message::waiting(entry, &self.me));
        self.get_or_create(&entry.conversation_id)
            .outgoing
            .set(&entry.client_msg_id, message.clone());
        self.touch(&entry.conversation_id);
        message
    }

    /// Receives a message with a seq, pushed or pulled.
    pub(crate) fn receive(&mut self, message: Message) {
        let (id, seq) = (message.conversation_id.clone(), message.seq);
        let conversation = self.get_or_create(&id);
        let was_sending =
            message.is_mine && conversation.outgoing.get(&message.client_msg_id).is_some();
        let is_shown = was_sending || conversation.previews.get(&message.server_msg_id).is_some();
        if message.is_mine {
            self.complete_outgoing(&message);
        }
        let conversation = self.get_or_create(&id);
        let is_new = !conversation.has_begun || seq > conversation.arrived.last();
        if !is_new && !is_shown {
            return;
        }
        let copy = is_shown.then(|| message.clone());
        let ready = conversation.add_message(message);
        if let Some(mut copy) = copy {
            if copy.is_mine {
                self.get_or_create(&id).progress_at(seq).apply_to(&mut copy);
            }
            if is_new {
                self.already_shown.insert(copy.server_msg_id.clone());
            }
            if !ready.iter().any(|one| one.server_msg_id == copy.server_msg_id) {
                self.update(Arc::new(copy)); // it waits behind a gap, or is older than the messages on this device
            }
        }
        self.emit_all(&id, ready);
        self.trim_messages(&id);
        self.sync.note_activity(self.now);
        self.check_gaps(&id);
        self.touch(&id);
    }

    pub(crate) fn receive_change(&mut self, change: Change) {
        let id = change.conversation_id.clone();
        // A recall is applied at once, also beyond a gap: the text must go.
        if change.kind == ChangeKind::Recalled {
            self.recall(&id, change.server_msg_id.as_deref().unwrap_or_default());
        }
        for one in self.get_or_create(&id).changes.add(change.change_seq, Arc::new(change)) {
            let ready = self.get_or_create(&id).apply_change(&one);
            let is_about_people =
                matches!(one.kind, ChangeKind::Joined | ChangeKind::Left | ChangeKind::Kicked);
            self.note_own_join(&one);
            self.listeners.emit(&Event::Change(one));
            self.emit_all(&id, ready);
            if is_about_people {
                self.recount(&id);
            }
        }
        self.sync.note_activity(self.now);
        self.check_gaps(&id);
        self.touch(&id);
    }

    /// Applies a recall: the text goes.
    pub(crate) fn recall(&mut self, id: &str, server_msg_id: &str) {
        if let Some(recalled) = self.get_or_create(id).recall(server_msg_id) {
            self.update(recalled);
        }
        self.touch(id);
    }

    /// Applies a recall in the conversation that holds the message.
    pub(crate) fn recall_anywhere(&mut self, server_msg_id: &str) {
        let all = self.conversations.values();
        let found = all.into_iter().find(|one| one.messages.find(server_msg_id).is_some());
        if let Some(id) = found.map(|one| one.id.clone()) {
            self.recall(&id, server_msg_id);
        }
    }

    /// Applies the heads of the server; `is_first` right after sign-in, before the first
    /// connection.
    pub(crate) fn apply_heads(&mut self, heads: &[Head], is_first: bool) {
        for head in heads {
            let id = &head.conversation_id;
            let conversation = self.get_or_create(id);
            if head.max_seq == 0 && matches!(conversation.address, Address::To { .. }) {
                // There is no message to begin with.
                conversation.set_settings(head.is_pinned, head.recv_msg_opt);
                self.touch(id);
                continue;
            }
            let is_new = !conversation.has_begun;
            let begun = conversation.begin_from_head(head, is_first);
            let skips_changes = is_new && conversation.changes.last() >= head.change_seq;
            let ready = conversation.apply_head(head);
            if skips_changes {
                self.own_joins.look_at(head);
            }
            self.emit_all(id, begun);
            self.emit_all(id, ready);
            self.acks.schedule(id, self.now);
            self.check_gaps(id);
            self.touch(id);
        }
    }

    pub(crate) fn apply_infos(&mut self, infos: Vec<ConversationInfo>) {
        for info in infos {
            let id = info.conversation_id;
            let conversation = self.get_or_create(&id);
            let details = &mut conversation.details;
            details.has_info = true;
            if let Some(name) = info.peer_nickname.or(info.group_name) {
                details.name = name;
            }
            if let Some(avatar) = info.peer_avatar.or(info.group_avatar) {
                details.avatar = avatar;
            }
            details.member_count = info.member_count.or(details.member_count);
            let peer = conversation.address.id().to_owned();
            if let Some(seq) = info.peer_delivered_seq {
                self.apply_receipt(&id, &peer, Receipt::Delivered, seq);
            }
            if let Some(seq) = info.peer_read_seq {
                self.apply_receipt(&id, &peer, Receipt::Read, seq);
            }
            self.apply_last_message(&id, info.last_message);
            let (up_to, read, count) = (info.max_seq, info.read_seq, info.mention_unread_count);
            self.get_or_create(&id).messages.set_server_mentions(ServerUnread {
                up_to,
                read,
                count,
            });
            self.touch(&id);
        }
    }

    /// Records that messages up to this seq exist, and fetches them if they are missing.
    pub(crate) fn expect(&mut self, id: &str, seq: u64) {
        self.get_or_create(id).arrived.expect(seq);
        self.check_gaps(id);
    }

    /// Applies a receipt and emits the messages it changes.
    pub(crate) fn apply_receipt(&mut self, id: &str, user_id: &str, kind: Receipt, seq: u64) {
        for message in self.get_or_create(id).apply_receipt(user_id, kind, seq) {
            self.update(message);
        }
    }

    /// Applies the read cursors of the members of a group.
    pub(crate) fn apply_read_states(&mut self, id: &str, members: Vec<MemberReadState>) {
        if let Some(reads) = &mut self.get_or_create(id).reads {
            reads.load(members);
        }
        self.recount(id);
    }

    /// Recalculates the state of our messages after the members or their cursors changed.
    fn recount(&mut self, id: &str) {
        for message in self.get_or_create(id).recount(0, u64::MAX) {
            self.update(message);
        }
        self.touch(id);
    }

    fn apply_last_message(&mut self, id: &str, last: Option<MessageInfo>) {
        let conversation = self.get_or_create(id);
        let is_wanted = conversation.has_begun && conversation.details.receive != Receive::Blocked;
        let Some(last) = last.filter(|_| is_wanted) else { return };
        if last.seq == conversation.arrived.last() + 1 {
            let message = Message::pulled(last, &self.me);
            self.receive(message);
        } else {
            self.expect(id, last.seq);
        }
    }

    /// Schedules what is missing: heads or a pull.
    fn check_gaps(&mut self, id: &str) {
        let Some(conversation) = self.conversations.get(id) else { return };
        // A conversation that is new or was hidden needs its name, too.
        let details = &conversation.details;
        let is_new = conversation.arrived.last() == 1 || details.hidden_seq.is_some();
        let is_first = is_new && !details.has_info && conversation.is_listed();
        if !conversation.has_begun || is_first {
            self.sync.schedule_heads(self.now);
        }
        if conversation.has_begun {
            self.sync.schedule_fill(conversation, self.now);
        }
    }

    /// Removes a saved message of ours from the outbox and marks everything before it as read.
    fn complete_outgoing(&mut self, message: &Message) {
        let is_from_here = self.outbox.saved(&message.client_msg_id);
        let conversation = self.get_or_create(&message.conversation_id);
        conversation.read_to(message.seq, is_from_here);
        if is_from_here {
            let cursors = &mut conversation.cursors;
            cursors.acked_read = cursors.acked_read.max(message.seq);
        }
    }

    fn emit_all(&mut self, id: &str, ready: Vec<Arc<Message>>) {
        for message in ready {
            if message.is_damaged {
                self.update(message); // nobody said it just now
                continue;
            }
            let (is_mine, seq, from) = (message.is_mine, message.seq, message.from.clone());
            if self.already_shown.remove(&message.server_msg_id) {
                self.update(message);
            } else if seq > self.get_or_create(id).history_up_to {
                self.listeners.emit(&Event::Message(message));
            }
            if !is_mine {
                self.acks.schedule(id, self.now);
                // A sender has read everything before the message.
                self.apply_receipt(id, &from, Receipt::Read, seq);
            }
        }
    }

    /// Drops the oldest messages, a fifth of the limit at a time.
    fn trim_messages(&mut self, id: &str) {
        let conversation = self.get_or_create(id);
        let keep = conversation.keep;
        if conversation.messages.all().len() > keep.saturating_add(keep / 5) {
            conversation.messages.trim(keep);
        }
    }
}
