//! Puts everything that arrives, pushed or pulled, into its conversation, and tells the app once.
use std::sync::Arc;

use serde::Deserialize;

use crate::conversation::{Conversation, Head};
use crate::desk::Desk;
use crate::entry::Entry;
use crate::events::{Event, Receipt};
use crate::group::MemberReadState;
use crate::held::Told;
use crate::messages::MessageInfo;
use crate::types::{Change, Message, Receive};

/// A line of the server's list.
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

impl Desk {
    /// The conversation of this id, new if it is.
    pub(crate) fn open(&mut self, id: &str) -> &mut Conversation {
        if !self.conversations.contains_key(id) {
            self.conversations.insert(id.to_owned(), Conversation::new(id, &self.me, self.keep));
        }
        self.conversations.get_mut(id).expect("it was put there")
    }

    /// The line of a conversation changed.
    pub(crate) fn touch(&mut self, id: &str) {
        if !self.touched.contains(id) {
            self.touched.insert(id.to_owned());
        }
    }

    /// Something of ours is on its way, or was refused.
    pub(crate) fn sending(&mut self, entry: &Entry) -> Arc<Message> {
        let message = Arc::new(Message::waiting(entry, &self.me));
        self.open(&entry.conversation_id).outgoing.set(&entry.client_msg_id, message.clone());
        self.touch(&entry.conversation_id);
        message
    }

    /// Takes a message that has its place, wherever it comes from.
    pub(crate) fn take(&mut self, message: Message) {
        let (id, seq) = (message.conversation_id.clone(), message.seq);
        let conversation = self.open(&id);
        let was_sending =
            message.mine && conversation.outgoing.get(&message.client_msg_id).is_some();
        let is_shown = was_sending || conversation.previews.get(&message.server_msg_id).is_some();
        if message.mine {
            self.settle(&message);
        }
        let conversation = self.open(&id);
        let is_new = !conversation.has_begun || seq > conversation.arrived.last();
        if !is_new && !is_shown {
            return;
        }
        let copy = is_shown.then(|| message.clone());
        let ready = conversation.take(message);
        if let Some(mut copy) = copy {
            if copy.mine {
                self.open(&id).progress_at(seq).put(&mut copy);
            }
            if is_new {
                self.shown.insert(copy.server_msg_id.clone());
            }
            if !ready.iter().any(|one| one.server_msg_id == copy.server_msg_id) {
                self.update(Arc::new(copy)); // it waits for others before it, or is older than all here
            }
        }
        self.tell_all(&id, ready);
        self.make_room(&id);
        self.sync.active(self.now);
        self.mend(&id);
        self.touch(&id);
    }

    pub(crate) fn take_change(&mut self, change: Change) {
        let id = change.conversation_id.clone();
        // A recall does not wait for its turn: the text has to go.
        if change.kind == "recalled" {
            self.recall(&id, change.server_msg_id.as_deref().unwrap_or_default());
        }
        for one in self.open(&id).changes.add(change.change_seq, Arc::new(change)) {
            let ready = self.open(&id).hear_change(&one);
            let is_about_people = ["joined", "left", "kicked"].contains(&one.kind.as_str());
            self.ears.tell(&Event::Change(one));
            self.tell_all(&id, ready);
            if is_about_people {
                self.recount(&id);
            }
        }
        self.sync.active(self.now);
        self.mend(&id);
        self.touch(&id);
    }

    /// It was taken back: the text goes.
    pub(crate) fn recall(&mut self, id: &str, server_msg_id: &str) {
        if let Some(recalled) = self.open(id).recall(server_msg_id) {
            self.update(recalled);
        }
        self.touch(id);
    }

    /// The same, wherever it is.
    pub(crate) fn recalled(&mut self, server_msg_id: &str) {
        let all = self.conversations.values();
        let holder = all.into_iter().find(|one| one.held.find(server_msg_id).is_some());
        if let Some(id) = holder.map(|one| one.id.clone()) {
            self.recall(&id, server_msg_id);
        }
    }

    /// Compares with what the server has; for the first time when the device has just come.
    pub(crate) fn hear_heads(&mut self, heads: &[Head], is_first: bool) {
        for head in heads {
            let id = &head.conversation_id;
            let conversation = self.open(id);
            let begun = conversation.begin_at_if_new(head, is_first);
            let ready = conversation.hear_head(head);
            self.tell_all(id, begun);
            self.tell_all(id, ready);
            self.acks.soon(id, self.now);
            self.mend(id);
            self.touch(id);
        }
    }

