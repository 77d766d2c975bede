//! May this message be recalled?

use crate::ids::{Millis, UserId};
use crate::reason::Reason;
use crate::rules::Rules;
use crate::store::RecallFacts;

/// Whether a user may recall a message: its sender within the recall window, or at any time if it is already
/// recalled; in a group also members with a higher role than the sender, at any time. Anyone outside the
/// conversation gets the same refusal as if the message did not exist.
pub fn may_recall(
    rules: &Rules,
    by: &UserId,
    facts: RecallFacts<'_>,
    now: Millis,
) -> Result<(), Reason> {
    let RecallFacts { message, group, is_member } = facts;
    let group = group.filter(|_| is_member);
    if group.is_none() && message.conversation.peer_of(by).is_none() {
        return Err(Reason::MessageNotFound);
    }
    if group.is_some_and(|group| group.role(by) > group.role(&message.sender)) {
        return Ok(());
    }
    if message.sender != *by {
        return Err(Reason::NotMessageSender);
    }
    let is_late = now.since(message.sent_at) > rules.recall_window_ms;
    if is_late && message.recalled.is_none() {
        return Err(Reason::RevokeTimeout);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ClientMsgId, ConversationId, MessageId, Seq};
    use crate::model::{Content, Message};

    /// Alice sent it at 1,000.
    fn check(by: &str, now: u64, expect: Result<(), Reason>) {
        let user = |id| UserId::parse(id).unwrap();
        let client_id = ClientMsgId::parse("c").unwrap();
        let message = Message {
            id: MessageId::of(&user("alice"), &client_id),
            conversation: ConversationId::private(&user("alice"), &user("bob")),
            seq: Seq(1),
            sender: user("alice"),
            client_id,
            sent_at: Millis(1000),
            content: Content::text("oops"),
            recalled: None,
        };
        let facts = RecallFacts { message: &message, group: None, is_member: false };
        let decision = may_recall(&Rules::default(), &user(by), facts, Millis(now));
        assert_eq!(decision, expect, "{by} at {now}");
    }

    #[test]
    fn its_sender_for_two_minutes() {
        check("alice", 1000, Ok(()));
        check("alice", 121_000, Ok(()));
        check("alice", 121_001, Err(Reason::RevokeTimeout));
        check("alice", 0, Ok(()));
        check("bob", 1000, Err(Reason::NotMessageSender));
        check("carol", 1000, Err(Reason::MessageNotFound));
    }
}
