//! Signing in through the browser with an `OpenID` Connect provider. `nexo_chat::oidc` says how the steps belong
//! together.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use nexo_chat::auth::SignInDevice;
use nexo_chat::ids::Platform;
use nexo_chat::oidc::{self, CALLBACK_PATH, COOKIE_TTL_MS, CallbackRequest, OidcSignIn};
use nexo_chat::policy::account;
use nexo_chat::{Error, Reason};
use nexo_wire::codes;
use nexo_wire::http::accounts::{OidcCallbackParams, OidcFinishBody, OidcStartParams, SignedIn};
use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::http::extract::{Body, GatewayState, Params};
use crate::http::openapi::paths::{Paths, paths};
use crate::http::response::{ApiResponse, RequestContext};

pub(in crate::http) fn paths(paths: &mut Paths) {
    let reasons = [Reason::Forbidden, Reason::InvalidParam, Reason::InternalError];
    let mut started = redirect("To the provider, or to `/#oidc_error=` and a reason.");
    started["parameters"] = json!([{
        "name": "return_to", "in": "query", "schema": { "type": "string" },
        "description": "The page to end on: a path of this server.",
    }]);
    paths.plain(
        "/auth/oidc/start",
        start,
        "Sends the browser to the identity provider to sign in.",
        &reasons,
        started,
    );
    paths.plain(
        CALLBACK_PATH,
        callback,
        "Where the identity provider sends the browser back to.",
        &reasons,
        redirect("To the wanted page with `#oidc=` and a one-time code, or to `/#oidc_error=` and a reason."),
    );
    paths! { paths:
        POST "/auth/oidc/finish" finish,
            "Signs in with the one-time code of `/auth/oidc/callback`, in the browser that began."
            [Forbidden TokenRefused AccountDisabled]
    }
}

/// An operation of the document that answers with a redirect.
fn redirect(description: &str) -> Value {
    let location = json!({ "schema": { "type": "string" } });
    json!({ "responses": { "302": {
        "description": description,
        "headers": { "location": location },
    } } })
}

async fn start(
    State(gateway): GatewayState,
    context: RequestContext,
    Params(params): Params<OidcStartParams>,
) -> Response {
    let started = oidc::start(&gateway.chat, params.return_to.as_deref()).await;
    match (started, &gateway.chat.oidc) {
        (Ok(started), Some(oidc)) => {
            let cookie = set_cookie(oidc, &started.cookie);
            respond_redirect(context, &started.location, Some(&cookie))
        }
        (Ok(_), None) => context.refuse(Reason::Forbidden),
        (Err(error), _) => refuse_in_browser(context, &error),
    }
}

async fn callback(
    State(gateway): GatewayState,
    context: RequestContext,
    SignInCookie(cookie): SignInCookie,
    Params(params): Params<OidcCallbackParams>,
) -> Response {
    let OidcCallbackParams { code, state } = params;
    let request = CallbackRequest { cookie, state, code };
    match oidc::callback(&gateway.chat, context.client_ip, request).await {
        Ok(back) => {
            respond_redirect(context, &format!("{}#oidc={}", back.return_to, back.code), None)
        }
        Err(error) => refuse_in_browser(context, &error),
    }
}

async fn finish(
    State(gateway): GatewayState,
    context: RequestContext,
    SignInCookie(cookie): SignInCookie,
    Body(body): Body<OidcFinishBody>,
) -> ApiResponse<SignedIn> {
    let signed = async {
        let name = account::normalize_device_name(&body.device_name)?;
        let platform = Platform(body.platform_id);
        let device = SignInDevice { address: context.client_ip, platform, name };
        oidc::finish(&gateway.chat, &body.code, cookie.as_deref(), &device).await
    };
    let signed = signed.await;
    context.respond(signed.map(|(tokens, user)| SignedIn::new(tokens, &user)))
}

/// What the browser kept of [`start`].
pub(in crate::http) struct SignInCookie(Option<String>);

impl FromRequestParts<Arc<Gateway>> for SignInCookie {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Response> {
        let name = gateway.chat.oidc.as_ref().map(|oidc| cookie_name(oidc));
        Ok(Self(name.and_then(|name| cookie(&parts.headers, name))))
    }
}

/// Over TLS the prefix has browsers refuse the cookie from any other host, also from one of the same domain.
fn cookie_name(oidc: &OidcSignIn) -> &'static str {
    if oidc.is_secure() { "__Host-nexo-oidc" } else { "nexo-oidc" }
}

/// `Lax`, because the provider sends the browser back from another site.
fn set_cookie(oidc: &OidcSignIn, value: &str) -> String {
    let (name, seconds) = (cookie_name(oidc), COOKIE_TTL_MS / 1000);
    let secure = if oidc.is_secure() { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}

fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    let mut found = pairs.filter(|(known, _)| known.trim() == name);
    found.next().map(|(_, value)| value.trim().to_owned())
}

/// A person looks at the answer: the web client says in words what went wrong.
fn refuse_in_browser(context: RequestContext, error: &Error) -> Response {
    match error.reason() {
        reason @ (Reason::Forbidden | Reason::InvalidParam) => {
            context.refuse_with_detail(reason, error.detail())
        }
        reason => {
            if let Error::Unavailable(_) | Error::Internal(_) = error {
                tracing::warn!(%error, "a sign-in through the browser failed");
            }
            let word = codes::row(reason).typed;
            respond_redirect(context, &format!("/#oidc_error={word}"), None)
        }
    }
}

fn respond_redirect(context: RequestContext, location: &str, cookie: Option<&str>) -> Response {
    let mut response = StatusCode::FOUND.into_response();
    let pairs = [
        (header::LOCATION, Some(location)),
        (header::SET_COOKIE, cookie),
        (header::CACHE_CONTROL, Some("no-store")),
        // The address of the callback has a code in it.
        (HeaderName::from_static("referrer-policy"), Some("no-referrer")),
    ];
    for (name, value) in pairs {
        let Some(value) = value else { continue };
        let Ok(value) = HeaderValue::from_str(value) else {
            tracing::warn!("the identity provider's address does not fit into a header");
            return context.refuse(Reason::InternalError);
        };
        response.headers_mut().insert(name, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("a=1; nexo-oidc=x.1.y; b=2"));
        headers.append(header::COOKIE, HeaderValue::from_static("c=3"));
        assert_eq!(cookie(&headers, "nexo-oidc").as_deref(), Some("x.1.y"));
        assert_eq!(cookie(&headers, "c").as_deref(), Some("3"));
        assert_eq!(cookie(&headers, "nexo"), None);
        assert_eq!(cookie(&HeaderMap::new(), "a"), None);
    }
}
