//! What documents promise.

use std::sync::{Arc, Mutex};

use nexo_chat::store::{Collection, DocumentId, DocumentPage, DocumentWrite, Store};

use super::Opener;

fn id(key: &str) -> DocumentId {
    DocumentId::new(Collection::Keys, key)
}

fn put(key: &str, body: impl AsRef<[u8]>) -> DocumentWrite {
    DocumentWrite::put(id(key), body.as_ref().to_vec())
}

/// Writes documents whatever the guard is.
async fn write(store: &Arc<dyn Store>, writes: Vec<DocumentWrite>) {
    let guard = writes[0].id.clone();
    store.change_documents(&guard, Box::new(move |_| writes.clone())).await.unwrap();
}

async fn read(store: &Arc<dyn Store>, key: &str) -> Option<Vec<u8>> {
    store.document(&id(key)).await.unwrap()
}

/// The keys of a page.
async fn keys(store: &Arc<dyn Store>, page: DocumentPage) -> Vec<String> {
    let page = store.documents(page).await.unwrap();
    page.into_iter().map(|(key, _)| key).collect()
}

fn page_of(prefix: &str, after: Option<&str>, limit: usize) -> DocumentPage {
    DocumentPage {
        prefix: prefix.into(),
        after: after.map(str::to_owned),
        ..DocumentPage::first(Collection::Keys, limit)
    }
}

pub(super) async fn written(opener: Arc<dyn Opener>) {
    let store = opener.open();
    assert_eq!(read(&store, "a").await, None);
    let every_byte: Vec<u8> = (0..=255).collect();
    let long = "~".repeat(DocumentId::KEY_MAX);
    write(&store, vec![put("a", &every_byte), put("empty", ""), put(&long, "long")]).await;
    assert_eq!(read(&store, "a").await, Some(every_byte));
    assert_eq!(read(&store, "empty").await, Some(Vec::new()), "empty is not absent");
    assert_eq!(read(&store, &long).await, Some(b"long".to_vec()));
    let elsewhere = DocumentId::new(Collection::Invites, "a");
    assert_eq!(store.document(&elsewhere).await.unwrap(), None, "collections are apart");
    for other in ["A", "a.", "b"] {
        assert_eq!(read(&store, other).await, None, "{other}");
    }

    write(&store, vec![put("a", "new"), DocumentWrite::delete(id("empty"))]).await;
    assert_eq!(read(&store, "a").await, Some(b"new".to_vec()));
    assert_eq!(read(&store, "empty").await, None);
    write(&store, vec![DocumentWrite::delete(id("never"))]).await;
    write(&store, vec![put("a", "first"), DocumentWrite::delete(id("a")), put("a", "last")]).await;
    assert_eq!(read(&store, "a").await, Some(b"last".to_vec()), "the last write counts");
    let large = vec![7; 1 << 20];
    write(&store, vec![put("large", &large)]).await;
    assert_eq!(read(&store, "large").await, Some(large));
}

pub(super) async fn guarded(opener: Arc<dyn Opener>) {
    let store = opener.open();
    // Moves a document and counts in the guard, all in one change.
    let count = |before: Option<&[u8]>| {
        let count = before.map_or(0, |bytes| bytes[0]);
        let from = DocumentWrite::delete(id(&format!("at{count}")));
        vec![from, put(&format!("at{}", count + 1), [count]), put("guard", [count + 1])]
    };
    for expect in 1..=3 {
        store.change_documents(&id("guard"), Box::new(count)).await.unwrap();
        assert_eq!(read(&store, "guard").await, Some(vec![expect]));
        let all = keys(&store, page_of("at", None, 9)).await;
        assert_eq!(all, [format!("at{expect}")]);
    }
    let seen = Arc::new(Mutex::new(None));
    let noted = Arc::clone(&seen);
    let nothing = move |before: Option<&[u8]>| {
        *noted.lock().unwrap() = before.map(<[u8]>::to_vec);
        Vec::new()
    };
    store.change_documents(&id("guard"), Box::new(nothing)).await.unwrap();
    assert_eq!(seen.lock().unwrap().take(), Some(vec![3]), "decided on what is there");
    assert_eq!(read(&store, "guard").await, Some(vec![3]), "no writes, no change");
    // A guard that goes, and other documents that come.
    let end = |_: Option<&[u8]>| vec![DocumentWrite::delete(id("guard")), put("ended", "")];
    store.change_documents(&id("guard"), Box::new(end)).await.unwrap();
    assert_eq!((read(&store, "guard").await, read(&store, "ended").await), (None, Some(vec![])));
}

/// Keys in the order of their bytes, which is not that of a dictionary.
const KEYS: [&str; 9] = ["!", "10", "9", "Zed", "a", "a!", "a~", "b", "~"];

async fn filled(opener: &Arc<dyn Opener>) -> Arc<dyn Store> {
    let store = opener.open();
    let shuffled = [4, 8, 1, 5, 0, 7, 3, 6, 2].map(|n| put(KEYS[n], KEYS[n]));
    write(&store, shuffled.into()).await;
    // Neighbours that belong to other collections.
    for collection in [Collection::Invites, Collection::Settings] {
        write(&store, vec![DocumentWrite::put(DocumentId::new(collection, "a"), vec![1])]).await;
    }
    store
}

