//! Documents: small records of features that need no table of their own, such as API keys, invite
//! links and the audit log. Each has a collection and a key; what its bytes mean is up to the feature.

use super::StoreFuture;

/// The kind of a document. Its name is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Collection {
    /// API keys.
    Keys,
    /// Invite links.
    Invites,
    /// Actions of operators.
    Audit,
    /// Messages from the operator to many users.
    Broadcasts,
    /// Settings that are changed while the server runs.
    Settings,
}

impl Collection {
    pub const ALL: [Self; 5] =
        [Self::Keys, Self::Invites, Self::Audit, Self::Broadcasts, Self::Settings];

    /// The stored name: lowercase letters, at most 32.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::Invites => "invites",
            Self::Audit => "audit",
            Self::Broadcasts => "broadcasts",
            Self::Settings => "settings",
        }
    }

    /// Returns the collection with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|collection| collection.name() == name)
    }
}

/// The collection and the key of a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentId {
    pub collection: Collection,
    /// 1–191 printable ASCII characters without spaces: databases ignore a space at the end.
    pub key: String,
}

impl DocumentId {
    /// The longest a key may be, in bytes.
    pub const KEY_MAX: usize = 191;

    /// Builds the id of a document from a key that this program made.
    pub fn new(collection: Collection, key: impl Into<String>) -> Self {
        let key = key.into();
        debug_assert!(!key.is_empty() && Self::may_begin_key(&key), "not a key: {key:?}");
        Self { collection, key }
    }

    /// The same for a key from outside; `None` if it can be no key.
    pub fn parse(collection: Collection, key: &str) -> Option<Self> {
        let is_key = !key.is_empty() && Self::may_begin_key(key);
        is_key.then(|| Self { collection, key: key.to_owned() })
    }

    /// Whether a key can begin with this text, or be it.
    pub fn may_begin_key(text: &str) -> bool {
        text.len() <= Self::KEY_MAX && text.bytes().all(|byte| byte.is_ascii_graphic())
    }
}

/// A document to store, or to delete if the body is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentWrite {
    pub id: DocumentId,
    /// Small: it is read and written as a whole, and waits in memory.
    pub body: Option<Vec<u8>>,
}

impl DocumentWrite {
    pub fn put(id: DocumentId, body: Vec<u8>) -> Self {
        Self { id, body: Some(body) }
    }

    pub fn delete(id: DocumentId) -> Self {
        Self { id, body: None }
    }
}

/// Decides which documents change, from the guard as it is now. Pure: it runs inside the atomic
/// operation, and again on every retry.
pub type DecideDocuments = Box<dyn Fn(Option<&[u8]>) -> Vec<DocumentWrite> + Send + Sync>;

/// A page of documents to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentPage {
    pub collection: Collection,
    /// Only documents whose keys begin with this.
    pub prefix: String,
    /// Only documents after this key, in the order of the page.
    pub after: Option<String>,
    /// The greatest key first.
    pub backwards: bool,
    pub limit: usize,
}

impl DocumentPage {
    /// The first documents of a collection.
    pub fn first(collection: Collection, limit: usize) -> Self {
        Self { collection, prefix: String::new(), after: None, backwards: false, limit }
    }
}

/// Reads and changes documents.
pub trait DocumentStore: Send + Sync {
    /// Returns a document.
    fn document(&self, id: &DocumentId) -> StoreFuture<'_, Option<Vec<u8>>>;

    /// Returns a page of documents with their keys, in the order of the keys (bytes). A prefix or a
    /// key that no document can have gives an empty page.
    fn documents(&self, page: DocumentPage) -> StoreFuture<'_, Vec<(String, Vec<u8>)>>;

    /// Passes the document `guard` as it is now to `decide` and applies the writes it returns, all or
    /// none, durable when it returns. Atomic with every other call with the same guard, on every
    /// node. A change that relies on the guard being absent must write it. `decide` may be called
    /// more than once, and the writes of its last call count; of several writes of one document, the
    /// last counts. No writes: nothing happens.
    fn change_documents(&self, guard: &DocumentId, decide: DecideDocuments) -> StoreFuture<'_, ()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_have_names_of_their_own() {
        for collection in Collection::ALL {
            let name = collection.name();
            assert_eq!(Collection::parse(name), Some(collection));
            assert!(name.len() <= 32 && name.bytes().all(|byte| byte.is_ascii_lowercase()));
        }
        assert_eq!(Collection::parse("Keys"), None);
    }

    #[test]
    fn keys_keep_to_their_alphabet() {
        let parse = |key: &str| DocumentId::parse(Collection::Keys, key);
        for good in ["a", "a/b:c~", &"x".repeat(191)] {
            assert_eq!(parse(good), Some(DocumentId::new(Collection::Keys, good)), "{good}");
        }
        for bad in ["", "a b", "a ", "é", "a\0", "a\u{7f}", &"x".repeat(192)] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert!(DocumentId::may_begin_key("") && !DocumentId::may_begin_key(" "));
    }
}
