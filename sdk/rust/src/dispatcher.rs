//! Dispatches server frames to the inbox, the outbox, sync and typing.
use std::sync::Arc;

use crate::account_state::AccountState;
use crate::error::Error;
use crate::events::{Event, Receipt};
use crate::frames::{AckFrame, AckType, ChatFrame, ClientFrame, ServerFrame};
use crate::types::{Message, MessageState, Receive, Target};

impl AccountState {
    pub(crate) fn dispatch(&mut self, frame: ServerFrame) {
        match frame {
            ServerFrame::SingleChat(chat) | ServerFrame::GroupChat(chat) => self.on_chat(chat),
            ServerFrame::Ack(ack) => self.on_ack(ack),
            ServerFrame::MessageRevoked(frame) => self.receive_change(frame.into()),
            ServerFrame::GroupChanged(frame) => self.receive_change(frame.into()),
            ServerFrame::Error { reason, message, client_msg_id } => match client_msg_id {
                Some(id) => self.refused(&id, reason),
                None => self.listeners.emit_problem(Error::refused_with(reason, message)),
            },
            ServerFrame::GroupNotify { conversation_id, msg_seq } => {
                self.expect(&conversation_id, msg_seq);
            }
            ServerFrame::ResendDone { has_more: true } => {
                self.frame_sender.send(&ClientFrame::Resend { cursors: [].into() });
            }
            ServerFrame::Typing { from, group_id } => self.on_typing(from, group_id),
            ServerFrame::ConversationSettings { conversation_id, receive, pinned, hidden_seq } => {
                let details = &mut self.get_or_create(&conversation_id).details;
                let was_blocked = details.receive == Receive::Blocked;
                (details.receive, details.is_pinned, details.hidden_seq) =
                    (receive, pinned, hidden_seq);
                if was_blocked {
                    self.sync.schedule_heads(self.now); // fetches what came while it was blocked
                }
                self.touch(&conversation_id);
            }
            ServerFrame::UserUpdated { user_id, nickname, avatar } => {
                self.on_user_updated(user_id, nickname, avatar);
            }
            ServerFrame::GroupJoinRequest { group_id, from, server_msg_id, body } => {
                let (user_id, request_id, message) = (from, server_msg_id, body);
                self.listeners.emit(&Event::JoinRequest { group_id, user_id, request_id, message });
            }
            ServerFrame::GroupJoinDecision { group_id, from, server_msg_id, body } => {
                let (by, request_id, is_accepted) = (from, server_msg_id, body == "ACCEPTED");
                self.listeners.emit(&Event::JoinDecision { group_id, by, request_id, is_accepted });
            }
            ServerFrame::AuthOk { .. }
            | ServerFrame::AuthFail { .. }
            | ServerFrame::Ping
            | ServerFrame::Pong
            | ServerFrame::ResendDone { has_more: false }
            | ServerFrame::Other => {}
        }
    }

    fn on_typing(&mut self, user_id: String, group_id: Option<String>) {
        let target = group_id.map_or_else(|| Target::to(user_id.clone()), Target::Group);
        let conversation_id = target.conversation_id(&self.me);
        if self.typing.start(&conversation_id, &user_id, self.now) {
            self.listeners.emit(&Event::Typing { conversation_id, user_id, is_typing: true });
        }
    }

    /// A private conversation has the nickname and avatar of its peer.
    fn on_user_updated(&mut self, user_id: String, nickname: String, avatar: String) {
        let conversation_id = Target::to(user_id.clone()).conversation_id(&self.me);
        let conversation = self.conversations.get_mut(&conversation_id);
        if let Some(conversation) = conversation.filter(|_| user_id != self.me) {
            conversation.details.name.clone_from(&nickname);
            conversation.details.avatar.clone_from(&avatar);
            self.touch(&conversation_id);
        }
        self.listeners.emit(&Event::Person { user_id, nickname, avatar });
    }

    fn on_chat(&mut self, chat: ChatFrame) {
        let message = Message::pushed(chat, &self.me);
        if self.typing.stop(&message.conversation_id, &message.from) {
            let (conversation_id, user_id) =
                (message.conversation_id.clone(), message.from.clone());
            self.listeners.emit(&Event::Typing { conversation_id, user_id, is_typing: false });
        }
        if message.state == MessageState::Preview {
            self.on_preview(message);
        } else {
            self.receive(message);
        }
    }

