//! Is this a good account?

use crate::model::Profile;
use crate::policy::group::NAME_CHARS_MAX;
use crate::reason::Reason;

/// Whether a password is long enough to keep and short enough to hash.
pub fn good_password(password: &str) -> Result<(), Reason> {
    let fits = (8..=128).contains(&password.chars().count()) && password.len() <= 512;
    if fits { Ok(()) } else { Err(Reason::BadPassword) }
}

/// Whether a profile is within its lengths and shows a name.
pub fn good_profile(profile: &Profile) -> Result<(), Reason> {
    let name = profile.nickname.chars().count();
    let shows = profile.nickname.chars().any(|c| !c.is_whitespace() && !c.is_control());
    if !(1..=NAME_CHARS_MAX).contains(&name)
        || !shows
        || profile.nickname.chars().any(char::is_control)
    {
        return Err(Reason::BadNickname);
    }
    if profile.avatar.len() > 1024 {
        return Err(Reason::BadProfile);
    }
    good_extra(&profile.extra)
}

/// Whether an app's own data about somebody, or for somebody, is short enough to keep.
pub fn good_extra(extra: &str) -> Result<(), Reason> {
    if extra.len() <= 4096 { Ok(()) } else { Err(Reason::BadProfile) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_have_eight_to_128_characters() {
        for (password, expect) in [
            ("12345678".to_owned(), Ok(())),
            ("密码密码密码密码".to_owned(), Ok(())),
            ("x".repeat(128), Ok(())),
            ("1234567".to_owned(), Err(Reason::BadPassword)),
            ("x".repeat(129), Err(Reason::BadPassword)),
        ] {
            assert_eq!(good_password(&password), expect, "{password}");
        }
    }

    #[test]
    fn a_nickname_shows_something() {
        let check = |nickname: &str, expect| {
            let profile = Profile { nickname: nickname.into(), ..Profile::default() };
            assert_eq!(good_profile(&profile), expect, "{nickname:?}");
        };
        check("Alice", Ok(()));
        check("小明", Ok(()));
        check("", Err(Reason::BadNickname));
        check("   ", Err(Reason::BadNickname));
        check("a\u{0}b", Err(Reason::BadNickname));
        check(&"x".repeat(128), Ok(()));
        check(&"x".repeat(129), Err(Reason::BadNickname));
    }
}
