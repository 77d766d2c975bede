//! One-time passwords by time (TOTP, RFC 6238) as authenticator apps compute them: SHA-1, six digits, 30 seconds.

use data_encoding::BASE32_NOPAD;
use hmac::{Hmac, Mac};
use sha1::Sha1;

use crate::clock::Rng;
use crate::form_encoding::percent_encode;
use crate::ids::{Millis, UserId};

/// As long as the hash, which RFC 4226 recommends.
const SECRET_BYTES: usize = 20;
const STEP_MS: u64 = 30_000;
const DIGITS: usize = 6;
/// Codes of the step before and after this one are accepted: clocks differ, and people type slowly.
const STEPS_AROUND: u64 = 1;

const RECOVERY_CODES: usize = 10;
/// Ten characters of base32.
const RECOVERY_CHARS: usize = 10;

/// Recovery codes in plain text, to show once, and what is stored of them. There is no `Debug`, so that they cannot
/// end up in a log.
pub struct RecoveryCodes {
    pub plain: Vec<String>,
    pub hashes: Vec<[u8; 32]>,
}

pub fn generate_secret(rng: &dyn Rng) -> Vec<u8> {
    let mut secret = vec![0; SECRET_BYTES];
    rng.fill(&mut secret);
    secret
}

/// The secret as people type it into an app.
pub fn secret_text(secret: &[u8]) -> String {
    BASE32_NOPAD.encode(secret)
}

/// The address that apps read from a QR code. `issuer` is what the app shows above the user id.
pub fn uri(issuer: &str, user: &UserId, secret: &[u8]) -> String {
    let (issuer, secret) = (percent_encode(issuer), secret_text(secret));
    format!(
        "otpauth://totp/{issuer}:{user}?secret={secret}&issuer={issuer}&algorithm=SHA1&digits=6&period=30"
    )
}

/// The step of a code that is right now, to store: a code of this step or an earlier one is not accepted again. `None`
/// for a wrong code, and for one of a step that is not after `last_step`.
pub fn check(secret: &[u8], code: &str, now: Millis, last_step: u64) -> Option<u64> {
    let typed: Vec<u8> = code.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if typed.len() != DIGITS || !typed.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let step = now.0 / STEP_MS;
    let mut found = None;
    // All are computed whichever is right, so that the time tells nothing.
    for step in step.saturating_sub(STEPS_AROUND)..=step.saturating_add(STEPS_AROUND) {
        let expected = format!("{:0DIGITS$}", code_at(secret, step, 10_u32.pow(6))?);
        let differs = expected.bytes().zip(&typed).fold(0, |differs, (a, b)| differs | (a ^ b));
        if differs == 0 && step > last_step && found.is_none() {
            found = Some(step);
        }
    }
    found
}

/// The code that an app shows at a time; `None` if the secret cannot be a key.
pub fn shown_at(secret: &[u8], now: Millis) -> Option<String> {
    Some(format!("{:0DIGITS$}", code_at(secret, now.0 / STEP_MS, 10_u32.pow(6))?))
}

/// HOTP (RFC 4226) of a step.
fn code_at(secret: &[u8], step: u64, modulus: u32) -> Option<u32> {
    let mut mac = Hmac::<Sha1>::new_from_slice(secret).ok()?;
    mac.update(&step.to_be_bytes());
    let hash = mac.finalize().into_bytes();
    let offset = usize::from(hash.last()? & 0xf);
    let word: [u8; 4] = hash.get(offset..offset + 4)?.try_into().ok()?;
    Some((u32::from_be_bytes(word) & 0x7fff_ffff) % modulus)
}

/// Codes of 50 bits for people who lost their app, each for one use.
pub fn generate_recovery_codes(rng: &dyn Rng, user: &UserId) -> RecoveryCodes {
    let plain: Vec<String> = (0..RECOVERY_CODES)
        .map(|_| {
            let mut bytes = [0; 7];
            rng.fill(&mut bytes);
            let text = BASE32_NOPAD.encode(&bytes);
            let (first, second) = text[..RECOVERY_CHARS].split_at(RECOVERY_CHARS / 2);
            format!("{first}-{second}")
        })
        .collect();
    let hashes = plain.iter().filter_map(|code| recovery_hash(user, code)).collect();
    RecoveryCodes { plain, hashes }
}

/// Where in the stored hashes a typed code is; `None` if it is none of them. Compares in constant time.
pub fn find_recovery_code(user: &UserId, typed: &str, hashes: &[[u8; 32]]) -> Option<usize> {
    let hash = blake3::Hash::from(recovery_hash(user, typed)?);
    hashes.iter().position(|known| blake3::Hash::from(*known) == hash)
}

