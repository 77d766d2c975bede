//! API keys: how a backend, an operator or a scraper proves who it is. A key is 32 random bytes behind
//! `nk_`; only its hash is stored, under an id derived from it, so that checking a key is one lookup.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use serde::{Deserialize, Serialize};

use crate::audit::{self, Act};
use crate::chat::Chat;
use crate::clock::Rng;
use crate::documents;
use crate::ids::Millis;
use crate::reason::{DetailedReason, Error, Reason};
use crate::store::{Collection, DocumentId, DocumentPage, Store};
use crate::throttle::Throttle;

const PREFIX: &str = "nk_";
const NAME_CHARS_MAX: usize = 64;
/// Keys that can exist at a time; listing them is one read.
const KEYS_MAX: usize = 1000;
/// The time of last use is written at most this often.
const TOUCH_EVERY_MS: u64 = 60_000;
/// Wrong keys of one address that are answered without delay.
const GUESSES_PER_MINUTE: u32 = 60;

/// What a key may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Create, change and sign in users.
    Backend,
    /// Everything under `/admin`, including what `Backend` allows.
    Admin,
    /// Read the metrics.
    Metrics,
    /// Send messages from the system user.
    System,
}

impl Scope {
    pub const ALL: [Self; 4] = [Self::Backend, Self::Admin, Self::Metrics, Self::System];

    pub fn name(self) -> &'static str {
        match self {
            Self::Backend => "backend",
            Self::Admin => "admin",
            Self::Metrics => "metrics",
            Self::System => "system",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// A stored key. The key itself is shown once, when it is created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    pub id: String,
    pub name: String,
    pub scopes: BTreeSet<Scope>,
    pub created_at: Millis,
    /// Who created it: the name of a key, or `command line`.
    pub created_by: String,
    pub expires_at: Option<Millis>,
    #[serde(default)]
    pub last_used_at: Option<Millis>,
    /// BLAKE3 of the key.
    hash: [u8; 32],
}

/// A request to create a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewKey {
    pub name: String,
    pub scopes: BTreeSet<Scope>,
    /// `None`: until it is revoked.
    pub expires_in_ms: Option<u64>,
}

/// The holder of a key, who asks for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// The id of the key; for the tokens in the data folder their file's name.
    pub key: String,
    pub name: String,
    pub scopes: BTreeSet<Scope>,
    /// `None` on the command line.
    pub from: Option<IpAddr>,
}

impl Operator {
    /// The user of the command line, who can read the data folder or database anyway.
    pub fn command_line() -> Self {
        let (key, name) = ("cli".to_owned(), "command line".to_owned());
        Self { key, name, scopes: Scope::ALL.into(), from: None }
    }

    /// Fails unless the key has a scope. `Admin` includes `Backend`.
    pub fn require(&self, scope: Scope) -> Result<(), Reason> {
        let has_it = self.scopes.contains(&scope)
            || scope == Scope::Backend && self.scopes.contains(&Scope::Admin);
        if has_it { Ok(()) } else { Err(Reason::ScopeMissing) }
    }
}

/// Keys that are settings or files of the data folder, and limits on guessing.
pub struct Keys {
    fixed: Vec<FixedKey>,
    guesses: Throttle<IpAddr>,
    /// When the last use of a key was written.
    touched: Mutex<BTreeMap<String, Millis>>,
}

struct FixedKey {
    name: String,
    hash: [u8; 32],
    scopes: BTreeSet<Scope>,
}

impl Default for Keys {
    fn default() -> Self {
        let guesses = Throttle::per_minute(GUESSES_PER_MINUTE);
        Self { fixed: Vec::new(), guesses, touched: Mutex::default() }
    }
}

impl Keys {
    /// Adds a token that is not in the store, such as the one in `system.token`.
    #[must_use]
    pub fn with_fixed(mut self, name: &str, token: &str, scopes: &[Scope]) -> Self {
        let scopes = scopes.iter().copied().collect();
        self.fixed.push(FixedKey { name: name.to_owned(), hash: hash_of(token), scopes });
        self
    }

    fn find_fixed(&self, hash: [u8; 32]) -> Option<&FixedKey> {
        // Hashes compare in constant time.
        self.fixed.iter().find(|key| blake3::Hash::from(key.hash) == blake3::Hash::from(hash))
    }
}

fn hash_of(key: &str) -> [u8; 32] {
    blake3::hash(key.as_bytes()).into()
}

/// The id of the key with a hash: enough of it to be unique, too little to be of use.
fn id_of(hash: [u8; 32]) -> String {
    BASE32_NOPAD.encode(&blake3::hash(&hash).as_bytes()[..10]).to_lowercase()
}

fn document_of(id: &str) -> DocumentId {
    DocumentId::new(Collection::Keys, id)
}

/// Creates a key and returns it with its only copy in plain text.
pub async fn create(
    store: &dyn Store,
    rng: &dyn Rng,
    now: Millis,
    operator: &Operator,
    new: NewKey,
) -> Result<(ApiKey, String), Error> {
    operator.require(Scope::Admin)?;
    let name = new.name.trim();
    if name.is_empty()
        || name.chars().count() > NAME_CHARS_MAX
        || name.chars().any(char::is_control)
    {
        return Err(DetailedReason::field("name").into());
    }
    if new.scopes.is_empty() {
        return Err(DetailedReason::field("scopes").into());
    }
    // Nobody gives what they do not have, so that an admin key cannot speak as the system user.
    for scope in new.scopes.iter().filter(|scope| **scope != Scope::Metrics) {
        operator.require(*scope)?;
    }
    if list(store, operator).await?.len() >= KEYS_MAX {
        return Err(DetailedReason::new(Reason::Forbidden, "there are too many keys").into());
    }
    let mut secret = [0; 32];
    rng.fill(&mut secret);
    let plain = format!("{PREFIX}{}", BASE64URL_NOPAD.encode(&secret));
    let hash = hash_of(&plain);
    let key = ApiKey {
        id: id_of(hash),
        name: name.to_owned(),
        scopes: new.scopes,
        created_at: now,
        created_by: operator.name.clone(),
        expires_at: new.expires_in_ms.map(|ms| now.plus(ms)),
        last_used_at: None,
        hash,
    };
    let stored = key.clone();
    documents::change(store, &document_of(&key.id), move |_: Option<ApiKey>| {
        Ok((Some(stored.clone()), ()))
    })
    .await?;
    let act = Act::by(operator, "key_created", format!("key:{}", key.id));
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.name()).collect();
    let act = act.with("name", key.name.as_str()).with("scopes", scopes.join(" "));
    audit::record(store, now, &act).await?;
    Ok((key, plain))
}

