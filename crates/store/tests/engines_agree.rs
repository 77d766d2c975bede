//! Any sequence of calls has the same outcome on the embedded engine as on the reference engine,
//! over restarts too.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod folder;

use std::sync::Arc;

use proptest::prelude::*;

use nexo_chat::ids::{
    ClientMsgId, ConversationId, LoginId, MessageId, Millis, Platform, Seq, UserId,
};
use nexo_chat::model::{Content, CursorKind, Draft, Login, Profile, ProfileChange, User};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{Limit, Order, Store};
use nexo_store::{Embedded, Memory};

const PEOPLE: [&str; 4] = ["a", "b", "a.", "Zed"];

#[derive(Clone, Debug)]
enum Call {
    Append { from: usize, to: usize, client_id: u8, text: u8, at: u64 },
    Message { of: usize, client_id: u8 },
    Messages { a: usize, b: usize, from: u64, to: u64, limit: usize, descending: bool },
    Standing { user: usize, a: usize, b: usize },
    Standings { user: usize, after: Option<usize>, limit: usize },
    Advance { user: usize, a: usize, b: usize, read: bool, seq: u64 },
    CreateUser { user: usize, hash: u8 },
    User { user: usize },
    Profile { user: usize, nickname: Option<u8>, extra: Option<u8> },
    Password { user: usize },
    CreateLogin { user: usize, created: u64, lives: u64, now: u64 },
    Login { n: usize },
    Rotate { hash: usize, now: u64 },
    EndLogins { user: usize, platform: i32 },
    Reopen,
}

fn calls() -> impl Strategy<Value = Call> {
    let who = || 0..PEOPLE.len();
    prop_oneof![
        12 => (who(), who(), 0..20_u8, 0..2_u8, 0..99_u64)
            .prop_map(|(from, to, client_id, text, at)| Call::Append { from, to, client_id, text, at }),
        2 => (who(), 0..20_u8).prop_map(|(of, client_id)| Call::Message { of, client_id }),
        4 => (who(), who(), 0..9_u64, 0..9_u64, 0..6_usize, any::<bool>()).prop_map(
            |(a, b, from, to, limit, descending)| Call::Messages { a, b, from, to, limit, descending }
        ),
        3 => (who(), who(), who()).prop_map(|(user, a, b)| Call::Standing { user, a, b }),
        3 => (who(), proptest::option::of(who()), 0..4_usize)
            .prop_map(|(user, after, limit)| Call::Standings { user, after, limit }),
        5 => (who(), who(), who(), any::<bool>(), 0..12_u64)
            .prop_map(|(user, a, b, read, seq)| Call::Advance { user, a, b, read, seq }),
        2 => (who(), any::<u8>()).prop_map(|(user, hash)| Call::CreateUser { user, hash }),
        2 => who().prop_map(|user| Call::User { user }),
        2 => (who(), proptest::option::of(any::<u8>()), proptest::option::of(any::<u8>()))
            .prop_map(|(user, nickname, extra)| Call::Profile { user, nickname, extra }),
        1 => who().prop_map(|user| Call::Password { user }),
        4 => (who(), 0..50_u64, 0..50_u64, 0..50_u64)
            .prop_map(|(user, created, lives, now)| Call::CreateLogin { user, created, lives, now }),
        2 => (0..12_usize).prop_map(|n| Call::Login { n }),
        5 => (0..24_usize, 0..50_u64).prop_map(|(hash, now)| Call::Rotate { hash, now }),
        2 => (who(), 0..3).prop_map(|(user, platform)| Call::EndLogins { user, platform }),
        1 => Just(Call::Reopen),
    ]
}

fn user(n: usize) -> UserId {
    UserId::parse(PEOPLE[n]).unwrap()
}

fn pair(a: usize, b: usize) -> ConversationId {
    // Nobody talks to themselves: that becomes a group.
    if a == b {
        ConversationId::stored("sg_1")
    } else {
        ConversationId::private(&user(a), &user(b))
    }
}

fn client_id(n: u8) -> ClientMsgId {
    ClientMsgId::parse(&format!("c{n}")).unwrap()
}

/// Hashes and login ids are given out in order, the same on both sides.
#[derive(Default)]
struct Names {
    logins: u8,
    hashes: u8,
}

fn hash(n: usize) -> [u8; 32] {
    [u8::try_from(n).unwrap(); 32]
}

