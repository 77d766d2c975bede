//! Users, drafts and logins for the cases, each on one line.

use std::sync::{Arc, Mutex};

use nexo_chat::Reason;
use nexo_chat::event::Event;
use nexo_chat::ids::{
    ClientMsgId, ConnectionId, ConversationId, GroupId, LoginId, Millis, Platform, Seq, UserId,
};
use nexo_chat::membership::{
    GroupAction, GroupFacts, GroupProfile, HistoryPolicy, JoinCode, JoinPolicy, NewGroup,
};
use nexo_chat::model::{
    AccountDetails, Change, Content, Draft, Login, LoginDevice, Message, Profile, Standing, User,
};
use nexo_chat::policy::group::decide;
use nexo_chat::policy::send::Permit;
use nexo_chat::rules::GroupRules;
use nexo_chat::store::{
    Actor, Appended, CommitListener, CreatedLogin, GroupFactsQuery, GroupOutcome, RotateRequest,
    Store, StoreError, StoreFuture,
};

pub(super) const NOW: Millis = Millis(1_700_000_000_000);

pub(super) fn user(id: &str) -> UserId {
    UserId::parse(id).unwrap()
}

pub(super) fn pair(a: &str, b: &str) -> ConversationId {
    ConversationId::private(&user(a), &user(b))
}

pub(super) fn draft(from: &str, to: &str, client_id: &str, text: &str) -> Draft {
    Draft {
        conversation: pair(from, to),
        sender: user(from),
        client_id: ClientMsgId::parse(client_id).unwrap(),
        content: Content::text(text.to_owned()),
        sent_at: NOW,
        cleaned: None,
        origin: Some(ConnectionId(7)),
        marks_read: true,
    }
}

pub(super) async fn append(store: &Arc<dyn Store>, draft: Draft) -> Result<Appended, StoreError> {
    store.append(Permit::for_tests(), draft).await
}

/// Stores a login, and creates the account if there is none.
pub(super) async fn sign_in(store: &dyn Store, login: Login) -> CreatedLogin {
    let version = if let Some(user) = store.user(&login.user).await.unwrap() {
        user.session_version
    } else {
        let account = account(login.user.as_str());
        assert!(store.create_user(account.clone()).await.unwrap());
        account.session_version
    };
    store.create_login(login, version, NOW).await.unwrap().expect("the version is right")
}

/// Sends a message and expects it to be stored now.
pub(super) async fn send(
    store: &Arc<dyn Store>,
    from: &str,
    to: &str,
    client_id: &str,
) -> Arc<Message> {
    match append(store, draft(from, to, client_id, client_id)).await.unwrap() {
        Appended::Stored(message) => message,
        other => panic!("{client_id} was to be stored, got {other:?}"),
    }
}

/// Sends `count` messages with client ids `{name}1`, `{name}2` …
pub(super) async fn send_many(
    store: &Arc<dyn Store>,
    from: &str,
    to: &str,
    name: &str,
    count: u64,
) {
    for i in 1..=count {
        send(store, from, to, &format!("{name}{i}")).await;
    }
}

pub(super) async fn standing(store: &Arc<dyn Store>, who: &str, with: &str) -> Standing {
    store.standing(&user(who), &pair(who, with)).await.unwrap().unwrap()
}

pub(super) fn seqs(messages: &[Arc<Message>]) -> Vec<u64> {
    messages.iter().map(|message| message.seq.0).collect()
}

/// All seqs of a conversation.
pub(super) fn all() -> std::ops::RangeInclusive<Seq> {
    Seq::ZERO..=Seq(u64::MAX)
}

pub(super) fn account(id: &str) -> User {
    User {
        id: user(id),
        profile: Profile { nickname: id.to_uppercase(), ..Profile::default() },
        created_at: NOW,
        updated_at: NOW,
        password_hash: format!("hash of {id}"),
        session_version: 1,
        details: AccountDetails::default(),
    }
}

/// A login of `who` with the refresh hash `[n; 32]`, valid for an hour.
/// A rotation without a grace period.
pub(super) fn rotation(old: u8, new: u8, at: Millis) -> RotateRequest {
    RotateRequest {
        old_hash: [old; 32],
        new_hash: [new; 32],
        expires_at: NOW.plus(9_000_000),
        now: at,
        at,
        grace_ms: 0,
    }
}

pub(super) fn login(who: &str, n: u8) -> Login {
    Login {
        id: LoginId([n; 16]),
        user: user(who),
        platform: Platform(i32::from(n % 5)),
        created_at: NOW.plus(u64::from(n)),
        expires_at: NOW.plus(3_600_000),
        refresh_hash: [n; 32],
        generation: 0,
        rotated_at: NOW,
        ended: false,
        device: LoginDevice { address: "10.0.0.1".into(), name: format!("device {n}") },
    }
}

