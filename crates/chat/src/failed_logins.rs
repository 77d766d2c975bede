//! Reports failed sign-ins to the operator, in the log and in a counter. The client gets less detail, and no
//! password is ever logged.

use std::collections::BTreeMap;
use std::net::IpAddr;

use metrics::counter;

use crate::audit::{self, Act};
use crate::chat::Chat;
use crate::external_token::TokenRefusal;
use crate::ids::UserId;

#[derive(Clone, Copy, Debug)]
pub(crate) enum AttemptKind {
    SignIn,
    PasswordChange,
    PasswordReset,
    /// With a token of the identity provider.
    Token,
    /// Through the browser, with the identity provider.
    Oidc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureReason {
    UnknownUser,
    WrongPassword,
    WrongCode,
    TooManyTries,
    Token(TokenRefusal),
}

impl AttemptKind {
    fn label(self) -> &'static str {
        match self {
            Self::SignIn => "sign_in",
            Self::PasswordChange => "password_change",
            Self::PasswordReset => "password_reset",
            Self::Token => "token",
            Self::Oidc => "oidc",
        }
    }
}

impl FailureReason {
    fn label(self) -> &'static str {
        match self {
            Self::UnknownUser => "unknown_user",
            Self::WrongPassword => "wrong_password",
            Self::WrongCode => "wrong_code",
            Self::TooManyTries => "too_many_tries",
            Self::Token(refusal) => refusal.label(),
        }
    }
}

/// Counts and logs a failure. Attempts beyond the rate limit are all counted, but logged at a limited rate
/// per address.
pub(crate) fn report(chat: &Chat, what: AttemptKind, from: IpAddr, user: &str, why: FailureReason) {
    let (what, reason) = (what.label(), why.label());
    counter!("nexo_sign_in_failures_total", "what" => what, "reason" => reason).increment(1);
    if why == FailureReason::TooManyTries
        && !chat.login_throttle.log_lines.take(from, chat.clock.ticks())
    {
        return;
    }
    // An invalid user id may be a password in the wrong field, so it is not logged.
    let user = UserId::parse(user).ok().map(|user| user.to_string());
    let user = user.as_deref().unwrap_or("(no user id)");
    tracing::warn!(target: "nexo::auth", address = %from, user, what, reason, "a sign-in failed");
    let act = Act {
        actor: "nobody".to_owned(),
        action: "sign_in_failed",
        target: format!("user:{user}"),
        address: Some(from),
        details: BTreeMap::from([
            ("what".to_owned(), what.to_owned()),
            ("reason".to_owned(), reason.to_owned()),
        ]),
    };
    // The store queues the write when called, so that whoever guesses need not wait for it.
    drop(audit::record(&*chat.store, chat.clock.now(), &act));
}
