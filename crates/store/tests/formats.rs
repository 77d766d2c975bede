//! A data folder of every released format still opens.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod folder;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use nexo_chat::ids::{
    ClientMsgId, ConversationId, GroupId, LoginId, MessageId, Millis, Seq, UserId,
};
use nexo_chat::membership::Role;
use nexo_chat::model::{
    AccountDetails, Content, Cursors, Draft, HiddenMark, LoginDevice, Receive, ReplyTo, Settings,
    User,
};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{Appended, Collection, DocumentId, DocumentWrite, Limit, Order, Store};
use nexo_store::Embedded;

fn copy_of(version: &str) -> tempfile::TempDir {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(version);
    let target = tempfile::tempdir().unwrap();
    folder::copy(&sample, target.path());
    // Git stores no empty folders: create those that the tree had.
    for keyspace in fs::read_dir(target.path().join("trees")).unwrap() {
        fs::create_dir_all(keyspace.unwrap().path().join("tables")).unwrap();
    }
    target
}

/// Samples since format 2 have one more change: a member set a profile within the group.
async fn check_group(store: &Arc<dyn Store>, alice: &UserId, bob: &UserId, is_new: bool) {
    let id = GroupId::parse("group").unwrap();
    let group = store.group(&id).await.unwrap().unwrap();
    assert_eq!((&*group.profile.name, group.members, group.requests), ("Sample", 2, 1));
    assert_eq!((group.role(alice), group.role(bob)), (Role::Owner, Role::Admin));
    let muted = store.group_member(&id, bob).await.unwrap().unwrap();
    assert_eq!(muted.muted_until, Millis(1_800_000_000_000));
    assert_eq!(store.group_by_code(&group.code).await.unwrap(), Some(id.clone()));
    let wishes = store.join_requests(&id, None, 9).await.unwrap();
    assert_eq!((wishes.len(), &*wishes[0].message), (1, "let me in"));
    let changes = store.changes(&id.conversation(), Seq(0), 9).await.unwrap();
    assert_eq!(changes.len(), if is_new { 4 } else { 3 });
    assert_eq!(group.profile.group_type, if is_new { 7 } else { 0 });
    assert_eq!(muted.profile.nickname, if is_new { "Bobby" } else { "" });
    let standing = store.standing(alice, &id.conversation()).await.unwrap().unwrap();
    assert_eq!((standing.unread(), standing.own_unread, standing.cursors.read), (0, 1, Seq(0)));
}

#[tokio::test]
async fn format_1_opens() {
    check(1).await;
}

#[tokio::test]
async fn format_2_opens() {
    check(2).await;
}

#[tokio::test]
async fn format_3_opens() {
    check(3).await;
}

#[tokio::test]
async fn format_4_opens() {
    check(4).await;
}

/// Samples since format 4 have details of an account, the device of a login, and a document.
async fn check_details(store: &Arc<dyn Store>, alice: &UserId, bob: &UserId, is_new: bool) {
    let account = store.user(bob).await.unwrap().unwrap();
    assert_eq!(account.details, AccountDetails { is_bot: is_new, ..AccountDetails::default() });
    let login = store.login(LoginId([1; 16])).await.unwrap().unwrap();
    let device = LoginDevice { address: "::1".into(), name: "sample".into() };
    assert_eq!(login.device, if is_new { device } else { LoginDevice::default() });
    assert_eq!(store.logins(alice).await.unwrap(), [login]);
    let id = DocumentId::new(Collection::Settings, "sample");
    let body = store.document(&id).await.unwrap();
    assert_eq!(body, is_new.then(|| b"body".to_vec()));
    // Older folders take what is new, too.
    let write = DocumentWrite::put(id.clone(), b"newer".to_vec());
    store.change_documents(&id, Box::new(move |_| vec![write.clone()])).await.unwrap();
    assert_eq!(store.document(&id).await.unwrap(), Some(b"newer".to_vec()));
}

