//! The mentions of a message, and the message it replies to.

use nexo_chat::Reason;
use nexo_chat::ids::{MessageId, UserId};
use nexo_chat::model::Content;

/// Mentions every member. No user id has an `@`.
pub const MENTION_ALL: &str = "@all";

/// More entries are refused unread. The limit of the settings is lower and counts distinct users.
const ENTRIES_MAX: usize = 1000;

/// Adds a list of mentions to a content.
pub fn add_mentions<'a>(
    content: &mut Content,
    names: impl ExactSizeIterator<Item = &'a str>,
) -> Result<(), Reason> {
    if names.len() > ENTRIES_MAX {
        return Err(Reason::TooManyMentions);
    }
    for name in names {
        if name == MENTION_ALL {
            content.mentions_all = true;
        } else {
            // An id that no user can have is no member.
            let user = UserId::parse(name).map_err(|_| Reason::MentionNotMember)?;
            content.mentions.push(user);
        }
    }
    Ok(())
}

/// The mentions as a client gives them; `@all` comes last.
pub(crate) fn mention_names(content: &Content) -> Vec<&str> {
    let all = content.mentions_all.then_some(MENTION_ALL);
    content.mentions.iter().map(UserId::as_str).chain(all).collect()
}

/// An optional message id, empty or absent for none. An id that no message can have is not found.
pub fn message_id(id: Option<&str>) -> Result<Option<MessageId>, Reason> {
    let id = id.filter(|id| !id.is_empty());
    id.map(MessageId::parse).transpose().map_err(|_| Reason::MessageNotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_are_people_or_all() {
        let check = |given: &[&str], expect: Result<&[&str], Reason>| {
            let mut content = Content::text("hi");
            let read = add_mentions(&mut content, given.iter().copied());
            assert_eq!(
                read.map(|()| mention_names(&content)),
                expect.map(<[_]>::to_vec),
                "{given:?}"
            );
        };
        check(&[], Ok(&[]));
        check(&["bob", "@all", "carol"], Ok(&["bob", "carol", "@all"]));
        check(&["@all", "@all"], Ok(&["@all"]));
        check(&["bob", ""], Err(Reason::MentionNotMember));
        check(&["@ALL"], Err(Reason::MentionNotMember));
        check(&["bob"; 1001], Err(Reason::TooManyMentions));
        check(&["bob"; 1000], Ok(&["bob"; 1000]));
    }

    #[test]
    fn an_answer_names_a_message() {
        let id = MessageId([7; 16]);
        assert_eq!(message_id(Some(&id.to_string())), Ok(Some(id)));
        assert_eq!(message_id(None), Ok(None));
        assert_eq!(message_id(Some("")), Ok(None));
        assert_eq!(message_id(Some("nonsense")), Err(Reason::MessageNotFound));
    }
}
