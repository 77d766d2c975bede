//! The frames of the dotted dialect as JSON. What is read stands for what is delivered: it has no
//! other receipt.

use serde::Deserialize;
use tokio_tungstenite::tungstenite::Message;

use crate::dialect::{Dialect, Incoming};
use crate::speech::{To, join};

/// A sender and those who hear them.
#[derive(Debug)]
pub(crate) struct Dotted {
    /// From after the message's number to the end of the frame.
    message_tail: String,
    /// Up to the id of what was read; none in a group.
    read_head: Option<String>,
}

const MESSAGE_HEAD: &str =
    r#"{"cmd":"chat.send_message","request_id":"s","payload":{"client_msg_id":""#;

impl Dotted {
    /// A sender of texts of `size` bytes. Ids need no escaping.
    pub(crate) fn new(to: To<'_>, size: usize) -> Self {
        let (kind, id, from) = match to {
            To::Person { from, to } => (1, to, Some(from)),
            To::Group(group) => (2, group, None),
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
struct Frame<'a> {
    cmd: &'a str,
    code: i32,
    #[serde(borrow, default)]
    payload: Payload<'a>,
}

/// The fields read, of whatever payload.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Payload<'a> {
    pub(super) msg_id: Option<&'a str>,
    pub(super) client_msg_id: Option<&'a str>,
    pub(super) seq: Option<u64>,
    pub(super) reason: Option<&'a str>,
}

impl Dialect for Dotted {
    fn message(&self, index: u64) -> Message {
        join(MESSAGE_HEAD, &index.to_string(), &self.message_tail)
    }

    fn delivered(&self, id: &str) -> Option<Message> {
        Some(join(self.read_head.as_ref()?, id, r#""}}"#))
    }

    fn pong(&self) -> Message {
        Message::Pong(Vec::new().into())
    }

    fn read(&self, frame: &Message, heard: &mut dyn FnMut(Incoming<'_>)) {
        let Message::Text(text) = frame else { return };
        let known = serde_json::from_str::<Frame<'_>>(text.as_str()).ok();
        let known = known.and_then(|it| understand(it.cmd, it.code, &it.payload));
        heard(known.unwrap_or(Incoming::Unreadable));
    }
}

/// What a frame of either form says.
pub(super) fn understand<'a>(cmd: &str, code: i32, it: &Payload<'a>) -> Option<Incoming<'a>> {
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
    use crate::dialect::heard;

    fn pair() -> Dotted {
        Dotted::new(To::Person { from: "a", to: "b" }, 3)
    }

    #[test]
    fn speaks_json() {
        let wanted = r#"{"cmd":"chat.send_message","request_id":"s","payload":{"client_msg_id":"7","to_id":"b","chat_type":1,"content":"xxx"}}"#;
        assert_eq!(pair().message(7).to_string(), wanted);
        let wanted = r#"{"cmd":"chat.mark_read","request_id":"r","payload":{"chat_id":"a","chat_type":1,"last_msg_id":"9"}}"#;
        assert_eq!(pair().delivered("9").unwrap().to_string(), wanted);
        assert_eq!(Dotted::new(To::Group("g"), 3).delivered("9"), None);
    }

    #[test]
    fn hears_what_counts() {
        let check = |frame: &str, wanted: Incoming<'_>| {
            assert_eq!(heard(&pair(), &Message::text(frame)), [format!("{wanted:?}")], "{frame}");
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
