//! Who is asking: accounts, sign-ins, tokens.

use std::net::IpAddr;
use std::sync::Arc;

use data_encoding::BASE64URL_NOPAD;

use crate::chat::Chat;
use crate::command::{Event, Logins};
use crate::devices;
use crate::failed::{self, What, Why};
use crate::ids::{LoginId, Platform, UserId};
use crate::model::{Caller, Login, Profile, User};
use crate::people;
use crate::policy::account;
use crate::reason::{Error, Reason};
use crate::rules::Registration;
use crate::store::{Rotated, SignedIn};
use crate::token::Claims;

/// A new account as asked for.
#[derive(Clone, Debug)]
pub struct Register {
    /// The wanted id; made by the server if absent.
    pub user_id: Option<String>,
    /// How they want to be seen.
    pub profile: Profile,
    /// Their password.
    pub password: String,
}

/// A fresh pair of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// The access token.
    pub access: String,
    /// The refresh token, shown once.
    pub refresh: String,
    /// Milliseconds until the access token dies.
    pub expires_in_ms: u64,
}

/// Creates an account.
pub async fn register(chat: &Chat, from: IpAddr, wanted: Register) -> Result<User, Error> {
    if chat.rules.registration() == Registration::Closed {
        return Err(Reason::RegistrationClosed.into());
    }
    account::good_password(&wanted.password)?;
    account::good_profile(&wanted.profile)?;
    let nickname = account::good_nickname(&wanted.profile.nickname)?;
    let given = wanted.user_id.as_deref().map(UserId::parse).transpose()?;
    if let Some(id) = &given {
        account::free_to_register(id)?;
    }
    let now = chat.clock.now();
    if !chat.logins.registrations.take(from, chat.clock.ticks()) {
        return Err(Reason::TooManyRequests.into());
    }
    // Before the password is hashed, which takes its time. The store has the last word.
    if let Some(id) = &given
        && chat.store.holder(&id.folded()).await?.is_some()
    {
        return Err(Reason::UserExists.into());
    }
    let user = User {
        id: given.unwrap_or_else(|| make_user_id(chat)),
        profile: Profile { nickname, ..wanted.profile },
        created_at: now,
        updated_at: now,
        password_hash: chat.passwords.hash(wanted.password).await?,
        session_version: 1,
    };
    if !chat.store.create_user(user.clone()).await? {
        return Err(Reason::UserExists.into());
    }
    Ok(user)
}

fn make_user_id(chat: &Chat) -> UserId {
    let mut bytes = [0; 10];
    chat.dice.fill(&mut bytes);
    let id = data_encoding::BASE32_NOPAD.encode(&bytes).to_lowercase();
    UserId::parse(&id).expect("base32 is within the alphabet of user ids")
}

/// Signs in on a device. An unknown user and a wrong password look and take the same.
pub async fn login(
    chat: &Chat,
    from: IpAddr,
    user_id: &str,
    password: String,
    platform: Platform,
) -> Result<(Tokens, Arc<User>), Error> {
    let now = chat.clock.now();
    let failed = |why, reason: Reason| {
        failed::tell(chat, What::SignIn, from, user_id, why);
        Error::from(reason)
    };
    let id = UserId::parse(user_id);
    let id = id.map_err(|_| failed(Why::UnknownUser, Reason::LoginFailed))?;
    let this_try = chat.logins.begin(&id, from, chat.clock.ticks());
    let this_try = this_try.map_err(|reason| failed(Why::TooManyTries, reason))?;
    let user = people::account(&*chat.store, &id).await?;
    let hash = user.as_ref().map(|user| user.password_hash.clone());
    // Very long passwords are never right and not worth hashing.
    let looked = match password.len() {
        ..=512 => chat.passwords.verify(password, hash).await,
        _ => Ok(false),
    };
    let right = match looked {
        Ok(right) => right,
        Err(error) => {
            this_try.did_not_count(); // nobody looked at the password
            return Err(error);
        }
    };
    let user = user.ok_or_else(|| failed(Why::UnknownUser, Reason::LoginFailed))?;
    if !right {
        return Err(failed(Why::WrongPassword, Reason::LoginFailed));
    }
    this_try.did_not_count();
    let (login, refresh) = new_login(chat, &user, platform);
    // A password that was changed since it was looked at signs nobody in.
    let kept = chat.store.create_login(login, user.session_version, now).await?;
    let kept = kept.ok_or_else(|| failed(Why::WrongPassword, Reason::LoginFailed));
    let SignedIn { login, ended } = kept?;
    if !ended.is_empty() {
        end(chat, &user.id, Logins::These(ended), Reason::SessionInvalid);
    }
    devices::close_excluded(chat, &login).await?;
    let tokens = tokens(chat, &user, &login, refresh)?;
    Ok((tokens, user))
}

