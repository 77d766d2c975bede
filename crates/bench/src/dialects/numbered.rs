//! The frames of the numbered dialect. It has no delivered receipts.

use std::collections::BTreeMap;

use data_encoding::BASE64;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_tungstenite::tungstenite::Message;

use crate::codec::{Codec, Incoming};
use crate::dialects::Recipient;

const NEWEST: i64 = 1001;
const SEND: i64 = 1003;
const PULL: i64 = 1005;
const PUSH: i64 = 2001;
const KICK: i64 = 2002;
const DATA_ERROR: i64 = 3001;

/// Messages that one request may ask for.
pub(crate) const PULL_MAX: u64 = 100;

/// How the envelope holds the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataForm {
    /// A string: base64 of JSON.
    Base64,
    /// An object.
    Nested,
}

/// The frames of one sender and its receivers.
#[derive(Debug)]
pub(crate) struct Numbered {
    form: DataForm,
    /// The data after the message's number.
    data_tail: String,
}

impl Numbered {
    /// Texts have `size` bytes. Ids need no escaping.
    pub(crate) fn new(to: Recipient<'_>, size: usize, form: DataForm) -> Self {
        let (kind, field, id) = match to {
            Recipient::Person { to, .. } => (1, "recv_id", to),
            Recipient::Group(group) => (2, "group_id", group),
        };
        let text = "x".repeat(size);
        let data_tail = format!(
            r#"","{field}":"{id}","session_type":{kind},"msg_type":1,"content":{{"text":"{text}"}}}}"#
        );
        Self { form, data_tail }
    }

