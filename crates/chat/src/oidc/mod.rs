//! Signing in through the browser with an `OpenID` Connect provider: code flow with PKCE.
//!
//! 1. [`start`]: the browser gets a cookie and is sent to the provider.
//! 2. [`callback`]: it comes back with a code, which this server exchanges for an ID token. The browser then gets a
//!    one-time code of this server in the fragment of an address, which no server and no `Referer` sees.
//! 3. [`finish`]: the web client exchanges the one-time code for its tokens.
//!
//! No node remembers anything between these steps: `state`, `nonce` and the PKCE verifier are computed from the cookie
//! and the server's secret, so that each step may reach another node, and only the browser that began can go on.

mod browser_cookie;
mod one_time_code;

use std::net::IpAddr;
use std::sync::Arc;

use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest, Sha256};

use crate::Boxed;
use crate::auth::{SignInDevice, Tokens};
use crate::chat::Chat;
use crate::external_login::{self, find_or_create};
use crate::external_token::{KeySource, TokenRefusal, TokenVerifier, VerifyError};
use crate::failed_logins::AttemptKind;
use crate::form_encoding::form_encode;
use crate::model::User;
use crate::reason::{DetailedReason, Error};

use self::browser_cookie::BrowserCookie;
use self::one_time_code::UsedCodes;

pub use self::browser_cookie::TTL_MS as COOKIE_TTL_MS;

/// The path that a provider sends browsers back to.
pub const CALLBACK_PATH: &str = "/auth/oidc/callback";

/// A provider, and how to sign in with it.
pub struct OidcSignIn {
    /// What the web client writes on its button.
    pub name: String,
    pub client_id: String,
    /// Where the provider sends browsers back to: this server as people reach it, with [`CALLBACK_PATH`].
    pub redirect_url: String,
    pub scopes: Vec<String>,
    /// Checks ID tokens: the audience is `client_id`.
    pub verifier: TokenVerifier,
    pub provider: Arc<dyn OidcProvider>,
    used_codes: UsedCodes,
}

/// What is asked of a provider over HTTP.
pub trait OidcProvider: KeySource {
    /// The page of the provider where people sign in.
    fn authorization_endpoint(&self) -> Boxed<'_, Result<String, Error>>;

    /// Exchanges a code for an ID token; `None` if the provider refuses it.
    fn exchange<'a>(
        &'a self,
        code: &'a str,
        code_verifier: &'a str,
    ) -> Boxed<'a, Result<Option<String>, Error>>;
}

/// The answer to [`start`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The provider's page.
    pub location: String,
    /// The value of the cookie. It is no secret of the person yet, but of the browser.
    pub cookie: String,
}

/// What a browser comes back with.
#[derive(Clone, Debug, Default)]
pub struct CallbackRequest {
    pub cookie: Option<String>,
    pub state: Option<String>,
    /// `None` if the provider tells of an error instead.
    pub code: Option<String>,
}

/// The answer to [`callback`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalledBack {
    /// The page of this server that the person wanted.
    pub return_to: String,
    /// For [`finish`].
    pub code: String,
}

impl OidcSignIn {
    pub fn new(
        name: String,
        client_id: String,
        redirect_url: String,
        scopes: Vec<String>,
        verifier: TokenVerifier,
        provider: Arc<dyn OidcProvider>,
    ) -> Self {
        let used_codes = UsedCodes::default();
        Self { name, client_id, redirect_url, scopes, verifier, provider, used_codes }
    }

    /// Whether people reach this server over TLS, so that the cookie need never travel without.
    pub fn is_secure(&self) -> bool {
        self.redirect_url.starts_with("https://")
    }
}

/// Begins a sign-in. `return_to` is the page to end on, a path of this server.
pub async fn start(chat: &Chat, return_to: Option<&str>) -> Result<Started, Error> {
    let oidc = chat.oidc.as_ref().ok_or_else(external_login::no_provider)?;
    let return_to = return_to.unwrap_or("/");
    if !is_own_path(return_to) {
        return Err(DetailedReason::field("return_to").into());
    }
    let endpoint = oidc.provider.authorization_endpoint().await?;
    let cookie = BrowserCookie::new(&*chat.rng, chat.clock.now(), return_to);
    let challenge = Sha256::digest(cookie.code_verifier(&chat.key));
    let parameters = [
        ("response_type", "code"),
        ("client_id", oidc.client_id.as_str()),
        ("redirect_uri", oidc.redirect_url.as_str()),
        ("scope", &oidc.scopes.join(" ")),
        ("state", &cookie.state(&chat.key)),
        ("nonce", &cookie.nonce(&chat.key)),
        ("code_challenge", &BASE64URL_NOPAD.encode(&challenge)),
        ("code_challenge_method", "S256"),
    ];
    let separator = if endpoint.contains('?') { '&' } else { '?' };
    let location = format!("{endpoint}{separator}{}", form_encode(&parameters));
    Ok(Started { location, cookie: cookie.to_string() })
}

