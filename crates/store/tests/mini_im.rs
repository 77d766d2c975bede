//! Imports a mini-im database as it was before `msg_seq`: conversations are numbered from 1,
//! cursors are converted, and no odd row stops the import.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod folder;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use nexo_chat::clock::Rng;
use nexo_chat::ids::{ClientMsgId, ConversationId, GroupId, Millis, Seq, UserId};
use nexo_chat::membership::{HistoryPolicy, JoinCode, JoinPolicy, Role};
use nexo_chat::model::{Content, ContentKind, Cursors, Draft, Message, Receive};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{Appended, Limit, Order, Store};
use nexo_sim::MariaDb;
use nexo_store::archive::{ArchiveError, Import, ItemKind, copy, survey};
use nexo_store::mini_im::{ImportNote, ImportReport, MiniIm, MiniImOptions, UserIds};
use nexo_store::{Embedded, MySql, MySqlOptions};

/// The tables of mini-im before `msg_seq`.
const TABLES: &str = include_str!("fixtures/mini_im/tables.sql");
/// A few rows of everything, including everything that can be odd.
const ROWS: &str = include_str!("fixtures/mini_im/rows.sql");

const NOW: Millis = Millis(1_800_000_000_000);

/// A deterministic source of random bytes.
#[derive(Default)]
struct Counting(AtomicU8);

impl Rng for Counting {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(self.0.fetch_add(1, Ordering::Relaxed));
    }
}

fn options(url: &str, user_ids: UserIds) -> MiniImOptions {
    MiniImOptions {
        database: MySqlOptions::new(url),
        time_zone: Some("+00:00".into()),
        user_ids,
        unusable_password: "nobody's".into(),
        is_usable: |hash| hash.starts_with("$argon2"),
        rng: Arc::new(Counting::default()),
        now: NOW,
    }
}

/// Creates a database with these rows; returns its URL.
fn old(rows: &str) -> String {
    let url = MariaDb::shared().fresh_database();
    let name = url.rsplit('/').next().unwrap();
    MariaDb::shared().sql(name, &format!("{TABLES}{rows}"));
    url
}

/// Imports it into a folder, and checks that the folder has it.
async fn taken_over(
    url: &str,
    user_ids: UserIds,
) -> (Arc<dyn Store>, ImportReport, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let from = MiniIm::open(options(url, user_ids)).await.unwrap();
    let to = Embedded::open_to_fill(folder.path(), &folder::options()).unwrap();
    let given = copy(&from, &*to, &mut |_| {}).await.unwrap();
    let found = survey(&*to, &mut |_| {}).await.unwrap();
    assert_eq!(given.differences(&found), Vec::<String>::new());
    to.finish().await.unwrap();
    drop(to);
    let store = Embedded::open(folder.path(), &folder::options()).unwrap();
    (store, from.report(), folder)
}

fn user(id: &str) -> UserId {
    UserId::parse(id).unwrap()
}

async fn messages(store: &Arc<dyn Store>, id: &ConversationId) -> Vec<Arc<Message>> {
    let all = Seq::ZERO..=Seq(u64::MAX);
    store.messages(id, all, Limit::of(999), Order::Ascending).await.unwrap().messages
}

