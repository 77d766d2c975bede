//! An `OpenID` Connect provider over HTTP: its description, its keys, and the exchange of a code for an ID token.
//!
//! The checks are those of every other token (`nexo_chat::external_token`); what is left of the protocol is three
//! requests, for which no library of its own is worth its dependencies.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, ensure};
use data_encoding::BASE64;
use nexo_chat::clock::Clock;
use nexo_chat::external_token::{KeySet, KeySource};
use nexo_chat::form_encoding::{form_encode, percent_encode};
use nexo_chat::oidc::OidcProvider;
use nexo_chat::{Boxed, Error};
use reqwest::{Client, StatusCode, header};
use serde::Deserialize;

use super::http_client;
use super::jwks::Jwks;
use super::refreshed::Refreshed;
use crate::config::OidcSettings;

/// How long the description and the keys count as fresh.
const DESCRIPTION_FRESH_MS: u64 = 60 * 60 * 1000;
const KEYS_FRESH_MS: u64 = 10 * 60 * 1000;

pub(crate) struct HttpOidcProvider {
    client: Client,
    clock: Arc<dyn Clock>,
    issuer: String,
    client_id: String,
    client_secret: String,
    redirect_url: String,
    description: Refreshed<Description>,
    /// Made when the description says where the keys are, and again when it says otherwise.
    keys: Mutex<Option<Arc<Jwks>>>,
}

/// The part of `/.well-known/openid-configuration` that is needed.
#[derive(Debug, Deserialize)]
struct Description {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    /// How a client may show its secret. Absent: with HTTP Basic.
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Exchanged {
    id_token: Option<String>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

impl HttpOidcProvider {
    pub(crate) fn new(client: Client, clock: Arc<dyn Clock>, settings: &OidcSettings) -> Self {
        let url =
            format!("{}/.well-known/openid-configuration", settings.issuer.trim_end_matches('/'));
        let description = Refreshed::new(
            client.clone(),
            Arc::clone(&clock),
            url,
            DESCRIPTION_FRESH_MS,
            Description::parse,
        );
        Self {
            client,
            clock,
            issuer: settings.issuer.clone(),
            client_id: settings.client_id.clone(),
            client_secret: settings.client_secret.clone(),
            redirect_url: settings.redirect_url.clone(),
            description,
            keys: Mutex::default(),
        }
    }

    async fn description(&self) -> Result<Arc<Description>, Error> {
        let description = self.description.get(|_| true).await?;
        if description.issuer == self.issuer {
            return Ok(description);
        }
        // Another provider's description: its tokens would be refused anyway.
        tracing::warn!(
            expected = self.issuer,
            found = description.issuer,
            "auth.oidc.issuer is not what the provider calls itself"
        );
        Err(Error::Unavailable("the identity provider calls itself otherwise".into()))
    }

    fn jwks(&self, url: &str) -> Arc<Jwks> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        match &*keys {
            Some(known) if known.url() == url => Arc::clone(known),
            _ => {
                let clock = Arc::clone(&self.clock);
                let jwks = Jwks::new(self.client.clone(), clock, url.to_owned(), KEYS_FRESH_MS);
                Arc::clone(keys.insert(Arc::new(jwks)))
            }
        }
    }

    async fn request_token(
        &self,
        code: &str,
        code_verifier: &str,
    ) -> Result<Option<String>, Error> {
        let description = self.description().await?;
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", self.redirect_url.as_str()),
            ("code_verifier", code_verifier),
        ];
        let mut request = self.client.post(&description.token_endpoint);
        if self.client_secret.is_empty() || !description.takes_basic() {
            form.push(("client_id", &self.client_id));
            if !self.client_secret.is_empty() {
                form.push(("client_secret", &self.client_secret));
            }
        } else {
            let [id, secret] = [&self.client_id, &self.client_secret].map(|it| percent_encode(it));
            let basic = BASE64.encode(format!("{id}:{secret}").as_bytes());
            request = request.header(header::AUTHORIZATION, format!("Basic {basic}"));
        }
        let request = request
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form_encode(&form));
        let unavailable = |error: anyhow::Error| Error::Unavailable(error.into());
        let (status, body) = http_client::ask(request).await.map_err(unavailable)?;
        read_answer(status, &body).map_err(unavailable)
    }
}