    pub(crate) fn hear_infos(&mut self, infos: Vec<ConversationInfo>) {
        for info in infos {
            let id = info.conversation_id;
            let conversation = self.open(&id);
            let about = &mut conversation.about;
            about.is_known = true;
            if let Some(name) = info.peer_nickname.or(info.group_name) {
                about.name = name;
            }
            if let Some(avatar) = info.peer_avatar.or(info.group_avatar) {
                about.avatar = avatar;
            }
            about.member_count = info.member_count.or(about.member_count);
            let peer = conversation.address.id().to_owned();
            if let Some(seq) = info.peer_delivered_seq {
                self.receipt(&id, &peer, Receipt::Delivered, seq);
            }
            if let Some(seq) = info.peer_read_seq {
                self.receipt(&id, &peer, Receipt::Read, seq);
            }
            self.hear_last(&id, info.last_message);
            let (up_to, read, many) = (info.max_seq, info.read_seq, info.mention_unread_count);
            self.open(&id).held.hear_mentions(Told { up_to, read, many });
            self.touch(&id);
        }
    }

    /// There is something up to this place.
    pub(crate) fn expect(&mut self, id: &str, seq: u64) {
        self.open(id).arrived.expect(seq);
        self.mend(id);
    }

    /// Somebody has received or read up to here.
    pub(crate) fn receipt(&mut self, id: &str, user_id: &str, kind: Receipt, seq: u64) {
        for message in self.open(id).hear_receipt(user_id, kind, seq) {
            self.update(message);
        }
    }

    /// The server told how far everybody in a group is.
    pub(crate) fn learn_reads(&mut self, id: &str, members: Vec<MemberReadState>) {
        if let Some(reads) = &mut self.open(id).reads {
            reads.learn(members);
        }
        self.recount(id);
    }

    /// Who has to have read our messages is others now, or how far they are is known anew.
    fn recount(&mut self, id: &str) {
        for message in self.open(id).recount(0, u64::MAX) {
            self.update(message);
        }
        self.touch(id);
    }

    fn hear_last(&mut self, id: &str, last: Option<MessageInfo>) {
        let conversation = self.open(id);
        let is_wanted = conversation.has_begun && conversation.about.receive != Receive::Blocked;
        let Some(last) = last.filter(|_| is_wanted) else { return };
        if last.seq == conversation.arrived.last() + 1 {
            let message = Message::pulled(last, &self.me);
            self.take(message);
        } else {
            self.expect(id, last.seq);
        }
    }

    /// What is missing will be brought.
    fn mend(&mut self, id: &str) {
        let Some(conversation) = self.conversations.get(id) else { return };
        // With its first message a conversation has somebody's name, too; and so has one that was
        // hidden.
        let about = &conversation.about;
        let is_new = conversation.arrived.last() == 1 || about.hidden_seq.is_some();
        let is_first = is_new && !about.is_known && conversation.is_listed();
        if !conversation.has_begun || is_first {
            self.sync.ask_heads(self.now);
        }
        if conversation.has_begun {
            self.sync.hole(conversation, self.now);
        }
    }

    /// One of ours has its place: it leaves the outbox, and what came before it is read.
    fn settle(&mut self, message: &Message) {
        let is_from_here = self.outbox.saved(&message.client_msg_id);
        let conversation = self.open(&message.conversation_id);
        conversation.read_to(message.seq, is_from_here);
        if is_from_here {
            let cursors = &mut conversation.cursors;
            cursors.acked_read = cursors.acked_read.max(message.seq);
        }
    }

    fn tell_all(&mut self, id: &str, ready: Vec<Arc<Message>>) {
        for message in ready {
            let (mine, seq, from) = (message.mine, message.seq, message.from.clone());
            if self.shown.remove(&message.server_msg_id) {
                self.update(message);
            } else if seq > self.open(id).old_up_to {
                self.ears.tell(&Event::Message(message));
            }
            if !mine {
                self.acks.soon(id, self.now);
                // Whoever answers has read what came before.
                self.receipt(id, &from, Receipt::Read, seq);
            }
        }
    }

    /// Lets go of the oldest now and then.
    fn make_room(&mut self, id: &str) {
        let conversation = self.open(id);
        let keep = conversation.keep;
        if conversation.held.all().len() > keep.saturating_add(keep / 5) {
            conversation.held.trim(keep);
        }
    }
}
