//! May this be somebody's new password?

use super::common_passwords;
use crate::reason::{DetailedReason, Reason};
use crate::rules::PasswordRules;

const CHARS_MAX: usize = 128;
/// Longer ones are not hashed.
pub(crate) const BYTES_MAX: usize = 512;

/// Checks a new password; passwords that people have are not checked again. `user` is the id it is for.
pub fn check(
    rules: &PasswordRules,
    password: &str,
    user: Option<&str>,
) -> Result<(), DetailedReason> {
    let refused = |why: String| Err(DetailedReason::new(Reason::BadPassword, why));
    let chars = password.chars().count();
    if chars < rules.min_chars {
        return refused(format!("it needs at least {} characters", rules.min_chars));
    }
    if chars > CHARS_MAX || password.len() > BYTES_MAX {
        return refused(format!("it may have {CHARS_MAX} characters"));
    }
    if rules.refuse_common && common_passwords::is_common(password, user) {
        return refused("it is one of those that are guessed first".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_why() {
        let rules = PasswordRules::default();
        let long = PasswordRules { min_chars: 12, ..rules };
        let any = PasswordRules { refuse_common: false, ..rules };
        for (rules, password, expect) in [
            (rules, "blue otter".to_owned(), None),
            (rules, "密码密码我的猫喵".to_owned(), None),
            (rules, "k3v9wq2".to_owned(), Some("at least 8")),
            (long, "blue otter".to_owned(), Some("at least 12")),
            (rules, "xy".repeat(65), Some("128")),
            (any, "x".repeat(128), None),
            (any, "x".repeat(129), Some("128")),
            (any, "\u{1f431}".repeat(128), None),
            (rules, "password1".to_owned(), Some("guessed first")),
            (any, "password1".to_owned(), None),
            (rules, "Alice-Liddell1".to_owned(), Some("guessed first")),
        ] {
            let checked = check(&rules, &password, Some("alice-liddell"));
            let why = checked.err().map(|refusal| {
                assert_eq!(refusal.reason, Reason::BadPassword);
                refusal.detail.unwrap_or_default()
            });
            let is_expected = match (&why, expect) {
                (Some(why), Some(expect)) => why.contains(expect),
                (why, expect) => why.is_none() && expect.is_none(),
            };
            assert!(is_expected, "{password}: {why:?}");
        }
    }
}
