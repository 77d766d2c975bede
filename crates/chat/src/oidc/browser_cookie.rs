//! What ties the steps of a sign-in to one browser.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;

use crate::clock::Rng;
use crate::ids::Millis;
use crate::token::TokenKey;

/// How long somebody may take at the provider.
pub const TTL_MS: u64 = 10 * 60 * 1000;

/// The value of the cookie. It needs no signature: `state` is one, so a cookie that was changed has no `state`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BrowserCookie {
    /// Random, the time it expires, and the page to return to.
    text: String,
    return_to: String,
}

impl BrowserCookie {
    pub(super) fn new(rng: &dyn Rng, now: Millis, return_to: &str) -> Self {
        let mut random = [0; 32];
        rng.fill(&mut random);
        let text = format!(
            "{}.{}.{}",
            BASE64URL_NOPAD.encode(&random),
            now.plus(TTL_MS).0,
            BASE64URL_NOPAD.encode(return_to.as_bytes())
        );
        Self { text, return_to: return_to.to_owned() }
    }

    /// Reads a cookie that is not too old. What is in it is only to be trusted together with its `state`.
    pub(super) fn parse(text: &str, now: Millis) -> Option<Self> {
        let [random, expires_at, return_to] = text.split('.').collect::<Vec<_>>()[..] else {
            return None;
        };
        let expires_at = Millis(expires_at.parse().ok()?);
        let is_valid = now < expires_at && random.len() == BASE64URL_NOPAD.encode_len(32);
        let return_to = BASE64URL_NOPAD.decode(return_to.as_bytes()).ok()?;
        let return_to = String::from_utf8(return_to).ok()?;
        (is_valid && super::is_own_path(&return_to))
            .then(|| Self { text: text.to_owned(), return_to })
    }

    pub(super) fn return_to(&self) -> &str {
        &self.return_to
    }

    /// What the provider hands back beside its code.
    pub(super) fn state(&self, key: &TokenKey) -> String {
        BASE64URL_NOPAD.encode(key.browser_mac("state", &self.text).as_bytes())
    }

    /// Compares in constant time.
    pub(super) fn is_state(&self, key: &TokenKey, given: &str) -> bool {
        let given = BASE64URL_NOPAD.decode(given.as_bytes()).ok();
        let given = given.and_then(|given| <[u8; 32]>::try_from(given).ok());
        given.is_some_and(|given| key.browser_mac("state", &self.text) == blake3::Hash::from(given))
    }

    /// What the ID token has to repeat.
    pub(super) fn nonce(&self, key: &TokenKey) -> String {
        BASE64URL_NOPAD.encode(key.browser_mac("nonce", &self.text).as_bytes())
    }

    /// The secret of PKCE; the provider only hears its hash until the code is exchanged.
    pub(super) fn code_verifier(&self, key: &TokenKey) -> String {
        BASE64URL_NOPAD.encode(key.browser_mac("code verifier", &self.text).as_bytes())
    }
}

impl fmt::Display for BrowserCookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct FixedRng(u8);

    impl Rng for FixedRng {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0);
        }
    }

    const NOW: Millis = Millis(1_000_000);

    fn key() -> TokenKey {
        TokenKey::new(&[7; 32]).unwrap()
    }

    #[test]
    fn a_browser_brings_back_what_it_began_with() {
        let cookie = BrowserCookie::new(&FixedRng(1), NOW, "/rooms");
        let back = BrowserCookie::parse(&cookie.to_string(), NOW.plus(TTL_MS - 1)).unwrap();
        assert_eq!((&back, back.return_to()), (&cookie, "/rooms"));
        assert!(back.is_state(&key(), &cookie.state(&key())));
        assert_eq!(back.code_verifier(&key()).len(), 43, "the shortest that PKCE allows");
        let secrets = [cookie.state(&key()), cookie.nonce(&key()), cookie.code_verifier(&key())];
        let other = BrowserCookie::new(&FixedRng(2), NOW, "/rooms");
        for secret in &secrets {
            assert!(!other.is_state(&key(), secret), "another browser");
            assert_eq!(secrets.iter().filter(|it| *it == secret).count(), 1);
        }
        let elsewhere = TokenKey::new(&[8; 32]).unwrap();
        assert!(!cookie.is_state(&elsewhere, &secrets[0]), "another server");
    }

    #[test]
    fn a_cookie_that_is_old_or_changed_is_worth_nothing() {
        let cookie = BrowserCookie::new(&FixedRng(1), NOW, "/rooms");
        assert_eq!(BrowserCookie::parse(&cookie.to_string(), NOW.plus(TTL_MS)), None);
        let longer = cookie.to_string().replace(&NOW.plus(TTL_MS).0.to_string(), "99999999999");
        let longer = BrowserCookie::parse(&longer, NOW).unwrap();
        assert!(!longer.is_state(&key(), &cookie.state(&key())));
        let evil = BASE64URL_NOPAD.encode(b"//evil.example");
        for bad in ["", "..", "a.b", "a.9999999999999.Lw", "a.b.c.d", &format!("x.1.{evil}")] {
            assert_eq!(BrowserCookie::parse(bad, NOW), None, "{bad}");
        }
        assert!(!cookie.is_state(&key(), "") && !cookie.is_state(&key(), "AAAA"));
    }
}
