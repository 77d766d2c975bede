//! May this be acknowledged?

use crate::command::Acknowledge;
use crate::ids::UserId;
use crate::invariants::is_visible;
use crate::model::{Message, Window};
use crate::reason::Reason;

/// Whether a user may acknowledge a message. If they cannot see it, the refusal is the same as if it did not
/// exist. An acknowledgement that contradicts the message is refused.
pub fn may_acknowledge(
    by: &UserId,
    ack: &Acknowledge,
    message: Option<&Message>,
    window: Option<Window>,
) -> Result<(), Reason> {
    let (Some(message), Some(window)) = (message, window) else {
        return Err(Reason::MessageNotFound);
    };
    if !is_visible(window, message.seq) {
        return Err(Reason::MessageNotFound);
    }
    // A client names the receiver of the receipt: the sender, or for an own message the other user.
    let addressee = match message.conversation.peer_of(by) {
        Some(peer) if message.sender == *by => Some(peer),
        _ => Some(message.sender.clone()),
    };
    let names_another = ack.from.is_some() && ack.from != addressee;
    if names_another || ack.seq.is_some_and(|seq| seq != message.seq) {
        return Err(Reason::AckNotAllowed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ClientMsgId, ConversationId, MessageId, Millis, Seq};
    use crate::model::{Content, CursorKind};

    fn user(id: &str) -> UserId {
        UserId::parse(id).unwrap()
    }

    /// Alice sent Bob message number three.
    fn check(
        by: &str,
        to: Option<&str>,
        seq: Option<u64>,
        member: bool,
        expect: Result<(), Reason>,
    ) {
        let (alice, bob) = (user("alice"), user("bob"));
        let client_id = ClientMsgId::parse("c").unwrap();
        let message = Message {
            id: MessageId::of(&alice, &client_id),
            conversation: ConversationId::private(&alice, &bob),
            seq: Seq(3),
            sender: alice,
            client_id,
            sent_at: Millis(1),
            content: Content::text("hi"),
            recalled: None,
        };
        let window = member.then_some(Window { min: Seq(2), ..Window::ALL });
        let ack = Acknowledge {
            kind: CursorKind::Read,
            message: message.id,
            from: to.map(user),
            seq: seq.map(Seq),
        };
        let decision = may_acknowledge(&user(by), &ack, Some(&message), window);
        assert_eq!(decision, expect, "{by} {to:?} {seq:?}");
    }

    #[test]
    fn an_acknowledgement_fits_its_message() {
        check("bob", Some("alice"), None, true, Ok(()));
        check("bob", None, Some(3), true, Ok(()));
        check("alice", Some("bob"), None, true, Ok(()));
        check("bob", Some("carol"), None, true, Err(Reason::AckNotAllowed));
        check("bob", Some("bob"), None, true, Err(Reason::AckNotAllowed));
        check("bob", Some("alice"), Some(4), true, Err(Reason::AckNotAllowed));
    }

    #[test]
    fn a_stranger_cannot_tell_the_message_from_none() {
        check("carol", Some("alice"), None, false, Err(Reason::MessageNotFound));
    }
}