#[tokio::test(flavor = "multi_thread")]
async fn chats_are_counted_from_one_and_cursors_led_over() {
    let (store, report, _folder) = taken_over(&old(ROWS), UserIds::Number).await;
    let chat = ConversationId::private(&user("101"), &user("102"));
    let said = messages(&store, &chat).await;
    // 5003 is by a user outside the chat, and 5008 is of the row with the two users swapped.
    let bodies: Vec<&[u8]> = said.iter().map(|message| &message.content.body[..]).collect();
    assert_eq!(bodies, ["hi".as_bytes(), b"hello", b"", "再见".as_bytes(), b"twice", b"twice"]);
    assert!(said.iter().zip(1..).all(|(message, seq)| message.seq == Seq(seq)));
    let clients: Vec<&str> = said.iter().map(|message| message.client_id.as_str()).collect();
    assert_eq!(clients, ["c-1", "mini-im-5002", "c-4", "c-5", "c-7", "mini-im-5008"]);
    assert_eq!(said[0].sent_at, Millis(1_704_067_200_123));
    let recall = said[2].recalled.as_ref().unwrap();
    assert_eq!((recall.by.as_str(), recall.at), ("101", Millis(1_704_067_260_000)));

    // 101 had read up to 5002, which is 2, and sent last at 4; 102 had received 5004, which is 3.
    let stands = store.standing(&user("101"), &chat).await.unwrap().unwrap();
    assert_eq!(stands.cursors, Cursors { delivered: Seq(4), read: Seq(4) });
    assert_eq!((stands.unread(), stands.settings.receive), (2, Receive::Silent));
    let stands = store.standing(&user("102"), &chat).await.unwrap().unwrap();
    assert_eq!(stands.cursors, Cursors { delivered: Seq(3), read: Seq(6) });
    assert_eq!((stands.max_seq, stands.settings.receive), (Seq(6), Receive::Normal));
    assert_eq!(
        (report.count(ImportNote::SenderOutside), report.count(ImportNote::EmptyChat)),
        (1, 1)
    );
    assert_eq!((report.count(ImportNote::NotTwo), report.count(ImportNote::Silent)), (1, 1));
    assert_eq!(report.count(ImportNote::ClientId), 3);

    // A retry is a duplicate, other content a conflict, and a new message comes next.
    let draft = |client_id: &str, text: &str| Draft {
        conversation: chat.clone(),
        sender: user("101"),
        client_id: ClientMsgId::parse(client_id).unwrap(),
        content: Content::text(text.to_owned()),
        cleaned: None,
        sent_at: Millis(5),
        origin: None,
        marks_read: true,
    };
    let append = |draft| store.append(Permit::for_tests(), draft);
    let again = append(draft("c-1", "hi")).await.unwrap();
    assert_eq!(again, Appended::Duplicate(Arc::clone(&said[0])));
    let recalled = append(draft("c-4", "oops")).await.unwrap();
    assert_eq!(recalled, Appended::Duplicate(Arc::clone(&said[2])));
    assert_eq!(append(draft("c-1", "ho")).await.unwrap(), Appended::Conflict);
    let next = append(draft("c-9", "next")).await.unwrap();
    assert!(matches!(next, Appended::Stored(message) if message.seq == Seq(7)));
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_keep_their_people() {
    let (store, report, _folder) = taken_over(&old(ROWS), UserIds::Number).await;
    let id = GroupId::parse("900").unwrap();
    let group = store.group(&id).await.unwrap().unwrap();
    let roles = ["101", "102", "103"].map(|id| group.role(&user(id)));
    assert_eq!(roles, [Role::Owner, Role::Admin, Role::Member]);
    assert_eq!((&*group.profile.name, &*group.profile.avatar), ("朋友", "http://a/g.png"));
    assert_eq!((group.members, group.requests), (3, 1));
    assert_eq!((group.joining, group.history), (JoinPolicy::Approval, HistoryPolicy::All));
    assert_eq!(group.code, JoinCode::parse("ABCD2345").unwrap());
    assert_eq!(store.group_by_code(&group.code).await.unwrap(), Some(id.clone()));
    let wishes = store.join_requests(&id, None, 9).await.unwrap();
    assert_eq!((wishes[0].user.as_str(), &*wishes[0].message), ("104", "again"));
    assert_eq!(report.count(ImportNote::NoRequest), 2);

    let said = messages(&store, &id.conversation()).await;
    let seqs: Vec<(u64, &str)> = said.iter().map(|it| (it.seq.0, it.sender.as_str())).collect();
    assert_eq!(seqs, [(1, "101"), (2, "666"), (3, "102"), (4, "101")]);
    assert_eq!(said[1].content.kind, ContentKind::CUSTOM);
    assert_eq!(said[2].content.mentions, [user("103")]);
    let mentioned = |who: &str| {
        let (who, place) = (user(who), id.conversation());
        let store = Arc::clone(&store);
        async move { store.mentions(&who, &place, Seq(1)..=Seq(9), 9).await.unwrap() }
    };
    assert_eq!(mentioned("103").await, [Seq(3), Seq(4)]);
    assert_eq!(mentioned("101").await, [Seq(3)], "an answer to them; their own @all is not");
    let member = store.group_member(&id, &user("103")).await.unwrap().unwrap();
    assert_eq!((member.join_seq, member.came_after), (Seq(1), Seq(2)));
    assert!(member.muted_until > Millis(200_000_000_000_000), "for good");
    let stands = store.standing(&user("103"), &id.conversation()).await.unwrap().unwrap();
    assert_eq!((stands.cursors.read, stands.unread()), (Seq(2), 2));

    // A group without an owner got one, and a group without members was left out.
    let orphan = store.group(&GroupId::parse("901").unwrap()).await.unwrap().unwrap();
    assert_eq!((orphan.owner.as_str(), orphan.members), ("103", 2));
    assert_eq!((report.count(ImportNote::NewOwner), report.count(ImportNote::NewCode)), (1, 1));
    assert!(store.group(&GroupId::parse("902").unwrap()).await.unwrap().is_none());
    assert_eq!(
        (report.count(ImportNote::EmptyGroup), report.count(ImportNote::NoConversation)),
        (1, 2)
    );
    assert_eq!(
        (report.count(ImportNote::UnknownKind), report.count(ImportNote::UnknownMention)),
        (1, 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_keep_their_names_and_what_passwords_can_be_kept() {
    let (store, report, _folder) = taken_over(&old(ROWS), UserIds::Number).await;
    let account = |id: &str| {
        let (store, id) = (Arc::clone(&store), user(id));
        async move { store.user(&id).await.unwrap().unwrap() }
    };
    let alice = account("101").await;
    assert_eq!(
        (&*alice.profile.nickname, &*alice.profile.extra),
        ("Alice", r#"{"username":"alice"}"#)
    );
    assert_eq!((&*alice.password_hash, alice.created_at), ("nobody's", Millis(1_704_063_600_000)));
    assert_eq!(account("102").await.password_hash, "$argon2id$kept");
    assert_eq!(account("104").await.password_hash, "nobody's", "switched off");
    assert_eq!(account("666").await.profile.nickname, "666", "only known by what they said");
    assert_eq!(
        (report.count(ImportNote::NoPassword), report.count(ImportNote::SwitchedOff)),
        (2, 1)
    );
    assert_eq!((report.count(ImportNote::MadeUp), report.count(ImportNote::UserRenamed)), (1, 0));
    assert_eq!(report.tables(), [("t_friend_relation".to_owned(), 2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_may_be_called_by_their_names() {
    let (store, report, _folder) = taken_over(&old(ROWS), UserIds::Username).await;
    for (id, nickname) in
        [("alice", "Alice"), ("b-ob", "b_ob"), ("b-ob-103", "b:ob"), ("--", "张三")]
    {
        assert_eq!(store.user(&user(id)).await.unwrap().unwrap().profile.nickname, nickname);
    }
    assert_eq!(report.count(ImportNote::UserRenamed), 3);
    let chat = ConversationId::private(&user("alice"), &user("b-ob"));
    assert_eq!(messages(&store, &chat).await.len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_tables_do_too_and_into_a_database() {
    let url = old("");
    let name = url.rsplit('/').next().unwrap();
    let oldest = "DROP TABLE t_single_chat_member; DROP TABLE t_message_mention;
        DROP TABLE t_group_join_request; ALTER TABLE t_group DROP COLUMN group_code;
        ALTER TABLE t_group DROP COLUMN group_code_updated_at;
        ALTER TABLE t_group_member DROP COLUMN speak_mute_until;
        INSERT INTO t_user VALUES (1, 'a', NULL, NULL, NULL, 1, NOW(), NOW()),
            (2, 'b', NULL, NULL, NULL, 1, NOW(), NOW());
        INSERT INTO t_single_chat VALUES (7, 1, 2, NOW(), NOW());
        INSERT INTO t_message (id, chat_type, single_chat_id, from_user_id, content, created_at, \
            updated_at) SELECT seq, 1, 7, 1 + seq % 2, seq, NOW(), NOW() FROM seq_1_to_2500;";
    MariaDb::shared().sql(name, oldest);
    let target = MySqlOptions::new(MariaDb::shared().fresh_database());
    let from = MiniIm::open(options(&url, UserIds::Number)).await.unwrap();
    let to = MySql::open_to_fill(&target).await.unwrap();
    let given = copy(&from, &*to, &mut |_| {}).await.unwrap();
    let found = survey(&*to, &mut |_| {}).await.unwrap();
    assert_eq!(given.differences(&found), Vec::<String>::new());
    assert_eq!(given.count(ItemKind::Message), 2500);
    to.finish().await.unwrap();
    to.close().await.unwrap();
    let twice = MySql::open_to_fill(&target).await;
    assert!(matches!(twice, Err(ArchiveError::NotEmpty(_))), "a second time");
    let store: Arc<dyn Store> = MySql::open(&target).await.unwrap();
    let chat = ConversationId::private(&user("1"), &user("2"));
    let stands = store.standing(&user("1"), &chat).await.unwrap().unwrap();
    assert_eq!((stands.max_seq, stands.cursors.read), (Seq(2500), Seq(2500)));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_database_is_told_apart() {
    let url = MariaDb::shared().fresh_database();
    let other = MiniIm::open(options(&url, UserIds::Number)).await;
    assert!(matches!(other, Err(ArchiveError::NotMiniIm(table)) if table == "t_user"));
}
