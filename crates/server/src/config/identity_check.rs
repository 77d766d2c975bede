//! Checks the settings of identity providers: that what belongs together is there, and that keys can be used.

use nexo_chat::external_token::{SigningAlgorithm, VerificationKey};
use nexo_chat::oidc::CALLBACK_PATH;

use super::{Config, OidcSettings, TokenSettings};

/// Everything that is wrong with them.
pub(super) fn identity_problems(config: &Config) -> Vec<String> {
    let mut problems = Vec::new();
    let token = &config.auth.token;
    if token.is_on() {
        problems.extend(key_problem(token, &config.auth.jwt_secret));
        problems.extend(claim_problems(token));
    } else if token.names_a_provider() {
        let keys = "auth.token.secret, auth.token.public_key_file or auth.token.jwks_url";
        problems.push(format!("auth.token has no key to check tokens with: set {keys}"));
    }
    problems.extend(oidc_problems(&config.auth.oidc));
    problems
}

impl TokenSettings {
    /// Whether there is a key.
    pub(crate) fn is_on(&self) -> bool {
        self.keys() > 0
    }

    fn keys(&self) -> usize {
        let keys = [&self.secret, &self.public_key_file, &self.jwks_url];
        keys.into_iter().filter(|key| !key.is_empty()).count()
    }

    fn names_a_provider(&self) -> bool {
        [&self.algorithm, &self.issuer, &self.audience].iter().any(|it| !it.is_empty())
    }

    /// The key of the settings; `None` if the provider publishes its keys. Fails with what is wrong.
    pub(crate) fn fixed_key(&self) -> Result<Option<VerificationKey>, String> {
        if !self.secret.is_empty() {
            let key = VerificationKey::from_secret(self.secret.as_bytes());
            return key.map(Some).map_err(|error| format!("auth.token.secret: {error}"));
        }
        if self.public_key_file.is_empty() {
            return Ok(None);
        }
        let file = &self.public_key_file;
        let problem = |error: &dyn std::fmt::Display| {
            format!("auth.token.public_key_file: {file} cannot be used: {error}")
        };
        let algorithm = SigningAlgorithm::parse(&self.algorithm).ok_or_else(|| problem(&"?"))?;
        let text = std::fs::read_to_string(file).map_err(|error| problem(&error))?;
        let key = VerificationKey::from_pem(algorithm, &text);
        key.map(Some).map_err(|error| problem(&error))
    }
}

fn key_problem(token: &TokenSettings, jwt_secret: &str) -> Option<String> {
    if token.keys() > 1 {
        let keys = "auth.token.secret, auth.token.public_key_file and auth.token.jwks_url";
        return Some(format!("of {keys} only one can be set"));
    }
    let (needs, is_right) = if !token.secret.is_empty() {
        ("`HS256` with auth.token.secret", token.algorithm == "HS256")
    } else if !token.public_key_file.is_empty() {
        let is_public = matches!(token.algorithm.as_str(), "RS256" | "ES256" | "EdDSA");
        ("`RS256`, `ES256` or `EdDSA` with auth.token.public_key_file", is_public)
    } else {
        let needs = "empty with auth.token.jwks_url, where each key has its own algorithm";
        (needs, token.algorithm.is_empty())
    };
    if !is_right {
        return Some(format!("auth.token.algorithm is {needs}"));
    }
    if !token.secret.is_empty() && token.secret == jwt_secret {
        // Whoever makes tokens of the app could make those of this server, of anybody.
        return Some("auth.token.secret must be another one than auth.jwt_secret".to_owned());
    }
    if !token.jwks_url.is_empty() && !is_web_address(&token.jwks_url) {
        let example = "https://id.example.com/jwks.json";
        return Some(format!("auth.token.jwks_url is an address such as {example}"));
    }
    token.fixed_key().err()
}

