//! Signing in with a token of the app's own identity provider. Accounts made this way have no password.

use std::net::IpAddr;
use std::sync::Arc;

use crate::audit::{self, Act};
use crate::auth::{self, SignInDevice, Tokens};
use crate::chat::Chat;
use crate::external_token::{ExternalIdentity, TokenRefusal, VerifyError};
use crate::failed_logins::{self, AttemptKind, FailureReason};
use crate::login_throttle::{self, AddressAttempt};
use crate::model::{AccountDetails, Profile, User};
use crate::reason::{DetailedReason, Error, Reason};

/// Signs in on a device with a token of the provider. Every refusal gives the same reason; the log says why.
pub async fn login_with_token(
    chat: &Chat,
    token: &str,
    device: &SignInDevice,
) -> Result<(Tokens, Arc<User>), Error> {
    let verifier = chat.token_verifier.as_ref().ok_or_else(no_provider)?;
    let from = device.address;
    let attempt = start_attempt(chat, AttemptKind::Token, from).await?;
    let identity = match verifier.verify(token, None, chat.clock.now()).await {
        Ok(identity) => identity,
        Err(VerifyError::Refused(why)) => {
            return Err(refuse(chat, AttemptKind::Token, from, "", why));
        }
        Err(VerifyError::Failed(error)) => {
            attempt.refund(); // the token was not verified
            return Err(error);
        }
    };
    let user = find_or_create(chat, &identity, verifier.create).await?;
    let user =
        user.map_err(|why| refuse(chat, AttemptKind::Token, from, identity.user.as_str(), why))?;
    attempt.refund();
    open(chat, user, device).await
}

/// The refusal of a server without an identity provider.
pub(crate) fn no_provider() -> Error {
    DetailedReason::new(Reason::Forbidden, "this server has no identity provider").into()
}

/// Counts an attempt against its address and waits as long as it has to.
pub(crate) async fn start_attempt(
    chat: &Chat,
    what: AttemptKind,
    from: IpAddr,
) -> Result<AddressAttempt<'_>, Reason> {
    let attempt = login_throttle::start_address_attempt(chat, from).await;
    attempt.inspect_err(|_| {
        failed_logins::report(chat, what, from, "", FailureReason::TooManyTries);
    })
}

/// Opens a login for somebody the provider vouched for.
pub(crate) async fn open(
    chat: &Chat,
    user: Arc<User>,
    device: &SignInDevice,
) -> Result<(Tokens, Arc<User>), Error> {
    // All sign-ins of the user ended in the last milliseconds: signing in again is right, but as a new request.
    let tokens = auth::open_login(chat, &user, device).await?.ok_or(Reason::ServerBusy)?;
    let act =
        Act::by_user(&user.id, "sign_in", Some(device.address)).with("by", "identity provider");
    audit::record_now(chat, &act).await?;
    Ok((tokens, user))
}

/// The account of exactly this id, made if there is none and `create` allows it. Unlike what people type, the case
/// counts: a provider may have both `Bob` and `bob`, and neither may sign in as the other.
pub(crate) async fn find_or_create(
    chat: &Chat,
    identity: &ExternalIdentity,
    create: bool,
) -> Result<Result<Arc<User>, TokenRefusal>, Error> {
    if let Some(user) = chat.store.user(&identity.user).await? {
        let is_deleted = user.details.status.is_deleted();
        return Ok(if is_deleted { Err(TokenRefusal::NoAccount) } else { Ok(user) });
    }
    if !create {
        return Ok(Err(TokenRefusal::NoAccount));
    }
    let now = chat.clock.now();
    let nickname = identity.nickname.clone().unwrap_or_else(|| identity.user.to_string());
    let user = User {
        id: identity.user.clone(),
        profile: Profile { nickname, ..Profile::default() },
        created_at: now,
        updated_at: now,
        password_hash: String::new(), // which no password fits
        session_version: 1,
        details: AccountDetails::default(),
    };
    if chat.store.create_user(user.clone()).await? {
        return Ok(Ok(Arc::new(user)));
    }
    // The same person on two devices at once, or the id looks like that of somebody else.
    let user = chat.store.user(&identity.user).await?;
    Ok(user.ok_or(TokenRefusal::LooksLikeAnother))
}

/// Reports why to the operator. The client learns nothing of it.
pub(crate) fn refuse(
    chat: &Chat,
    what: AttemptKind,
    from: IpAddr,
    user: &str,
    why: TokenRefusal,
) -> Error {
    failed_logins::report(chat, what, from, user, FailureReason::Token(why));
    Reason::TokenRefused.into()
}
