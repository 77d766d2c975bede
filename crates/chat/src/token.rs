//! Access tokens: JWT, HS256 only, checked against the injected clock.

use data_encoding::BASE64URL_NOPAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

use crate::ids::{LoginId, Millis, Platform, UserId};
use crate::reason::{Error, Reason};

pub const SECRET_BYTES_MIN: usize = 32;

const ACCESS: &str = "access";

/// Signs and checks access tokens.
pub struct TokenKey {
    encoding: EncodingKey,
    decoding: DecodingKey,
    validation: Validation,
    refresh_key: [u8; 32],
    browser_key: [u8; 32],
}

/// What a valid access token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    pub user: UserId,
    pub login: LoginId,
    pub platform: Platform,
    pub session_version: u64,
    pub expires_at: Millis,
}

#[derive(Serialize, Deserialize)]
struct JwtPayload {
    user_id: String,
    platform_id: i32,
    sv: u64,
    exp: u64,
    iat: u64,
    jti: String,
    typ: String,
}

impl TokenKey {
    /// A key from a secret of at least [`SECRET_BYTES_MIN`] bytes; `None` for a shorter one.
    pub fn new(secret: &[u8]) -> Option<Self> {
        if secret.len() < SECRET_BYTES_MIN {
            return None;
        }
        let mut validation = Validation::new(Algorithm::HS256);
        // `verify` checks times against the injected clock; the library would use the system's.
        validation.validate_exp = false;
        validation.required_spec_claims.clear();
        Some(Self {
            encoding: EncodingKey::from_secret(secret),
            decoding: DecodingKey::from_secret(secret),
            validation,
            refresh_key: blake3::derive_key("nexo next refresh token v1", secret),
            browser_key: blake3::derive_key("nexo sign-in through the browser v1", secret),
        })
    }

    /// The refresh token that follows another. Deterministic, so that a repeated request (a lost response, two
    /// tabs at once) gets the same token; not computable without the secret.
    pub fn next_refresh_token(&self, refresh: &str) -> String {
        let next = blake3::keyed_hash(&self.refresh_key, refresh.as_bytes());
        BASE64URL_NOPAD.encode(next.as_bytes())
    }

    /// A secret that belongs to a text and a purpose, the same on every node. For what a browser carries through a
    /// sign-in: it cannot be computed without the server's secret.
    pub(crate) fn browser_mac(&self, purpose: &'static str, text: &str) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.browser_key);
        hasher.update(purpose.as_bytes());
        hasher.update(&[0]); // in no purpose, so no two pairs hash alike
        hasher.update(text.as_bytes());
        hasher.finalize()
    }