/// Makes the call and writes its outcome down.
async fn make(store: &Arc<dyn Store>, call: &Call, names: &mut Names) -> String {
    match call.clone() {
        Call::Append { from, to, client_id: id, text, at } => {
            let draft = Draft {
                conversation: pair(from, to),
                sender: user(from),
                client_id: client_id(id),
                content: Content::text(text.to_string()),
                sent_at: Millis(at),
                cleaned: None,
                origin: None,
            };
            format!("{:?}", store.append(Permit::for_tests(), draft).await.unwrap())
        }
        Call::Message { of, client_id: id } => {
            let id = MessageId::of(&user(of), &client_id(id));
            format!("{:?}", store.message(id).await.unwrap())
        }
        Call::Messages { a, b, from, to, limit, descending } => {
            let order = if descending { Order::Descending } else { Order::Ascending };
            let found =
                store.messages(&pair(a, b), Seq(from)..=Seq(to), Limit::of(limit), order).await;
            format!("{:?}", found.unwrap())
        }
        Call::Standing { user: who, a, b } => {
            format!("{:?}", store.standing(&user(who), &pair(a, b)).await.unwrap())
        }
        Call::Standings { user: who, after, limit } => {
            let after = after.map(|after| pair(who, after));
            format!("{:?}", store.standings(&user(who), after.as_ref(), limit).await.unwrap())
        }
        Call::Advance { user: who, a, b, read, seq } => {
            let kind = if read { CursorKind::Read } else { CursorKind::Delivered };
            format!("{:?}", store.advance(&user(who), &pair(a, b), kind, Seq(seq)).await.unwrap())
        }
        Call::CreateUser { user: who, hash } => {
            let account = User {
                id: user(who),
                profile: Profile::default(),
                created_at: Millis(1),
                password_hash: hash.to_string(),
                session_version: 1,
            };
            format!("{:?}", store.create_user(account).await.unwrap())
        }
        Call::User { user: who } => format!("{:?}", store.user(&user(who)).await.unwrap()),
        Call::Profile { user: who, nickname, extra } => {
            let change = ProfileChange {
                nickname: nickname.map(|n| n.to_string()),
                avatar: None,
                extra: extra.map(|n| n.to_string()),
            };
            format!("{:?}", store.update_profile(&user(who), change).await.unwrap())
        }
        Call::Password { user: who } => {
            format!("{:?}", store.change_password(&user(who), 1, "new".into()).await.unwrap())
        }
        Call::CreateLogin { user: who, created, lives, now } => {
            let login = Login {
                id: LoginId([names.logins; 16]),
                user: user(who),
                platform: Platform(i32::from(names.logins % 3)),
                created_at: Millis(created),
                expires_at: Millis(created + lives),
                refresh_hash: hash(usize::from(names.hashes)),
                generation: 0,
                rotated_at: Millis(created),
                ended: false,
            };
            names.logins += 1;
            names.hashes += 1;
            format!("{:?}", store.create_login(login, 1 + created % 2, Millis(now)).await.unwrap())
        }
        Call::Login { n } => {
            let id = LoginId([u8::try_from(n).unwrap(); 16]);
            format!("{:?}", store.login(id).await.unwrap())
        }
        Call::Rotate { hash: old, now } => {
            let new = hash(usize::from(names.hashes));
            names.hashes += 1;
            let rotated = store.rotate(hash(old), new, Millis(now + 20), Millis(now), 0).await;
            format!("{:?}", rotated.unwrap())
        }
        Call::EndLogins { user: who, platform } => {
            let which = move |login: &Login| login.platform == Platform(platform);
            format!("{:?}", store.end_logins(&user(who), Box::new(which)).await.unwrap())
        }
        Call::Reopen => String::new(),
    }
}

async fn check(calls: Vec<Call>) {
    let folder = tempfile::tempdir().unwrap();
    let open = || Embedded::open(folder.path(), &folder::options()).unwrap();
    let reference: Arc<dyn Store> = Memory::new();
    let mut store: Arc<dyn Store> = open();
    let (mut expected, mut given) = (Names::default(), Names::default());
    for call in calls {
        if let Call::Reopen = call {
            store.close().await.unwrap();
            drop(store);
            store = open();
        }
        let expect = make(&reference, &call, &mut expected).await;
        assert_eq!(make(&store, &call, &mut given).await, expect, "{call:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn embedded_answers_like_memory(calls in proptest::collection::vec(calls(), 1..120)) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(check(calls));
    }
}
