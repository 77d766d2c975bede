//! The code that a browser exchanges for its tokens: signed, for one browser, for a minute, and once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use data_encoding::BASE64URL_NOPAD;

use super::browser_cookie::BrowserCookie;
use crate::chat::Chat;
use crate::ids::{Millis, UserId};
use crate::token::TokenKey;

const TTL_MS: u64 = 60 * 1000;

/// Codes of the last minute that are remembered as used. Each belongs to a sign-in that succeeded at the provider.
const USED_MAX: usize = 100_000;

/// Codes that were used on this node. Another node would take a code once more, within its minute and from the same
/// browser only: the signature covers the cookie.
#[derive(Default)]
pub(super) struct UsedCodes(Mutex<HashMap<[u8; 16], Millis>>);

/// A code for somebody the provider vouched for, in the browser with this cookie.
pub(super) fn issue(chat: &Chat, user: &UserId, cookie: &BrowserCookie) -> String {
    let mut id = [0; 16];
    chat.rng.fill(&mut id);
    seal(&chat.key, id, chat.steady_time.now(&*chat.clock).plus(TTL_MS), user, cookie)
}

/// The user of a code that was not used yet.
pub(super) fn redeem(
    chat: &Chat,
    spent: &UsedCodes,
    code: &str,
    cookie: &BrowserCookie,
) -> Option<UserId> {
    let now = chat.steady_time.now(&*chat.clock);
    let (id, expires_at, user) = open(&chat.key, code, cookie)?;
    (now < expires_at && spent.take(id, expires_at, now)).then_some(user)
}

fn seal(
    key: &TokenKey,
    id: [u8; 16],
    expires_at: Millis,
    user: &UserId,
    cookie: &BrowserCookie,
) -> String {
    let content = format!("{}.{}.{user}", BASE64URL_NOPAD.encode(&id), expires_at.0);
    let mac = mac(key, &content, cookie);
    let content = BASE64URL_NOPAD.encode(content.as_bytes());
    format!("{content}.{}", BASE64URL_NOPAD.encode(mac.as_bytes()))
}

fn open(key: &TokenKey, code: &str, cookie: &BrowserCookie) -> Option<([u8; 16], Millis, UserId)> {
    let (content, given) = code.split_once('.')?;
    let content = String::from_utf8(BASE64URL_NOPAD.decode(content.as_bytes()).ok()?).ok()?;
    let given: [u8; 32] = BASE64URL_NOPAD.decode(given.as_bytes()).ok()?.try_into().ok()?;
    if mac(key, &content, cookie) != blake3::Hash::from(given) {
        return None; // compared in constant time
    }
    let [id, expires_at, user] = content.splitn(3, '.').collect::<Vec<_>>()[..] else {
        return None;
    };
    let id = BASE64URL_NOPAD.decode(id.as_bytes()).ok()?.try_into().ok()?;
    Some((id, Millis(expires_at.parse().ok()?), UserId::parse(user).ok()?))
}

fn mac(key: &TokenKey, content: &str, cookie: &BrowserCookie) -> blake3::Hash {
    // Neither has a space, so no two pairs are alike.
    key.browser_mac("one-time code", &format!("{content} {cookie}"))
}

impl UsedCodes {
    /// Whether this is the first use.
    fn take(&self, id: [u8; 16], expires_at: Millis, now: Millis) -> bool {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() >= USED_MAX {
            used.retain(|_, expires_at| now < *expires_at);
        }
        // With that many sign-ins in a minute further ones have to wait: none may be used twice.
        used.len() < USED_MAX && used.insert(id, expires_at).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Rng;

    struct FixedRng(u8);

    impl Rng for FixedRng {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0);
        }
    }

    fn cookie(seed: u8) -> BrowserCookie {
        BrowserCookie::new(&FixedRng(seed), Millis(0), "/")
    }

    #[test]
    fn a_code_belongs_to_its_browser_and_server() {
        let (key, user) = (TokenKey::new(&[7; 32]).unwrap(), UserId::parse("a.b-c").unwrap());
        let code = seal(&key, [3; 16], Millis(60), &user, &cookie(1));
        assert_eq!(open(&key, &code, &cookie(1)), Some(([3; 16], Millis(60), user)));
        assert_eq!(open(&key, &code, &cookie(2)), None, "another browser");
        let other = TokenKey::new(&[8; 32]).unwrap();
        assert_eq!(open(&other, &code, &cookie(1)), None, "another server");
        let raised = BASE64URL_NOPAD.encode(b"AwMDAwMDAwMDAwMDAwMDAw.60.root");
        let forged = format!("{raised}.{}", code.split_once('.').unwrap().1);
        for bad in ["", ".", "a.b", &forged, &code[1..], &code[..code.len() - 1]] {
            assert_eq!(open(&key, bad, &cookie(1)), None, "{bad}");
        }
    }

    #[test]
    fn a_code_is_used_once_and_then_forgotten_when_it_is_old() {
        let used = UsedCodes::default();
        assert!(used.take([1; 16], Millis(100), Millis(0)));
        assert!(!used.take([1; 16], Millis(100), Millis(99)));
        for n in 1..USED_MAX as u128 {
            assert!(used.take(n.to_be_bytes(), Millis(100), Millis(0)));
        }
        assert!(!used.take([2; 16], Millis(100), Millis(99)), "full");
        assert!(used.take([2; 16], Millis(200), Millis(100)), "the others are too old");
    }
}
