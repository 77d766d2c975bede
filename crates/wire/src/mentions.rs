//! Whom a message speaks of: the people it mentions, and the message it answers.

use nexo_chat::Reason;
use nexo_chat::ids::{MessageId, UserId};
use nexo_chat::model::Content;

/// What mentions everybody. No user id has an `@`.
pub const EVERYBODY: &str = "@all";

/// Entries that are read at all. The operator's limit is lower and counts people, not entries.
const ENTRIES_MAX: usize = 1000;

/// Reads a list of mentions into a content.
pub fn mention<'a>(
    content: &mut Content,
    names: impl ExactSizeIterator<Item = &'a str>,
) -> Result<(), Reason> {
    if names.len() > ENTRIES_MAX {
        return Err(Reason::TooManyMentions);
    }
    for name in names {
        if name == EVERYBODY {
            content.mentions_all = true;
        } else {
            // An id of a form that no user can have belongs to nobody here.
            let user = UserId::parse(name).map_err(|_| Reason::MentionNotMember)?;
            content.mentions.push(user);
        }
    }
    Ok(())
}

/// The mentions of a content as they were given; everybody comes last.
pub(crate) fn names(content: &Content) -> Vec<&str> {
    let everybody = content.mentions_all.then_some(EVERYBODY);
    content.mentions.iter().map(UserId::as_str).chain(everybody).collect()
}

/// Reads which message is answered. One whose id no message can have was never there.
pub fn answered(id: Option<&str>) -> Result<Option<MessageId>, Reason> {
    let id = id.filter(|id| !id.is_empty());
    id.map(MessageId::parse).transpose().map_err(|_| Reason::MessageNotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_are_people_or_everybody() {
        let check = |given: &[&str], expect: Result<&[&str], Reason>| {
            let mut content = Content::text("hi");
            let read = mention(&mut content, given.iter().copied());
            assert_eq!(read.map(|()| names(&content)), expect.map(<[_]>::to_vec), "{given:?}");
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
        assert_eq!(answered(Some(&id.to_string())), Ok(Some(id)));
        assert_eq!(answered(None), Ok(None));
        assert_eq!(answered(Some("")), Ok(None));
        assert_eq!(answered(Some("nonsense")), Err(Reason::MessageNotFound));
    }
}
