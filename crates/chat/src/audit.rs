//! The audit log: every administrative and security act, in order, each entry chained to the one before by its
//! hash. Changing, removing or inserting an entry breaks the chain, and [`verify`] finds where. No entry
//! has the text of a message, a password or a token.

use std::collections::BTreeMap;
use std::net::IpAddr;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

use crate::chat::Chat;
use crate::ids::{Millis, UserId};
use crate::keys::Operator;
use crate::reason::{Error, Reason};
use crate::store::{
    Collection, DocumentId, DocumentPage, DocumentWrite, Store, StoreError, StoreFuture,
};

/// Entries that [`verify`] reads at a time.
const VERIFY_PAGE: usize = 1000;
/// The document with the number and hash of the newest entry. Sorts after all entries.
const HEAD: &str = "head";
/// What comes before the first entry.
const NO_HASH: [u8; 32] = [0; 32];

/// An act to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// `user:alice`, `key:<id> <name>`, `command line`, or `nobody`.
    pub actor: String,
    /// In `snake_case`, such as `user_disabled`.
    pub action: &'static str,
    /// Whom or what it was done to, such as `user:bob`.
    pub target: String,
    pub address: Option<IpAddr>,
    /// Such as the reason that was given.
    pub details: BTreeMap<String, String>,
}

impl Act {
    /// What an operator did.
    pub fn by(operator: &Operator, action: &'static str, target: impl Into<String>) -> Self {
        let actor = match operator.from {
            Some(_) => format!("key:{} {}", operator.key, operator.name),
            None => operator.name.clone(),
        };
        let details = BTreeMap::new();
        Self { actor, action, target: target.into(), address: operator.from, details }
    }

    /// What a user did to their own account.
    pub fn by_user(user: &UserId, action: &'static str, from: Option<IpAddr>) -> Self {
        let (actor, target) = (format!("user:{user}"), format!("user:{user}"));
        Self { actor, action, target, address: from, details: BTreeMap::new() }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }
}

/// A recorded act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// 1, 2, 3 … without gaps.
    pub number: u64,
    pub at: Millis,
    pub actor: String,
    pub action: String,
    pub target: String,
    #[serde(default)]
    pub address: Option<IpAddr>,
    #[serde(default)]
    pub details: BTreeMap<String, String>,
    /// The hash of the entry before, in hexadecimal.
    pub previous: String,
    /// The hash of this entry. Stored beside it, not in it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hash: String,
}

/// The end of the chain.
struct Head {
    number: u64,
    hash: [u8; 32],
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let (number, hash) = std::str::from_utf8(bytes).ok()?.split_once(' ')?;
        Some(Self { number: number.parse().ok()?, hash: parse_hash(hash)? })
    }

    fn bytes(&self) -> Vec<u8> {
        format!("{} {}", self.number, HEXLOWER.encode(&self.hash)).into_bytes()
    }
}

fn parse_hash(text: &str) -> Option<[u8; 32]> {
    HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}

/// An entry as it is stored: its hash in hexadecimal, a line end, and the JSON that was hashed, so that its bytes
/// need not be reproduced to verify it.
fn stored(hash: &[u8; 32], json: &[u8]) -> Vec<u8> {
    [HEXLOWER.encode(hash).as_bytes(), b"\n", json].concat()
}

fn hash_of(json: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("nexo audit log v1");
    hasher.update(json); // which has the previous hash
    hasher.finalize().into()
}

fn key_of(number: u64) -> String {
    format!("e{number:020}")
}

fn entry_id(number: u64) -> DocumentId {
    DocumentId::new(Collection::Audit, key_of(number))
}

fn head_id() -> DocumentId {
    DocumentId::new(Collection::Audit, HEAD)
}

/// Appends an act to the log. Durable when the future resolves; queued even if it is dropped.
pub fn record<'a>(store: &'a dyn Store, at: Millis, act: &Act) -> StoreFuture<'a, ()> {
    let act = act.clone();
    store.change_documents(&head_id(), Box::new(move |head| append(head, at, &act)))
}

fn append(head: Option<&[u8]>, at: Millis, act: &Act) -> Vec<DocumentWrite> {
    let newest = match head {
        None => Head { number: 0, hash: NO_HASH },
        // A head that cannot be parsed was tampered with. The log goes on behind a gap that verification reports:
        // milliseconds since 1970 are more than there are entries.
        Some(head) => Head::parse(head).unwrap_or(Head { number: at.0, hash: NO_HASH }),
    };
    let entry = AuditEntry {
        number: newest.number + 1,
        at,
        actor: act.actor.clone(),
        action: act.action.to_owned(),
        target: act.target.clone(),
        address: act.address,
        details: act.details.clone(),
        previous: HEXLOWER.encode(&newest.hash),
        hash: String::new(),
    };
    let Ok(json) = serde_json::to_vec(&entry) else { return Vec::new() };
    let head = Head { number: entry.number, hash: hash_of(&json) };
    let body = stored(&head.hash, &json);
    vec![
        DocumentWrite { id: entry_id(entry.number), body: Some(body) },
        DocumentWrite { id: head_id(), body: Some(head.bytes()) },
    ]
}

/// Records an act of a running server.
pub(crate) async fn record_now(chat: &Chat, act: &Act) -> Result<(), Error> {
    Ok(record(&*chat.store, chat.clock.now(), act).await?)
}