pub(super) async fn pages(opener: Arc<dyn Opener>) {
    let store = filled(&opener).await;
    let page = async |prefix, after, limit| keys(&store, page_of(prefix, after, limit)).await;
    assert_eq!(page("", None, 99).await, KEYS);
    assert_eq!(page("", None, 2).await, KEYS[..2]);
    assert_eq!(page("", Some("9"), 3).await, KEYS[3..6]);
    assert_eq!(page("", Some("Yes"), 99).await, KEYS[3..], "after one that is not there");
    assert_eq!(page("a", None, 99).await, KEYS[4..7]);
    assert_eq!(page("a", Some("a"), 99).await, KEYS[5..7]);
    assert_eq!(page("a", Some("9"), 99).await, KEYS[4..7], "the prefix begins later");
    assert_eq!(page("~", None, 99).await, KEYS[8..]);
    for (prefix, after, limit) in [
        ("", None, 0),
        ("c", None, 9),
        ("", Some("~"), 9),
        ("a", Some("b"), 9),
        ("a", Some("a~"), 9),
        ("é", None, 9),
        ("", Some("é"), 9),
        ("", Some("a "), 9),
    ] {
        assert!(page(prefix, after, limit).await.is_empty(), "{prefix:?} {after:?} {limit}");
    }
    for (key, body) in store.documents(page_of("", None, 99)).await.unwrap() {
        assert_eq!(key.as_bytes(), body);
    }
    let others = DocumentPage::first(Collection::Invites, 9);
    assert_eq!(store.documents(others).await.unwrap(), [("a".to_owned(), vec![1])]);
}

pub(super) async fn backwards(opener: Arc<dyn Opener>) {
    let store = filled(&opener).await;
    let page = async |prefix, after, limit| {
        let page = DocumentPage { backwards: true, ..page_of(prefix, after, limit) };
        let mut keys = keys(&store, page).await;
        keys.reverse();
        keys
    };
    assert_eq!(page("", None, 99).await, KEYS);
    assert_eq!(page("", None, 2).await, KEYS[7..]);
    assert_eq!(page("", Some("a"), 2).await, KEYS[2..4]);
    assert_eq!(page("", Some("Yes"), 99).await, KEYS[..3], "before one that is not there");
    assert_eq!(page("a", None, 2).await, KEYS[5..7]);
    assert_eq!(page("a", Some("a~"), 99).await, KEYS[4..6]);
    assert_eq!(page("a", Some("b"), 99).await, KEYS[4..7], "the prefix ends earlier");
    for (prefix, after, limit) in
        [("", None, 0), ("", Some("!"), 9), ("a", Some("a"), 9), ("a", Some("9"), 9)]
    {
        assert!(page(prefix, after, limit).await.is_empty(), "{prefix:?} {after:?} {limit}");
    }
}

pub(super) async fn all_count(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let calls: Vec<_> = (0..24)
        .map(|_| {
            let store = Arc::clone(&store);
            // Also the first, which finds no guard.
            let count = |before: Option<&[u8]>| {
                let next = before.map_or(1, |bytes| bytes[0] + 1);
                vec![put("count", [next]), put(&format!("entry{next:02}"), "")]
            };
            tokio::spawn(async move {
                store.change_documents(&id("count"), Box::new(count)).await.unwrap();
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(read(&store, "count").await, Some(vec![24]));
    let entries: Vec<String> = (1..=24).map(|n| format!("entry{n:02}")).collect();
    assert_eq!(keys(&store, page_of("entry", None, 99)).await, entries);
}

pub(super) async fn one_wins(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let calls: Vec<_> = (0..16_u8)
        .map(|n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                // What the last call of the decision saw is what counts.
                let free = Arc::new(Mutex::new(false));
                let noted = Arc::clone(&free);
                let take = move |before: Option<&[u8]>| {
                    *noted.lock().unwrap() = before.is_none();
                    if before.is_none() { vec![put("seat", [n])] } else { Vec::new() }
                };
                store.change_documents(&id("seat"), Box::new(take)).await.unwrap();
                let won = *free.lock().unwrap();
                won.then_some(n)
            })
        })
        .collect();
    let mut winners = Vec::new();
    for call in calls {
        winners.extend(call.await.unwrap());
    }
    assert_eq!(winners.len(), 1, "{winners:?}");
    assert_eq!(read(&store, "seat").await, Some(winners));
}

pub(super) async fn crossed(opener: Arc<dyn Opener>) {
    let store = opener.open();
    write(&store, vec![put("one", "0"), put("other", "0")]).await;
    let calls: Vec<_> = (0..12_u8)
        .map(|n| {
            let store = Arc::clone(&store);
            let (guard, also) = if n % 2 == 0 { ("one", "other") } else { ("other", "one") };
            let both = move |_: Option<&[u8]>| vec![put(guard, [n]), put(also, [n])];
            tokio::spawn(async move {
                store.change_documents(&id(guard), Box::new(both)).await.unwrap();
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(read(&store, "one").await, read(&store, "other").await, "each wrote both");
}

pub(super) async fn survive_crash(opener: Arc<dyn Opener>) {
    let store = opener.open();
    write(&store, vec![put("a", "1"), put("b", "2"), put("c", "3")]).await;
    write(&store, vec![put("a", "new"), DocumentWrite::delete(id("b"))]).await;
    let found = opener.open_after_crash();
    let all = found.documents(page_of("", None, 9)).await.unwrap();
    assert_eq!(all, [("a".to_owned(), b"new".to_vec()), ("c".to_owned(), b"3".to_vec())]);
    assert_eq!(read(&found, "b").await, None);
}
