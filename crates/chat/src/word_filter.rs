//! Replaces unwanted words by `***`, in time linear in the text.

use aho_corasick::{AhoCorasick, BuildError, MatchKind};
use bytes::Bytes;

use crate::model::{Content, ContentKind};

const REPLACEMENT: &str = "***";

#[derive(Clone, Debug)]
pub struct WordFilter(AhoCorasick);

impl WordFilter {
    /// Builds a filter from one word per line; empty lines and lines that begin with `#` are skipped.
    pub fn new(list: &str) -> Result<Self, BuildError> {
        let words = list.lines().map(str::trim).filter(|line| !line.is_empty());
        let words = words.filter(|line| !line.starts_with('#'));
        let matcher = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .ascii_case_insensitive(true)
            .build(words)?;
        Ok(Self(matcher))
    }

    /// The content with words replaced; `None` if it contains none of them.
    pub fn apply(&self, content: &Content) -> Option<Content> {
        if content.kind != ContentKind::TEXT {
            return None;
        }
        let text = std::str::from_utf8(&content.body).ok()?;
        self.0.find(text)?;
        let mut cleaned = String::with_capacity(text.len());
        self.0.replace_all_with(text, &mut cleaned, |_, _, shown| {
            shown.push_str(REPLACEMENT);
            true
        });
        Some(Content { body: Bytes::from(cleaned), ..content.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Option<&str>) {
        let words = WordFilter::new("darn\n# a comment\n\ndarn it\n坏话\n").unwrap();
        let cleaned = words.apply(&Content::text(text.to_owned()));
        let cleaned = cleaned.map(|content| String::from_utf8(content.body.to_vec()).unwrap());
        assert_eq!(cleaned.as_deref(), expect, "{text}");
    }

    #[test]
    fn words_are_replaced_the_longest_first() {
        check("all is well", None);
        check("a comment", None);
        check("darn", Some("***"));
        check("Darn it, DARN!", Some("***, ***!"));
        check("说坏话了", Some("说***了"));
    }

    #[test]
    fn other_content_is_not_looked_into() {
        let words = WordFilter::new("darn").unwrap();
        let image = Content { kind: ContentKind::IMAGE, ..Content::text("darn") };
        assert!(words.apply(&image).is_none());
    }

    #[test]
    fn long_repetitions_stay_linear() {
        let words = WordFilter::new(&format!("{}b", "a".repeat(1000))).unwrap();
        assert!(words.apply(&Content::text("a".repeat(64 * 1024))).is_none());
    }
}
