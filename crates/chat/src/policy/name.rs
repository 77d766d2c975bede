//! Is this a readable name? For users and groups.

use unicode_normalization::UnicodeNormalization;

use crate::policy::send::is_blank;

/// A name in the form to store: trimmed, and in Unicode normal form C, so that names that look the same are
/// equal. `None` if it is blank, too long, or contains characters that change how other text is displayed:
/// control characters, line ends, and marks that override or isolate the writing direction.
pub fn normalize(name: &str, chars_max: usize) -> Option<String> {
    // Bounds the work: normalizing shrinks a name to a quarter of its characters at most.
    if name.chars().count() > chars_max.saturating_mul(4) {
        return None;
    }
    let name: String = name.nfc().collect();
    let name = name.trim();
    let is_valid = name.chars().count() <= chars_max
        && !name.chars().all(is_blank)
        && !name.chars().any(is_misleading);
    is_valid.then(|| name.to_owned())
}

fn is_misleading(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_in_one_form() {
        for (given, kept) in [
            ("Alice", "Alice"),
            ("  Alice B. ", "Alice B."),
            ("e\u{301}", "\u{e9}"),
            ("A\u{30a}ngstro\u{308}m", "\u{c5}ngstr\u{f6}m"),
            ("\u{ac00}", "\u{ac00}"),
            ("\u{1100}\u{1161}", "\u{ac00}"),
            ("小明", "小明"),
            ("\u{1f468}\u{200d}\u{1f469}", "\u{1f468}\u{200d}\u{1f469}"),
            ("\u{5d0}\u{200f}\u{5d1}", "\u{5d0}\u{200f}\u{5d1}"),
        ] {
            assert_eq!(normalize(given, 64).as_deref(), Some(kept), "{given:?}");
            assert_eq!(normalize(kept, 64).as_deref(), Some(kept), "once is enough: {given:?}");
        }
    }

    #[test]
    fn names_that_mislead_or_show_nothing_are_none() {
        for bad in [
            "",
            "   ",
            "\u{200b}\u{2060}",
            "\u{3164}",
            "a\u{0}b",
            "a\nb",
            "a\u{2028}b",
            "bob\u{202e}nimda",
            "a\u{2066}b",
        ] {
            assert_eq!(normalize(bad, 64), None, "{bad:?}");
        }
    }

    #[test]
    fn a_name_is_counted_as_it_is_kept() {
        assert!(normalize(&"e\u{301}".repeat(64), 64).is_some());
        assert!(normalize(&format!(" {} ", "x".repeat(64)), 64).is_some());
        assert_eq!(normalize(&"x".repeat(65), 64), None);
        assert_eq!(normalize(&"x".repeat(1 << 20), 64), None);
    }
}