fn claim_problems(token: &TokenSettings) -> Vec<String> {
    let mut problems = Vec::new();
    if token.secret.is_empty() {
        for (setting, value) in [("issuer", &token.issuer), ("audience", &token.audience)] {
            if value.is_empty() {
                let why = "a public key signs tokens for other apps too";
                problems.push(format!("auth.token.{setting} must be set: {why}"));
            }
        }
    }
    if token.user_claim.is_empty() {
        problems.push("auth.token.user_claim names the claim with the user id".to_owned());
    }
    if token.leeway_seconds > 600 {
        problems.push("auth.token.leeway_seconds is 0 to 600".to_owned());
    }
    if !(30..=86_400).contains(&token.jwks_refresh_seconds) {
        problems.push("auth.token.jwks_refresh_seconds is 30 to 86400".to_owned());
    }
    problems
}

impl OidcSettings {
    /// Whether there is a provider.
    pub(crate) fn is_on(&self) -> bool {
        !self.issuer.is_empty()
    }
}

fn oidc_problems(oidc: &OidcSettings) -> Vec<String> {
    let mut problems = Vec::new();
    let mut require = |is_right: bool, problem: &str| {
        if !is_right {
            problems.push(problem.to_owned());
        }
    };
    if !oidc.is_on() {
        let others = [&oidc.client_id, &oidc.client_secret, &oidc.redirect_url];
        require(
            others.iter().all(|it| it.is_empty()),
            "auth.oidc.issuer must be set: the others of auth.oidc are of no use without",
        );
        return problems;
    }
    require(
        is_web_address(&oidc.issuer) && !oidc.issuer.contains(['?', '#']),
        "auth.oidc.issuer is an address such as https://id.example.com",
    );
    require(!oidc.client_id.is_empty(), "auth.oidc.client_id must be set: the provider knows it");
    let server = oidc.redirect_url.strip_suffix(CALLBACK_PATH);
    let server = server.and_then(|server| reqwest::Url::parse(server).ok());
    require(
        server.is_some_and(|url| {
            is_web_address(url.as_str()) && url.path() == "/" && url.query().is_none()
        }),
        "auth.oidc.redirect_url is an address such as https://chat.example.com/auth/oidc/callback",
    );
    let is_scope = |scope: &String| scope.bytes().all(|byte| byte.is_ascii_graphic());
    require(
        oidc.scopes.iter().any(|scope| scope == "openid") && oidc.scopes.iter().all(is_scope),
        "auth.oidc.scopes is a list of words with `openid` in it",
    );
    require(!oidc.user_claim.is_empty(), "auth.oidc.user_claim names the claim with the user id");
    require(!oidc.name.trim().is_empty(), "auth.oidc.name is what the button says");
    require(oidc.leeway_seconds <= 600, "auth.oidc.leeway_seconds is 0 to 600");
    problems
}

