//! One-time codes for users who cannot sign in: they forgot their password, or were imported from a system
//! whose password hashes are unusable. The operator hands out a code, which sets a new password once.

use std::net::IpAddr;
use std::sync::Arc;

use data_encoding::BASE32_NOPAD;

use crate::audit::{self, Act};
use crate::auth::publish_logins_ended;
use crate::chat::Chat;
use crate::clock::Rng;
use crate::event::Logins;
use crate::failed_logins::{self, AttemptKind, FailureReason};
use crate::ids::{Millis, UserId};
use crate::model::ResetCode;
use crate::policy::password;
use crate::reason::{DetailedReason, Error, Reason};
use crate::store::Store;
use crate::{login_throttle, user_lookup};

pub const TTL_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// Characters between two dashes.
const GROUP_CHARS: usize = 4;

/// A generated code in plain text. Only its hash is stored; there is no `Debug`, so that it cannot end up in
/// a log.
#[derive(Clone, PartialEq, Eq)]
pub struct IssuedCode {
    pub user: UserId,
    pub code: String,
    pub expires_at: Millis,
}

/// Generates a code of 80 bits, in groups that can be read out.
pub fn generate(rng: &dyn Rng, user: &UserId, now: Millis) -> (IssuedCode, ResetCode) {
    let mut bytes = [0; 10];
    rng.fill(&mut bytes);
    let plain = BASE32_NOPAD.encode(&bytes);
    let groups: Vec<&str> =
        (0..plain.len()).step_by(GROUP_CHARS).map(|at| &plain[at..at + GROUP_CHARS]).collect();
    let (code, expires_at) = (groups.join("-"), now.plus(TTL_MS));
    let stored = ResetCode { hash: hash_of(user, &code), expires_at };
    (IssuedCode { user: user.clone(), code, expires_at }, stored)
}

/// Generates and stores a code for the account of a typed id. It replaces an earlier code.
pub async fn issue(
    store: &dyn Store,
    rng: &dyn Rng,
    now: Millis,
    typed: &UserId,
) -> Result<IssuedCode, Error> {
    let user: Arc<_> =
        user_lookup::find_account(store, typed).await?.ok_or(Reason::UserNotFound)?;
    if user.details.status.is_deleted() {
        return Err(Reason::UserNotFound.into());
    }
    if user.details.is_bot {
        return Err(DetailedReason::new(Reason::BadPassword, "a bot has no password").into());
    }
    let (issued, stored) = generate(rng, &user.id, now);
    if !store.put_reset_code(&user.id, stored).await? {
        return Err(Reason::UserNotFound.into());
    }
    Ok(issued)
}

/// The hash to store. Case, dashes and spaces are ignored, because users type the code.
fn hash_of(user: &UserId, code: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("nexo reset code v1");
    hasher.update(user.as_str().as_bytes());
    hasher.update(&[0]); // cannot occur in a user id, so no two pairs hash alike
    for character in
        code.chars().filter(|character| *character != '-' && !character.is_whitespace())
    {
        hasher.update(character.to_ascii_uppercase().encode_utf8(&mut [0; 4]).as_bytes());
    }
    hasher.finalize().into()
}

/// Sets a new password by a code; every sign-in of the user ends at once. An unknown user and a wrong
/// code give the same error.
pub async fn reset_password(
    chat: &Chat,
    from: IpAddr,
    user_id: &str,
    code: &str,
    new: String,
) -> Result<(), Error> {
    password::check(&chat.rules.passwords, &new, Some(user_id))?;
    let failed = |why, reason: Reason| {
        failed_logins::report(chat, AttemptKind::PasswordReset, from, user_id, why);
        Error::from(reason)
    };
    let id = UserId::parse(user_id);
    let id = id.map_err(|_| failed(FailureReason::UnknownUser, Reason::ResetFailed))?;
    let attempt = login_throttle::start_attempt(chat, &id, from).await;
    let attempt = attempt.map_err(|reason| failed(FailureReason::TooManyTries, reason))?;
    let user = user_lookup::find_account(&*chat.store, &id).await?;
    let user = user.ok_or_else(|| failed(FailureReason::UnknownUser, Reason::ResetFailed))?;
    let (code_hash, now) = (hash_of(&user.id, code), chat.clock.now());
    // Checked before the expensive hashing; the store checks again in its transaction.
    let stored = chat.store.reset_code(&user.id).await?;
    if !stored.is_some_and(|stored| stored.matches(code_hash, now)) {
        return Err(failed(FailureReason::WrongCode, Reason::ResetFailed));
    }
    attempt.refund();
    let password_hash = chat.passwords.hash(new).await?;
    let changed = chat.store.reset_password(&user.id, code_hash, now, password_hash).await?;
    changed.ok_or_else(|| failed(FailureReason::WrongCode, Reason::ResetFailed))?;
    publish_logins_ended(chat, &user.id, Logins::All, Reason::SessionInvalid);
    audit::record_now(chat, &Act::by_user(&user.id, "password_reset", Some(from))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    struct FixedRng;

    impl Rng for FixedRng {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(7);
        }
    }

    #[test]
    fn a_code_is_known_however_it_is_typed_and_by_its_user_alone() {
        let (alice, bob) = (UserId::parse("alice").unwrap(), UserId::parse("bob").unwrap());
        let (issued, stored) = generate(&FixedRng, &alice, Millis(1000));
        assert_eq!(issued.code, "A4DQ-OBYH-A4DQ-OBYH");
        for typed in [&*issued.code, "a4dqobyha4dqobyh", " a4dq obyh a4dq-obyh "] {
            assert!(stored.matches(hash_of(&alice, typed), Millis(1000)), "{typed}");
        }
        assert!(!stored.matches(hash_of(&bob, &issued.code), Millis(1000)));
        assert!(!stored.matches(hash_of(&alice, "A4DQ-OBYH-A4DQ-OBYG"), Millis(1000)));
        assert!(stored.matches(hash_of(&alice, &issued.code), Millis(999).plus(TTL_MS)));
        assert!(
            !stored.matches(hash_of(&alice, &issued.code), Millis(1000).plus(TTL_MS)),
            "it is too old"
        );
    }
}
