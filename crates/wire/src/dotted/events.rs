//! Encodes events as pushes.

use nexo_chat::command::Target;
use nexo_chat::event::{Event, Receipt};
use nexo_chat::ids::{ConversationId, Millis, UserId};
use nexo_chat::membership::JoinRequest;
use nexo_chat::model::{Change, CursorKind, Message};

use super::encode::push;
use super::payload::{
    GroupPush, JoinDecisionPush, JoinRequestPush, MessagePush, NotifyPush, ReadReceiptPush,
    RecallPush, TypingPush, UserUpdatedPush,
};
use super::{GROUP, PRIVATE, chat_type, content, int64, role_number};
use crate::changes::ChangeFields;
use crate::dialect::{Frame, View};
use crate::http::joining;
use crate::mentions;

/// A message that is sent again.
pub fn message(message: &Message, binary: bool) -> Frame {
    push("chat.message", &message_push(message, false), binary)
}

pub(super) fn message_push(message: &Message, is_important: bool) -> MessagePush {
    let content = content::encode(&message.content);
    let reply_to = message.content.reply_to.as_ref();
    MessagePush {
        msg_id: message.id.to_string(),
        from_user_id: message.sender.to_string(),
        to_id: chat_id(&message.conversation, &message.sender, true),
        chat_type: chat_type(&message.conversation),
        content: content.content,
        media_url: content.media_url,
        media_type: content.media_type,
        timestamp: int64(message.sent_at.0),
        mentions: mentions::mention_names(&message.content).into_iter().map(Into::into).collect(),
        reply_to_msg_id: reply_to.map(|reply| reply.message.to_string()).unwrap_or_default(),
        seq: int64(message.seq.0),
        conversation_id: message.conversation.to_string(),
        client_msg_id: message.client_id.as_str().to_owned(),
        is_recalled: message.recalled.is_some(),
        is_important,
        file_size: content.file_size,
        extra: content.extra,
        status: status(message),
        recall_at: recall_at(message),
    }
}

/// 0, or 1 once it is recalled.
pub(super) fn status(message: &Message) -> i32 {
    i32::from(message.recalled.is_some())
}

/// When it was recalled; 0 if it was not.
pub(super) fn recall_at(message: &Message) -> i64 {
    message.recalled.as_ref().map_or(0, |recall| int64(recall.at.0))
}

/// The id a receiver has for a conversation in which `by` did something: the group, or the other user. That is `by`,
/// unless the receiver is another device of `by`.
fn chat_id(conversation: &ConversationId, by: &UserId, is_own: bool) -> String {
    match conversation.group() {
        Some(group) => group.to_string(),
        None if is_own => conversation.peer_of(by).map(|peer| peer.to_string()).unwrap_or_default(),
        None => by.to_string(),
    }
}

/// `None` for events that this dialect has no push for, and for those that close the connection.
pub fn event(event: &Event, view: View, binary: bool) -> Option<Frame> {
    match event {
        Event::Message { message, .. } if view.is_notice => {
            Some(push("chat.notify", &notice(message, view), binary))
        }
        Event::Message { message, .. } => {
            Some(push("chat.message", &message_push(message, view.is_important), binary))
        }
        Event::Change { change: it, .. } => Some(change(it, view, binary)),
        Event::Receipt(it) if it.kind == CursorKind::Read => {
            Some(push("chat.read_receipt", &receipt(it, view), binary))
        }
        Event::Typing { from, to, at } => {
            Some(push("chat.typing", &typing(from, to, *at, view), binary))
        }
        Event::JoinRequested { request, .. } => {
            Some(push("group.join_request", &join_request(request), binary))
        }
        Event::JoinAnswered { request, accepted, by, at } => {
            let decision = JoinDecisionPush {
                request_id: joining::request_id(&request.group, &request.user),
                group_id: request.group.to_string(),
                user_id: request.user.to_string(),
                operator_id: by.to_string(),
                accepted: *accepted,
                timestamp: int64(at.0),
            };
            Some(push("group.join_decision", &decision, binary))
        }
        Event::Profile { user, nickname, avatar, at, .. } => {
            let updated = UserUpdatedPush {
                user_id: user.to_string(),
                nickname: nickname.clone(),
                avatar_url: avatar.clone(),
                timestamp: int64(at.0),
            };
            Some(push("user.updated", &updated, binary))
        }
        Event::Preview { .. }
        | Event::AcceptedSaved { .. }
        | Event::Dropped(_)
        | Event::Receipt(_)
        | Event::Settings { .. }
        | Event::Ended { .. }
        | Event::Online { .. }
        | Event::Closed { .. } => None,
    }
}

