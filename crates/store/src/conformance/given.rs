//! People, drafts and sign-ins for the cases, each on one line.

use std::sync::{Arc, Mutex};

use nexo_chat::ids::{
    ClientMsgId, ConnectionId, ConversationId, LoginId, Millis, Platform, Seq, UserId,
};
use nexo_chat::model::{Change, Content, Draft, Kept, Login, Message, Profile, Standing, User};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{Appended, Committed, SignedIn, Store, StoreError};

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

/// Writes down what it hears.
#[derive(Default)]
pub(super) struct Ear(pub(super) Mutex<Vec<Kept>>);

impl Ear {
    /// The messages it heard, and through which sockets they came.
    pub(super) fn messages(&self) -> Vec<(Arc<Message>, Option<ConnectionId>)> {
        let heard = self.0.lock().unwrap();
        let messages = heard.iter().filter_map(|kept| match kept {
            Kept::Message { message, origin } => Some((Arc::clone(message), *origin)),
            Kept::Change { .. } => None,
        });
        messages.collect()
    }

    /// The changes it heard.
    pub(super) fn changes(&self) -> Vec<Arc<Change>> {
        let heard = self.0.lock().unwrap();
        let changes = heard.iter().filter_map(|kept| match kept {
            Kept::Change { change, .. } => Some(Arc::clone(change)),
            Kept::Message { .. } => None,
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
