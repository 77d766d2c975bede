//! Understands what the server says and passes it to whom it concerns.
use std::sync::Arc;

use crate::desk::Desk;
use crate::error::Error;
use crate::events::{Event, Receipt};
use crate::frames::{Ack, AckType, Chat, ClientFrame, ServerFrame};
use crate::types::{Message, MessageState, Receive, Target};

impl Desk {
    pub(crate) fn hear(&mut self, frame: ServerFrame) {
        match frame {
            ServerFrame::SingleChat(chat) | ServerFrame::GroupChat(chat) => self.hear_chat(chat),
            ServerFrame::Ack(ack) => self.hear_ack(ack),
            ServerFrame::MessageRevoked(frame) => self.take_change(frame.into()),
            ServerFrame::GroupChanged(frame) => self.take_change(frame.into()),
            ServerFrame::Error { reason, message, client_msg_id } => match client_msg_id {
                Some(name) => self.refused(&name, reason),
                None => self.ears.problem(Error::refused_with(reason, message)),
            },
            ServerFrame::GroupNotify { conversation_id, msg_seq } => {
                self.expect(&conversation_id, msg_seq);
            }
            ServerFrame::ResendDone { has_more: true } => {
                self.wire.send(&ClientFrame::Resend { cursors: [].into() });
            }
            ServerFrame::Typing { from, group_id } => self.hear_typing(from, group_id),
            ServerFrame::ConversationSettings { conversation_id, receive, pinned, hidden_seq } => {
                let about = &mut self.open(&conversation_id).about;
                let was_blocked = about.receive == Receive::Blocked;
                (about.receive, about.pinned, about.hidden_seq) = (receive, pinned, hidden_seq);
                if was_blocked {
                    self.sync.ask_heads(self.now); // what was said meanwhile
                }
                self.touch(&conversation_id);
            }
            ServerFrame::UserUpdated { user_id, nickname, avatar } => {
                self.hear_person(user_id, nickname, avatar);
            }
            ServerFrame::GroupJoinRequest { group_id, from, server_msg_id, body } => {
                let (user_id, request_id, message) = (from, server_msg_id, body);
                self.ears.tell(&Event::JoinRequest { group_id, user_id, request_id, message });
            }
            ServerFrame::GroupJoinDecision { group_id, from, server_msg_id, body } => {
                let (by, request_id, accepted) = (from, server_msg_id, body == "ACCEPTED");
                self.ears.tell(&Event::JoinDecision { group_id, by, request_id, accepted });
            }
            ServerFrame::AuthOk { .. }
            | ServerFrame::AuthFail { .. }
            | ServerFrame::Ping
            | ServerFrame::Pong
            | ServerFrame::ResendDone { has_more: false }
            | ServerFrame::Other => {}
        }
    }

    fn hear_typing(&mut self, user_id: String, group_id: Option<String>) {
        let target = group_id.map_or_else(|| Target::to(user_id.clone()), Target::Group);
        let conversation_id = target.conversation_id(&self.me);
        if self.typing.hear(&conversation_id, &user_id, self.now) {
            self.ears.tell(&Event::Typing { conversation_id, user_id, on: true });
        }
    }

    /// A conversation with one person is called as they are.
    fn hear_person(&mut self, user_id: String, nickname: String, avatar: String) {
        let conversation_id = Target::to(user_id.clone()).conversation_id(&self.me);
        let conversation = self.conversations.get_mut(&conversation_id);
        if let Some(conversation) = conversation.filter(|_| user_id != self.me) {
            conversation.about.name.clone_from(&nickname);
            conversation.about.avatar.clone_from(&avatar);
            self.touch(&conversation_id);
        }
        self.ears.tell(&Event::Person { user_id, nickname, avatar });
    }

    fn hear_chat(&mut self, chat: Chat) {
        let message = Message::pushed(chat, &self.me);
        if self.typing.stop(&message.conversation_id, &message.from) {
            let (conversation_id, user_id) =
                (message.conversation_id.clone(), message.from.clone());
            self.ears.tell(&Event::Typing { conversation_id, user_id, on: false });
        }
        if message.state == MessageState::Preview {
            self.hear_preview(message);
        } else {
            self.take(message);
        }
    }