pub(super) fn group_id(id: &str) -> GroupId {
    GroupId::parse(id).unwrap()
}

/// Changes a group, by the real rules.
pub(super) fn act(
    store: &Arc<dyn Store>,
    by: &str,
    group: &str,
    act: GroupAction,
) -> StoreFuture<'static, Result<GroupOutcome, Reason>> {
    act_with(store, by, group, act, GroupRules::default())
}

pub(super) fn act_with(
    store: &Arc<dyn Store>,
    by: &str,
    group: &str,
    act: GroupAction,
    rules: GroupRules,
) -> StoreFuture<'static, Result<GroupOutcome, Reason>> {
    let (by, id) = (user(by), group_id(group));
    let asker = Actor { user: by.clone(), at: NOW, origin: None };
    let about = GroupFactsQuery { users: act.users().to_vec(), code: act.code().cloned() };
    let deciding = {
        let id = id.clone();
        move |facts: &GroupFacts| decide(&rules, facts, &id, &by, &act, NOW)
    };
    store.change_group(&id, asker, about, Box::new(deciding))
}

/// Changes a group and expects it to succeed.
pub(super) async fn done(
    store: &Arc<dyn Store>,
    by: &str,
    group: &str,
    what: GroupAction,
) -> GroupOutcome {
    act(store, by, group, what).await.unwrap().unwrap()
}

/// Creates an open group of these users, the first of whom owns it. Its join code is made of its
/// id.
pub(super) async fn group(store: &Arc<dyn Store>, id: &str, people: &[&str]) -> GroupOutcome {
    group_with(store, id, people, JoinPolicy::Open, HistoryPolicy::Joined).await
}

pub(super) async fn group_with(
    store: &Arc<dyn Store>,
    id: &str,
    people: &[&str],
    joining: JoinPolicy,
    history: HistoryPolicy,
) -> GroupOutcome {
    let mut code = [b'a'; 8];
    code[..id.len().min(8)].copy_from_slice(&id.as_bytes()[..id.len().min(8)]);
    let new = NewGroup {
        profile: GroupProfile { name: id.to_uppercase(), group_type: 7, ..GroupProfile::default() },
        joining,
        history,
        members: people[1..].iter().copied().map(user).collect(),
        members_min: 1,
        code: JoinCode::random(code),
    };
    done(store, people[0], id, GroupAction::Create(new)).await
}

pub(super) fn join() -> GroupAction {
    GroupAction::Join { message: String::new(), inviter: None }
}

pub(super) fn to_group(from: &str, group: &str, client_id: &str) -> Draft {
    let conversation = group_id(group).conversation();
    Draft { conversation, ..draft(from, "nobody", client_id, client_id) }
}

/// Sends a message to a group and expects it to be stored now.
pub(super) async fn say(
    store: &Arc<dyn Store>,
    from: &str,
    group: &str,
    client_id: &str,
) -> Arc<Message> {
    match append(store, to_group(from, group, client_id)).await.unwrap() {
        Appended::Stored(message) => message,
        other => panic!("{client_id} was to be stored, got {other:?}"),
    }
}

pub(super) async fn in_group(store: &Arc<dyn Store>, who: &str, group: &str) -> Standing {
    store.standing(&user(who), &group_id(group).conversation()).await.unwrap().unwrap()
}

/// Records the events it receives.
#[derive(Default)]
pub(super) struct RecordingListener(pub(super) Mutex<Vec<Event>>);

impl RecordingListener {
    /// Returns the messages it received, and the sockets they came through.
    pub(super) fn messages(&self) -> Vec<(Arc<Message>, Option<ConnectionId>)> {
        let received = self.0.lock().unwrap();
        let messages = received.iter().filter_map(|event| match event {
            Event::Message { message, origin, .. } => Some((Arc::clone(message), *origin)),
            _ => None,
        });
        messages.collect()
    }

    /// Returns the changes it received.
    pub(super) fn changes(&self) -> Vec<Arc<Change>> {
        let received = self.0.lock().unwrap();
        let changes = received.iter().filter_map(|event| match event {
            Event::Change { change, .. } => Some(Arc::clone(change)),
            _ => None,
        });
        changes.collect()
    }
}

impl CommitListener for RecordingListener {
    fn on_committed(&self, batch: &[Event]) {
        assert!(!batch.is_empty(), "nothing to hear");
        self.0.lock().unwrap().extend_from_slice(batch);
    }
}
