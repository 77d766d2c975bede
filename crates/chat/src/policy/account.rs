//! May this account be registered, and is this profile valid?

use crate::ids::UserId;
use crate::model::Profile;
use crate::policy::name;
use crate::reason::{DetailedReason, Reason};

/// Ids that cannot be registered: others could mistake them for the operator, for all users, or for no user.
const RESERVED: [&str; 24] = [
    "admin",
    "administrator",
    "all",
    "anonymous",
    "everybody",
    "everyone",
    "help",
    "here",
    "me",
    "mod",
    "moderator",
    "nexo",
    "nobody",
    "null",
    "official",
    "operator",
    "postmaster",
    "root",
    "security",
    "staff",
    "support",
    "system",
    "undefined",
    "webmaster",
];

/// Refuses reserved ids and those that look like one.
pub fn check_not_reserved(id: &UserId) -> Result<(), Reason> {
    let folded = id.folded();
    let is_reserved = RESERVED
        .iter()
        .any(|name| UserId::parse(name).is_ok_and(|reserved| reserved.folded() == folded));
    if is_reserved { Err(Reason::ReservedUserId) } else { Ok(()) }
}

pub const NICKNAME_CHARS_MAX: usize = 128;

/// The nickname in the form to store.
pub fn normalize_nickname(nickname: &str) -> Result<String, Reason> {
    name::normalize(nickname, NICKNAME_CHARS_MAX).ok_or(Reason::BadNickname)
}

/// The name of a device in the form to store; it may be empty.
pub fn normalize_device_name(device: &str) -> Result<String, DetailedReason> {
    if device.trim().is_empty() {
        return Ok(String::new());
    }
    let name = name::normalize(device, NICKNAME_CHARS_MAX);
    name.ok_or_else(|| DetailedReason::field("device_name"))
}

/// Checks the lengths, and that the nickname is visible.
pub fn check_profile(profile: &Profile) -> Result<(), Reason> {
    normalize_nickname(&profile.nickname)?;
    if profile.avatar.len() > 1024 {
        return Err(Reason::BadProfile);
    }
    check_extra(&profile.extra)
}

/// Checks the length of the app's own data.
pub fn check_extra(extra: &str) -> Result<(), Reason> {
    if extra.len() <= 4096 { Ok(()) } else { Err(Reason::BadProfile) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_ids_are_nobodys() {
        let check = |id: &str, expect| {
            assert_eq!(check_not_reserved(&UserId::parse(id).unwrap()), expect, "{id}");
        };
        for id in ["system", "System", "admin", "ADM1N", "r00t", "nexo", "a11", "nu1l", "0fficial"]
        {
            check(id, Err(Reason::ReservedUserId));
        }
        for id in ["alice", "admin-2", "systema", "roots", "hal", "mee"] {
            check(id, Ok(()));
        }
    }

    #[test]
    fn a_nickname_shows_something() {
        let check = |nickname: &str, expect| {
            let profile = Profile { nickname: nickname.into(), ..Profile::default() };
            assert_eq!(check_profile(&profile), expect, "{nickname:?}");
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