    fn hear_preview(&mut self, message: Message) {
        let (id, name) = (message.conversation_id.clone(), &message.server_msg_id);
        let conversation = self.open(&id);
        let is_known = conversation.previews.get(name).is_some()
            || conversation.held.find(name).is_some()
            || (message.mine && conversation.outgoing.get(&message.client_msg_id).is_some())
            || conversation.arrived.early().any(|early| early.server_msg_id == *name);
        if is_known {
            return;
        }
        let message = Arc::new(message);
        conversation.previews.set(&message.server_msg_id, message.clone());
        self.ears.tell(&Event::Message(message));
        self.touch(&id);
    }

    fn hear_ack(&mut self, ack: Ack) {
        match ack.kind {
            AckType::Accepted => self.hear_accepted(&ack),
            AckType::Saved => self.hear_saved(ack),
            AckType::Dropped => self.hear_dropped(&ack),
            AckType::Revoked => self.recall(&ack.conversation_id, &ack.server_msg_id),
            AckType::Delivered => self.hear_receipt(ack, Receipt::Delivered),
            AckType::Read => self.hear_receipt(ack, Receipt::Read),
            AckType::Other => {}
        }
    }

    /// Taken by the server, which may still lose it: it stays in the outbox.
    fn hear_accepted(&mut self, ack: &Ack) {
        let is_ours = self.outbox.accepted(&ack.client_msg_id, self.now);
        let outgoing = &mut self.open(&ack.conversation_id).outgoing;
        let Some(message) = outgoing.get(&ack.client_msg_id).filter(|_| is_ours) else { return };
        if message.state != MessageState::Sending {
            return;
        }
        let mut accepted = Message::clone(message);
        accepted.server_msg_id.clone_from(&ack.server_msg_id);
        accepted.state = MessageState::Accepted;
        // Words that the server does not want are replaced, which it tells us now or when it is saved.
        accepted.body = ack.body.clone().unwrap_or(accepted.body);
        let accepted = Arc::new(accepted);
        outgoing.set(&ack.client_msg_id, accepted.clone());
        self.update(accepted);
        self.touch(&ack.conversation_id);
    }

    fn hear_saved(&mut self, ack: Ack) {
        let Some(seq) = ack.msg_seq else { return };
        let is_ours = ack.from.as_ref().is_none_or(|from| *from == self.me);
        let conversation = self.open(&ack.conversation_id);
        let waiting = conversation.outgoing.get(&ack.client_msg_id).filter(|_| is_ours).cloned();
        let preview = conversation.previews.get(&ack.server_msg_id).cloned();
        if waiting.is_some() {
            self.outbox.answered(&ack.client_msg_id);
        }
        let Some(known) = waiting.or(preview) else {
            return self.expect(&ack.conversation_id, seq);
        };
        let mut message = Message::clone(&known);
        (message.seq, message.at, message.server_msg_id) = (seq, ack.ts, ack.server_msg_id);
        message.state = if known.mine { MessageState::Saved } else { MessageState::Received };
        message.body = ack.body.filter(|_| known.mine).unwrap_or(message.body);
        (message.reason, message.after) = (None, None);
        self.take(message);
    }

    /// A preview that did not make it.
    fn hear_dropped(&mut self, ack: &Ack) {
        let previews = &mut self.open(&ack.conversation_id).previews;
        if let Some(preview) = previews.remove(&ack.server_msg_id) {
            self.removed(&preview);
        }
    }

    /// Nobody tells us any more what becomes of previews. Those that are saved come as messages.
    pub(crate) fn drop_previews(&mut self) {
        let all = self.conversations.values_mut();
        let previews: Vec<_> = all.flat_map(|one| one.previews.take_all()).collect();
        for preview in previews {
            self.removed(&preview);
        }
    }

    fn removed(&mut self, preview: &Message) {
        self.touch(&preview.conversation_id);
        self.ears.tell(&Event::Removed {
            conversation_id: preview.conversation_id.clone(),
            client_msg_id: preview.client_msg_id.clone(),
            server_msg_id: preview.server_msg_id.clone(),
        });
    }

    fn hear_receipt(&mut self, ack: Ack, kind: Receipt) {
        let (conversation_id, user_id) = (ack.conversation_id, ack.from.unwrap_or_default());
        let Some(seq) = ack.msg_seq else { return };
        self.touch(&conversation_id);
        if user_id != self.me {
            self.receipt(&conversation_id, &user_id, kind, seq);
            self.ears.tell(&Event::Receipt { conversation_id, user_id, kind, seq });
        } else if kind == Receipt::Read {
            let conversation = self.open(&conversation_id);
            conversation.read_to(seq, true);
            let cursors = &mut conversation.cursors;
            cursors.acked_read = cursors.acked_read.max(seq);
        }
    }
}
