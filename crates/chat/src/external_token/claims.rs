//! What a signed token says, and whether it is said to this server and now.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::TokenRefusal;
use crate::ids::Millis;

/// The payload of a token whose signature was right.
#[derive(Debug, Deserialize)]
pub(super) struct Claims(HashMap<String, Value>);

/// What a token has to say to be accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimRules {
    /// Empty: any.
    pub issuer: String,
    /// Empty: only tokens that name no audience.
    pub audience: String,
    /// How far the provider's clock may be off.
    pub leeway_ms: u64,
}

impl ClaimRules {
    pub(super) fn check(
        &self,
        claims: &Claims,
        nonce: Option<&str>,
        now: Millis,
    ) -> Result<(), TokenRefusal> {
        if !self.issuer.is_empty() && claims.text("iss") != Some(self.issuer.as_str()) {
            return Err(TokenRefusal::WrongIssuer);
        }
        if !self.is_audience(claims) {
            return Err(TokenRefusal::WrongAudience);
        }
        let expires_at = claims.time("exp")?.ok_or(TokenRefusal::NoExpiry)?;
        if expires_at.plus(self.leeway_ms) <= now {
            return Err(TokenRefusal::Expired);
        }
        for claim in ["nbf", "iat"] {
            if claims.time(claim)?.is_some_and(|from| from > now.plus(self.leeway_ms)) {
                return Err(TokenRefusal::NotYetValid);
            }
        }
        if nonce.is_some() {
            if claims.text("nonce") != nonce {
                return Err(TokenRefusal::WrongNonce);
            }
            // An ID token for several audiences names the one that asked for it.
            let asked = claims.0.get("azp");
            if asked.is_some_and(|asked| asked.as_str() != Some(self.audience.as_str())) {
                return Err(TokenRefusal::WrongAudience);
            }
        }
        Ok(())
    }

    fn is_audience(&self, claims: &Claims) -> bool {
        let is_mine = |audience: &Value| audience.as_str() == Some(self.audience.as_str());
        match claims.0.get("aud") {
            None | Some(Value::Null) => self.audience.is_empty(),
            // Whoever is not named as an audience must refuse (RFC 7519, 4.1.3).
            Some(_) if self.audience.is_empty() => false,
            Some(Value::Array(audiences)) => audiences.iter().any(is_mine),
            Some(audience) => is_mine(audience),
        }
    }
}

impl Claims {
    pub(super) fn text(&self, claim: &str) -> Option<&str> {
        self.0.get(claim)?.as_str()
    }

    /// A user id: text, or a whole number as it is written.
    pub(super) fn id(&self, claim: &str) -> Option<String> {
        match self.0.get(claim)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => number.as_u64().map(|number| number.to_string()),
            _ => None,
        }
    }

    /// Seconds since 1970, perhaps with a fraction.
    fn time(&self, claim: &str) -> Result<Option<Millis>, TokenRefusal> {
        let seconds = match self.0.get(claim) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Number(seconds)) => seconds,
            Some(_) => return Err(TokenRefusal::Malformed),
        };
        if let Some(seconds) = seconds.as_u64() {
            return Ok(Some(Millis(seconds.saturating_mul(1000))));
        }
        match seconds.as_f64() {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "not negative, and a cast of what is too large saturates"
            )]
            Some(seconds) if seconds >= 0.0 => Ok(Some(Millis((seconds * 1000.0) as u64))),
            _ => Err(TokenRefusal::Malformed),
        }
    }
}