async fn check(version: u32) {
    let folder = copy_of(&format!("v{version}"));
    let is_new = version >= 2;
    let store: Arc<dyn Store> = Embedded::open(folder.path(), &folder::options()).unwrap();
    // Raised at open, since new records are written from now on: an older program refuses the
    // folder.
    let format = fs::read_to_string(folder.path().join("FORMAT")).unwrap();
    assert_eq!(format, "nexo store format 4\n");
    let (alice, bob) = (UserId::parse("alice").unwrap(), UserId::parse("bob").unwrap());
    let conversation = ConversationId::private(&alice, &bob);

    let range = Seq::ZERO..=Seq(u64::MAX);
    let read = store
        .messages(&conversation, range, Limit::of(99), Order::Ascending)
        .await
        .unwrap()
        .messages;
    assert_eq!(read.len(), 10);
    for (message, n) in read.iter().zip(1..) {
        assert_eq!(message.seq, Seq(n));
        assert_eq!(message.sender, if n % 2 == 1 { alice.clone() } else { bob.clone() });
        assert_eq!(message.client_id.as_str(), format!("client {n}"));
        assert_eq!(message.sent_at, Millis(1_700_000_000_000 + n));
        assert_eq!(message.content.body, format!("message {n}"));
        assert_eq!(store.message(message.id).await.unwrap().as_ref(), Some(message));
    }
    let last = &read[9].content;
    assert_eq!(last.extra["colour"], "red");
    assert_eq!(last.mentions, std::slice::from_ref(&alice));
    let ninth = MessageId::of(&alice, &ClientMsgId::parse("client 9").unwrap());
    assert_eq!(last.reply_to, Some(ReplyTo { message: ninth, sender: alice.clone() }));

    let standing = store.standing(&alice, &conversation).await.unwrap().unwrap();
    assert_eq!(standing.cursors, Cursors { delivered: Seq(10), read: Seq(9) });
    let mut chosen = Settings { pinned: true, receive: Receive::Silent, ..Settings::default() };
    if is_new {
        chosen.hidden = Some(HiddenMark { seq: Seq(10), since: Millis(0) });
        chosen.extra = "mine".into();
    }
    assert_eq!(standing.settings, chosen);
    check_group(&store, &alice, &bob, is_new).await;
    let account = store.user(&bob).await.unwrap().unwrap();
    assert_eq!((&*account.profile.nickname, &*account.profile.avatar), ("BOB", "picture"));
    assert_eq!(account.updated_at, account.created_at, "that was not kept then");
    check_details(&store, &alice, &bob, version >= 4).await;
    // The index of folded ids did not exist either, and was built.
    assert_eq!(store.user_by_folded_id(&bob.folded()).await.unwrap(), Some(bob.clone()));
    let impostor = User { id: UserId::parse("B0b").unwrap(), ..User::clone(&account) };
    assert!(!store.create_user(impostor).await.unwrap());
    let login = store.login(LoginId([1; 16])).await.unwrap().unwrap();
    assert_eq!((login.refresh_hash, login.generation), ([11; 32], 1));
    assert!(store.login(LoginId([2; 16])).await.unwrap().unwrap().ended);

    // A retry of a stored message is still a duplicate, and new messages follow.
    let draft = |n: u64| Draft {
        conversation: conversation.clone(),
        sender: alice.clone(),
        client_id: ClientMsgId::parse(&format!("client {n}")).unwrap(),
        content: Content::text(format!("message {n}")),
        sent_at: Millis(0),
        cleaned: None,
        origin: None,
        marks_read: true,
    };
    let retry = store.append(Permit::for_tests(), draft(3)).await.unwrap();
    assert_eq!(retry, Appended::Duplicate(Arc::clone(&read[2])));
    let next = store.append(Permit::for_tests(), draft(11)).await.unwrap();
    assert!(matches!(next, Appended::Stored(message) if message.seq == Seq(11)));
}
