//! A second factor: after the password, sign-in asks for a code of the user's authenticator app, or for one of the
//! recovery codes. Sign-in by an identity provider or by a backend's key asks for none: who they are was checked there.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::audit::{self, Act};
use crate::chat::Chat;
use crate::failed_logins::{self, AttemptKind, FailureReason};
use crate::ids::UserId;
use crate::login_throttle;
use crate::model::{Caller, Totp, User};
use crate::reason::{Error, Reason};
use crate::totp;

/// What authenticator apps show above the user id.
const ISSUER: &str = "Nexo";

/// What the user gives to their app.
#[derive(Clone, PartialEq, Eq)]
pub struct TotpSetup {
    pub secret: String,
    /// As a QR code would show it.
    pub uri: String,
}

/// Makes a secret for the caller's app. It is asked for once [`confirm`] has shown that the app has it.
pub async fn begin(
    chat: &Chat,
    caller: &Caller,
    from: IpAddr,
    password: String,
) -> Result<TotpSetup, Error> {
    let user = check_password(chat, caller, from, password).await?;
    if is_on(&user) {
        return Err(Reason::Forbidden.into()); // remove it first
    }
    let secret = totp::generate_secret(&*chat.rng);
    let setup =
        TotpSetup { secret: totp::secret_text(&secret), uri: totp::uri(ISSUER, &user.id, &secret) };
    let set = chat.store.change_account(
        &user.id,
        Box::new(move |user| {
            if is_on(user) {
                return None;
            }
            let mut user = user.clone();
            user.details.totp = Some(Totp { secret: secret.clone(), ..Totp::default() });
            Some(user)
        }),
    );
    set.await?.ok_or(Reason::SessionInvalid)?;
    Ok(setup)
}

/// Turns the second factor on, if the code is right, and returns the recovery codes, this once.
pub async fn confirm(
    chat: &Chat,
    caller: &Caller,
    from: IpAddr,
    code: &str,
) -> Result<Vec<String>, Error> {
    let attempt = login_throttle::start_attempt(chat, &caller.user, from).await?;
    let codes = totp::generate_recovery_codes(&*chat.rng, &caller.user);
    let (hashes, code, now) = (codes.hashes, code.to_owned(), chat.clock.now());
    let is_right = change_totp(chat, &caller.user, move |totp, _| {
        if totp.confirmed {
            return None;
        }
        let last_step = totp::check(&totp.secret, &code, now, totp.last_step)?;
        let (secret, recovery) = (totp.secret.clone(), hashes.clone());
        Some(Totp { secret, confirmed: true, last_step, recovery })
    });
    if !is_right.await? {
        return Err(Reason::TotpWrong.into());
    }
    attempt.refund();
    audit::record_now(chat, &Act::by_user(&caller.user, "totp_on", Some(from))).await?;
    Ok(codes.plain)
}

/// Turns the second factor off: with the password and a code.
pub async fn remove(
    chat: &Chat,
    caller: &Caller,
    from: IpAddr,
    password: String,
    code: &str,
) -> Result<(), Error> {
    let user = check_password(chat, caller, from, password).await?;
    if is_on(&user) {
        use_code(chat, &user, Some(code)).await?;
    }
    let removed = chat.store.change_account(
        &user.id,
        Box::new(|user| {
            let mut user = user.clone();
            user.details.totp = None;
            Some(user)
        }),
    );
    removed.await?.ok_or(Reason::SessionInvalid)?;
    audit::record_now(chat, &Act::by_user(&caller.user, "totp_off", Some(from))).await
}

/// Whether sign-in asks for a code.
pub fn is_on(user: &User) -> bool {
    user.details.totp.as_ref().is_some_and(|totp| totp.confirmed)
}

/// Fails unless the user has no second factor, or this is a code of theirs, which is thereby used up.
pub(crate) async fn use_code(chat: &Chat, user: &User, code: Option<&str>) -> Result<(), Error> {
    if !is_on(user) {
        return Ok(());
    }
    let Some(code) = code.filter(|code| !code.is_empty()) else {
        return Err(Reason::TotpRequired.into());
    };
    let (code, now) = (code.to_owned(), chat.clock.now());
    let is_right = change_totp(chat, &user.id, move |totp, user| {
        let mut next = totp.clone();
        if let Some(step) = totp::check(&totp.secret, &code, now, totp.last_step) {
            next.last_step = step;
        } else {
            next.recovery.remove(totp::find_recovery_code(&user.id, &code, &totp.recovery)?);
        }
        Some(next)
    });
    if is_right.await? { Ok(()) } else { Err(Reason::TotpWrong.into()) }
}

/// Changes the second factor in one atomic operation, so that of two sign-ins with one code one succeeds. `decide`
/// returns `None` to refuse.
async fn change_totp(
    chat: &Chat,
    user: &UserId,
    decide: impl Fn(&Totp, &User) -> Option<Totp> + Send + Sync + 'static,
) -> Result<bool, Error> {
    let accepted: Arc<Mutex<bool>> = Arc::default();
    let decided = Arc::clone(&accepted);
    let changed = chat.store.change_account(
        user,
        Box::new(move |user| {
            let totp = user.details.totp.as_ref().and_then(|totp| decide(totp, user));
            *decided.lock().unwrap_or_else(PoisonError::into_inner) = totp.is_some();
            let mut user = user.clone();
            user.details.totp = Some(totp?);
            Some(user)
        }),
    );
    changed.await?.ok_or(Reason::SessionInvalid)?;
    Ok(*accepted.lock().unwrap_or_else(PoisonError::into_inner))
}

async fn check_password(
    chat: &Chat,
    caller: &Caller,
    from: IpAddr,
    password: String,
) -> Result<Arc<User>, Error> {
    let attempt = login_throttle::start_attempt(chat, &caller.user, from).await?;
    let user = chat.store.user(&caller.user).await?.ok_or(Reason::SessionInvalid)?;
    match chat.passwords.verify(password, Some(user.password_hash.clone())).await {
        Ok(true) => attempt.succeed(chat.clock.ticks()),
        Ok(false) => {
            let (what, why) = (AttemptKind::SignIn, FailureReason::WrongPassword);
            failed_logins::report(chat, what, from, caller.user.as_str(), why);
            return Err(Reason::LoginFailed.into());
        }
        Err(error) => {
            attempt.refund(); // the password was not verified
            return Err(error);
        }
    }
    Ok(user)
}
