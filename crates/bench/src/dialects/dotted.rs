//! The frames of the dotted dialect as JSON. A read receipt stands for a delivered one, which this
//! dialect does not have.

use serde::Deserialize;
use tokio_tungstenite::tungstenite::Message;

use crate::codec::{Codec, Incoming};
use crate::dialects::{Recipient, join};

/// The frames of one sender and its receivers.
#[derive(Debug)]
pub(crate) struct Dotted {
    /// The frame after the message's number.
    message_tail: String,
    /// The frame up to the id of the read message; `None` in a group.
    read_head: Option<String>,
}

const MESSAGE_HEAD: &str =
    r#"{"cmd":"chat.send_message","request_id":"s","payload":{"client_msg_id":""#;

impl Dotted {
    /// Texts have `size` bytes. Ids need no escaping.
    pub(crate) fn new(to: Recipient<'_>, size: usize) -> Self {
        let (kind, id, from) = match to {
            Recipient::Person { from, to } => (1, to, Some(from)),
            Recipient::Group(group) => (2, group, None),
        };
        let content = "x".repeat(size);
        let read_head = |from| {
            format!(
                r#"{{"cmd":"chat.mark_read","request_id":"r","payload":{{"chat_id":"{from}","chat_type":1,"last_msg_id":""#
            )
        };
        Self {
            message_tail: format!(
                r#"","to_id":"{id}","chat_type":{kind},"content":"{content}"}}}}"#
            ),
            read_head: from.map(read_head),
        }
    }
}

#[derive(Deserialize)]
struct DottedFrame<'a> {
    cmd: &'a str,
    code: i32,
    #[serde(borrow, default)]
    payload: DottedPayload<'a>,
}

/// The fields read, whatever the command.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct DottedPayload<'a> {
    pub(super) msg_id: Option<&'a str>,
    pub(super) client_msg_id: Option<&'a str>,
    pub(super) seq: Option<u64>,
    pub(super) reason: Option<&'a str>,
}

impl Codec for Dotted {
    fn message(&self, index: u64) -> Message {
        join(MESSAGE_HEAD, &index.to_string(), &self.message_tail)
    }

    fn delivered(&self, id: &str) -> Option<Message> {
        Some(join(self.read_head.as_ref()?, id, r#""}}"#))
    }

    fn pong(&self) -> Message {
        Message::Pong(Vec::new().into())
    }

    fn read(&self, frame: &Message, on_incoming: &mut dyn FnMut(Incoming<'_>)) {
        let Message::Text(text) = frame else { return };
        let known = serde_json::from_str::<DottedFrame<'_>>(text.as_str()).ok();
        let known = known.and_then(|it| parse(it.cmd, it.code, &it.payload));
        on_incoming(known.unwrap_or(Incoming::Unreadable));
    }
}

/// Parses a frame of either form, JSON or protobuf.
pub(super) fn parse<'a>(cmd: &str, code: i32, it: &DottedPayload<'a>) -> Option<Incoming<'a>> {
    let index = || it.client_msg_id?.parse().ok();
    let reason = it.reason.unwrap_or("no reason told");
    Some(match cmd {
        "chat.send_message" if code == 0 => {
            Incoming::Saved { index: index()?, seq: it.seq?, id: "" }
        }
        _ if code != 0 || cmd == "system.kicked" => Incoming::Refused { index: index(), reason },
        "chat.message" => Incoming::Pushed { index: index()?, seq: it.seq?, id: it.msg_id? },
        "chat.read_receipt" => Incoming::Delivered { seq: it.seq? },
        "auth.validate_token" => Incoming::Welcome,
        _ => Incoming::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::parsed;

    fn pair() -> Dotted {
        Dotted::new(Recipient::Person { from: "a", to: "b" }, 3)
    }

    #[test]
    fn speaks_json() {
        let wanted = r#"{"cmd":"chat.send_message","request_id":"s","payload":{"client_msg_id":"7","to_id":"b","chat_type":1,"content":"xxx"}}"#;
        assert_eq!(pair().message(7).to_string(), wanted);
        let wanted = r#"{"cmd":"chat.mark_read","request_id":"r","payload":{"chat_id":"a","chat_type":1,"last_msg_id":"9"}}"#;
        assert_eq!(pair().delivered("9").unwrap().to_string(), wanted);
        assert_eq!(Dotted::new(Recipient::Group("g"), 3).delivered("9"), None);
    }

    #[test]
    fn hears_what_counts() {
        let check = |frame: &str, wanted: Incoming<'_>| {
            assert_eq!(parsed(&pair(), &Message::text(frame)), [format!("{wanted:?}")], "{frame}");
        };
        check(
            r#"{"cmd":"chat.send_message","request_id":"s","code":0,"message":"ok","payload":{"success":true,"msg_id":"9","timestamp":1,"error":"","seq":8,"conversation_id":"c","client_msg_id":"7"}}"#,
            Incoming::Saved { index: 7, seq: 8, id: "" },
        );
        check(
            r#"{"cmd":"chat.send_message","request_id":"s","code":503,"message":"no","payload":{"success":false,"client_msg_id":"7","reason":"not_group_member"}}"#,
            Incoming::Refused { index: Some(7), reason: "not_group_member" },
        );
        check(
            r#"{"cmd":"chat.message","request_id":"","code":0,"message":"","payload":{"msg_id":"9","content":"x","seq":8,"client_msg_id":"7","mentions":[]}}"#,
            Incoming::Pushed { index: 7, seq: 8, id: "9" },
        );
        check(
            r#"{"cmd":"chat.read_receipt","request_id":"","code":0,"message":"","payload":{"chat_id":"b","seq":8}}"#,
            Incoming::Delivered { seq: 8 },
        );
        check(
            r#"{"cmd":"chat.mark_read","request_id":"r","code":0,"message":"ok","payload":{}}"#,
            Incoming::Other,
        );
        check("{}", Incoming::Unreadable);
    }
}
