//! Tokens that are accepted, and every way to forge one that is known.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use data_encoding::{BASE64, BASE64URL_NOPAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use super::TokenRefusal::{
    BadUserId, Expired, Malformed, NoExpiry, NoUserId, NotYetValid, ReservedUserId, TooLarge,
    UnknownKey, WrongAlgorithm, WrongAudience, WrongIssuer, WrongNonce, WrongSignature,
};
use super::test_keys as keys;
use super::*;
use crate::Boxed;

const NOW: Millis = Millis(1_800_000_000_000);
const NOW_SECONDS: u64 = NOW.0 / 1000;
const SECRET: &[u8] = b"a secret of at least thirty-two bytes";

/// Keys that never change.
struct Published(Arc<KeySet>);

impl KeySource for Published {
    fn keys<'a>(&'a self, _kid: Option<&'a str>) -> Boxed<'a, Result<Arc<KeySet>, Error>> {
        Box::pin(std::future::ready(Ok(Arc::clone(&self.0))))
    }
}

/// Keys that nobody has.
struct Away;

impl KeySource for Away {
    fn keys<'a>(&'a self, _kid: Option<&'a str>) -> Boxed<'a, Result<Arc<KeySet>, Error>> {
        Box::pin(std::future::ready(Err(Error::Unavailable("away".into()))))
    }
}

fn verifier(keys: ProviderKeys) -> TokenVerifier {
    TokenVerifier {
        keys,
        claims: ClaimRules {
            issuer: "https://id.example".into(),
            audience: "nexo".into(),
            leeway_ms: 60_000,
        },
        user_claim: "sub".into(),
        name_claim: "name".into(),
        create: true,
    }
}

fn with_secret() -> TokenVerifier {
    verifier(ProviderKeys::Fixed(VerificationKey::from_secret(SECRET).unwrap()))
}

fn with_pem(algorithm: SigningAlgorithm, pem: &str) -> TokenVerifier {
    verifier(ProviderKeys::Fixed(VerificationKey::from_pem(algorithm, pem).unwrap()))
}

fn with_set(keys: &Value) -> TokenVerifier {
    let set = KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap();
    verifier(ProviderKeys::Published(Arc::new(Published(Arc::new(set)))))
}

fn rsa_jwk(kid: &str) -> Value {
    json!({ "kty": "RSA", "kid": kid, "use": "sig", "alg": "RS256", "n": keys::RSA_N, "e": "AQAB" })
}

fn ec_jwk(kid: &str) -> Value {
    json!({ "kty": "EC", "crv": "P-256", "kid": kid, "x": keys::EC_X, "y": keys::EC_Y })
}

fn ed_jwk(kid: &str) -> Value {
    json!({ "kty": "OKP", "crv": "Ed25519", "kid": kid, "x": keys::ED_X })
}

fn private_key(algorithm: Algorithm) -> EncodingKey {
    let decode = |text: &str| BASE64.decode(text.as_bytes()).unwrap();
    match algorithm {
        Algorithm::RS256 => EncodingKey::from_rsa_der(&decode(keys::RSA_PRIVATE)),
        Algorithm::ES256 => EncodingKey::from_ec_der(&decode(keys::EC_PRIVATE)),
        Algorithm::EdDSA => EncodingKey::from_ed_der(&decode(keys::ED_PRIVATE)),
        _ => EncodingKey::from_secret(SECRET),
    }
}

fn claims() -> Value {
    json!({ "iss": "https://id.example", "aud": "nexo", "sub": "alice", "name": " Alice ",
        "iat": NOW_SECONDS, "exp": NOW_SECONDS + 300 })
}

fn sign_with(header: &Header, claims: &Value) -> String {
    jsonwebtoken::encode(header, claims, &private_key(header.alg)).unwrap()
}

fn sign(algorithm: Algorithm, kid: Option<&str>, claims: &Value) -> String {
    let header = Header { kid: kid.map(str::to_owned), ..Header::new(algorithm) };
    sign_with(&header, claims)
}

/// A token with a header that no library would write; the signature is that of `token`.
fn with_header(token: &str, header: &str) -> String {
    let rest = token.split_once('.').unwrap().1;
    format!("{}.{rest}", BASE64URL_NOPAD.encode(header.as_bytes()))
}

