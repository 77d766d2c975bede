//! An identity provider on a port of its own: publishes keys, signs tokens, and signs people in by `OpenID` Connect.
//! Its keys can be changed and it can go away while a server runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use data_encoding::{BASE64, BASE64URL_NOPAD};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub const CLIENT_ID: &str = "nexo-web";
/// With a character that has to be escaped where secrets are sent.
pub const CLIENT_SECRET: &str = "a secret of the client: 100%";

/// What comes before the 32 bytes of an Ed25519 key in PKCS #8.
const ED25519_PREFIX: [u8; 16] = [48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32];

pub struct IdentityProvider {
    /// Where it listens, which is also its issuer.
    pub issuer: String,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

struct Shared {
    issuer: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The ids of the keys that it publishes.
    published: Vec<String>,
    is_away: bool,
    key_requests: usize,
    /// Codes that were given to browsers and not exchanged yet.
    codes: HashMap<String, PendingCode>,
}

/// What the provider remembers of a browser.
struct PendingCode {
    challenge: String,
    redirect_uri: String,
    id_token: String,
}

/// A request as far as it is looked at.
struct HttpRequest {
    path: String,
    authorization: String,
    form: HashMap<String, String>,
}

impl IdentityProvider {
    /// Starts one that publishes the key `first`.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let issuer = format!("http://{}", listener.local_addr().expect("an address"));
        let state = Mutex::new(State { published: vec!["first".into()], ..State::default() });
        let shared = Arc::new(Shared { issuer: issuer.clone(), state });
        let serving = Arc::clone(&shared);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(Arc::clone(&serving), stream));
            }
        });
        Self { issuer, shared, serving }
    }

    pub fn jwks_url(&self) -> String {
        format!("{}/jwks.json", self.issuer)
    }

    /// Publishes these keys instead of the ones before.
    pub fn publish(&self, kids: &[&str]) {
        self.shared.state().published = kids.iter().map(|kid| (*kid).to_owned()).collect();
    }

    /// While it is away, every request is answered with 503.
    pub fn set_away(&self, is_away: bool) {
        self.shared.state().is_away = is_away;
    }

    /// How often its keys were asked for.
    pub fn key_requests(&self) -> usize {
        self.shared.state().key_requests
    }

    /// A token for somebody, by the key `kid`; `change` overrides claims, and null removes them.
    pub fn token(&self, kid: &str, user: &str, change: &Value) -> String {
        let mut claims = json!({ "iss": self.issuer, "aud": "nexo", "sub": user,
            "name": format!("{user} of the app"), "exp": 9_999_999_999_u64 });
        for (claim, value) in change.as_object().into_iter().flatten() {
            claims[claim] = value.clone();
        }
        if let Some(claims) = claims.as_object_mut() {
            claims.retain(|_, value| !value.is_null());
        }
        sign(kid, &claims)
    }

    /// Signs somebody in at the page that a browser was sent to. Returns the address it is sent back to.
    pub fn sign_in(&self, location: &str, user: &str, change: &Value) -> String {
        let (page, query) = location.split_once('?').expect("a query");
        assert_eq!(page, format!("{}/authorize", self.issuer));
        let asked = form(query);
        for (name, expect) in [
            ("response_type", "code"),
            ("client_id", CLIENT_ID),
            ("scope", "openid profile"),
            ("code_challenge_method", "S256"),
        ] {
            assert_eq!(asked.get(name).map(String::as_str), Some(expect), "{name}");
        }
        let mut claims = json!({ "aud": CLIENT_ID, "nonce": asked["nonce"] });
        for (claim, value) in change.as_object().into_iter().flatten() {
            claims[claim] = value.clone();
        }
        let pending = PendingCode {
            challenge: asked["code_challenge"].clone(),
            redirect_uri: asked["redirect_uri"].clone(),
            id_token: self.token("first", user, &claims),
        };
        let mut state = self.shared.state();
        let code = format!("code {}+{}", state.codes.len(), &pending.challenge[..8]);
        let back = format!(
            "{}?code={}&state={}&session_state=1",
            pending.redirect_uri,
            code.replace(' ', "%20").replace('+', "%2B"),
            asked["state"]
        );
        state.codes.insert(code, pending);
        back
    }
}

