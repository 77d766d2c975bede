//! Calls of every kind and their outcomes as text, so that two stores can be compared.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::unwrap_used, reason = "only tests are here")]

pub(crate) mod everything;

use std::sync::Arc;

use proptest::prelude::*;

use nexo_chat::ids::{
    ClientMsgId, ConversationId, GroupId, LoginId, MessageId, Millis, Platform, Seq, UserId,
};
use nexo_chat::membership::{
    GroupAction, GroupChange, GroupFacts, GroupProfile, HistoryPolicy, JoinCode, JoinPolicy,
    MemberProfileChange, NewGroup, Role,
};
use nexo_chat::model::{
    AccountDetails, AccountStatus, Content, CursorKind, Draft, HiddenChange, HiddenMark, Login,
    LoginDevice, Profile, ProfileChange, Receive, ReplyTo, ResetCode, SettingsChange, User,
};
use nexo_chat::policy::group::decide;
use nexo_chat::policy::recall::may_recall;
use nexo_chat::policy::send::Permit;
use nexo_chat::rules::{GroupRules, Rules};
use nexo_chat::store::{
    Actor, Collection, DocumentId, DocumentPage, DocumentWrite, GroupFactsQuery, Limit, Order,
    RecallFacts, RotateRequest, Store,
};

pub(crate) const PEOPLE: [&str; 4] = ["a", "b", "a.", "Zed"];

#[derive(Clone, Debug)]
pub(crate) enum Call {
    Append { from: usize, to: usize, client_id: u8, text: u8, at: u64 },
    Recall { by: usize, of: usize, client_id: u8, at: u64 },
    Group { by: usize, whom: usize, what: u8, at: u64 },
    Choose { user: usize, a: usize, b: usize, pinned: Option<bool>, blocked: bool },
    Marks { user: usize, a: usize, b: usize, from: u64, to: u64 },
    Look { user: usize },
    Message { of: usize, client_id: u8 },
    Messages { a: usize, b: usize, from: u64, to: u64, limit: usize, descending: bool },
    Standing { user: usize, a: usize, b: usize },
    Standings { user: usize, after: Option<usize>, limit: usize },
    Advance { user: usize, a: usize, b: usize, read: bool, seq: u64 },
    CreateUser { user: usize, hash: u8 },
    Holder { user: usize },
    Reset { user: usize, code: u8, now: u64 },
    User { user: usize },
    Profile { user: usize, nickname: Option<u8>, extra: Option<u8> },
    Password { user: usize },
    Account { user: usize, what: u8 },
    Users { after: Option<usize>, limit: usize },
    CreateLogin { user: usize, created: u64, lives: u64, now: u64 },
    Login { n: usize },
    Rotate { hash: usize, now: u64 },
    EndLogins { user: usize, platform: i32 },
    Documents { guard: u8, also: u8, what: u8 },
    Seen { user: usize, at: u64 },
    LastSeen { user: usize },
    Reopen,
}

pub(crate) fn calls() -> impl Strategy<Value = Call> {
    let who = || 0..PEOPLE.len();
    prop_oneof![
        12 => (who(), who(), 0..20_u8, 0..2_u8, 0..99_u64)
            .prop_map(|(from, to, client_id, text, at)| Call::Append { from, to, client_id, text, at }),
        2 => (who(), 0..20_u8).prop_map(|(of, client_id)| Call::Message { of, client_id }),
        3 => (who(), who(), 0..20_u8, 0..200_u64)
            .prop_map(|(by, of, client_id, at)| Call::Recall { by, of, client_id, at }),
        14 => (who(), who(), 0..24_u8, 0..99_u64)
            .prop_map(|(by, whom, what, at)| Call::Group { by, whom, what, at }),
        2 => (who(), who(), who(), proptest::option::of(any::<bool>()), any::<bool>()).prop_map(
            |(user, a, b, pinned, blocked)| Call::Choose { user, a, b, pinned, blocked }
        ),
        3 => (who(), who(), who(), 0..12_u64, 0..12_u64)
            .prop_map(|(user, a, b, from, to)| Call::Marks { user, a, b, from, to }),
        3 => who().prop_map(|user| Call::Look { user }),
        4 => (who(), who(), 0..9_u64, 0..9_u64, 0..6_usize, any::<bool>()).prop_map(
            |(a, b, from, to, limit, descending)| Call::Messages { a, b, from, to, limit, descending }
        ),
        3 => (who(), who(), who()).prop_map(|(user, a, b)| Call::Standing { user, a, b }),
        3 => (who(), proptest::option::of(who()), 0..4_usize)
            .prop_map(|(user, after, limit)| Call::Standings { user, after, limit }),
        5 => (who(), who(), who(), any::<bool>(), 0..12_u64)
            .prop_map(|(user, a, b, read, seq)| Call::Advance { user, a, b, read, seq }),
        2 => (who(), any::<u8>()).prop_map(|(user, hash)| Call::CreateUser { user, hash }),
        1 => who().prop_map(|user| Call::Holder { user }),
        2 => (who(), 0..6_u8, 0..50_u64)
            .prop_map(|(user, code, now)| Call::Reset { user, code, now }),
        2 => who().prop_map(|user| Call::User { user }),
        2 => (who(), proptest::option::of(any::<u8>()), proptest::option::of(any::<u8>()))
            .prop_map(|(user, nickname, extra)| Call::Profile { user, nickname, extra }),
        1 => who().prop_map(|user| Call::Password { user }),
        2 => (who(), 0..6_u8).prop_map(|(user, what)| Call::Account { user, what }),
        1 => (proptest::option::of(who()), 0..4_usize)
            .prop_map(|(after, limit)| Call::Users { after, limit }),
        4 => (who(), 0..50_u64, 0..50_u64, 0..50_u64)
            .prop_map(|(user, created, lives, now)| Call::CreateLogin { user, created, lives, now }),
        2 => (0..12_usize).prop_map(|n| Call::Login { n }),
        5 => (0..24_usize, 0..50_u64).prop_map(|(hash, now)| Call::Rotate { hash, now }),
        2 => (who(), 0..3).prop_map(|(user, platform)| Call::EndLogins { user, platform }),
        4 => (0..8_u8, 0..8_u8, 0..6_u8)
            .prop_map(|(guard, also, what)| Call::Documents { guard, also, what }),
        1 => (who(), 0..50_u64).prop_map(|(user, at)| Call::Seen { user, at }),
        1 => who().prop_map(|user| Call::LastSeen { user }),
        1 => Just(Call::Reopen),
    ]
}