/// Nothing in these tests waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

fn verify(verifier: &TokenVerifier, token: &str) -> Result<String, TokenRefusal> {
    match ready(verifier.verify(token, None, NOW)) {
        Ok(identity) => Ok(identity.user.to_string()),
        Err(VerifyError::Refused(refusal)) => Err(refusal),
        Err(VerifyError::Failed(error)) => panic!("{error}"),
    }
}

#[test]
fn a_token_of_each_kind_of_key_is_accepted() {
    let set = with_set(&json!([rsa_jwk("r"), ec_jwk("e"), ed_jwk("d")]));
    for (algorithm, fixed, kid) in [
        (Algorithm::RS256, with_pem(SigningAlgorithm::Rs256, keys::RSA_PUBLIC), "r"),
        (Algorithm::ES256, with_pem(SigningAlgorithm::Es256, keys::EC_PUBLIC), "e"),
        (Algorithm::EdDSA, with_pem(SigningAlgorithm::EdDsa, keys::ED_PUBLIC), "d"),
    ] {
        let alice = Ok("alice".to_owned());
        assert_eq!(verify(&fixed, &sign(algorithm, None, &claims())), alice, "{algorithm:?}");
        let named = sign(algorithm, Some("anything"), &claims());
        assert_eq!(verify(&fixed, &named), alice, "{algorithm:?}: there is only one key");
        assert_eq!(verify(&set, &sign(algorithm, Some(kid), &claims())), alice, "{algorithm:?}");
        assert_eq!(verify(&set, &sign(algorithm, None, &claims())), alice, "the only such key");
        let other = sign(algorithm, Some("other"), &claims());
        assert_eq!(verify(&set, &other), Err(UnknownKey), "{algorithm:?}");
    }
    let identity =
        ready(with_secret().verify(&sign(Algorithm::HS256, None, &claims()), None, NOW)).unwrap();
    assert_eq!(identity.nickname.as_deref(), Some("Alice"));
}

