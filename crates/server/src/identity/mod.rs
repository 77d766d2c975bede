//! The app's own identity provider: whose tokens are accepted, and how its keys are fetched.
//!
//! - `http_client`: bounded requests;
//! - `refreshed`: a document that is fetched again when it is old, but not too often;
//! - `jwks`: the public keys of a provider;
//! - `oidc`: an `OpenID` Connect provider.

mod http_client;
mod jwks;
mod oidc;
mod refreshed;

use std::sync::Arc;

use anyhow::anyhow;
use nexo_chat::clock::Clock;
use nexo_chat::external_token::{ClaimRules, KeySource, ProviderKeys, TokenVerifier};
use nexo_chat::oidc::{OidcProvider, OidcSignIn};

use self::jwks::Jwks;
use self::oidc::HttpOidcProvider;
use crate::config::{OidcSettings, TokenSettings};

/// Checks tokens as the settings say; `None` if they name no key. Fetches published keys at once, in the background:
/// a provider that is away must not keep the server from starting.
pub(crate) fn token_verifier(
    settings: &TokenSettings,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Option<TokenVerifier>> {
    if !settings.is_on() {
        return Ok(None);
    }
    let fixed = settings.fixed_key().map_err(|problem| anyhow!(problem))?;
    let keys = if let Some(key) = fixed {
        ProviderKeys::Fixed(key)
    } else {
        let fresh_ms = settings.jwks_refresh_seconds.saturating_mul(1000);
        let client = http_client::client()?;
        let jwks = Arc::new(Jwks::new(client, clock, settings.jwks_url.clone(), fresh_ms));
        fetch_early(Arc::clone(&jwks) as Arc<dyn KeySource>);
        ProviderKeys::Published(jwks)
    };
    Ok(Some(TokenVerifier {
        keys,
        claims: ClaimRules {
            issuer: settings.issuer.clone(),
            audience: settings.audience.clone(),
            leeway_ms: settings.leeway_seconds.saturating_mul(1000),
        },
        user_claim: settings.user_claim.clone(),
        name_claim: settings.name_claim.clone(),
        create: settings.create,
    }))
}

/// Lets people sign in through the browser as the settings say; `None` if they name no provider.
pub(crate) fn oidc_sign_in(
    settings: &OidcSettings,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Option<OidcSignIn>> {
    if !settings.is_on() {
        return Ok(None);
    }
    let provider = Arc::new(HttpOidcProvider::new(http_client::client()?, clock, settings));
    fetch_early(Arc::clone(&provider) as Arc<dyn KeySource>);
    let verifier = TokenVerifier {
        keys: ProviderKeys::Published(Arc::clone(&provider) as Arc<dyn KeySource>),
        claims: ClaimRules {
            issuer: settings.issuer.clone(),
            audience: settings.client_id.clone(),
            leeway_ms: settings.leeway_seconds.saturating_mul(1000),
        },
        user_claim: settings.user_claim.clone(),
        name_claim: settings.name_claim.clone(),
        create: settings.create,
    };
    Ok(Some(OidcSignIn::new(
        settings.name.clone(),
        settings.client_id.clone(),
        settings.redirect_url.clone(),
        settings.scopes.clone(),
        verifier,
        provider as Arc<dyn OidcProvider>,
    )))
}

fn fetch_early(keys: Arc<dyn KeySource>) {
    tokio::spawn(async move {
        if keys.keys(None).await.is_err() {
            tracing::warn!("no keys of the identity provider yet: its tokens are refused as busy");
        }
    });
}
