//! Which keys a page of documents may have, the same for every engine that keeps them in order.

use std::ops::Bound;

use nexo_chat::store::{DocumentId, DocumentPage};

/// Returns the first and the last key of a page, in the order of the keys; `None` if there can be no
/// document between them.
pub(crate) fn bounds(page: &DocumentPage) -> Option<(Bound<String>, Bound<String>)> {
    let DocumentPage { prefix, after, .. } = page;
    let may_be = |text: &String| DocumentId::may_begin_key(text);
    if !may_be(prefix) || !after.as_ref().is_none_or(may_be) {
        return None;
    }
    let end = end_of(prefix);
    let is_beyond = |key: &String| end.as_ref().is_some_and(|end| key >= end);
    let from = Bound::Included(prefix.clone());
    let to = end.clone().map_or(Bound::Unbounded, Bound::Excluded);
    let Some(after) = after.clone() else { return Some((from, to)) };
    if page.backwards {
        let is_before = after <= *prefix;
        let to = if is_beyond(&after) { to } else { Bound::Excluded(after) };
        return (!is_before).then_some((from, to));
    }
    if is_beyond(&after) {
        return None;
    }
    let from = if after < *prefix { from } else { Bound::Excluded(after) };
    Some((from, to))
}

/// The least text that is greater than all that begins with a prefix; `None` if the prefix is empty.
fn end_of(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    let last = end.pop()?;
    // At most one more than `~`, the last printable character.
    end.push(char::from(u8::try_from(last).ok()?.checked_add(1)?));
    Some(end)
}

#[cfg(test)]
mod tests {
    use nexo_chat::store::Collection;

    use super::*;

    /// The keys between the bounds are those that the page asks for.
    fn check(prefix: &str, after: Option<&str>) {
        let keys = ["!", "a", "a!", "ab", "ab~", "ab~~", "ac", "b", "~", "~~"];
        for backwards in [false, true] {
            let page = DocumentPage {
                prefix: prefix.into(),
                after: after.map(str::to_owned),
                backwards,
                ..DocumentPage::first(Collection::Keys, 9)
            };
            let is_after = |key: &str| match after {
                Some(after) if backwards => key < after,
                Some(after) => key > after,
                None => true,
            };
            let expect = keys.map(|key| key.starts_with(prefix) && is_after(key));
            let bounds = bounds(&page);
            let found = keys.map(|key| {
                let key = key.to_owned();
                bounds.as_ref().is_some_and(|bounds| std::ops::RangeBounds::contains(bounds, &key))
            });
            assert_eq!(found, expect, "{page:?} {bounds:?}");
        }
    }

    #[test]
    fn a_page_has_what_follows_and_begins_with_its_prefix() {
        for prefix in ["", "a", "ab", "ab~", "b", "c", "~", "~~"] {
            check(prefix, None);
            for after in ["", "!", "a", "a!", "ab", "ab~", "ac", "b", "~~", "~~~"] {
                check(prefix, Some(after));
            }
        }
    }

    #[test]
    fn what_no_key_can_be_is_in_no_page() {
        let page = DocumentPage::first(Collection::Keys, 9);
        for odd in [" ", "a ", "é", "\0"] {
            assert_eq!(bounds(&DocumentPage { prefix: odd.into(), ..page.clone() }), None);
            assert_eq!(bounds(&DocumentPage { after: Some(odd.into()), ..page.clone() }), None);
        }
    }
}