impl Drop for IdentityProvider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: &HttpRequest) -> (u16, Value) {
        let mut state = self.state();
        if request.path == "/jwks.json" {
            state.key_requests += 1;
        }
        if state.is_away {
            return (503, json!({}));
        }
        match request.path.as_str() {
            "/jwks.json" => {
                let keys: Vec<Value> = state.published.iter().map(|kid| public_key(kid)).collect();
                (200, json!({ "keys": keys }))
            }
            "/.well-known/openid-configuration" => {
                let at = |path: &str| format!("{}{path}", self.issuer);
                let description = json!({ "issuer": self.issuer, "jwks_uri": at("/jwks.json"),
                    "authorization_endpoint": at("/authorize"), "token_endpoint": at("/token") });
                (200, description)
            }
            "/token" => exchange(&mut state, request),
            _ => (404, json!({})),
        }
    }
}

/// Gives an ID token for a code, once and only to the client that began.
fn exchange(state: &mut State, request: &HttpRequest) -> (u16, Value) {
    let [id, secret] = [CLIENT_ID, CLIENT_SECRET]
        .map(|it| it.replace('%', "%25").replace(':', "%3A").replace(' ', "%20"));
    let basic = format!("Basic {}", BASE64.encode(format!("{id}:{secret}").as_bytes()));
    if request.authorization != basic {
        return (401, json!({ "error": "invalid_client" }));
    }
    let field = |name: &str| request.form.get(name).map_or("", String::as_str);
    let challenge = BASE64URL_NOPAD.encode(&Sha256::digest(field("code_verifier")));
    match state.codes.remove(field("code")) {
        Some(pending)
            if pending.challenge == challenge
                && pending.redirect_uri == field("redirect_uri")
                && field("grant_type") == "authorization_code" =>
        {
            (200, json!({ "id_token": pending.id_token, "token_type": "Bearer" }))
        }
        _ => (400, json!({ "error": "invalid_grant" })),
    }
}

async fn serve(shared: Arc<Shared>, mut stream: TcpStream) {
    // A client that hangs up gets no answer.
    let Ok(Some(request)) = read(&mut stream).await else { return };
    let (status, body) = shared.answer(&request);
    let body = body.to_string();
    let answer = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    drop(stream.write_all(answer.as_bytes()).await);
}

async fn read(stream: &mut TcpStream) -> std::io::Result<Option<HttpRequest>> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let header = |name: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            let mut found = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
            found.next().map_or("", |(_, value)| value)
        };
        if body.len() < header("content-length").parse().unwrap_or(0) {
            continue;
        }
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let authorization = header("authorization").to_owned();
        return Ok(Some(HttpRequest { path, authorization, form: form(body) }));
    }
}

/// The parameters of a query or a form.
fn form(text: &str) -> HashMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), percent_decode(value))).collect()
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next().unwrap_or(b'0'), rest.next().unwrap_or(b'0')];
            let digits = String::from_utf8_lossy(&digits).into_owned();
            bytes.push(u8::from_str_radix(&digits, 16).expect("two digits"));
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The private key of an id: the same in every test.
fn private_key(kid: &str) -> EncodingKey {
    let seed: [u8; 32] = Sha256::digest(kid).into();
    EncodingKey::from_ed_der(&[&ED25519_PREFIX[..], &seed].concat())
}

fn public_key(kid: &str) -> Value {
    let jwk = Jwk::from_encoding_key(&private_key(kid), Algorithm::EdDSA).expect("a public key");
    let mut jwk = json!(jwk);
    jwk["kid"] = kid.into();
    jwk
}

fn sign(kid: &str, claims: &Value) -> String {
    let header = Header { kid: Some(kid.to_owned()), ..Header::new(Algorithm::EdDSA) };
    jsonwebtoken::encode(&header, claims, &private_key(kid)).expect("a token")
}
