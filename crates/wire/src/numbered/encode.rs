//! Encodes replies and events as envelopes.

use std::collections::BTreeMap;
use std::sync::Arc;

use data_encoding::BASE64;
use nexo_chat::Reason;
use nexo_chat::command::{Reply, Target};
use nexo_chat::event::{Event, Receipt};
use nexo_chat::ids::UserId;
use nexo_chat::model::{Caller, CursorKind, Message};
use nexo_chat::query::QueryReply;
use serde::Serialize;
use serde_json::{Value, json};

use super::{CHANGE, DATA_ERROR, KICK, PROFILE, PUSH, RECEIPT, TYPING};
use crate::changes::ChangeEntity;
use crate::codes;
use crate::dialect::{Call, Echo, Frame, View};
use crate::http::conversations::ReadState;
use crate::http::damaged;
use crate::http::messages::MessageInfo;

#[derive(Serialize)]
struct NumberedResponse<'a> {
    req_identifier: i64,
    msg_incr: &'a str,
    operation_id: &'a str,
    err_code: i32,
    err_msg: String,
    data: Value,
}

/// The longest detail of a refusal, in characters: it repeats parts of the request.
const DETAIL_CHARS_MAX: usize = 200;

fn frame(call: (i64, &str, &str), error: Option<Reason>, data: Value, nested: bool) -> Frame {
    let message = error.map_or(String::new(), |reason| reason.to_string());
    frame_saying(call, error, message, data, nested)
}

fn frame_saying(
    call: (i64, &str, &str),
    error: Option<Reason>,
    err_msg: String,
    data: Value,
    nested: bool,
) -> Frame {
    let (req_identifier, msg_incr, operation_id) = call;
    let data = match data {
        Value::Null => Value::Null,
        data if nested => data,
        data => Value::String(BASE64.encode(data.to_string().as_bytes())),
    };
    let err_code = error.map_or(0, |reason| codes::row(reason).numbered);
    let response =
        NumberedResponse { req_identifier, msg_incr, operation_id, err_code, err_msg, data };
    json!(response).to_string().into()
}

fn call(echo: &Echo) -> (i64, &str, &str) {
    match &echo.call {
        Call::Numbered { req_identifier, msg_incr, operation_id } => {
            (*req_identifier, msg_incr, operation_id)
        }
        Call::None | Call::Dotted { .. } => (DATA_ERROR, "", ""),
    }
}

/// A frame that answers no request.
fn push(number: i64, data: Value, nested: bool) -> Frame {
    frame((number, "", ""), None, data, nested)
}

pub fn reply(reply: &Reply, echo: &Echo, nested: bool) -> Option<Frame> {
    let data = match reply {
        Reply::Saved(saved) => {
            let message = &saved.message;
            let mut data = json!({
                "server_msg_id": message.id.to_string(),
                "conversation_id": message.conversation.as_str(),
                "seq": message.seq.0,
                "client_msg_id": message.client_id.as_str(),
                "send_at": message.sent_at.0,
            });
            if saved.cleaned {
                data["content"] = json!(MessageInfo::from(&**message).content());
            }
            data
        }
        Reply::QueryReply(reply) => query_data(reply)?,
        _ => return None, // this dialect has no such command
    };
    Some(frame(call(echo), None, data, nested))
}

/// The answer to the handshake, if the client asked for one.
pub fn welcome(caller: &Caller, echo: &Echo, nested: bool) -> Option<Frame> {
    let Call::Numbered { .. } = echo.call else { return None };
    let data = json!({ "user_id": caller.user.as_str(), "expires_at": caller.expires_at.0 });
    Some(frame(call(echo), None, data, nested))
}

fn query_data(reply: &QueryReply) -> Option<Value> {
    Some(match reply {
        QueryReply::Newest(seqs) => {
            let seqs: BTreeMap<&str, u64> =
                seqs.iter().map(|(id, seq)| (id.as_str(), seq.0)).collect();
            json!({ "seqs": seqs })
        }
        QueryReply::Messages(listed, max_seq) => {
            let (messages, has_more) = (infos(&listed.items), listed.has_more);
            let mut data =
                json!({ "messages": messages, "max_seq": max_seq.0, "has_more": has_more });
            if !listed.damaged.is_empty() {
                data["damaged"] = json!(damaged::ranges(&listed.damaged));
            }
            data
        }
        QueryReply::State(standing) => json!(ReadState::from(standing)),
        _ => return None,
    })
}

fn infos(messages: &[Arc<Message>]) -> Vec<MessageInfo> {
    messages.iter().map(|message| MessageInfo::from(&**message)).collect()
}

pub fn refusal(reason: Reason, echo: &Echo, nested: bool) -> Frame {
    let data = json!({ "reason": codes::row(reason).typed });
    let mut message = reason.to_string();
    if let Some(detail) = &echo.detail {
        message.push_str(": ");
        message.extend(detail.chars().take(DETAIL_CHARS_MAX));
    }
    frame_saying(call(echo), Some(reason), message, data, nested)
}

/// A KICK if the sign-in ended or another device took over; else the refusal of the request.
pub fn close_notice(reason: Reason, echo: &Echo, nested: bool) -> Frame {
    match (reason, &echo.call) {
        (Reason::Kicked | Reason::SessionInvalid | Reason::TokenExpired, Call::None) => {
            let data = json!({ "reason": codes::row(reason).typed });
            frame((KICK, "", ""), Some(reason), data, nested)
        }
        _ => refusal(reason, echo, nested),
    }
}

pub fn message(message: &Message, nested: bool) -> Frame {
    let id = message.conversation.as_str();
    push(PUSH, json!({ "msgs": { id: [MessageInfo::from(message)] } }), nested)
}

/// `None` for events without a push. Notices are left out: clients of this dialect pull anyway.
pub fn event(event: &Event, view: View, nested: bool) -> Option<Frame> {
    match event {
        Event::Message { .. } if view.is_notice => None,
        Event::Message { message: it, .. } => Some(message(it, nested)),
        Event::Change { change, .. } => {
            Some(push(CHANGE, json!(ChangeEntity::from(change)), nested))
        }
        Event::Receipt(it) => receipt(it, nested),
        Event::Typing { from, to, .. } => {
            let (recv_id, group_id) = match to {
                Target::User(user) => (Some(UserId::as_str(user)), None),
                Target::Group(group) => (None, Some(group.as_str())),
            };
            let data =
                json!({ "user_id": from.as_str(), "recv_id": recv_id, "group_id": group_id });
            Some(push(TYPING, data, nested))
        }
        Event::Profile { user, nickname, avatar, at, .. } => {
            let data = json!({
                "user_id": user.as_str(), "nickname": nickname, "avatar": avatar, "updated_at": at.0,
            });
            Some(push(PROFILE, data, nested))
        }
        Event::Preview { .. }
        | Event::AcceptedSaved { .. }
        | Event::Dropped(_)
        | Event::JoinRequested { .. }
        | Event::JoinAnswered { .. }
        | Event::Settings { .. }
        | Event::Ended { .. }
        | Event::Online { .. }
        | Event::Closed { .. } => None,
    }
}

fn receipt(receipt: &Receipt, nested: bool) -> Option<Frame> {
    if receipt.kind == CursorKind::Delivered {
        return None;
    }
    let data = json!({
        "conversation_id": receipt.conversation.as_str(),
        "user_id": receipt.by.as_str(),
        "read_seq": receipt.seq.0,
        "server_msg_id": receipt.message.to_string(),
    });
    Some(push(RECEIPT, data, nested))
}