pub(crate) fn user(n: usize) -> UserId {
    UserId::parse(PEOPLE[n]).unwrap()
}

pub(crate) fn pair(a: usize, b: usize) -> ConversationId {
    // A user has no private conversation with themselves: use the group.
    if a == b { group_id().conversation() } else { ConversationId::private(&user(a), &user(b)) }
}

pub(crate) fn group_id() -> GroupId {
    GroupId::parse("g").unwrap()
}

/// Returns any change of a group. Some kinds come twice, since they lead further.
fn group_act(what: u8, whom: UserId, at: u64) -> GroupAction {
    let until = Millis(at * 2);
    match what {
        0..=3 => GroupAction::Create(NewGroup {
            profile: GroupProfile {
                name: "g".into(),
                group_type: i32::from(what),
                ..GroupProfile::default()
            },
            joining: if at.is_multiple_of(2) { JoinPolicy::Open } else { JoinPolicy::Approval },
            history: if at.is_multiple_of(3) { HistoryPolicy::All } else { HistoryPolicy::Joined },
            members: vec![whom],
            members_min: 1,
            code: JoinCode::random([what; 8]),
        }),
        4..=6 => GroupAction::Join { message: at.to_string(), inviter: None },
        7 => GroupAction::AnswerRequest { user: whom, accept: at.is_multiple_of(2) },
        8..=10 => GroupAction::Invite(vec![whom, user(0)]),
        11..=13 => GroupAction::Leave,
        14..=16 => GroupAction::Kick(whom),
        17 => GroupAction::SetRole(
            whom,
            if at.is_multiple_of(2) { Role::Admin } else { Role::Member },
        ),
        18 => GroupAction::Transfer(whom),
        19 => GroupAction::Mute(whom, until),
        20 => GroupAction::MuteAll(at.is_multiple_of(2)),
        21 => GroupAction::Update(GroupChange {
            name: Some(at.to_string()),
            joining: Some(JoinPolicy::Open),
            ..GroupChange::default()
        }),
        22 => GroupAction::ResetCode(JoinCode::random([what; 8])),
        _ if at.is_multiple_of(9) => GroupAction::Dissolve,
        _ if at.is_multiple_of(2) => GroupAction::SetProfile(MemberProfileChange {
            nickname: Some(at.to_string()),
            extra: at.is_multiple_of(4).then(|| "mine".into()),
            ..MemberProfileChange::default()
        }),
        _ => GroupAction::MuteAll(false),
    }
}

async fn act(store: &Arc<dyn Store>, by: UserId, act: GroupAction, at: Millis) -> String {
    let asker = Actor { user: by.clone(), at, origin: None };
    let about = GroupFactsQuery { users: act.users().to_vec(), code: act.code().cloned() };
    let rules = GroupRules { code_cooldown_ms: 10, ..GroupRules::default() };
    let decide =
        Box::new(move |facts: &GroupFacts| decide(&rules, facts, &group_id(), &by, &act, at));
    format!("{:?}", store.change_group(&group_id(), asker, about, decide).await.unwrap())
}