    fn request(&self, number: i64, incr: u64, data: &str) -> Message {
        let data = match self.form {
            DataForm::Base64 => format!(r#""{}""#, BASE64.encode(data.as_bytes())),
            DataForm::Nested => data.to_owned(),
        };
        Message::text(format!(
            r#"{{"req_identifier":{number},"msg_incr":"{incr}","operation_id":"b","data":{data}}}"#
        ))
    }

    /// Asks for the newest seq of each conversation.
    pub(crate) fn newest(&self, conversations: impl Iterator<Item = String>) -> Message {
        let ids: Vec<String> = conversations.map(|id| format!(r#""{id}""#)).collect();
        let data = format!(r#"{{"conversation_ids":[{}]}}"#, ids.join(","));
        self.request(NEWEST, 1, &data)
    }

    /// Asks for up to [`PULL_MAX`] messages of a conversation, from a seq on.
    pub(crate) fn pull(&self, conversation: &str, from: u64) -> Message {
        let end = from + PULL_MAX - 1;
        let data = format!(
            r#"{{"conversation_id":"{conversation}","begin_seq":{from},"end_seq":{end},"limit":{PULL_MAX}}}"#
        );
        self.request(PULL, from, &data)
    }
}

#[derive(Deserialize)]
struct NumberedEnvelope<'a> {
    req_identifier: i64,
    msg_incr: &'a str,
    err_code: i32,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// The fields read, whatever the operation.
#[derive(Default, Deserialize)]
#[serde(default)]
struct NumberedData<'a> {
    client_msg_id: Option<&'a str>,
    seq: Option<u64>,
    reason: Option<&'a str>,
    has_more: Option<bool>,
    #[serde(borrow)]
    msgs: BTreeMap<&'a str, Vec<PushedMessage<'a>>>,
    messages: Vec<PushedMessage<'a>>,
}

#[derive(Deserialize)]
struct PushedMessage<'a> {
    client_msg_id: &'a str,
    server_msg_id: &'a str,
    seq: u64,
}

impl Codec for Numbered {
    fn message(&self, index: u64) -> Message {
        let data = format!(r#"{{"client_msg_id":"{index}{}"#, self.data_tail);
        self.request(SEND, index, &data)
    }

    fn delivered(&self, _id: &str) -> Option<Message> {
        None
    }

    fn pong(&self) -> Message {
        Message::Pong(Vec::new().into())
    }

    fn read(&self, frame: &Message, on_incoming: &mut dyn FnMut(Incoming<'_>)) {
        let Message::Text(text) = frame else { return };
        let Ok(envelope) = serde_json::from_str::<NumberedEnvelope<'_>>(text.as_str()) else {
            return on_incoming(Incoming::Unreadable);
        };
        let raw = envelope.data.map_or("{}", RawValue::get);
        let decoded;
        let json = match self.form {
            DataForm::Nested => raw.as_bytes(),
            // A refusal's data may be absent, which is not a string.
            DataForm::Base64 => match BASE64.decode(raw.trim_matches('"').as_bytes()) {
                Ok(bytes) => {
                    decoded = bytes;
                    &decoded
                }
                Err(_) => raw.as_bytes(),
            },
        };
        let Ok(data) = serde_json::from_slice::<NumberedData<'_>>(json) else {
            return on_incoming(Incoming::Unreadable);
        };
        parse(&envelope, &data, on_incoming);
    }
}

fn parse(
    envelope: &NumberedEnvelope<'_>,
    data: &NumberedData<'_>,
    on_incoming: &mut dyn FnMut(Incoming<'_>),
) {
    let number = envelope.req_identifier;
    let reason = data.reason.unwrap_or("no reason told");
    if envelope.err_code != 0 || number == KICK || number == DATA_ERROR {
        let index = (number == SEND).then(|| envelope.msg_incr.parse().ok()).flatten();
        return on_incoming(Incoming::Refused { index, reason });
    }
    match number {
        SEND => on_incoming(saved(data).unwrap_or(Incoming::Unreadable)),
        PUSH => data.msgs.values().flatten().for_each(|said| on_incoming(pushed(said))),
        PULL => {
            data.messages.iter().for_each(|said| on_incoming(pushed(said)));
            on_incoming(Incoming::Resent { has_more: data.has_more.unwrap_or_default() });
        }
        NEWEST => on_incoming(Incoming::Welcome),
        _ => on_incoming(Incoming::Other),
    }
}

fn saved(data: &NumberedData<'_>) -> Option<Incoming<'static>> {
    Some(Incoming::Saved { index: data.client_msg_id?.parse().ok()?, seq: data.seq?, id: "" })
}

fn pushed<'a>(said: &PushedMessage<'a>) -> Incoming<'a> {
    match said.client_msg_id.parse() {
        Ok(index) => Incoming::Pushed { index, seq: said.seq, id: said.server_msg_id },
        Err(_) => Incoming::Unreadable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::parsed;

    fn sender(form: DataForm) -> Numbered {
        Numbered::new(Recipient::Person { from: "a", to: "b" }, 3, form)
    }

    #[test]
    fn speaks_both_forms() {
        let nested = sender(DataForm::Nested).message(7).to_string();
        let data = r#"{"client_msg_id":"7","recv_id":"b","session_type":1,"msg_type":1,"content":{"text":"xxx"}}"#;
        let head = r#"{"req_identifier":1003,"msg_incr":"7","operation_id":"b","data":"#;
        assert_eq!(nested, format!("{head}{data}}}"));
        let base64 = sender(DataForm::Base64).message(7).to_string();
        assert_eq!(base64, format!(r#"{head}"{}"}}"#, BASE64.encode(data.as_bytes())));
    }

    #[test]
    fn hears_both_forms() {
        let check = |number: i64, code: i32, data: &str, wanted: &[Incoming<'_>]| {
            let wanted: Vec<_> = wanted.iter().map(|it| format!("{it:?}")).collect();
            let base64 = format!(r#""{}""#, BASE64.encode(data.as_bytes()));
            for (form, data) in [(DataForm::Nested, data), (DataForm::Base64, base64.as_str())] {
                let frame = format!(
                    r#"{{"data":{data},"err_code":{code},"err_msg":"","msg_incr":"7","operation_id":"b","req_identifier":{number}}}"#
                );
                assert_eq!(parsed(&sender(form), &Message::text(&frame)), wanted, "{frame}");
            }
        };
        let saved = r#"{"client_msg_id":"7","conversation_id":"c","send_at":1,"seq":8,"server_msg_id":"m"}"#;
        check(1003, 0, saved, &[Incoming::Saved { index: 7, seq: 8, id: "" }]);
        let refused = Incoming::Refused { index: Some(7), reason: "too_many_sends" };
        check(1003, 9, r#"{"reason":"too_many_sends"}"#, &[refused]);
        let said = |index: u64| {
            format!(
                r#"{{"client_msg_id":"{index}","content":{{"text":"x"}},"seq":{index},"server_msg_id":"m"}}"#
            )
        };
        let push = format!(r#"{{"msgs":{{"c":[{},{}]}}}}"#, said(1), said(2));
        let pushed = |index| Incoming::Pushed { index, seq: index, id: "m" };
        check(2001, 0, &push, &[pushed(1), pushed(2)]);
        check(
            2002,
            0,
            r#"{"reason":"kicked"}"#,
            &[Incoming::Refused { index: None, reason: "kicked" }],
        );
        let page = format!(r#"{{"messages":[{}],"max_seq":1,"has_more":false}}"#, said(1));
        check(1005, 0, &page, &[pushed(1), Incoming::Resent { has_more: false }]);
        check(2003, 0, r#"{"kind":"joined","user_ids":["a"]}"#, &[Incoming::Other]);
    }
}
