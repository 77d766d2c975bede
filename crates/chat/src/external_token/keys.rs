//! The keys of an identity provider: a shared secret, a public key in PEM, or a set of public keys (JWKS).
//!
//! Each key has exactly one algorithm. What a token says about its algorithm or its key only selects among these;
//! it never changes how one of them is used.

use std::sync::Arc;

use data_encoding::BASE64URL_NOPAD;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use spki::der::asn1::UintRef;
use spki::der::{Document, Reader, SliceReader};
use spki::{ObjectIdentifier, SubjectPublicKeyInfoRef};

use crate::reason::Error;
use crate::{Boxed, token};

/// Keys that a set may have.
pub const KEYS_MAX: usize = 100;

/// Keys of one id that are tried. Providers that publish one id twice have two keys, perhaps three.
const SAME_ID_MAX: usize = 4;

/// RSA keys below 2048 bits can be broken.
const RSA_BYTES_MIN: usize = 256;

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const ELLIPTIC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// How a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningAlgorithm {
    Hs256,
    Rs256,
    Es256,
    EdDsa,
}

/// Why a key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("the secret needs at least 32 bytes")]
    ShortSecret,
    #[error("it is no public key in PEM (`-----BEGIN PUBLIC KEY-----`)")]
    NotPem,
    #[error("it is a key for another algorithm")]
    OtherAlgorithm,
    #[error("an RSA key needs at least 2048 bits")]
    WeakRsa,
    #[error("it is no set of keys (JWKS)")]
    NotJwks,
    #[error("it has more than {KEYS_MAX} keys")]
    TooManyKeys,
    #[error("it has no key for RS256, ES256 or EdDSA")]
    NoUsableKey,
}

/// A key that checks signatures of one algorithm.
#[derive(Clone)]
pub struct VerificationKey {
    /// The `kid` that tokens name it by.
    id: Option<String>,
    pub(super) algorithm: SigningAlgorithm,
    pub(super) key: DecodingKey,
}

/// The public keys that a provider publishes.
#[derive(Clone)]
pub struct KeySet(pub(super) Vec<VerificationKey>);

/// Gets the public keys of a provider.
pub trait KeySource: Send + Sync {
    /// The keys that are known now. If `kid` is not among them, they may be fetched once more, but so seldom that
    /// tokens with invented ids do not burden the provider. Fails only if no keys are known at all.
    fn keys<'a>(&'a self, kid: Option<&'a str>) -> Boxed<'a, Result<Arc<KeySet>, Error>>;
}

impl SigningAlgorithm {
    /// By its name in a token or in the settings.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "HS256" => Some(Self::Hs256),
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            "EdDSA" => Some(Self::EdDsa),
            _ => None,
        }
    }

    pub(super) fn of_header(algorithm: Algorithm) -> Option<Self> {
        match algorithm {
            Algorithm::HS256 => Some(Self::Hs256),
            Algorithm::RS256 => Some(Self::Rs256),
            Algorithm::ES256 => Some(Self::Es256),
            Algorithm::EdDSA => Some(Self::EdDsa),
            _ => None,
        }
    }

    pub(super) fn in_library(self) -> Algorithm {
        match self {
            Self::Hs256 => Algorithm::HS256,
            Self::Rs256 => Algorithm::RS256,
            Self::Es256 => Algorithm::ES256,
            Self::EdDsa => Algorithm::EdDSA,
        }
    }
}

impl VerificationKey {
    /// A secret that the provider shares with this server.
    pub fn from_secret(secret: &[u8]) -> Result<Self, KeyError> {
        if secret.len() < token::SECRET_BYTES_MIN {
            return Err(KeyError::ShortSecret);
        }
        let key = DecodingKey::from_secret(secret);
        Ok(Self { id: None, algorithm: SigningAlgorithm::Hs256, key })
    }