/// Returns everything that can be read of the group, and of one user in it.
pub(crate) async fn look(store: &Arc<dyn Store>, who: &UserId) -> String {
    let id = group_id();
    let group = store.group(&id).await.unwrap();
    let code = JoinCode::random([22; 8]);
    format!(
        "{group:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        store.group_member(&id, who).await.unwrap(),
        store.group_members(&id, Some(who), 2).await.unwrap(),
        store.group_members(&id, None, 9).await.unwrap(),
        store.group_cursors(&id, None, 9).await.unwrap(),
        store.join_requests(&id, None, 9).await.unwrap(),
        store.group_by_code(&code).await.unwrap(),
        store.changes(&id.conversation(), Seq(2), 99).await.unwrap(),
    )
}

/// Returns any change of an account.
fn account_change(user: &User, what: u8) -> Option<User> {
    let mut user = user.clone();
    match what {
        0 => return None,
        1 => user.details = AccountDetails::default(),
        2 => user.details.is_bot = true,
        3 => user.session_version += 1,
        4 => user.details.password_changed_at = Some(Millis(user.session_version)),
        _ => user.details.status = AccountStatus::Deleted { at: Millis(9) },
    }
    Some(user)
}

/// Returns one of eight documents in two collections.
fn document_id(n: u8) -> DocumentId {
    let collection = if n.is_multiple_of(2) { Collection::Keys } else { Collection::Audit };
    DocumentId::new(collection, format!("d{}", n / 2))
}

/// Changes documents, and returns the guard and a page of them.
async fn change_documents(store: &Arc<dyn Store>, guard: u8, also: u8, what: u8) -> String {
    let (guard, also) = (document_id(guard), document_id(also));
    let page = DocumentPage {
        prefix: if what.is_multiple_of(2) { "d".into() } else { String::new() },
        after: (what > 3).then(|| also.key.clone()),
        backwards: what.is_multiple_of(3),
        ..DocumentPage::first(also.collection, usize::from(what))
    };
    let own = guard.clone();
    let decide = Box::new(move |before: Option<&[u8]>| {
        let body = [before.unwrap_or_default(), &[what]].concat();
        match what {
            0 => vec![DocumentWrite::delete(own.clone()), DocumentWrite::put(also.clone(), body)],
            1 => Vec::new(),
            _ => vec![DocumentWrite::put(own.clone(), body), DocumentWrite::delete(also.clone())],
        }
    });
    store.change_documents(&guard, decide).await.unwrap();
    let now = store.document(&guard).await.unwrap();
    format!("{now:?} {:?}", store.documents(page).await.unwrap())
}

pub(crate) fn client_id(n: u8) -> ClientMsgId {
    ClientMsgId::parse(&format!("c{n}")).unwrap()
}

/// Assigns hashes and login ids in order, the same for both stores.
#[derive(Clone, Copy, Default)]
pub(crate) struct Names {
    logins: u8,
    hashes: u8,
}

fn hash(n: usize) -> [u8; 32] {
    [u8::try_from(n).unwrap(); 32]
}

