//! What is told to somebody who did not ask.

use nexo_chat::command::{Event, Receipt, Target};
use nexo_chat::ids::{ConversationId, Millis, UserId};
use nexo_chat::membership::{GroupChange, JoinRequest};
use nexo_chat::model::{Change, ChangeKind, CursorKind, Message};

use super::encode::push;
use super::payload::{
    GroupPush, JoinDecisionPush, JoinRequestPush, MessagePush, NotifyPush, ReadReceiptPush,
    RecallPush, TypingPush, UserUpdatedPush,
};
use super::{GROUP, PRIVATE, chat_type, content, int64, role_number};
use crate::changes::Told;
use crate::dialect::{Frame, View};
use crate::{groups, mentions, words};

/// A message that is brought again.
pub fn message(message: &Message, binary: bool) -> Frame {
    push("chat.message", &shown(message, false), binary)
}

/// A message as this dialect shows it.
pub(super) fn shown(message: &Message, is_important: bool) -> MessagePush {
    let said = content::show(&message.content);
    let answered = message.content.reply_to.as_ref();
    MessagePush {
        msg_id: message.id.to_string(),
        from_user_id: message.sender.to_string(),
        to_id: chat_id(&message.conversation, &message.sender, true),
        chat_type: chat_type(&message.conversation),
        content: said.content,
        media_url: said.media_url,
        media_type: said.media_type,
        timestamp: int64(message.sent_at.0),
        mentions: mentions::names(&message.content).into_iter().map(Into::into).collect(),
        reply_to_msg_id: answered.map(|reply| reply.message.to_string()).unwrap_or_default(),
        seq: int64(message.seq.0),
        conversation_id: message.conversation.to_string(),
        client_msg_id: message.client_id.as_str().to_owned(),
        is_recalled: message.recalled.is_some(),
        is_important,
        file_size: said.file_size,
        extra: said.extra,
        status: status(message),
        recall_at: message.recalled.as_ref().map_or(0, |recall| int64(recall.at.0)),
    }
}

/// Whether a message is there, as a number: 0 it is, 1 it was recalled.
pub(super) fn status(message: &Message) -> i32 {
    i32::from(message.recalled.is_some())
}

/// What somebody calls a conversation in which `by` did something: the group, or else whom they
/// talk with, which is `by`, unless they did it themselves.
fn chat_id(conversation: &ConversationId, by: &UserId, is_own: bool) -> String {
    match conversation.group() {
        Some(group) => group.to_string(),
        None if is_own => conversation.peer_of(by).map(|peer| peer.to_string()).unwrap_or_default(),
        None => by.to_string(),
    }
}

/// An event as somebody hears it; ends have their own frames.
pub fn event(event: &Event, view: View, binary: bool) -> Option<Frame> {
    match event {
        Event::Message { message, .. } if view.is_notice => {
            Some(push("chat.notify", &notice(message, view), binary))
        }
        Event::Message { message, .. } => {
            Some(push("chat.message", &shown(message, view.is_important), binary))
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
                request_id: groups::request_id(&request.group, &request.user),
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
        // This dialect has no words for them.
        Event::Preview { .. }
        | Event::Settled { .. }
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
        request_id: groups::request_id(&request.group, &request.user),
        group_id: request.group.to_string(),
        user_id: request.user.to_string(),
        message: request.message.clone(),
        timestamp: int64(request.at.0),
    }
}

fn change(change: &Change, view: View, binary: bool) -> Frame {
    let ChangeKind::Recalled { message, seq, .. } = &change.kind else {
        let cmd = format!("group.{}", Told::from(change).word);
        return push(&cmd, &group_change(change), binary);
    };
    let recall = RecallPush {
        msg_id: message.to_string(),
        chat_id: chat_id(&change.conversation, &change.by, view.is_own),
        chat_type: chat_type(&change.conversation),
        operator_id: change.by.to_string(),
        timestamp: int64(change.at.0),
        seq: int64(seq.0),
        change_seq: int64(change.seq.0),
        conversation_id: change.conversation.to_string(),
    };
    push("chat.recall", &recall, binary)
}

/// What happened to a group: whom it is about, and whatever that kind of change speaks of.
fn group_change(change: &Change) -> GroupPush {
    let told = Told::from(change);
    let nothing = GroupChange::default();
    let updated = match &change.kind {
        ChangeKind::Updated(updated) => updated,
        _ => &nothing,
    };
    let users = told.users.unwrap_or_default().iter().chain(told.user);
    let member = told.member;
    GroupPush {
        group_id: chat_id(&change.conversation, &change.by, false),
        operator_id: change.by.to_string(),
        user_ids: users.map(ToString::to_string).collect(),
        change_seq: int64(change.seq.0),
        timestamp: int64(change.at.0),
        from_seq: told.from.map(|from| int64(from.0)),
        role: told.role.map(role_number),
        muted_until: told.muted_until.map(|until| int64(until.0)),
        on: told.on,
        group_name: updated.name.clone(),
        avatar_url: updated.avatar.clone(),
        announcement: updated.announcement.clone(),
        introduction: updated.introduction.clone(),
        join_type: updated.joining.map(|joining| words::joining(joining).to_owned()),
        history: updated.history.map(|history| words::history(history).to_owned()),
        group_nickname: member.as_ref().and_then(|it| it.group_nickname.clone()),
        group_avatar: member.as_ref().and_then(|it| it.group_avatar.clone()),
        member_extra: member.and_then(|it| it.extra),
    }
}