fn notice(message: &Message, view: View) -> NotifyPush {
    NotifyPush {
        chat_id: chat_id(&message.conversation, &message.sender, view.is_own),
        msg_id: message.id.to_string(),
        from_user_id: message.sender.to_string(),
        seq: int64(message.seq.0),
        timestamp: int64(message.sent_at.0),
        is_important: view.is_important,
    }
}

fn receipt(receipt: &Receipt, view: View) -> ReadReceiptPush {
    ReadReceiptPush {
        chat_id: chat_id(&receipt.conversation, &receipt.by, view.is_own),
        user_id: receipt.by.to_string(),
        last_read_msg_id: receipt.message.to_string(),
        seq: int64(receipt.seq.0),
        chat_type: chat_type(&receipt.conversation),
        conversation_id: receipt.conversation.to_string(),
        timestamp: int64(receipt.at.0),
    }
}

fn typing(from: &UserId, to: &Target, at: Millis, view: View) -> TypingPush {
    let (chat_id, chat_type) = match to {
        Target::Group(group) => (group.to_string(), GROUP),
        Target::User(user) if view.is_own => (user.to_string(), PRIVATE),
        Target::User(_) => (from.to_string(), PRIVATE),
    };
    TypingPush { chat_id, chat_type, user_id: from.to_string(), timestamp: int64(at.0) }
}

fn join_request(request: &JoinRequest) -> JoinRequestPush {
    JoinRequestPush {
        request_id: joining::request_id(&request.group, &request.user),
        group_id: request.group.to_string(),
        user_id: request.user.to_string(),
        message: request.message.clone(),
        timestamp: int64(request.at.0),
    }
}

fn change(change: &Change, view: View, binary: bool) -> Frame {
    let fields = ChangeFields::from(change);
    let Some(recall) = fields.recall else {
        let cmd = format!("group.{}", fields.kind);
        return push(&cmd, &group_push(change, fields), binary);
    };
    let recall = RecallPush {
        msg_id: recall.message.to_string(),
        chat_id: chat_id(&change.conversation, &change.by, view.is_own),
        chat_type: chat_type(&change.conversation),
        operator_id: change.by.to_string(),
        timestamp: int64(change.at.0),
        seq: int64(recall.seq.0),
        change_seq: int64(change.seq.0),
        conversation_id: change.conversation.to_string(),
    };
    push("chat.recall", &recall, binary)
}

/// A change of a group or of its members.
fn group_push(change: &Change, fields: ChangeFields<'_>) -> GroupPush {
    let users = fields.users.unwrap_or_default().iter().chain(fields.user);
    let (group, member) = (fields.group.unwrap_or_default(), fields.member.unwrap_or_default());
    GroupPush {
        group_id: chat_id(&change.conversation, &change.by, false),
        operator_id: change.by.to_string(),
        user_ids: users.map(ToString::to_string).collect(),
        change_seq: int64(change.seq.0),
        timestamp: int64(change.at.0),
        from_seq: fields.from.map(|from| int64(from.0)),
        role: fields.role.map(role_number),
        muted_until: fields.muted_until.map(|until| int64(until.0)),
        on: fields.on,
        group_name: group.name,
        avatar_url: group.avatar,
        announcement: group.announcement,
        introduction: group.introduction,
        join_type: group.join_type.map(str::to_owned),
        history: group.history.map(str::to_owned),
        group_nickname: member.group_nickname,
        group_avatar: member.group_avatar,
        member_extra: member.extra,
    }
}