/// Makes the call and returns its outcome as text.
pub(crate) async fn make(store: &Arc<dyn Store>, call: &Call, names: &mut Names) -> String {
    match call.clone() {
        Call::Append { from, to, client_id: id, text, at } => {
            let draft = Draft {
                conversation: pair(from, to),
                sender: user(from),
                client_id: client_id(id),
                content: Content {
                    mentions: (at.is_multiple_of(4))
                        .then(|| user(usize::from(id) % 4))
                        .into_iter()
                        .collect(),
                    mentions_all: at.is_multiple_of(7),
                    reply_to: (at.is_multiple_of(5)).then(|| ReplyTo {
                        message: MessageId([9; 16]),
                        sender: user(usize::from(id) % 3),
                    }),
                    ..Content::text(text.to_string())
                },
                sent_at: Millis(at),
                cleaned: None,
                origin: None,
                marks_read: !at.is_multiple_of(3),
            };
            format!("{:?}", store.append(Permit::for_tests(), draft).await.unwrap())
        }
        Call::Recall { by, of, client_id: id, at } => {
            let (by, at) = (user(by), Millis(at));
            let asker = Actor { user: by.clone(), at, origin: None };
            let rules = Rules { recall_window_ms: 50, ..Rules::default() };
            let may = Box::new(move |facts: RecallFacts<'_>| may_recall(&rules, &by, facts, at));
            let id = MessageId::of(&user(of), &client_id(id));
            format!("{:?}", store.recall(id, asker, may).await.unwrap())
        }
        Call::Group { by, whom, what, at } => {
            act(store, user(by), group_act(what, user(whom), at), Millis(at)).await
        }
        Call::Choose { user: who, a, b, pinned, blocked } => {
            let receive = blocked.then_some(Receive::Blocked);
            let change = SettingsChange {
                pinned,
                receive,
                hidden: match (pinned, blocked) {
                    (Some(true), true) => {
                        Some(HiddenChange::Hide(HiddenMark { seq: Seq(2), since: Millis(3) }))
                    }
                    (Some(false), _) => Some(HiddenChange::Show),
                    _ => None,
                },
                extra: blocked.then(|| format!("of {who}", who = user(a))),
            };
            format!("{:?}", store.update_settings(&user(who), &pair(a, b), change).await.unwrap())
        }
        Call::Marks { user: who, a, b, from, to } => {
            let (who, place, range) = (user(who), pair(a, b), Seq(from)..=Seq(to));
            let mentions = store.mentions(&who, &place, range.clone(), 3).await.unwrap();
            format!(
                "{mentions:?} {:?}",
                store.sent_without_read(&who, &place, range).await.unwrap()
            )
        }
        Call::Look { user: who } => look(store, &user(who)).await,
        Call::Message { of, client_id: id } => {
            let id = MessageId::of(&user(of), &client_id(id));
            format!("{:?}", store.message(id).await.unwrap())
        }
        Call::Messages { a, b, from, to, limit, descending } => {
            let order = if descending { Order::Descending } else { Order::Ascending };
            let found =
                store.messages(&pair(a, b), Seq(from)..=Seq(to), Limit::of(limit), order).await;
            format!("{:?}", found.unwrap().messages)
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
            format!(
                "{:?}",
                store.advance_cursor(&user(who), &pair(a, b), kind, Seq(seq)).await.unwrap()
            )
        }
        Call::CreateUser { user: who, hash } => {
            // Some have another user's id in other capitals.
            let name = if hash.is_multiple_of(4) {
                PEOPLE[who].to_uppercase()
            } else {
                PEOPLE[who].into()
            };
            let account = User {
                id: UserId::parse(&name).unwrap(),
                profile: Profile::default(),
                created_at: Millis(1),
                updated_at: Millis(1),
                password_hash: hash.to_string(),
                session_version: 1,
                details: AccountDetails::default(),
            };
            format!("{:?}", store.create_user(account).await.unwrap())
        }
        Call::Holder { user: who } => {
            format!("{:?}", store.user_by_folded_id(&user(who).folded()).await.unwrap())
        }
        Call::Reset { user: who, code, now } => {
            let (who, hash, now) = (user(who), [code / 2; 32], Millis(now));
            let kept = ResetCode { hash, expires_at: now.plus(20) };
            if code.is_multiple_of(2) {
                return format!("{:?}", store.put_reset_code(&who, kept).await.unwrap());
            }
            let done = store.reset_password(&who, hash, now, "reset".into()).await.unwrap();
            format!("{done:?} {:?}", store.reset_code(&who).await.unwrap())
        }
        Call::User { user: who } => format!("{:?}", store.user(&user(who)).await.unwrap()),
        Call::Profile { user: who, nickname, extra } => {
            let change = ProfileChange {
                nickname: nickname.map(|n| n.to_string()),
                avatar: None,
                extra: extra.map(|n| n.to_string()),
            };
            format!("{:?}", store.update_profile(&user(who), change, Millis(7)).await.unwrap())
        }
        Call::Password { user: who } => {
            format!("{:?}", store.change_password(&user(who), 1, "new".into()).await.unwrap())
        }
        Call::Account { user: who, what } => {
            let change = Box::new(move |user: &User| account_change(user, what));
            let changed = store.change_account(&user(who), change).await.unwrap();
            format!("{changed:?} {:?}", store.user_exists(&user(who)).await.unwrap())
        }
        Call::Users { after, limit } => {
            format!("{:?}", store.users(after.map(user).as_ref(), limit).await.unwrap())
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
                device: LoginDevice {
                    address: if lives.is_multiple_of(2) { String::new() } else { "::1".into() },
                    ..LoginDevice::default()
                },
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
            let rotation = RotateRequest {
                old_hash: hash(old),
                new_hash: new,
                expires_at: Millis(now + 20),
                now: Millis(now),
                at: Millis(now),
                grace_ms: 0,
            };
            format!("{:?}", store.rotate_refresh_token(rotation).await.unwrap())
        }
        Call::EndLogins { user: who, platform } => {
            let which = move |login: &Login| login.platform == Platform(platform);
            format!("{:?}", store.end_logins(&user(who), Box::new(which)).await.unwrap())
        }
        Call::Documents { guard, also, what } => change_documents(store, guard, also, what).await,
        Call::Seen { user: who, at } => {
            format!("{:?}", store.record_seen(&user(who), Millis(at)).await.unwrap())
        }
        Call::LastSeen { user: who } => {
            format!("{:?}", store.last_seen(&user(who)).await.unwrap())
        }
        Call::Reopen => String::new(),
    }
}