fn new_login(chat: &Chat, user: &User, platform: Platform) -> (Login, String) {
    let mut id = [0; 16];
    chat.dice.fill(&mut id);
    let now = chat.clock.now();
    let (refresh, refresh_hash) = new_refresh(chat);
    let login = Login {
        id: LoginId(id),
        user: user.id.clone(),
        platform,
        created_at: now,
        expires_at: now.plus(chat.rules.refresh_ttl_ms),
        refresh_hash,
        generation: 0,
        rotated_at: now,
        ended: false,
    };
    (login, refresh)
}

fn new_refresh(chat: &Chat) -> (String, [u8; 32]) {
    let mut secret = [0; 32];
    chat.dice.fill(&mut secret);
    let token = BASE64URL_NOPAD.encode(&secret);
    let hash = hash_of(&token);
    (token, hash)
}

fn hash_of(refresh: &str) -> [u8; 32] {
    blake3::hash(refresh.as_bytes()).into()
}

fn tokens(chat: &Chat, user: &User, login: &Login, refresh: String) -> Result<Tokens, Error> {
    let now = chat.clock.now();
    let claims = Claims {
        user: user.id.clone(),
        login: login.id,
        platform: login.platform,
        session_version: user.session_version,
        expires_at: now.plus(chat.rules.access_ttl_ms),
    };
    let access = chat.key.sign(&claims, now)?;
    Ok(Tokens { access, refresh, expires_in_ms: chat.rules.access_ttl_ms })
}

/// Gives a new pair of tokens for a refresh token: once, and again for a moment.
pub async fn refresh(chat: &Chat, refresh: &str) -> Result<(Tokens, Arc<User>), Error> {
    let now = chat.clock.now();
    let next = chat.key.next_refresh(refresh);
    let expires_at = now.plus(chat.rules.refresh_ttl_ms);
    let grace_ms = chat.rules.refresh_grace_ms;
    match chat.store.rotate(hash_of(refresh), hash_of(&next), expires_at, now, grace_ms).await? {
        Rotated::Done(login) | Rotated::Again(login) => {
            let user = chat.store.user(&login.user).await?.ok_or(Reason::InvalidRefreshToken)?;
            Ok((tokens(chat, &user, &login, next)?, user))
        }
        Rotated::Unknown => Err(Reason::InvalidRefreshToken.into()),
        Rotated::Reused(login) => {
            tracing::warn!(user = %login.user, "a used refresh token came again: sign-in ended");
            end(chat, &login.user, Logins::These(vec![login.id]), Reason::SessionInvalid);
            Err(Reason::InvalidRefreshToken.into())
        }
    }
}

