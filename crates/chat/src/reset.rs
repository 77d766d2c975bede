//! One-time codes for people who cannot sign in: they forgot their password, or came from a system
//! whose passwords cannot be kept. The operator hands a code out; it sets a new password, once.

use std::net::IpAddr;
use std::sync::Arc;

use data_encoding::BASE32_NOPAD;

use crate::auth::end;
use crate::chat::Chat;
use crate::clock::Dice;
use crate::command::Logins;
use crate::failed::{self, What, Why};
use crate::ids::{Millis, UserId};
use crate::model::ResetCode;
use crate::people;
use crate::policy::account;
use crate::reason::{Error, Reason};
use crate::store::Store;

/// How long a code can be used.
pub const TTL_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// Characters between two dashes.
const GROUP: usize = 4;

/// A code that was handed out. Only its hash is kept, and nothing shows it by mistake.
#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    /// Whose password it sets.
    pub user: UserId,
    /// The code itself, for them alone.
    pub code: String,
    /// Until when.
    pub expires_at: Millis,
}

/// Draws a code for somebody: 80 bits, in groups that can be read out.
pub fn draw(dice: &dyn Dice, user: &UserId, now: Millis) -> (Issued, ResetCode) {
    let mut bytes = [0; 10];
    dice.fill(&mut bytes);
    let plain = BASE32_NOPAD.encode(&bytes);
    let groups: Vec<&str> =
        (0..plain.len()).step_by(GROUP).map(|at| &plain[at..at + GROUP]).collect();
    let (code, expires_at) = (groups.join("-"), now.plus(TTL_MS));
    let kept = ResetCode { hash: hash_of(user, &code), expires_at };
    (Issued { user: user.clone(), code, expires_at }, kept)
}

/// Makes a code for the account that a name means. It replaces the one before.
pub async fn issue(
    store: &dyn Store,
    dice: &dyn Dice,
    now: Millis,
    named: &UserId,
) -> Result<Issued, Error> {
    let user: Arc<_> = people::account(store, named).await?.ok_or(Reason::UserNotFound)?;
    let (issued, kept) = draw(dice, &user.id, now);
    if !store.put_reset_code(&user.id, kept).await? {
        return Err(Reason::UserNotFound.into());
    }
    Ok(issued)
}

/// What is kept of a code. Case, dashes and spaces do not matter: people type it.
fn hash_of(user: &UserId, code: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("nexo reset code v1");
    hasher.update(user.as_str().as_bytes());
    hasher.update(&[0]); // cannot occur in a user id, so no two pairs run together
    for sign in code.chars().filter(|sign| *sign != '-' && !sign.is_whitespace()) {
        hasher.update(sign.to_ascii_uppercase().encode_utf8(&mut [0; 4]).as_bytes());
    }
    hasher.finalize().into()
}

/// Sets a new password by a code; every sign-in of the user ends at once. An unknown user and a wrong
/// code look the same.
pub async fn reset_password(
    chat: &Chat,
    from: IpAddr,
    user_id: &str,
    code: &str,
    new: String,
) -> Result<(), Error> {
    account::good_password(&new)?;
    let failed = |why, reason: Reason| {
        failed::tell(chat, What::PasswordReset, from, user_id, why);
        Error::from(reason)
    };
    let id = UserId::parse(user_id);
    let id = id.map_err(|_| failed(Why::UnknownUser, Reason::ResetFailed))?;
    let this_try = chat.logins.begin(&id, from, chat.clock.ticks());
    let this_try = this_try.map_err(|reason| failed(Why::TooManyTries, reason))?;
    let user = people::account(&*chat.store, &id).await?;
    let user = user.ok_or_else(|| failed(Why::UnknownUser, Reason::ResetFailed))?;
    let (shown, now) = (hash_of(&user.id, code), chat.clock.now());
    // Before the password is hashed, which is only worth it for a code that may be right.
    let kept = chat.store.reset_code(&user.id).await?;
    if !kept.is_some_and(|kept| kept.is(shown, now)) {
        return Err(failed(Why::WrongCode, Reason::ResetFailed));
    }
    this_try.did_not_count();
    let hash = chat.passwords.hash(new).await?;
    let done = chat.store.reset_password(&user.id, shown, now, hash).await?;
    done.ok_or_else(|| failed(Why::WrongCode, Reason::ResetFailed))?;
    end(chat, &user.id, Logins::All, Reason::SessionInvalid);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sevens;

    impl Dice for Sevens {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(7);
        }
    }

    #[test]
    fn a_code_is_known_however_it_is_typed_and_by_its_user_alone() {
        let (alice, bob) = (UserId::parse("alice").unwrap(), UserId::parse("bob").unwrap());
        let (issued, kept) = draw(&Sevens, &alice, Millis(1000));
        assert_eq!(issued.code, "A4DQ-OBYH-A4DQ-OBYH");
        for typed in [&*issued.code, "a4dqobyha4dqobyh", " a4dq obyh a4dq-obyh "] {
            assert!(kept.is(hash_of(&alice, typed), Millis(1000)), "{typed}");
        }
        assert!(!kept.is(hash_of(&bob, &issued.code), Millis(1000)));
        assert!(!kept.is(hash_of(&alice, "A4DQ-OBYH-A4DQ-OBYG"), Millis(1000)));
        assert!(kept.is(hash_of(&alice, &issued.code), Millis(999).plus(TTL_MS)));
        assert!(
            !kept.is(hash_of(&alice, &issued.code), Millis(1000).plus(TTL_MS)),
            "it is too old"
        );
    }
}