/// Takes the code that the provider gave to the browser. Every refusal gives the same reason; the log says why.
pub async fn callback(
    chat: &Chat,
    from: IpAddr,
    request: CallbackRequest,
) -> Result<CalledBack, Error> {
    let oidc = chat.oidc.as_ref().ok_or_else(external_login::no_provider)?;
    let refuse = |why| external_login::refuse(chat, AttemptKind::Oidc, from, "", why);
    let CallbackRequest { cookie, state, code } = request;
    let cookie = cookie.and_then(|cookie| BrowserCookie::parse(&cookie, chat.clock.now()));
    let cookie = cookie.ok_or_else(|| refuse(TokenRefusal::WrongBrowser))?;
    if !state.is_some_and(|state| cookie.is_state(&chat.key, &state)) {
        return Err(refuse(TokenRefusal::WrongBrowser));
    }
    let code = code.ok_or_else(|| refuse(TokenRefusal::RefusedByProvider))?;
    // Each attempt asks the provider: an address may not do that as often as it likes.
    let attempt = external_login::start_attempt(chat, AttemptKind::Oidc, from).await?;
    let identity = async {
        let code_verifier = cookie.code_verifier(&chat.key);
        let exchanged = oidc.provider.exchange(&code, &code_verifier).await;
        let token = exchanged.map_err(VerifyError::Failed)?;
        let token = token.ok_or(TokenRefusal::RefusedByProvider)?;
        let nonce = cookie.nonce(&chat.key);
        oidc.verifier.verify(&token, Some(&nonce), chat.clock.now()).await
    };
    let identity = match identity.await {
        Ok(identity) => identity,
        Err(VerifyError::Refused(why)) => return Err(refuse(why)),
        Err(VerifyError::Failed(error)) => {
            attempt.refund(); // nothing was decided
            return Err(error);
        }
    };
    let user = find_or_create(chat, &identity, oidc.verifier.create).await?.map_err(|why| {
        external_login::refuse(chat, AttemptKind::Oidc, from, identity.user.as_str(), why)
    })?;
    attempt.refund();
    let code = one_time_code::issue(chat, &user.id, &cookie);
    Ok(CalledBack { return_to: cookie.return_to().to_owned(), code })
}

/// Signs in with a one-time code, in the browser that began.
pub async fn finish(
    chat: &Chat,
    code: &str,
    cookie: Option<&str>,
    device: &SignInDevice,
) -> Result<(Tokens, Arc<User>), Error> {
    let oidc = chat.oidc.as_ref().ok_or_else(external_login::no_provider)?;
    let refuse = |user: &str, why| {
        external_login::refuse(chat, AttemptKind::Oidc, device.address, user, why)
    };
    let cookie = cookie.and_then(|cookie| BrowserCookie::parse(cookie, chat.clock.now()));
    let cookie = cookie.ok_or_else(|| refuse("", TokenRefusal::WrongBrowser))?;
    let id = one_time_code::redeem(chat, &oidc.used_codes, code, &cookie);
    let id = id.ok_or_else(|| refuse("", TokenRefusal::WrongCode))?;
    let user = chat.store.user(&id).await?.filter(|user| !user.details.status.is_deleted());
    let user = user.ok_or_else(|| refuse(id.as_str(), TokenRefusal::NoAccount))?;
    external_login::open(chat, user, device).await
}

/// A path of this server and nothing else: neither another host (`//host`, and `/\host`, which browsers read the
/// same), nor a fragment, where the one-time code goes.
fn is_own_path(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'#' | b'"');
    path.starts_with('/')
        && !path.starts_with("//")
        && path.len() <= 512
        && path.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_return_to_this_server_only() {
        for path in ["/", "/rooms", "/rooms?tab=1&x=%2F", "/a//b"] {
            assert!(is_own_path(path), "{path}");
        }
        for path in [
            "",
            "rooms",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            "/a#b",
            "/a b",
            "/a\r\nSet-Cookie: x",
            "/é",
            &format!("/{}", "x".repeat(512)),
        ] {
            assert!(!is_own_path(path), "{path}");
        }
    }
}