/// The newest entries first, before a number.
pub async fn list(
    store: &dyn Store,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<AuditEntry>, Error> {
    let page = DocumentPage {
        prefix: "e".to_owned(),
        after: before.map(key_of),
        backwards: true,
        ..DocumentPage::first(Collection::Audit, limit)
    };
    let found = store.documents(page).await?;
    let entries = found.iter().map(|(key, bytes)| {
        let (hash, json) = split(bytes).ok_or_else(|| damaged(key))?;
        let entry: AuditEntry = serde_json::from_slice(json).map_err(|_| damaged(key))?;
        Ok(AuditEntry { hash: HEXLOWER.encode(&hash), ..entry })
    });
    Ok(entries.collect::<Result<_, StoreError>>()?)
}

fn damaged(key: &str) -> StoreError {
    StoreError::Damaged(format!("the audit entry {key} makes no sense"))
}

fn split(bytes: &[u8]) -> Option<([u8; 32], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == b'\n')?;
    let hash = parse_hash(std::str::from_utf8(&bytes[..at]).ok()?)?;
    Some((hash, &bytes[at + 1..]))
}

/// What [`verify`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// Entries that were read.
    pub entries: u64,
    /// The hash of the newest one, in hexadecimal: kept elsewhere, it also proves that none was cut off.
    pub newest: String,
    /// The first entry that is not what was recorded, and why.
    pub broken: Option<(u64, &'static str)>,
}

/// Reads the whole chain and checks every link.
pub async fn verify(store: &dyn Store) -> Result<Verification, Error> {
    let (mut number, mut hash) = (0, NO_HASH);
    let broken_at = |number, hash: [u8; 32], why| Verification {
        entries: number,
        newest: HEXLOWER.encode(&hash),
        broken: Some((number + 1, why)),
    };
    loop {
        let page = DocumentPage {
            prefix: "e".to_owned(),
            after: (number > 0).then(|| key_of(number)),
            ..DocumentPage::first(Collection::Audit, VERIFY_PAGE)
        };
        let found = store.documents(page).await?;
        let is_last = found.len() < VERIFY_PAGE;
        for (key, bytes) in found {
            match check_link(number, hash, &key, &bytes) {
                Ok(next) => (number, hash) = (number + 1, next),
                Err(why) => return Ok(broken_at(number, hash, why)),
            }
        }
        if is_last {
            break;
        }
    }
    let head = store.document(&head_id()).await?;
    let head = match &head {
        None => Some(Head { number: 0, hash: NO_HASH }),
        Some(bytes) => Head::parse(bytes),
    };
    match head {
        Some(head) if head.number == number && head.hash == hash => {}
        // Acts may have been recorded meanwhile.
        Some(head)
            if head.number > number && store.document(&entry_id(number + 1)).await?.is_some() => {}
        _ => return Ok(broken_at(number, hash, "the newest entries are missing")),
    }
    Ok(Verification { entries: number, newest: HEXLOWER.encode(&hash), broken: None })
}

/// Checks the entry after `number` and returns its hash.
fn check_link(
    number: u64,
    previous: [u8; 32],
    key: &str,
    bytes: &[u8],
) -> Result<[u8; 32], &'static str> {
    if key != key_of(number + 1) {
        return Err("an entry is missing");
    }
    let (hash, json) = split(bytes).ok_or("it cannot be read")?;
    let entry: AuditEntry = serde_json::from_slice(json).map_err(|_| "it cannot be read")?;
    if hash != hash_of(json) {
        return Err("it was changed");
    }
    if entry.number != number + 1 || entry.previous != HEXLOWER.encode(&previous) {
        return Err("it does not follow the one before");
    }
    Ok(hash)
}

/// A page of the log for an operator, newest first.
pub async fn page(
    chat: &Chat,
    operator: &Operator,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<AuditEntry>, Error> {
    operator.require(crate::keys::Scope::Admin)?;
    if before == Some(0) {
        return Err(Reason::InvalidParam.into());
    }
    list(&*chat.store, before, limit).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act() -> Act {
        Act::by(&Operator::command_line(), "user_disabled", "user:bob").with("reason", "spam")
    }

    /// The stored bodies of three acts.
    fn chain() -> Vec<Vec<u8>> {
        let mut head = None;
        let mut entries = Vec::new();
        for at in 1..=3 {
            let writes = append(head.as_deref(), Millis(at), &act());
            assert_eq!(writes[0].id, entry_id(at));
            entries.extend(writes[0].body.clone());
            head = writes[1].body.clone();
        }
        entries
    }

    fn check(entries: &[Vec<u8>]) -> Result<(), &'static str> {
        let mut hash = NO_HASH;
        for (number, bytes) in entries.iter().enumerate() {
            let number = number as u64;
            hash = check_link(number, hash, &key_of(number + 1), bytes)?;
        }
        Ok(())
    }

    #[test]
    fn what_was_recorded_verifies() {
        assert_eq!(check(&chain()), Ok(()));
    }

    #[test]
    fn every_tampering_breaks_the_chain() {
        let replaced = |number: usize, from: &str, to: &str| {
            let mut entries = chain();
            let text = String::from_utf8(entries[number].clone()).unwrap();
            entries[number] = text.replace(from, to).into_bytes();
            entries
        };
        assert_eq!(check(&replaced(1, "spam", "ham!")), Err("it was changed"));
        assert_eq!(check(&replaced(2, "user:bob", "user:eve")), Err("it was changed"));
        let mut swapped = chain();
        swapped.swap(0, 1);
        assert_eq!(check(&swapped), Err("it does not follow the one before"));
        // Hashed anew, it no longer fits its successor.
        let mut forged = chain();
        let (_, json) = split(&forged[0]).unwrap();
        let json = String::from_utf8(json.to_vec()).unwrap().replace("spam", "ham!");
        forged[0] = stored(&hash_of(json.as_bytes()), json.as_bytes());
        assert_eq!(check(&forged), Err("it does not follow the one before"));
        let mut cut = chain();
        cut[1].truncate(80);
        assert_eq!(check(&cut), Err("it cannot be read"));
    }
}