    /// A public key in PEM.
    pub fn from_pem(algorithm: SigningAlgorithm, text: &str) -> Result<Self, KeyError> {
        let (label, document) = Document::from_pem(text.trim()).map_err(|_| KeyError::NotPem)?;
        if label != "PUBLIC KEY" {
            return Err(KeyError::NotPem);
        }
        let info = SubjectPublicKeyInfoRef::try_from(document.as_bytes());
        let info = info.map_err(|_| KeyError::NotPem)?;
        let bits = info.subject_public_key.as_bytes().ok_or(KeyError::NotPem)?;
        let key = match (algorithm, info.algorithm.oid) {
            (SigningAlgorithm::Rs256, RSA) => {
                let (n, e) = rsa_numbers(bits).ok_or(KeyError::NotPem)?;
                rsa_key(&n, &e)?
            }
            (SigningAlgorithm::Es256, ELLIPTIC) => {
                if !info.algorithm.parameters_oid().is_ok_and(|curve| curve == P256) {
                    return Err(KeyError::OtherAlgorithm);
                }
                DecodingKey::from_ec_der(bits)
            }
            (SigningAlgorithm::EdDsa, ED25519) => DecodingKey::from_ed_der(bits),
            _ => return Err(KeyError::OtherAlgorithm),
        };
        Ok(Self { id: None, algorithm, key })
    }

    /// A key of a set; `None` for one that signs nothing that is accepted here.
    fn from_jwk(jwk: &Jwk) -> Option<Self> {
        let is_for_signatures =
            jwk.common.public_key_use.as_ref().is_none_or(|its| *its == PublicKeyUse::Signature);
        if !is_for_signatures {
            return None;
        }
        let (algorithm, key) = match &jwk.algorithm {
            AlgorithmParameters::RSA(key) => {
                let decode = |text: &str| BASE64URL_NOPAD.decode(text.as_bytes()).ok();
                let key = rsa_key(&decode(&key.n)?, &decode(&key.e)?).ok()?;
                (SigningAlgorithm::Rs256, key)
            }
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
                let key = DecodingKey::from_ec_components(&key.x, &key.y).ok()?;
                (SigningAlgorithm::Es256, key)
            }
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                (SigningAlgorithm::EdDsa, DecodingKey::from_ed_components(&key.x).ok()?)
            }
            // A shared secret among keys that everybody can read is none.
            _ => return None,
        };
        let is_its_own = jwk
            .common
            .key_algorithm
            .is_none_or(|named| named == KeyAlgorithm::from(algorithm.in_library()));
        is_its_own.then(|| Self { id: jwk.common.key_id.clone(), algorithm, key })
    }
}

impl KeySet {
    /// Reads a JWKS. Keys of other kinds are left out.
    pub fn parse(json: &[u8]) -> Result<Self, KeyError> {
        #[derive(Deserialize)]
        struct Jwks {
            keys: Vec<serde_json::Value>,
        }
        let set: Jwks = serde_json::from_slice(json).map_err(|_| KeyError::NotJwks)?;
        if set.keys.len() > KEYS_MAX {
            return Err(KeyError::TooManyKeys);
        }
        let keys = set.keys.into_iter().filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        let keys: Vec<_> = keys.filter_map(|jwk| VerificationKey::from_jwk(&jwk)).collect();
        if keys.is_empty() { Err(KeyError::NoUsableKey) } else { Ok(Self(keys)) }
    }

    pub fn has(&self, kid: &str) -> bool {
        self.0.iter().any(|key| key.id.as_deref() == Some(kid))
    }

    /// The keys that may have signed a token with this header. One without `kid` is only accepted if there is no
    /// choice, as `OpenID` Connect demands.
    pub(super) fn candidates(
        &self,
        kid: Option<&str>,
        algorithm: SigningAlgorithm,
    ) -> Vec<&VerificationKey> {
        let mut keys: Vec<&VerificationKey> =
            self.0.iter().filter(|key| key.algorithm == algorithm).collect();
        match kid {
            Some(kid) => {
                keys.retain(|key| key.id.as_deref() == Some(kid));
                keys.truncate(SAME_ID_MAX);
            }
            None if keys.len() > 1 => keys.clear(),
            None => {}
        }
        keys
    }
}

/// Modulus and exponent of a PKCS #1 public key.
fn rsa_numbers(der: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut reader = SliceReader::new(der).ok()?;
    let numbers = reader.sequence(|numbers| {
        let n: UintRef<'_> = numbers.decode()?;
        let e: UintRef<'_> = numbers.decode()?;
        Ok((n.as_bytes().to_vec(), e.as_bytes().to_vec()))
    });
    numbers.ok()
}

fn rsa_key(n: &[u8], e: &[u8]) -> Result<DecodingKey, KeyError> {
    let zeros = n.iter().take_while(|byte| **byte == 0).count();
    let bytes = &n[zeros..];
    if bytes.len() < RSA_BYTES_MIN {
        return Err(KeyError::WeakRsa);
    }
    Ok(DecodingKey::from_rsa_raw_components(bytes, e))
}