#[test]
fn no_token_chooses_its_algorithm() {
    let rsa = with_pem(SigningAlgorithm::Rs256, keys::RSA_PUBLIC);
    let set = with_set(&json!([rsa_jwk("r"), ec_jwk("e")]));
    let token = sign(Algorithm::RS256, Some("r"), &claims());
    for name in ["none", "None", "NONE", "nOnE", "", "HS256 ", "hs256", "RS1", "ES256K"] {
        let header = format!(r#"{{"alg":"{name}","typ":"JWT","kid":"r"}}"#);
        for verifier in [&rsa, &set, &with_secret()] {
            let forged = with_header(&token, &header);
            assert_eq!(verify(verifier, &forged), Err(WrongAlgorithm), "{name}");
            let unsigned = format!("{}.", forged.rsplit_once('.').unwrap().0);
            assert_eq!(verify(verifier, &unsigned), Err(WrongAlgorithm), "{name}");
        }
    }
    // The public key as the secret of an HMAC, in each form that a careless server might use.
    for secret in [keys::RSA_PUBLIC, keys::RSA_PUBLIC.trim(), keys::RSA_N] {
        let key = EncodingKey::from_secret(secret.as_bytes());
        let header = Header { kid: Some("r".into()), ..Header::new(Algorithm::HS256) };
        let forged = jsonwebtoken::encode(&header, &claims(), &key).unwrap();
        assert_eq!(verify(&rsa, &forged), Err(WrongAlgorithm));
        assert_eq!(verify(&set, &forged), Err(WrongAlgorithm));
    }
    let right = sign(Algorithm::RS256, Some("e"), &claims());
    assert_eq!(verify(&set, &right), Err(UnknownKey), "that id is of a key of another kind");
    for name in ["RS384", "RS512", "PS256", "HS512"] {
        let forged = with_header(&token, &format!(r#"{{"alg":"{name}","kid":"r"}}"#));
        assert_eq!(verify(&set, &forged), Err(WrongAlgorithm), "{name}");
    }
}

#[test]
fn what_a_header_points_to_is_not_followed() {
    let set = with_set(&json!([ec_jwk("e")]));
    let stranger = BASE64URL_NOPAD.encode(&[9; 32]);
    for header in [
        json!({ "jku": "http://127.0.0.1:1/jwks" }),
        json!({ "x5u": "http://127.0.0.1:1/cert" }),
        json!({ "x5c": ["MIIB"] }),
        json!({ "jwk": { "kty": "OKP", "crv": "Ed25519", "x": stranger } }),
        json!({ "jwk": ed_jwk("d") }),
    ] {
        let mut header = header;
        header["alg"] = "EdDSA".into();
        // Signed by a real key, which is not in the set.
        let token = sign(Algorithm::EdDSA, None, &claims());
        let signed = {
            let rest = token.split('.').nth(1).unwrap();
            let message =
                format!("{}.{rest}", BASE64URL_NOPAD.encode(header.to_string().as_bytes()));
            let key = private_key(Algorithm::EdDSA);
            let signature =
                jsonwebtoken::crypto::sign(message.as_bytes(), &key, Algorithm::EdDSA).unwrap();
            format!("{message}.{signature}")
        };
        assert_eq!(verify(&set, &signed), Err(UnknownKey), "{header}");
    }
    for kid in ["../../../../dev/null", "/etc/passwd", "e' OR '1'='1", "e\u{0}", "", "E"] {
        let token = sign(Algorithm::ES256, Some(kid), &claims());
        assert_eq!(verify(&set, &token), Err(UnknownKey), "{kid}");
    }
    let token = sign(Algorithm::ES256, Some("e"), &claims());
    let critical = with_header(&token, r#"{"alg":"ES256","kid":"e","crit":["b64"],"b64":false}"#);
    assert_eq!(verify(&set, &critical), Err(Malformed));
}

#[test]
fn claims_are_checked_against_the_settings_and_the_clock() {
    let verifier = with_secret();
    let far = NOW_SECONDS + 61;
    for (claim, value, expect) in [
        ("iss", json!("https://id.example/"), Err(WrongIssuer)),
        ("iss", json!(["https://id.example"]), Err(WrongIssuer)),
        ("iss", Value::Null, Err(WrongIssuer)),
        ("aud", json!("other"), Err(WrongAudience)),
        ("aud", json!([]), Err(WrongAudience)),
        ("aud", json!(["other", "nexo"]), Ok(())),
        ("aud", json!({ "nexo": true }), Err(WrongAudience)),
        ("aud", Value::Null, Err(WrongAudience)),
        ("exp", Value::Null, Err(NoExpiry)),
        ("exp", json!("9999999999"), Err(Malformed)),
        ("exp", json!(-1), Err(Malformed)),
        ("exp", json!(NOW_SECONDS - 60), Err(Expired)),
        ("exp", json!(NOW_SECONDS - 59), Ok(())),
        ("exp", json!(u64::MAX), Ok(())),
        ("exp", json!(1e300), Ok(())),
        ("nbf", json!(far), Err(NotYetValid)),
        ("nbf", json!(NOW_SECONDS + 60), Ok(())),
        ("nbf", json!("now"), Err(Malformed)),
        ("iat", json!(far), Err(NotYetValid)),
        ("iat", json!(1.8e9 - 0.5), Ok(())),
        ("azp", json!("an app"), Ok(())),
    ] {
        let mut said = claims();
        said[claim] = value.clone();
        let outcome = verify(&verifier, &sign(Algorithm::HS256, None, &said)).map(drop);
        assert_eq!(outcome, expect, "{claim} {value}");
    }
    let mut anyone = with_secret();
    anyone.claims.audience = String::new();
    assert_eq!(verify(&anyone, &sign(Algorithm::HS256, None, &claims())), Err(WrongAudience));
}

#[test]
fn an_id_is_taken_as_it_is_or_not_at_all() {
    let verifier = with_secret();
    for (sub, expect) in [
        (json!("alice"), Ok("alice")),
        (json!("Alice.B-2"), Ok("Alice.B-2")),
        (json!(42), Ok("42")),
        (json!("auth0|42"), Err(BadUserId)),
        (json!("alice@example.com"), Err(BadUserId)),
        (json!(" alice"), Err(BadUserId)),
        (json!("al\u{0}ice"), Err(BadUserId)),
        (json!("аlice"), Err(BadUserId)), // a Cyrillic а
        (json!(""), Err(BadUserId)),
        (json!("x".repeat(65)), Err(BadUserId)),
        (json!("admin"), Err(ReservedUserId)),
        (json!("SYSTEM"), Err(ReservedUserId)),
        (json!("r00t"), Err(ReservedUserId)),
        (json!(4.5), Err(NoUserId)),
        (json!(-4), Err(NoUserId)),
        (json!(["alice"]), Err(Malformed)),
        (json!(true), Err(NoUserId)),
        (Value::Null, Err(NoUserId)),
    ] {
        let mut said = claims();
        said["sub"] = sub.clone();
        let outcome = verify(&verifier, &sign(Algorithm::HS256, None, &said));
        assert_eq!(outcome, expect.map(str::to_owned), "{sub}");
    }
    let mut by_email = with_secret();
    by_email.user_claim = "uid".into();
    let mut said = claims();
    assert_eq!(verify(&by_email, &sign(Algorithm::HS256, None, &said)), Err(NoUserId));
    said["uid"] = "bob".into();
    said["name"] = "a\u{202e}b".into();
    let token = sign(Algorithm::HS256, None, &said);
    let identity = ready(by_email.verify(&token, None, NOW)).unwrap();
    assert_eq!((identity.user.as_str(), identity.nickname), ("bob", None));
}

#[test]
fn forged_and_broken_tokens_are_refused() {
    let verifier = with_secret();
    let token = sign(Algorithm::HS256, None, &claims());
    let [header, payload, signature] = token.split('.').collect::<Vec<_>>()[..] else { panic!() };
    let other = jsonwebtoken::encode(
        &Header::new(Algorithm::HS256),
        &claims(),
        &EncodingKey::from_secret(b"another secret of at least 32 bytes"),
    );
    let raised = BASE64URL_NOPAD.decode(payload.as_bytes()).unwrap();
    let raised = String::from_utf8(raised).unwrap().replace("alice", "carol");
    let raised = BASE64URL_NOPAD.encode(raised.as_bytes());
    for (forged, expect) in [
        (other.unwrap(), WrongSignature),
        (format!("{header}.{raised}.{signature}"), WrongSignature),
        (format!("{header}.{payload}."), WrongSignature),
        (format!("{header}.{payload}"), Malformed),
        (format!("{token}.{signature}"), Malformed),
        (token.replace('.', ""), Malformed),
        (String::new(), Malformed),
        ("..".into(), WrongAlgorithm), // an empty header names none
        ("x".repeat(TOKEN_BYTES_MAX), Malformed),
        ("x".repeat(TOKEN_BYTES_MAX + 1), TooLarge),
    ] {
        assert_eq!(verify(&verifier, &forged), Err(expect), "{forged:.60}");
    }
    let mut large = claims();
    large["more"] = "x".repeat(TOKEN_BYTES_MAX).into();
    assert_eq!(verify(&verifier, &sign(Algorithm::HS256, None, &large)), Err(TooLarge));
}

#[test]
fn a_key_id_that_is_there_twice_finds_both_keys() {
    // The second is a stranger's key of the same kind; the order does not matter.
    let stranger = json!({ "kty": "OKP", "crv": "Ed25519", "kid": "k",
        "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" });
    for set in [json!([ed_jwk("k"), stranger]), json!([stranger, ed_jwk("k")])] {
        let set = with_set(&set);
        let token = sign(Algorithm::EdDSA, Some("k"), &claims());
        assert_eq!(verify(&set, &token), Ok("alice".into()));
        let unnamed = sign(Algorithm::EdDSA, None, &claims());
        assert_eq!(verify(&set, &unnamed), Err(UnknownKey), "which of them is not said");
    }
}

#[test]
fn a_set_gives_only_keys_that_can_be_trusted() {
    let parse = |keys: Value| {
        KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).map(|set| set.0.len())
    };
    let secret = json!({ "kty": "oct", "kid": "s", "k": BASE64URL_NOPAD.encode(SECRET) });
    let mut encrypts = rsa_jwk("e");
    encrypts["use"] = "enc".into();
    let mut other = rsa_jwk("o");
    other["alg"] = "RS512".into();
    let mut weak = rsa_jwk("w");
    weak["n"] = BASE64URL_NOPAD.encode(&[0xff; 128]).into();
    let p384 = json!({ "kty": "EC", "crv": "P-384", "x": keys::EC_X, "y": keys::EC_Y });
    for unusable in [secret, encrypts, other, weak, p384, json!(3), json!({ "kty": "new" })] {
        assert_eq!(parse(json!([unusable])), Err(KeyError::NoUsableKey), "{unusable}");
        assert_eq!(parse(json!([unusable, ec_jwk("e")])), Ok(1), "{unusable}");
    }
    assert_eq!(parse(json!([])), Err(KeyError::NoUsableKey));
    assert_eq!(parse(json!(vec![ec_jwk("e"); KEYS_MAX])), Ok(KEYS_MAX));
    assert_eq!(parse(json!(vec![ec_jwk("e"); KEYS_MAX + 1])), Err(KeyError::TooManyKeys));
    for bad in ["", "{}", "[]", "<html>", r#"{"keys":{}}"#] {
        assert!(matches!(KeySet::parse(bad.as_bytes()), Err(KeyError::NotJwks)), "{bad}");
    }
}

#[test]
fn a_key_of_the_settings_fits_its_algorithm() {
    use SigningAlgorithm::{EdDsa, Es256, Hs256, Rs256};
    for (algorithm, pem, expect) in [
        (Rs256, keys::RSA_PUBLIC, Ok(())),
        (Es256, keys::EC_PUBLIC, Ok(())),
        (EdDsa, keys::ED_PUBLIC, Ok(())),
        (Es256, keys::RSA_PUBLIC, Err(KeyError::OtherAlgorithm)),
        (Rs256, keys::ED_PUBLIC, Err(KeyError::OtherAlgorithm)),
        (Hs256, keys::RSA_PUBLIC, Err(KeyError::OtherAlgorithm)),
        (Rs256, keys::RSA_WEAK, Err(KeyError::WeakRsa)),
        (Rs256, "", Err(KeyError::NotPem)),
        (Rs256, keys::RSA_N, Err(KeyError::NotPem)),
        (
            Rs256,
            "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
            Err(KeyError::NotPem),
        ),
    ] {
        assert_eq!(
            VerificationKey::from_pem(algorithm, pem).map(drop),
            expect,
            "{algorithm:?} {pem}"
        );
    }
    let private = keys::RSA_PUBLIC.replace("PUBLIC", "PRIVATE");
    assert_eq!(VerificationKey::from_pem(Rs256, &private).map(drop), Err(KeyError::NotPem));
    assert_eq!(VerificationKey::from_secret(b"short").map(drop), Err(KeyError::ShortSecret));
}

#[test]
fn a_browser_has_to_repeat_its_nonce() {
    let verifier = with_secret();
    let check = |change: fn(&mut Value), expect: Result<(), TokenRefusal>| {
        let mut said = claims();
        change(&mut said);
        let token = sign(Algorithm::HS256, None, &said);
        let outcome = ready(verifier.verify(&token, Some("n-1"), NOW));
        match (outcome, expect) {
            (Ok(_), Ok(())) => {}
            (Err(VerifyError::Refused(refusal)), Err(expect)) => assert_eq!(refusal, expect),
            other => panic!("{other:?}"),
        }
    };
    check(|_| {}, Err(WrongNonce));
    check(|said| said["nonce"] = "n-2".into(), Err(WrongNonce));
    check(|said| said["nonce"] = "n-1".into(), Ok(()));
    check(
        |said| {
            said["nonce"] = "n-1".into();
            said["azp"] = "another app".into();
        },
        Err(WrongAudience),
    );
}

#[test]
fn without_keys_nothing_is_decided() {
    let verifier = verifier(ProviderKeys::Published(Arc::new(Away)));
    let token = sign(Algorithm::RS256, Some("r"), &claims());
    assert!(matches!(ready(verifier.verify(&token, None, NOW)), Err(VerifyError::Failed(_))));
    // What no key could make right is refused without asking for keys.
    let none = with_header(&token, r#"{"alg":"none"}"#);
    let refused = ready(verifier.verify(&none, None, NOW));
    assert!(matches!(refused, Err(VerifyError::Refused(WrongAlgorithm))));
}
