//! People, drafts and sign-ins for the cases, each on one line.

use std::sync::{Arc, Mutex};

use nexo_chat::Reason;
use nexo_chat::ids::{
    ClientMsgId, ConnectionId, ConversationId, GroupId, LoginId, Millis, Platform, Seq, UserId,
};
use nexo_chat::membership::{
    GroupAct, GroupFacts, GroupProfile, History, JoinCode, Joining, NewGroup,
};
use nexo_chat::model::{Change, Content, Draft, Kept, Login, Message, Profile, Standing, User};
use nexo_chat::policy::group::decide;
use nexo_chat::policy::send::Permit;
use nexo_chat::rules::GroupRules;
use nexo_chat::store::{
    About, Appended, Asker, Committed, Decided, SignedIn, Store, StoreError, Stored,
};

/// A time to start from.
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

/// Keeps a sign-in of somebody who has an account, which is made if it is not there.
pub(super) async fn sign_in(store: &dyn Store, login: Login) -> SignedIn {
    let version = if let Some(user) = store.user(&login.user).await.unwrap() {
        user.session_version
    } else {
        let account = account(login.user.as_str());
        assert!(store.create_user(account.clone()).await.unwrap());
        account.session_version
    };
    store.create_login(login, version, NOW).await.unwrap().expect("the version is right")
}

/// Sends and expects it to be stored now.
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

/// The whole of a conversation's seqs.
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
    }
}

/// A sign-in of `who` with the refresh hash `[n; 32]`, good for an hour.
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
    }
}

pub(super) fn group_id(id: &str) -> GroupId {
    GroupId::parse(id).unwrap()
}

/// Somebody does something to a group, by the real rules.
pub(super) fn act(
    store: &Arc<dyn Store>,
    by: &str,
    group: &str,
    act: GroupAct,
) -> Stored<'static, Result<Decided, Reason>> {
    act_with(store, by, group, act, GroupRules::default())
}

pub(super) fn act_with(
    store: &Arc<dyn Store>,
    by: &str,
    group: &str,
    act: GroupAct,
    rules: GroupRules,
) -> Stored<'static, Result<Decided, Reason>> {
    let (by, id) = (user(by), group_id(group));
    let asker = Asker { user: by.clone(), at: NOW, origin: None };
    let about = About { users: act.users().to_vec(), code: act.code().cloned() };
    let deciding = {
        let id = id.clone();
        move |facts: &GroupFacts| decide(&rules, facts, &id, &by, &act, NOW)
    };
    store.change_group(&id, asker, about, Box::new(deciding))
}

/// The same, and it is to succeed.
pub(super) async fn done(store: &Arc<dyn Store>, by: &str, group: &str, what: GroupAct) -> Decided {
    act(store, by, group, what).await.unwrap().unwrap()
}

/// An open group of these people, the first of whom owns it. Its code is made of its id.
pub(super) async fn group(store: &Arc<dyn Store>, id: &str, people: &[&str]) -> Decided {
    group_with(store, id, people, Joining::Open, History::Joined).await
}

pub(super) async fn group_with(
    store: &Arc<dyn Store>,
    id: &str,
    people: &[&str],
    joining: Joining,
    history: History,
) -> Decided {
    let mut code = [b'a'; 8];
    code[..id.len().min(8)].copy_from_slice(&id.as_bytes()[..id.len().min(8)]);
    let new = NewGroup {
        profile: GroupProfile { name: id.to_uppercase(), group_type: 7, ..GroupProfile::default() },
        joining,
        history,
        members: people[1..].iter().copied().map(user).collect(),
        least: 1,
        code: JoinCode::random(code),
    };
    done(store, people[0], id, GroupAct::Create(new)).await
}

pub(super) fn join() -> GroupAct {
    GroupAct::Join { message: String::new(), inviter: None }
}

pub(super) fn to_group(from: &str, group: &str, client_id: &str) -> Draft {
    let conversation = group_id(group).conversation();
    Draft { conversation, ..draft(from, "nobody", client_id, client_id) }
}

/// Says something in a group and expects it to be stored now.
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

/// Writes down what it hears.
#[derive(Default)]
pub(super) struct Ear(pub(super) Mutex<Vec<Kept>>);

impl Ear {
    /// The messages it heard, and through which sockets they came.
    pub(super) fn messages(&self) -> Vec<(Arc<Message>, Option<ConnectionId>)> {
        let heard = self.0.lock().unwrap();
        let messages = heard.iter().filter_map(|kept| match kept {
            Kept::Message { message, origin, .. } => Some((Arc::clone(message), *origin)),
            _ => None,
        });
        messages.collect()
    }

    /// The changes it heard.
    pub(super) fn changes(&self) -> Vec<Arc<Change>> {
        let heard = self.0.lock().unwrap();
        let changes = heard.iter().filter_map(|kept| match kept {
            Kept::Change { change, .. } => Some(Arc::clone(change)),
            _ => None,
        });
        changes.collect()
    }
}

impl Committed for Ear {
    fn committed(&self, batch: &[Kept]) {
        assert!(!batch.is_empty(), "nothing to hear");
        self.0.lock().unwrap().extend_from_slice(batch);
    }
}
