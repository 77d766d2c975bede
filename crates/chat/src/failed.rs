//! Somebody could not get in: told to the operator, in the log and in a counter. Whoever tried learns
//! less, and no password is ever written.

use std::net::IpAddr;

use metrics::counter;

use crate::chat::Chat;
use crate::ids::UserId;

/// What was tried.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    SignIn,
    PasswordChange,
    PasswordReset,
}

/// Why it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    UnknownUser,
    WrongPassword,
    WrongCode,
    TooManyTries,
}

impl What {
    fn word(self) -> &'static str {
        match self {
            Self::SignIn => "sign_in",
            Self::PasswordChange => "password_change",
            Self::PasswordReset => "password_reset",
        }
    }
}

impl Why {
    fn word(self) -> &'static str {
        match self {
            Self::UnknownUser => "unknown_user",
            Self::WrongPassword => "wrong_password",
            Self::WrongCode => "wrong_code",
            Self::TooManyTries => "too_many_tries",
        }
    }
}

/// Tells of it. Tries beyond the limits are all counted, but an address fills no log with them.
pub(crate) fn tell(chat: &Chat, what: What, from: IpAddr, user: &str, why: Why) {
    let (what, reason) = (what.word(), why.word());
    counter!("nexo_sign_in_failures_total", "what" => what, "reason" => reason).increment(1);
    if why == Why::TooManyTries && !chat.logins.told.take(from, chat.clock.ticks()) {
        return;
    }
    // What cannot be a user id may be a password in the wrong field.
    let user = UserId::parse(user).ok().map(|user| user.to_string());
    let user = user.as_deref().unwrap_or("(no user id)");
    tracing::warn!(target: "nexo::auth", address = %from, user, what, reason, "a sign-in failed");
}
