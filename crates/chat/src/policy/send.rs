//! May this be sent?

use crate::command::{NewMessage, Target};
use crate::ids::UserId;
use crate::model::{Content, ContentKind, Message};
use crate::reason::Reason;
use crate::rules::Rules;

/// Proof that a policy allowed a send. `Store::append` takes it by value, so a feature cannot store a message
/// without asking [`may_send`] or [`may_retry`].
///
/// Two functions hand one out without asking: [`permit_for_accepted`], for the messages that two-phase
/// acknowledgement saves after their permit was used, and [`Permit::for_tests`]. Code review keeps them to
/// those callers, not the compiler: they are called from other crates.
#[derive(Debug)]
pub struct Permit(());

/// A retry of a stored message is always allowed, whatever changed since; the store compares the contents.
pub fn may_retry(stored: &Message, sender: &UserId) -> Option<Permit> {
    (stored.sender == *sender).then_some(Permit(()))
}

/// For a message that two-phase acknowledgement accepted: it consumed a permit then. Its entry has been in this
/// node's memory or sealed with the system's key in Redis since. Only the `two_phase` crate calls this.
pub fn permit_for_accepted() -> Permit {
    Permit(())
}

impl Permit {
    /// Skips the policy. For the tests and conformance cases of stores and for `nexo bench`, which exercise
    /// a store directly.
    pub fn for_tests() -> Self {
        Self(())
    }
}

#[derive(Clone, Copy, Debug)]
pub struct SendFacts {
    /// Whether the receiving user has an account. A group's rules are checked inside the append instead.
    pub receiver_exists: bool,
    /// Whether all mentioned users are in the conversation.
    pub mentions_are_members: bool,
    /// Whether the sender can see the message it replies to, in this conversation.
    pub reply_is_visible: bool,
}

/// Whether `sender` may send this. Checks the form first, then the receiver, then mentions and reply.
pub fn may_send(
    rules: &Rules,
    sender: &UserId,
    outgoing: &NewMessage,
    facts: SendFacts,
) -> Result<Permit, Reason> {
    check_content(rules, &outgoing.content)?;
    if outgoing.to == Target::User(sender.clone()) {
        return Err(Reason::CannotSendToSelf);
    }
    if !facts.receiver_exists {
        return Err(Reason::UserNotFound);
    }
    if !facts.mentions_are_members {
        return Err(Reason::MentionNotMember);
    }
    if !facts.reply_is_visible {
        return Err(Reason::MessageNotFound);
    }
    Ok(Permit(()))
}

fn check_content(rules: &Rules, content: &Content) -> Result<(), Reason> {
    if !content.kind.is_known() {
        return Err(Reason::UnknownMsgType);
    }
    if content.kind == ContentKind::TEXT {
        let text = std::str::from_utf8(&content.body).map_err(|_| Reason::InvalidParam)?;
        if text.chars().all(is_blank) {
            return Err(Reason::MissingBody);
        }
        if text.chars().count() > rules.text_chars_max {
            return Err(Reason::BodyTooLong);
        }
    } else if content.body.is_empty() {
        return Err(Reason::MissingBody);
    }
    if content.mentions.len() > rules.groups.mentions_max {
        return Err(Reason::TooManyMentions);
    }
    let extra: usize = content.extra.iter().map(|(key, value)| key.len() + value.len()).sum();
    let is_large = content.body.len() > rules.content_bytes_max
        || extra > rules.content_bytes_max
        || content.extra.len() > rules.extra_entries_max;
    if is_large {
        return Err(Reason::BodyTooLong);
    }
    Ok(())
}

/// White space, control characters and characters without width: a text of these alone looks empty.
pub(crate) fn is_blank(c: char) -> bool {
    let is_invisible = matches!(
        c,
        '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{00ad}'
    );
    c.is_whitespace() || c.is_control() || is_invisible
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ClientMsgId;

    fn check(to: &str, content: Content, receiver_exists: bool, expect: Result<(), Reason>) {
        let outgoing = NewMessage {
            to: Target::User(UserId::parse(to).unwrap()),
            client_id: ClientMsgId::parse("c1").unwrap(),
            content,
            reply_to: None,
            marks_read: true,
        };
        let sender = UserId::parse("alice").unwrap();
        let facts =
            SendFacts { receiver_exists, mentions_are_members: true, reply_is_visible: true };
        let decision = may_send(&Rules::default(), &sender, &outgoing, facts).map(|_| ());
        assert_eq!(decision, expect, "{outgoing:?}");
    }

    #[test]
    fn text_has_a_length_between_one_and_the_limit() {
        check("bob", Content::text("hi"), true, Ok(()));
        check("bob", Content::text("é".repeat(4096)), true, Ok(()));
        check("bob", Content::text("é".repeat(4097)), true, Err(Reason::BodyTooLong));
        for nothing in ["", " ", "\n\t", "\u{200b}\u{feff}", "\0"] {
            check("bob", Content::text(nothing), true, Err(Reason::MissingBody));
        }
    }

    #[test]
    fn text_is_utf8() {
        check("bob", Content::text(&[0xff, 0xfe][..]), true, Err(Reason::InvalidParam));
    }

    #[test]
    fn other_content_is_opaque_but_bounded_and_of_a_known_kind() {
        let with = |kind, len| Content { kind: ContentKind(kind), ..Content::text(vec![255; len]) };
        check("bob", with(2, 10), true, Ok(()));
        check("bob", with(100, 64 * 1024), true, Ok(()));
        check("bob", with(100, 64 * 1024 + 1), true, Err(Reason::BodyTooLong));
        check("bob", with(2, 0), true, Err(Reason::MissingBody));
        check("bob", with(6, 10), true, Err(Reason::UnknownMsgType));
        check("bob", with(-1, 10), true, Err(Reason::UnknownMsgType));
    }

    #[test]
    fn mentions_are_bounded() {
        let with = |count| Content {
            mentions: vec![UserId::parse("bob").unwrap(); count],
            ..Content::text("hi")
        };
        check("bob", with(50), true, Ok(()));
        check("bob", with(51), true, Err(Reason::TooManyMentions));
    }

    #[test]
    fn the_extra_map_is_bounded() {
        let with = |entries: usize| {
            let extra = (0..entries).map(|i| (i.to_string(), String::new())).collect();
            Content { extra, ..Content::text("hi") }
        };
        check("bob", with(32), true, Ok(()));
        check("bob", with(33), true, Err(Reason::BodyTooLong));
    }

    #[test]
    fn the_receiver_is_somebody_else_who_exists() {
        check("alice", Content::text("hi"), true, Err(Reason::CannotSendToSelf));
        check("bob", Content::text("hi"), false, Err(Reason::UserNotFound));
        check("bob", Content::text(""), false, Err(Reason::MissingBody));
    }
}
