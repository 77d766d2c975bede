//! Checks tokens of the app's own identity provider (JWT), against the injected clock.
//!
//! Nothing that a token says is followed: `jku`, `x5u` and a `jwk` in its header are ignored, and `kid` only selects
//! among the keys of the provider's own set.

mod claims;
mod keys;
#[cfg(test)]
mod test_keys;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jsonwebtoken::Validation;
use jsonwebtoken::errors::ErrorKind;

use crate::ids::{Millis, UserId};
use crate::policy::account;
use crate::reason::Error;

pub use self::claims::ClaimRules;
pub use self::keys::{KEYS_MAX, KeyError, KeySet, KeySource, SigningAlgorithm, VerificationKey};

use self::claims::Claims;

/// Longer tokens are refused before anything is decoded.
pub const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// A provider whose tokens are accepted.
pub struct TokenVerifier {
    pub keys: ProviderKeys,
    pub claims: ClaimRules,
    /// The claim with the user id.
    pub user_claim: String,
    /// The claim with the nickname of an account that is made; empty: none.
    pub name_claim: String,
    /// Whether somebody without an account gets one.
    pub create: bool,
}

pub enum ProviderKeys {
    /// From the settings. The `kid` of a token does not matter then.
    Fixed(VerificationKey),
    /// From the provider.
    Published(Arc<dyn KeySource>),
}

/// Whom a provider vouches for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalIdentity {
    pub user: UserId,
    /// In the form to store; `None` if the token has none that could be stored.
    pub nickname: Option<String>,
}

/// Why a token was refused, for the operator. The client is only told that it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenRefusal {
    TooLarge,
    Malformed,
    /// `none`, or another algorithm than that of the key.
    WrongAlgorithm,
    /// It names a key that the provider does not have, or none although there are several.
    UnknownKey,
    WrongSignature,
    WrongIssuer,
    WrongAudience,
    NoExpiry,
    Expired,
    /// `nbf` or `iat` is in the future.
    NotYetValid,
    /// It was made for another sign-in.
    WrongNonce,
    NoUserId,
    /// The user claim is not 1–64 of the allowed characters.
    BadUserId,
    ReservedUserId,
    /// There is no such account, and none may be made.
    NoAccount,
    /// Another account has an id that looks like this one.
    LooksLikeAnother,
    /// The browser did not begin this sign-in, or began it too long ago.
    WrongBrowser,
    /// The provider did not accept the code, or the person did not accept the sign-in.
    RefusedByProvider,
    /// The one-time code is not one of ours, or was used, or is too old.
    WrongCode,
}

/// How checking a token fails.
#[derive(Debug)]
pub enum VerifyError {
    Refused(TokenRefusal),
    /// The provider's keys are not known. The token may be good.
    Failed(Error),
}

impl From<TokenRefusal> for VerifyError {
    fn from(refusal: TokenRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl TokenRefusal {
    /// Its name in the log and in metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::Malformed => "malformed",
            Self::WrongAlgorithm => "wrong_algorithm",
            Self::UnknownKey => "unknown_key",
            Self::WrongSignature => "wrong_signature",
            Self::WrongIssuer => "wrong_issuer",
            Self::WrongAudience => "wrong_audience",
            Self::NoExpiry => "no_expiry",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::WrongNonce => "wrong_nonce",
            Self::NoUserId => "no_user_id",
            Self::BadUserId => "bad_user_id",
            Self::ReservedUserId => "reserved_user_id",
            Self::NoAccount => "no_account",
            Self::LooksLikeAnother => "looks_like_another",
            Self::WrongBrowser => "wrong_browser",
            Self::RefusedByProvider => "refused_by_provider",
            Self::WrongCode => "wrong_code",
        }
    }
}

impl TokenVerifier {
    /// Checks signature, times, issuer and audience, and reads whom the token is about. `nonce` is what a sign-in
    /// through the browser has to repeat.
    pub async fn verify(
        &self,
        token: &str,
        nonce: Option<&str>,
        now: Millis,
    ) -> Result<ExternalIdentity, VerifyError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenRefusal::TooLarge.into());
        }
        let header = jsonwebtoken::decode_header(token).map_err(|error| match error.kind() {
            // An algorithm that the library does not know, such as `none`, is an error of the JSON.
            ErrorKind::Json(_) => TokenRefusal::WrongAlgorithm,
            _ => TokenRefusal::Malformed,
        })?;
        let algorithm = SigningAlgorithm::of_header(header.alg);
        let algorithm = algorithm.ok_or(TokenRefusal::WrongAlgorithm)?;
        if header.crit.is_some() {
            // It demands that something is understood that is not understood here.
            return Err(TokenRefusal::Malformed.into());
        }
        let claims = match &self.keys {
            ProviderKeys::Fixed(key) if key.algorithm == algorithm => decode(token, &[key])?,
            ProviderKeys::Fixed(_) => return Err(TokenRefusal::WrongAlgorithm.into()),
            // Published keys are no secrets: it would be of no use to ask for them.
            ProviderKeys::Published(_) if algorithm == SigningAlgorithm::Hs256 => {
                return Err(TokenRefusal::WrongAlgorithm.into());
            }
            ProviderKeys::Published(source) => {
                let kid = header.kid.as_deref();
                let keys = source.keys(kid).await.map_err(VerifyError::Failed)?;
                decode(token, &keys.candidates(kid, algorithm))?
            }
        };
        self.claims.check(&claims, nonce, now)?;
        Ok(self.identity(&claims)?)
    }

    fn identity(&self, claims: &Claims) -> Result<ExternalIdentity, TokenRefusal> {
        let id = claims.id(&self.user_claim).ok_or(TokenRefusal::NoUserId)?;
        // Taken as it is or not at all: an id that is changed to fit could become that of somebody else.
        let user = UserId::parse(&id).map_err(|_| TokenRefusal::BadUserId)?;
        account::check_not_reserved(&user).map_err(|_| TokenRefusal::ReservedUserId)?;
        let nickname = claims.text(&self.name_claim);
        let nickname = nickname.and_then(|name| account::normalize_nickname(name).ok());
        Ok(ExternalIdentity { user, nickname })
    }
}

/// The claims of a token that one of these keys has signed.
fn decode(token: &str, candidates: &[&VerificationKey]) -> Result<Claims, TokenRefusal> {
    let mut refusal = TokenRefusal::UnknownKey;
    for key in candidates {
        let mut validation = Validation::new(key.algorithm.in_library());
        // `ClaimRules` checks them against the injected clock; the library would use the system's.
        validation.validate_exp = false;
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        match jsonwebtoken::decode::<Claims>(token, &key.key, &validation) {
            Ok(decoded) => return Ok(decoded.claims),
            Err(error) => {
                refusal = match error.kind() {
                    ErrorKind::InvalidSignature => TokenRefusal::WrongSignature,
                    ErrorKind::InvalidAlgorithm => TokenRefusal::WrongAlgorithm,
                    _ => TokenRefusal::Malformed,
                };
            }
        }
    }
    Err(refusal)
}
