//! What lists of everything promise.

use std::sync::Arc;

use super::Opener;
use super::fixtures::{account, user};

/// Ids in the order of their bytes, which is not that of a dictionary.
const IDS: [&str; 6] = ["-", "10", "9", "Zed", "a", "a.b"];

pub(super) async fn users(opener: Arc<dyn Opener>) {
    let store = opener.open();
    assert!(store.users(None, 9).await.unwrap().is_empty());
    for id in [4, 1, 5, 0, 3, 2] {
        assert!(store.create_user(account(IDS[id])).await.unwrap());
    }
    let page = async |after: Option<&str>, limit| {
        let after = after.map(user);
        let users = store.users(after.as_ref(), limit).await.unwrap();
        users.iter().map(|user| user.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(page(None, 99).await, IDS);
    assert_eq!(page(None, 2).await, IDS[..2]);
    assert_eq!(page(Some("9"), 2).await, IDS[3..5]);
    assert_eq!(page(Some("Yes"), 9).await, IDS[3..], "after one that is not there");
    assert!(page(Some("a.b"), 9).await.is_empty());
    assert!(page(None, 0).await.is_empty());
    let all = store.users(None, 99).await.unwrap();
    for found in all {
        assert_eq!(*found, account(found.id.as_str()));
    }
}