/// Whether something is an address of the web, with a host.
fn is_web_address(text: &str) -> bool {
    let is_web = |url: &reqwest::Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    reqwest::Url::parse(text).is_ok_and(|url| is_web(&url))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(change: impl Fn(&mut TokenSettings)) -> Vec<String> {
        let mut config = Config::default();
        config.auth.jwt_secret = "the secret of this server, thirty-two bytes".into();
        change(&mut config.auth.token);
        identity_problems(&config)
    }

    fn with_secret(token: &mut TokenSettings) {
        token.algorithm = "HS256".into();
        token.secret = "a secret of the app, at least 32 bytes".into();
    }

    fn with_jwks(token: &mut TokenSettings) {
        token.jwks_url = "https://id.example.com/jwks.json".into();
        token.issuer = "https://id.example.com".into();
        token.audience = "nexo".into();
    }

    #[test]
    fn what_is_right_has_no_problems() {
        for right in [|_: &mut TokenSettings| {}, with_secret, with_jwks] {
            assert_eq!(problems(right), Vec::<String>::new());
        }
    }

    #[test]
    fn a_provider_for_browsers_is_whole_or_not_there() {
        let check = |change: fn(&mut OidcSettings), expect: &str| {
            let mut oidc = Config::default().auth.oidc;
            oidc.issuer = "https://id.example.com/realms/a".into();
            oidc.client_id = "nexo".into();
            oidc.redirect_url = "https://chat.example.com/auth/oidc/callback".into();
            change(&mut oidc);
            let found = oidc_problems(&oidc);
            if expect.is_empty() {
                assert_eq!(found, Vec::<String>::new());
            } else {
                assert_eq!(found.len(), 1, "{expect}: {found:?}");
                assert!(found[0].contains(expect), "{expect}: {found:?}");
            }
        };
        check(|_| {}, "");
        check(|it| it.redirect_url = "http://127.0.0.1:8080/auth/oidc/callback".into(), "");
        check(|it| it.issuer = String::new(), "issuer must be set");
        check(|it| it.issuer = "id.example.com".into(), "issuer is an address");
        check(|it| it.client_id = String::new(), "client_id");
        for bad in [
            "",
            "https://chat.example.com",
            "/auth/oidc/callback",
            "https://a/b/auth/oidc/callback",
        ] {
            let mut oidc = Config::default().auth.oidc;
            (oidc.issuer, oidc.client_id) = ("https://id.example.com".into(), "nexo".into());
            oidc.redirect_url = bad.into();
            assert!(oidc_problems(&oidc)[0].contains("redirect_url"), "{bad}");
        }
        check(|it| it.scopes = vec!["profile".into()], "scopes");
        check(|it| it.scopes = vec!["openid profile".into()], "scopes");
        check(|it| it.user_claim = String::new(), "user_claim");
        check(|it| it.leeway_seconds = 1000, "leeway");
    }

    #[test]
    fn each_contradiction_is_named() {
        type Change = fn(&mut TokenSettings);
        let cases: [(Change, Change, &str); 13] = [
            (|_| {}, |it| it.issuer = "x".into(), "no key"),
            (|_| {}, |it| it.algorithm = "HS256".into(), "no key"),
            (with_secret, |it| it.jwks_url = "https://a".into(), "only one"),
            (with_secret, |it| it.algorithm = String::new(), "`HS256`"),
            (with_secret, |it| it.algorithm = "RS256".into(), "`HS256`"),
            (with_secret, |it| it.algorithm = "none".into(), "`HS256`"),
            (with_secret, |it| it.secret = "short".into(), "32 bytes"),
            (
                with_secret,
                |it| it.secret = "the secret of this server, thirty-two bytes".into(),
                "another one than",
            ),
            (with_secret, |it| it.user_claim = String::new(), "user_claim"),
            (with_secret, |it| it.leeway_seconds = 601, "leeway"),
            (with_jwks, |it| it.algorithm = "RS256".into(), "empty with"),
            (with_jwks, |it| it.jwks_url = "file:///etc/passwd".into(), "an address such as"),
            (with_jwks, |it| it.jwks_refresh_seconds = 1, "30 to"),
        ];
        for (from, change, expect) in cases {
            let found = problems(|token| {
                from(token);
                change(token);
            });
            assert_eq!(found.len(), 1, "{expect}: {found:?}");
            assert!(found[0].contains(expect), "{expect}: {found:?}");
            assert!(!found[0].contains("thirty-two"), "no secret is shown");
        }
        let open = problems(|it| it.jwks_url = "https://id.example.com/jwks.json".into());
        assert_eq!(open.len(), 2, "issuer and audience: {open:?}");
        let away = problems(|it| {
            with_jwks(it);
            it.jwks_url = String::new();
            it.algorithm = "RS256".into();
            it.public_key_file = "/nowhere/key.pem".into();
        });
        assert!(away[0].contains("/nowhere/key.pem"), "{away:?}");
    }
}