/// All keys that are not revoked, in the order of their ids.
pub async fn list(store: &dyn Store, operator: &Operator) -> Result<Vec<ApiKey>, Error> {
    operator.require(Scope::Admin)?;
    let page = DocumentPage::first(Collection::Keys, KEYS_MAX);
    Ok(documents::list(store, page).await?.into_iter().map(|(_, key)| key).collect())
}

/// Revokes a key: it is deleted, and refused from now on. Returns what it was.
pub async fn revoke(
    store: &dyn Store,
    now: Millis,
    operator: &Operator,
    id: &str,
) -> Result<ApiKey, Error> {
    operator.require(Scope::Admin)?;
    let id = DocumentId::parse(Collection::Keys, id).ok_or(Reason::NotFound)?;
    let revoked = documents::change(store, &id, |key: Option<ApiKey>| match key {
        Some(key) => Ok((None, key)),
        None => Err(Reason::NotFound),
    })
    .await?;
    let act = Act::by(operator, "key_revoked", format!("key:{}", revoked.id));
    audit::record(store, now, &act.with("name", revoked.name.as_str())).await?;
    Ok(revoked)
}

/// The holder of a key with a scope. A wrong, expired or revoked key and no key at all get the same answer.
pub async fn authenticate(
    chat: &Chat,
    from: IpAddr,
    plain: &str,
    scope: Scope,
) -> Result<Operator, Error> {
    let operator = match find(chat, from, plain).await? {
        Some(operator) => operator,
        None if plain.is_empty() => return Err(Reason::Unauthorized.into()),
        None if chat.keys.guesses.take(from, chat.clock.ticks()) => {
            return Err(Reason::Unauthorized.into());
        }
        None => return Err(Reason::TooManyRequests.into()),
    };
    operator.require(scope)?;
    Ok(operator)
}

async fn find(chat: &Chat, from: IpAddr, plain: &str) -> Result<Option<Operator>, Error> {
    let hash = hash_of(plain);
    if let Some(FixedKey { name, scopes, .. }) = chat.keys.find_fixed(hash) {
        let (key, scopes) = (name.clone(), scopes.clone());
        return Ok(Some(Operator { key, name: name.clone(), scopes, from: Some(from) }));
    }
    if !plain.starts_with(PREFIX) {
        return Ok(None);
    }
    let id = document_of(&id_of(hash));
    let now = chat.clock.now();
    let key: Option<ApiKey> = documents::get(&*chat.store, &id).await?;
    let is_valid = |key: &ApiKey| {
        blake3::Hash::from(key.hash) == blake3::Hash::from(hash)
            && key.expires_at.is_none_or(|expires_at| now < expires_at)
    };
    let Some(key) = key.filter(is_valid) else { return Ok(None) };
    touch(chat, &id, &key, now);
    Ok(Some(Operator { key: key.id, name: key.name, scopes: key.scopes, from: Some(from) }))
}

/// Records that a key was used, now and then.
fn touch(chat: &Chat, id: &DocumentId, key: &ApiKey, now: Millis) {
    let mut touched = chat.keys.touched.lock().unwrap_or_else(PoisonError::into_inner);
    let last = touched.get(&key.id).copied().or(key.last_used_at).unwrap_or_default();
    if now.since(last) < TOUCH_EVERY_MS {
        return;
    }
    touched.insert(key.id.clone(), now);
    drop(touched);
    // The store queues the write when called. It is only a hint for the operator, so nobody waits for it.
    drop(documents::change_soon(&*chat.store, id, move |key: Option<ApiKey>| {
        key.map(|key| ApiKey { last_used_at: key.last_used_at.max(Some(now)), ..key })
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_known_by_their_names() {
        for scope in Scope::ALL {
            assert_eq!(Scope::parse(scope.name()), Some(scope));
            assert_eq!(serde_json::to_value(scope).unwrap(), scope.name());
        }
        assert_eq!(Scope::parse("root"), None);
    }

    #[test]
    fn admin_includes_backend_and_nothing_else() {
        let with = |scope| Operator { scopes: [scope].into(), ..Operator::command_line() };
        for scope in Scope::ALL {
            for wanted in Scope::ALL {
                let is_allowed =
                    scope == wanted || (scope == Scope::Admin && wanted == Scope::Backend);
                let expect = if is_allowed { Ok(()) } else { Err(Reason::ScopeMissing) };
                assert_eq!(with(scope).require(wanted), expect, "{scope:?} for {wanted:?}");
            }
        }
    }

    #[test]
    fn fixed_tokens_are_found_by_their_hash() {
        let keys = Keys::default().with_fixed("metrics.token", "secret", &[Scope::Metrics]);
        assert!(keys.find_fixed(hash_of("secret")).is_some());
        assert!(keys.find_fixed(hash_of("Secret")).is_none());
        assert!(keys.find_fixed(hash_of("")).is_none());
    }
}