/// Who an access token stands for, if it and its sign-in are alive.
pub async fn authenticate(chat: &Chat, token: &str) -> Result<Caller, Error> {
    let claims = chat.key.check(token, chat.clock.now())?;
    let login = live_login(chat, claims.login).await?;
    let user = chat.store.user(&claims.user).await?.ok_or(Reason::SessionInvalid)?;
    if login.user != user.id || user.session_version != claims.session_version {
        return Err(Reason::SessionInvalid.into());
    }
    Ok(Caller {
        user: claims.user,
        login: claims.login,
        platform: claims.platform,
        signed_in_at: login.created_at,
        expires_at: claims.expires_at,
        connection: None,
    })
}

/// Lets an open socket carry on with a newer token of the same user.
pub async fn reauthenticate(chat: &Chat, caller: &Caller, token: &str) -> Result<Caller, Error> {
    let renewed = authenticate(chat, token).await?;
    if renewed.user != caller.user {
        return Err(Reason::ReauthUidMismatch.into());
    }
    if renewed.login != caller.login {
        // The socket is known by its sign-in; another one needs a socket of its own.
        return Err(Reason::SessionInvalid.into());
    }
    Ok(Caller { connection: caller.connection, ..renewed })
}

/// Whether a frame that says who sent it says what is so: it was sent by whoever connected, and a
/// token in it is theirs.
pub fn claims_fit(
    chat: &Chat,
    caller: &Caller,
    user: Option<&str>,
    token: Option<&str>,
) -> Result<(), Reason> {
    let owner = token.map(|token| chat.key.check(token, chat.clock.now())).transpose()?;
    let is_other = owner.is_some_and(|claims| claims.user != caller.user)
        || user.is_some_and(|user| !user.eq_ignore_ascii_case(caller.user.as_str()));
    if is_other { Err(Reason::ReauthUidMismatch) } else { Ok(()) }
}

/// Whether a sign-in has not ended.
pub async fn still_signed_in(chat: &Chat, login: LoginId) -> Result<(), Error> {
    live_login(chat, login).await.map(drop)
}

pub(crate) async fn live_login(chat: &Chat, id: LoginId) -> Result<Login, Error> {
    let login = chat.store.login(id).await?.ok_or(Reason::SessionInvalid)?;
    if login.ended { Err(Reason::SessionInvalid.into()) } else { Ok(login) }
}

/// Ends the caller's sign-in; its sockets close at once.
pub async fn logout(chat: &Chat, caller: &Caller) -> Result<(), Error> {
    let mine = caller.login;
    chat.store.end_logins(&caller.user, Box::new(move |login| login.id == mine)).await?;
    end(chat, &caller.user, Logins::These(vec![mine]), Reason::SessionInvalid);
    Ok(())
}

/// Replaces the password; every sign-in of the user ends at once, this one too.
pub async fn change_password(
    chat: &Chat,
    caller: &Caller,
    from: IpAddr,
    old: String,
    new: String,
) -> Result<(), Error> {
    account::good_password(&new)?;
    let (at, account) = (chat.clock.ticks(), caller.user.folded());
    let failed = |why, reason: Reason| {
        failed::tell(chat, What::PasswordChange, from, caller.user.as_str(), why);
        Error::from(reason)
    };
    if !chat.logins.account.take(account.clone(), at) {
        return Err(failed(Why::TooManyTries, Reason::TooManyRequests));
    }
    let user = chat.store.user(&caller.user).await?.ok_or(Reason::SessionInvalid)?;
    if !chat.passwords.verify(old, Some(user.password_hash.clone())).await? {
        return Err(failed(Why::WrongPassword, Reason::LoginFailed));
    }
    chat.logins.account.give_back(account, at);
    let hash = chat.passwords.hash(new).await?;
    let version = user.session_version;
    let changed = chat.store.change_password(&caller.user, version, hash).await?;
    changed.ok_or(Reason::SessionInvalid)?;
    end(chat, &caller.user, Logins::All, Reason::SessionInvalid);
    Ok(())
}

pub(crate) fn end(chat: &Chat, user: &UserId, logins: Logins, reason: Reason) {
    chat.bus.publish(Event::Ended { user: user.clone(), logins, reason });
}
