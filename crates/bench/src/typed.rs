//! The frames of the typed dialect, as JSON text.

use serde::Deserialize;

use crate::dialect::{Dialect, Incoming};

/// A pair of users. What is the same in all of their frames is formatted once.
#[derive(Debug)]
pub(crate) struct Typed {
    /// From after the message's number to the end of the frame.
    message_tail: String,
    /// From after the message's id to the end of the frame.
    delivered_tail: String,
}

const MESSAGE_HEAD: &str = r#"{"type":"SINGLE_CHAT","clientMsgId":""#;
const DELIVERED_HEAD: &str = r#"{"type":"ACK","ackType":"delivered","serverMsgId":""#;

impl Typed {
    /// A sender and a receiver with texts of `size` bytes. User ids need no escaping.
    pub(crate) fn new(sender: &str, receiver: &str, size: usize) -> Self {
        let body = "x".repeat(size);
        Self {
            message_tail: format!(r#"","to":"{receiver}","body":"{body}"}}"#),
            delivered_tail: format!(r#"","to":"{sender}"}}"#),
        }
    }
}

/// The fields read; the rest, the text above all, is skipped without a copy.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    ack_type: Option<&'a str>,
    client_msg_id: Option<&'a str>,
    server_msg_id: Option<&'a str>,
    msg_seq: Option<&'a str>,
    reason: Option<&'a str>,
}

impl Dialect for Typed {
    fn message(&self, index: u64) -> String {
        join(MESSAGE_HEAD, &index.to_string(), &self.message_tail)
    }

    fn delivered(&self, id: &str) -> String {
        join(DELIVERED_HEAD, id, &self.delivered_tail)
    }

    fn pong(&self) -> String {
        r#"{"type":"PONG"}"#.to_owned()
    }

    fn read<'a>(&self, text: &'a str) -> Incoming<'a> {
        let Ok(frame) = serde_json::from_str::<Frame<'a>>(text) else {
            return Incoming::Unreadable;
        };
        understand(&frame).unwrap_or(Incoming::Unreadable)
    }
}

fn understand<'a>(frame: &Frame<'a>) -> Option<Incoming<'a>> {
    let index = || frame.client_msg_id?.parse().ok();
    let seq = || frame.msg_seq?.parse().ok();
    Some(match (frame.kind, frame.ack_type) {
        ("SINGLE_CHAT", _) => {
            Incoming::Pushed { index: index()?, seq: seq()?, id: frame.server_msg_id? }
        }
        ("ACK", Some("saved")) => Incoming::Saved { index: index()?, seq: seq()? },
        ("ACK", Some("delivered")) => Incoming::Delivered { seq: seq()? },
        ("ERROR", _) => Incoming::Refused { index: index(), reason: frame.reason? },
        ("PING", _) => Incoming::Ping,
        _ => Incoming::Other,
    })
}

fn join(head: &str, middle: &str, tail: &str) -> String {
    let mut text = String::with_capacity(head.len() + middle.len() + tail.len());
    text.push_str(head);
    text.push_str(middle);
    text.push_str(tail);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speaks_json() {
        let pair = Typed::new("a", "b", 3);
        assert_eq!(
            pair.message(7),
            r#"{"type":"SINGLE_CHAT","clientMsgId":"7","to":"b","body":"xxx"}"#
        );
        assert_eq!(
            pair.delivered("9"),
            r#"{"type":"ACK","ackType":"delivered","serverMsgId":"9","to":"a"}"#
        );
    }

    #[test]
    fn hears_what_counts() {
        let pair = Typed::new("a", "b", 3);
        let saved = r#"{"type":"ACK","ackType":"saved","from":"a","to":"b","conversationId":"si_a_b","clientMsgId":"7","serverMsgId":"9","msgSeq":"8","ts":1}"#;
        assert_eq!(pair.read(saved), Incoming::Saved { index: 7, seq: 8 });
        let push = r#"{"type":"SINGLE_CHAT","clientMsgId":"7","serverMsgId":"9","msgSeq":"8","body":"a \"quoted\" text","extra":{"k":"v"},"ts":1}"#;
        assert_eq!(pair.read(push), Incoming::Pushed { index: 7, seq: 8, id: "9" });
        let delivered = r#"{"type":"ACK","ackType":"delivered","serverMsgId":"9","msgSeq":"8"}"#;
        assert_eq!(pair.read(delivered), Incoming::Delivered { seq: 8 });
        let refused = r#"{"type":"ERROR","reason":"RATE_LIMITED","clientMsgId":"7","ts":1}"#;
        let expected = Incoming::Refused { index: Some(7), reason: "RATE_LIMITED" };
        assert_eq!(pair.read(refused), expected);
        assert_eq!(pair.read(r#"{"type":"PING","ts":1}"#), Incoming::Ping);
        assert_eq!(pair.read(r#"{"type":"RESEND_DONE","hasMore":false}"#), Incoming::Other);
        assert_eq!(pair.read(r#"{"type":"SINGLE_CHAT"}"#), Incoming::Unreadable);
        assert_eq!(pair.read("{"), Incoming::Unreadable);
    }
}
