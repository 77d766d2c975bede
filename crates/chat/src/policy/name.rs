//! Is this a name that people can read? Of people and of groups alike.

use unicode_normalization::UnicodeNormalization;

use crate::policy::send::says_nothing;

/// A name as it is kept: in Unicode's normal form C, so that what looks the same is the same, and
/// without space around it. `None` if it shows nothing, is longer than that many characters, or has
/// what changes how other text is shown: control characters, line ends, and marks that override or
/// isolate the direction of writing.
pub fn tidy(name: &str, chars_max: usize) -> Option<String> {
    // Normalising takes its time and gives at most three characters for one.
    if name.chars().count() > chars_max.saturating_mul(4) {
        return None;
    }
    let name: String = name.nfc().collect();
    let name = name.trim();
    let fits = name.chars().count() <= chars_max
        && !name.chars().all(says_nothing)
        && !name.chars().any(misleads);
    fits.then(|| name.to_owned())
}

fn misleads(c: char) -> bool {
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
            assert_eq!(tidy(given, 64).as_deref(), Some(kept), "{given:?}");
            assert_eq!(tidy(kept, 64).as_deref(), Some(kept), "once is enough: {given:?}");
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
            assert_eq!(tidy(bad, 64), None, "{bad:?}");
        }
    }

    #[test]
    fn a_name_is_counted_as_it_is_kept() {
        assert!(tidy(&"e\u{301}".repeat(64), 64).is_some());
        assert!(tidy(&format!(" {} ", "x".repeat(64)), 64).is_some());
        assert_eq!(tidy(&"x".repeat(65), 64), None);
        assert_eq!(tidy(&"x".repeat(1 << 20), 64), None);
    }
}