/// The hash to store. Case, dashes and spaces do not matter, because people type the code. It is not slow, unlike
/// that of a password: whoever finds a code by its hash still needs the password.
fn recovery_hash(user: &UserId, typed: &str) -> Option<[u8; 32]> {
    let code: String = typed.chars().filter(|c| *c != '-' && !c.is_whitespace()).collect();
    let is_base32 = |byte: u8| matches!(byte.to_ascii_uppercase(), b'A'..=b'Z' | b'2'..=b'7');
    if code.len() != RECOVERY_CHARS || !code.bytes().all(is_base32) {
        return None;
    }
    let mut hasher = blake3::Hasher::new_derive_key("nexo recovery code v1");
    hasher.update(user.as_str().as_bytes());
    hasher.update(&[0]); // cannot occur in a user id, so no two pairs hash alike
    hasher.update(code.to_ascii_uppercase().as_bytes());
    Some(hasher.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"12345678901234567890";

    struct CountingRng(std::sync::atomic::AtomicU8);

    impl Rng for CountingRng {
        fn fill(&self, bytes: &mut [u8]) {
            for byte in bytes {
                *byte = self.0.fetch_add(37, std::sync::atomic::Ordering::Relaxed);
            }
        }
    }

    fn rng() -> CountingRng {
        CountingRng(5.into())
    }

    /// Appendix B of RFC 6238, whose codes have eight digits.
    #[test]
    fn the_codes_are_those_of_the_rfc() {
        for (seconds, expect) in [
            (59, 94_287_082),
            (1_111_111_109, 7_081_804),
            (1_111_111_111, 14_050_471),
            (1_234_567_890, 89_005_924),
            (2_000_000_000, 69_279_037),
            (20_000_000_000_u64, 65_353_130),
        ] {
            assert_eq!(code_at(SECRET, seconds / 30, 100_000_000), Some(expect), "{seconds}");
            let six = format!("{:06}", expect % 1_000_000);
            assert_eq!(check(SECRET, &six, Millis(seconds * 1000), 0), Some(seconds / 30));
        }
    }

    /// Appendix D of RFC 4226.
    #[test]
    fn the_first_codes_are_those_of_hotp() {
        let expect = [755_224, 287_082, 359_152, 969_429, 338_314, 254_676, 287_922, 162_583];
        for (step, expect) in expect.into_iter().enumerate() {
            assert_eq!(code_at(SECRET, step as u64, 1_000_000), Some(expect));
        }
    }

    #[test]
    fn a_code_is_good_for_its_step_and_those_beside_it_and_once() {
        let code = format!("{:06}", code_at(SECRET, 1000, 1_000_000).unwrap());
        let at = |step: u64| Millis(step * STEP_MS + 7);
        for (step, expect) in
            [(998, None), (999, Some(1000)), (1000, Some(1000)), (1001, Some(1000)), (1002, None)]
        {
            assert_eq!(check(SECRET, &code, at(step), 0), expect, "{step}");
        }
        assert_eq!(check(SECRET, &code, at(1000), 999), Some(1000));
        for last in [1000, 1001, u64::MAX] {
            assert_eq!(check(SECRET, &code, at(1000), last), None, "used up by {last}");
        }
        let spaced = format!(" {} {} ", &code[..3], &code[3..]);
        assert_eq!(check(SECRET, &spaced, at(1000), 0), Some(1000));
        for bad in ["", "12345", "1234567", "-12345", "１２３４５６", "abcdef", "000000"] {
            assert_eq!(check(SECRET, bad, at(1000), 0), None, "{bad}");
        }
        assert_eq!(check(SECRET, &code, Millis(u64::MAX), 0), None, "no overflow");
    }

    #[test]
    fn an_app_reads_the_secret() {
        let user = UserId::parse("alice").unwrap();
        let secret = generate_secret(&rng());
        assert_eq!(secret.len(), 20);
        let uri = uri("My Chat", &user, SECRET);
        assert_eq!(
            uri,
            "otpauth://totp/My%20Chat:alice?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ\
             &issuer=My%20Chat&algorithm=SHA1&digits=6&period=30"
        );
    }

    #[test]
    fn recovery_codes_are_known_however_they_are_typed_and_by_their_user_alone() {
        let (alice, bob) = (UserId::parse("alice").unwrap(), UserId::parse("bob").unwrap());
        let codes = generate_recovery_codes(&rng(), &alice);
        assert_eq!((codes.plain.len(), codes.hashes.len()), (10, 10));
        for (place, code) in codes.plain.iter().enumerate() {
            assert_eq!(code.len(), 11, "{code}");
            let typed =
                [code.clone(), code.to_lowercase(), format!(" {} ", code.replace('-', " "))];
            for typed in typed {
                let found = find_recovery_code(&alice, &typed, &codes.hashes);
                assert_eq!(found, Some(place), "{typed}");
                assert_eq!(find_recovery_code(&bob, &typed, &codes.hashes), None);
            }
        }
        for bad in ["", "AAAAA-AAAAA", "AAAAA", "00000-00000", "é"] {
            assert_eq!(find_recovery_code(&alice, bad, &codes.hashes), None, "{bad}");
        }
    }
}