    pub fn sign(&self, claims: &Claims, now: Millis) -> Result<String, Error> {
        let payload = JwtPayload {
            user_id: claims.user.to_string(),
            platform_id: claims.platform.0,
            sv: claims.session_version,
            exp: claims.expires_at.0 / 1000,
            iat: now.0 / 1000,
            jti: claims.login.to_string(),
            typ: ACCESS.to_owned(),
        };
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &payload, &self.encoding)
            .map_err(|error| Error::Internal(Box::new(error)))
    }

    /// Checks a token's signature, type and expiry.
    pub fn verify(&self, token: &str, now: Millis) -> Result<Claims, Reason> {
        if token.is_empty() {
            return Err(Reason::MissingToken);
        }
        if token.len() > 4096 {
            return Err(Reason::InvalidToken);
        }
        let payload = jsonwebtoken::decode::<JwtPayload>(token, &self.decoding, &self.validation)
            .map_err(|_| Reason::InvalidToken)?
            .claims;
        if payload.typ != ACCESS {
            return Err(Reason::InvalidToken);
        }
        let expires_at = Millis(payload.exp.saturating_mul(1000));
        if expires_at <= now {
            return Err(Reason::TokenExpired);
        }
        Ok(Claims {
            user: UserId::parse(&payload.user_id).map_err(|_| Reason::InvalidToken)?,
            login: LoginId::parse(&payload.jti).ok_or(Reason::InvalidToken)?,
            platform: Platform(payload.platform_id),
            session_version: payload.sv,
            expires_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::BASE64URL_NOPAD;

    use super::*;

    const NOW: Millis = Millis(1_000_000_000);

    fn key() -> TokenKey {
        TokenKey::new(&[7; 32]).unwrap()
    }

    fn claims() -> Claims {
        Claims {
            user: UserId::parse("alice").unwrap(),
            login: LoginId([1; 16]),
            platform: Platform(5),
            session_version: 3,
            expires_at: NOW.plus(60_000),
        }
    }

    #[test]
    fn what_was_signed_is_read_back() {
        let token = key().sign(&claims(), NOW).unwrap();
        assert_eq!(key().verify(&token, NOW), Ok(claims()));
    }

    #[test]
    fn a_short_secret_makes_no_key() {
        assert!(TokenKey::new(&[7; 31]).is_none());
    }

    #[test]
    fn time_and_key_are_checked() {
        let token = key().sign(&claims(), NOW).unwrap();
        assert_eq!(key().verify(&token, NOW.plus(60_000)), Err(Reason::TokenExpired));
        assert!(key().verify(&token, Millis(0)).is_ok(), "a clock that went back kicks nobody out");
        let other = TokenKey::new(&[8; 32]).unwrap();
        assert_eq!(other.verify(&token, NOW), Err(Reason::InvalidToken));
        assert_eq!(key().verify("", NOW), Err(Reason::MissingToken));
    }

    #[test]
    fn forgeries_are_refused() {
        let token = key().sign(&claims(), NOW).unwrap();
        let [_, payload, signature] = token.split('.').collect::<Vec<_>>()[..] else { panic!() };
        let header = |text: &str| BASE64URL_NOPAD.encode(text.as_bytes());
        let mut forged = vec![
            format!("{token}x"),
            format!("{token}."),
            token.replace('.', ""),
            format!("{}.{payload}.", header(r#"{"alg":"HS256"}"#)),
            "x".repeat(1 << 20),
        ];
        for alg in ["none", "None", "nOnE", "HS384", "RS256"] {
            let header = header(&format!(r#"{{"alg":"{alg}","typ":"JWT"}}"#));
            forged.push(format!("{header}.{payload}."));
            forged.push(format!("{header}.{payload}.{signature}"));
        }
        for extra in [r#""jku":"http://127.0.0.1:1/k""#, r#""kid":"../../etc/passwd""#] {
            let header = header(&format!(r#"{{"alg":"HS256",{extra}}}"#));
            forged.push(format!("{header}.{payload}.{signature}"));
        }
        let raised = BASE64URL_NOPAD.decode(payload.as_bytes()).unwrap();
        let raised = String::from_utf8(raised).unwrap().replace("alice", "admin");
        forged.push(token.replace(payload, &header(&raised)));
        for token in forged {
            assert_eq!(key().verify(&token, NOW), Err(Reason::InvalidToken), "{token:.80}");
        }
    }

    #[test]
    fn another_kind_of_token_of_ours_is_no_access_token() {
        let sign = |json: &str| {
            let payload: std::collections::BTreeMap<String, serde_json::Value> =
                serde_json::from_str(json).unwrap();
            jsonwebtoken::encode(&Header::default(), &payload, &key().encoding).unwrap()
        };
        let whole = r#"{"user_id":"alice","platform_id":5,"sv":3,"exp":9999999999,"iat":1,"jti":"AEBAGBAFAYDQQCIKBMGA2DQPCA","typ":"access"}"#;
        assert!(key().verify(&sign(whole), NOW).is_ok());
        for (field, instead) in [
            (r#""typ":"access""#, r#""typ":"refresh""#),
            (r#","typ":"access""#, ""),
            (r#""exp":9999999999,"#, ""),
            (r#""exp":9999999999"#, r#""exp":-1"#),
            (r#""user_id":"alice""#, r#""user_id":"a_b""#),
            ("AEBAGBAFAYDQQCIKBMGA2DQPCA", "short"),
        ] {
            let token = sign(&whole.replace(field, instead));
            assert_eq!(key().verify(&token, NOW), Err(Reason::InvalidToken), "{instead}");
        }
    }
}