/// The ID token, or `None` if the provider does not accept the code.
fn read_answer(status: StatusCode, body: &[u8]) -> anyhow::Result<Option<String>> {
    if status == StatusCode::OK {
        let exchanged: Exchanged = serde_json::from_slice(body).context("the token answer")?;
        return Ok(exchanged.id_token);
    }
    ensure!(
        matches!(status, StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED),
        "the identity provider answered {status} to a code"
    );
    let refusal: Refusal = serde_json::from_slice(body).context("the refusal of a code")?;
    if refusal.error != "invalid_grant" {
        // The settings are wrong, not the code: `invalid_client`, for example.
        let error: String = refusal.error.chars().take(64).collect();
        tracing::warn!(error, "the identity provider does not accept this server");
    }
    Ok(None)
}

impl Description {
    fn parse(body: &[u8]) -> anyhow::Result<Self> {
        let description: Self = serde_json::from_slice(body)?;
        for url in [
            &description.authorization_endpoint,
            &description.token_endpoint,
            &description.jwks_uri,
        ] {
            let scheme =
                reqwest::Url::parse(url).with_context(|| format!("the address {url:?}"))?;
            ensure!(
                matches!(scheme.scheme(), "http" | "https"),
                "{url:?} is no address of the web"
            );
        }
        Ok(description)
    }

    fn takes_basic(&self) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_ref();
        methods.is_none_or(|methods| methods.iter().any(|it| it == "client_secret_basic"))
    }
}

impl KeySource for HttpOidcProvider {
    fn keys<'a>(&'a self, kid: Option<&'a str>) -> Boxed<'a, Result<Arc<KeySet>, Error>> {
        Box::pin(async move {
            let description = self.description().await?;
            self.jwks(&description.jwks_uri).keys(kid).await
        })
    }
}

impl OidcProvider for HttpOidcProvider {
    fn authorization_endpoint(&self) -> Boxed<'_, Result<String, Error>> {
        Box::pin(async { Ok(self.description().await?.authorization_endpoint.clone()) })
    }

    fn exchange<'a>(
        &'a self,
        code: &'a str,
        code_verifier: &'a str,
    ) -> Boxed<'a, Result<Option<String>, Error>> {
        Box::pin(self.request_token(code, code_verifier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_names_addresses_of_the_web() {
        let describe = |token: &str, methods: &str| {
            let text = format!(
                r#"{{"issuer":"https://a","authorization_endpoint":"https://a/auth","token_endpoint":"{token}",
                "jwks_uri":"https://a/jwks"{methods}}}"#
            );
            Description::parse(text.as_bytes())
        };
        assert!(describe("https://a/token", "").unwrap().takes_basic());
        let post = r#","token_endpoint_auth_methods_supported":["client_secret_post"]"#;
        assert!(!describe("https://a/token", post).unwrap().takes_basic());
        for bad in ["", "/token", "file:///etc/passwd"] {
            assert!(describe(bad, "").is_err(), "{bad}");
        }
    }

    #[test]
    fn a_refused_code_is_no_failure_of_the_provider() {
        let read = |status, body: &str| read_answer(status, body.as_bytes());
        let token = read(StatusCode::OK, r#"{"id_token":"a.b.c","access_token":"x"}"#).unwrap();
        assert_eq!(token.as_deref(), Some("a.b.c"));
        assert_eq!(read(StatusCode::OK, r#"{"access_token":"x"}"#).unwrap(), None);
        let refused = read(StatusCode::BAD_REQUEST, r#"{"error":"invalid_grant"}"#);
        assert_eq!(refused.unwrap(), None);
        for (status, body) in [
            (StatusCode::OK, "<html>"),
            (StatusCode::BAD_REQUEST, "<html>"),
            (StatusCode::BAD_GATEWAY, ""),
            (StatusCode::FOUND, ""),
        ] {
            assert!(read(status, body).is_err(), "{status}");
        }
    }
}
