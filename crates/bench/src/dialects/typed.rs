//! The frames of the typed dialect, as JSON text.

use serde::Deserialize;
use tokio_tungstenite::tungstenite::Message;

use crate::codec::{Codec, Incoming};
use crate::dialects::{Recipient, join};

/// The frames of one sender and its receivers. Parts that never change are formatted once.
#[derive(Debug)]
pub(crate) struct Typed {
    message_head: &'static str,
    /// The frame after the message's number.
    message_tail: String,
    /// The frame after the message's id.
    delivered_tail: String,
}

const TO_PERSON: &str = r#"{"type":"SINGLE_CHAT","clientMsgId":""#;
const TO_GROUP: &str = r#"{"type":"GROUP_CHAT","clientMsgId":""#;
const DELIVERED_HEAD: &str = r#"{"type":"ACK","ackType":"delivered","serverMsgId":""#;

impl Typed {
    /// Texts have `size` bytes. Ids need no escaping.
    pub(crate) fn new(to: Recipient<'_>, size: usize) -> Self {
        let body = "x".repeat(size);
        match to {
            Recipient::Person { from, to } => Self {
                message_head: TO_PERSON,
                message_tail: format!(r#"","to":"{to}","body":"{body}"}}"#),
                delivered_tail: format!(r#"","to":"{from}"}}"#),
            },
            Recipient::Group(group) => Self {
                message_head: TO_GROUP,
                message_tail: format!(r#"","groupId":"{group}","body":"{body}"}}"#),
                delivered_tail: r#""}"#.to_owned(),
            },
        }
    }
}

/// The fields read; serde skips the rest, above all the text, without a copy.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypedFrame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    ack_type: Option<&'a str>,
    client_msg_id: Option<&'a str>,
    server_msg_id: Option<&'a str>,
    msg_seq: Option<&'a str>,
    preview: Option<bool>,
    reason: Option<&'a str>,
    has_more: Option<bool>,
}

impl Codec for Typed {
    fn message(&self, index: u64) -> Message {
        join(self.message_head, &index.to_string(), &self.message_tail)
    }

    fn delivered(&self, id: &str) -> Option<Message> {
        Some(join(DELIVERED_HEAD, id, &self.delivered_tail))
    }

    fn pong(&self) -> Message {
        Message::text(r#"{"type":"PONG"}"#)
    }

    fn read(&self, frame: &Message, on_incoming: &mut dyn FnMut(Incoming<'_>)) {
        let Message::Text(text) = frame else { return };
        let frame = serde_json::from_str::<TypedFrame<'_>>(text.as_str());
        let known = frame.ok().and_then(|frame| parse(&frame));
        on_incoming(known.unwrap_or(Incoming::Unreadable));
    }
}

fn parse<'a>(frame: &TypedFrame<'a>) -> Option<Incoming<'a>> {
    let index = || frame.client_msg_id?.parse().ok();
    let seq = || frame.msg_seq?.parse().ok();
    Some(match (frame.kind, frame.ack_type) {
        ("SINGLE_CHAT", _) if frame.preview == Some(true) => Incoming::Shown { index: index()? },
        ("SINGLE_CHAT" | "GROUP_CHAT", _) => {
            Incoming::Pushed { index: index()?, seq: seq()?, id: frame.server_msg_id? }
        }
        ("ACK", Some("saved")) => Incoming::Saved {
            index: index()?,
            seq: seq()?,
            id: frame.server_msg_id.unwrap_or_default(),
        },
        ("ACK", Some("accepted")) => Incoming::Accepted { index: index()? },
        ("ACK", Some("delivered")) => Incoming::Delivered { seq: seq()? },
        ("RESEND_DONE", _) => Incoming::Resent { has_more: frame.has_more? },
        ("ERROR", _) => Incoming::Refused { index: index(), reason: frame.reason? },
        ("AUTH_FAIL", _) => Incoming::Refused { index: None, reason: frame.reason? },
        ("AUTH_OK", _) => Incoming::Welcome,
        ("PING", _) => Incoming::Ping,
        _ => Incoming::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::parsed;

    fn check(frame: &str, wanted: Incoming<'_>) {
        let pair = Typed::new(Recipient::Person { from: "a", to: "b" }, 3);
        assert_eq!(parsed(&pair, &Message::text(frame)), [format!("{wanted:?}")], "{frame}");
    }

    #[test]
    fn speaks_json() {
        let pair = Typed::new(Recipient::Person { from: "a", to: "b" }, 3);
        assert_eq!(
            pair.message(7).to_string(),
            r#"{"type":"SINGLE_CHAT","clientMsgId":"7","to":"b","body":"xxx"}"#
        );
        assert_eq!(
            pair.delivered("9").unwrap().to_string(),
            r#"{"type":"ACK","ackType":"delivered","serverMsgId":"9","to":"a"}"#
        );
        let group = Typed::new(Recipient::Group("g"), 3);
        assert_eq!(
            group.message(7).to_string(),
            r#"{"type":"GROUP_CHAT","clientMsgId":"7","groupId":"g","body":"xxx"}"#
        );
    }

    #[test]
    fn hears_what_counts() {
        check(
            r#"{"type":"ACK","ackType":"saved","from":"a","to":"b","conversationId":"si_a_b","clientMsgId":"7","serverMsgId":"9","msgSeq":"8","ts":1}"#,
            Incoming::Saved { index: 7, seq: 8, id: "9" },
        );
        check(
            r#"{"type":"SINGLE_CHAT","clientMsgId":"7","serverMsgId":"9","msgSeq":"8","body":"a \"quoted\" text","extra":{"k":"v"},"ts":1}"#,
            Incoming::Pushed { index: 7, seq: 8, id: "9" },
        );
        check(
            r#"{"type":"GROUP_CHAT","clientMsgId":"7","serverMsgId":"9","msgSeq":"8","body":"a"}"#,
            Incoming::Pushed { index: 7, seq: 8, id: "9" },
        );
        check(
            r#"{"type":"ACK","ackType":"delivered","serverMsgId":"9","msgSeq":"8"}"#,
            Incoming::Delivered { seq: 8 },
        );
        check(
            r#"{"type":"ERROR","reason":"RATE_LIMITED","clientMsgId":"7","ts":1}"#,
            Incoming::Refused { index: Some(7), reason: "RATE_LIMITED" },
        );
        check(r#"{"type":"PING","ts":1}"#, Incoming::Ping);
        check(r#"{"type":"RESEND_DONE","hasMore":true}"#, Incoming::Resent { has_more: true });
        check(r#"{"type":"GROUP_CHANGED","event":"joined"}"#, Incoming::Other);
        check(r#"{"type":"SINGLE_CHAT"}"#, Incoming::Unreadable);
        check("{", Incoming::Unreadable);
    }
}
