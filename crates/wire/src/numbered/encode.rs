//! The domain's words become envelopes.

use std::collections::BTreeMap;
use std::sync::Arc;

use data_encoding::BASE64;
use nexo_chat::Reason;
use nexo_chat::command::{Event, Receipt, Reply, Target};
use nexo_chat::ids::UserId;
use nexo_chat::model::{Caller, CursorKind, Message};
use nexo_chat::query::Found;
use serde::Serialize;
use serde_json::{Value, json};

use super::{CHANGE, DATA_ERROR, KICK, PROFILE, PUSH, RECEIPT, TYPING};
use crate::changes::ChangeEntity;
use crate::codes;
use crate::dialect::{Call, Echo, Frame, View};
use crate::snake::{MessageInfo, ReadState};

#[derive(Serialize)]
struct Envelope<'a> {
    req_identifier: i64,
    msg_incr: &'a str,
    operation_id: &'a str,
    err_code: i32,
    err_msg: String,
    data: Value,
}

/// Puts data into its envelope.
fn frame(call: (i64, &str, &str), error: Option<Reason>, data: Value, nested: bool) -> Frame {
    let (req_identifier, msg_incr, operation_id) = call;
    let data = match data {
        Value::Null => Value::Null,
        data if nested => data,
        data => Value::String(BASE64.encode(data.to_string().as_bytes())),
    };
    let err_code = error.map_or(0, |reason| codes::row(reason).numbered);
    let err_msg = error.map_or(String::new(), |reason| reason.to_string());
    let envelope = Envelope { req_identifier, msg_incr, operation_id, err_code, err_msg, data };
    json!(envelope).to_string().into()
}

fn call(echo: &Echo) -> (i64, &str, &str) {
    match &echo.call {
        Call::Numbered { req_identifier, msg_incr, operation_id } => {
            (*req_identifier, msg_incr, operation_id)
        }
        Call::None | Call::Dotted { .. } => (DATA_ERROR, "", ""),
    }
}

/// What nobody asked for.
fn push(number: i64, data: Value, nested: bool) -> Frame {
    frame((number, "", ""), None, data, nested)
}

/// The answer to a command.
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
        Reply::Found(found) => found_data(found)?,
        _ => return None, // this dialect has no such command
    };
    Some(frame(call(echo), None, data, nested))
}

/// The caller is let in: said to those who asked for an answer to the handshake.
pub fn welcome(caller: &Caller, echo: &Echo, nested: bool) -> Option<Frame> {
    let Call::Numbered { .. } = echo.call else { return None };
    let data = json!({ "user_id": caller.user.as_str(), "expires_at": caller.expires_at.0 });
    Some(frame(call(echo), None, data, nested))
}

fn found_data(found: &Found) -> Option<Value> {
    Some(match found {
        Found::Newest(seqs) => {
            let seqs: BTreeMap<&str, u64> =
                seqs.iter().map(|(id, seq)| (id.as_str(), seq.0)).collect();
            json!({ "seqs": seqs })
        }
        Found::Messages(listed, max_seq) => {
            json!({ "messages": infos(&listed.items), "max_seq": max_seq.0, "has_more": listed.has_more })
        }
        Found::State(standing) => json!(ReadState::from(standing)),
        _ => return None,
    })
}

fn infos(messages: &[Arc<Message>]) -> Vec<MessageInfo> {
    messages.iter().map(|message| MessageInfo::from(&**message)).collect()
}

/// A request was refused.
pub fn refusal(reason: Reason, echo: &Echo, nested: bool) -> Frame {
    let data = json!({ "reason": codes::row(reason).typed });
    frame(call(echo), Some(reason), data, nested)
}

/// The connection ends: because somebody else took over or the sign-in ended, or with a refusal.
pub fn farewell(reason: Reason, echo: &Echo, nested: bool) -> Frame {
    match (reason, &echo.call) {
        (Reason::Kicked | Reason::SessionInvalid | Reason::TokenExpired, Call::None) => {
            let data = json!({ "reason": codes::row(reason).typed });
            frame((KICK, "", ""), Some(reason), data, nested)
        }
        _ => refusal(reason, echo, nested),
    }
}

/// A message, pushed.
pub fn message(message: &Message, nested: bool) -> Frame {
    let id = message.conversation.as_str();
    push(PUSH, json!({ "msgs": { id: [MessageInfo::from(message)] } }), nested)
}

/// An event as somebody hears it. Whoever would only be notified pulls anyway in this dialect.
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
        | Event::Settled { .. }
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