    fn on_preview(&mut self, message: Message) {
        let (id, server_msg_id) = (message.conversation_id.clone(), &message.server_msg_id);
        let conversation = self.get_or_create(&id);
        let is_known = conversation.previews.get(server_msg_id).is_some()
            || conversation.messages.find(server_msg_id).is_some()
            || (message.is_mine && conversation.outgoing.get(&message.client_msg_id).is_some())
            || conversation.arrived.buffered().any(|one| one.server_msg_id == *server_msg_id);
        if is_known {
            return;
        }
        let message = Arc::new(message);
        conversation.previews.set(&message.server_msg_id, message.clone());
        self.listeners.emit(&Event::Message(message));
        self.touch(&id);
    }

    fn on_ack(&mut self, ack: AckFrame) {
        match ack.kind {
            AckType::Accepted => self.on_accepted(&ack),
            AckType::Saved => self.on_saved(ack),
            AckType::Dropped => self.on_dropped(&ack),
            AckType::Revoked => self.recall(&ack.conversation_id, &ack.server_msg_id),
            AckType::Delivered => self.on_receipt(ack, Receipt::Delivered),
            AckType::Read => self.on_receipt(ack, Receipt::Read),
            AckType::Other => {}
        }
    }

    /// The server accepted it but may still lose it, so it stays in the outbox.
    fn on_accepted(&mut self, ack: &AckFrame) {
        let is_ours = self.outbox.accepted(&ack.client_msg_id, self.now);
        let outgoing = &mut self.get_or_create(&ack.conversation_id).outgoing;
        let Some(message) = outgoing.get(&ack.client_msg_id).filter(|_| is_ours) else { return };
        if message.state != MessageState::Sending {
            return;
        }
        let mut accepted = Message::clone(message);
        accepted.server_msg_id.clone_from(&ack.server_msg_id);
        accepted.state = MessageState::Accepted;
        // The server may have masked words of the operator's list; it says so here or when it is
        // saved.
        accepted.body = ack.body.clone().unwrap_or(accepted.body);
        let accepted = Arc::new(accepted);
        outgoing.set(&ack.client_msg_id, accepted.clone());
        self.update(accepted);
        self.touch(&ack.conversation_id);
    }

    fn on_saved(&mut self, ack: AckFrame) {
        let Some(seq) = ack.msg_seq else { return };
        let is_ours = ack.from.as_ref().is_none_or(|from| *from == self.me);
        let conversation = self.get_or_create(&ack.conversation_id);
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
        message.state = if known.is_mine { MessageState::Saved } else { MessageState::Received };
        message.body = ack.body.filter(|_| known.is_mine).unwrap_or(message.body);
        (message.reason, message.after) = (None, None);
        self.receive(message);
    }

    /// Removes a preview that was not saved.
    fn on_dropped(&mut self, ack: &AckFrame) {
        let previews = &mut self.get_or_create(&ack.conversation_id).previews;
        if let Some(preview) = previews.remove(&ack.server_msg_id) {
            self.emit_removed(&preview);
        }
    }

    /// Drops all previews: after a lost connection no ACK resolves them. Saved ones come as
    /// messages.
    pub(crate) fn drop_previews(&mut self) {
        let all = self.conversations.values_mut();
        let previews: Vec<_> = all.flat_map(|one| one.previews.take_all()).collect();
        for preview in previews {
            self.emit_removed(&preview);
        }
    }

    fn emit_removed(&mut self, preview: &Message) {
        self.touch(&preview.conversation_id);
        self.listeners.emit(&Event::Removed {
            conversation_id: preview.conversation_id.clone(),
            client_msg_id: preview.client_msg_id.clone(),
            server_msg_id: preview.server_msg_id.clone(),
        });
    }

    fn on_receipt(&mut self, ack: AckFrame, kind: Receipt) {
        let (conversation_id, user_id) = (ack.conversation_id, ack.from.unwrap_or_default());
        let Some(seq) = ack.msg_seq else { return };
        self.touch(&conversation_id);
        if user_id != self.me {
            self.apply_receipt(&conversation_id, &user_id, kind, seq);
            self.listeners.emit(&Event::Receipt { conversation_id, user_id, kind, seq });
        } else if kind == Receipt::Read {
            let conversation = self.get_or_create(&conversation_id);
            conversation.read_to(seq, true);
            let cursors = &mut conversation.cursors;
            cursors.acked_read = cursors.acked_read.max(seq);
        }
    }
}
