//! The reference engine: the shortest correct reading of the contract. Keeps nothing over a restart.

use std::collections::{BTreeMap, HashMap};
use std::future::ready;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use nexo_chat::Reason;
use nexo_chat::ids::{ConversationId, LoginId, MessageId, Millis, Seq, UserId};
use nexo_chat::model::{
    Change, ChangeKind, CursorKind, Draft, Fingerprint, Kept, Login, Message, Profile,
    ProfileChange, Recall, Standing, User, Window,
};
use nexo_chat::policy::send::Permit;
use nexo_chat::progress::Progress;
use nexo_chat::store::{
    Appended, Asker, Committed, Limit, MayRecall, Moved, Order, Rotated, SignedIn, Store,
    StoreError, Stored,
};

use crate::sign_ins::{self, LIVE_MAX};

/// A store in memory.
#[derive(Default)]
pub struct Memory {
    state: Mutex<State>,
    /// Held from an append's decision until its announcement, so that commits are heard in order.
    order: Mutex<()>,
    listener: OnceLock<Arc<dyn Committed>>,
}

#[derive(Default)]
struct State {
    conversations: HashMap<ConversationId, Vec<Arc<Message>>>,
    ids: HashMap<MessageId, (Arc<Message>, Fingerprint)>,
    changes: HashMap<ConversationId, Vec<Arc<Change>>>,
    members: BTreeMap<(UserId, ConversationId), Member>,
    users: HashMap<UserId, User>,
    logins: BTreeMap<LoginId, Login>,
    /// Refresh tokens that were replaced.
    used: HashMap<[u8; 32], LoginId>,
    closed: bool,
}

type Recalled = (Arc<Message>, Option<Arc<Change>>);

struct Member {
    window: Window,
    progress: Progress,
}

impl Memory {
    /// An empty store.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves no half-done change: every act below checks first, then writes.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does one act on the state and wraps its outcome as an answer.
    fn act<T: Send + 'static>(&self, act: impl FnOnce(&mut State) -> T) -> Stored<'static, T> {
        Box::pin(ready(Ok(act(&mut self.state()))))
    }

    /// The same for acts that a closed store refuses.
    fn change<T: Send + 'static>(&self, act: impl FnOnce(&mut State) -> T) -> Stored<'static, T> {
        let mut state = self.state();
        let result = if state.closed { Err(closed()) } else { Ok(act(&mut state)) };
        Box::pin(ready(result))
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}

impl State {
    fn append(&mut self, draft: Draft) -> Appended {
        let id = MessageId::of(&draft.sender, &draft.client_id);
        let fingerprint = draft.content.fingerprint(&draft.conversation);
        if let Some((message, known)) = self.ids.get(&id) {
            return if *known == fingerprint {
                Appended::Duplicate(Arc::clone(message))
            } else {
                Appended::Conflict
            };
        }
        let seq = self.max_seq(&draft.conversation).next();
        if let (Seq(1), Some((a, b))) = (seq, draft.conversation.pair()) {
            for user in [a, b] {
                let member = Member { window: Window::ALL, progress: Progress::default() };
                self.members.insert((user, draft.conversation.clone()), member);
            }
        }
        if let Some(member) =
            self.members.get_mut(&(draft.sender.clone(), draft.conversation.clone()))
        {
            member.progress.sent(seq);
        }
        let message = Arc::new(Message {
            id,
            conversation: draft.conversation.clone(),
            seq,
            sender: draft.sender,
            client_id: draft.client_id,
            sent_at: draft.sent_at,
            content: draft.cleaned.unwrap_or(draft.content),
            recalled: None,
        });
        self.ids.insert(id, (Arc::clone(&message), fingerprint));
        self.conversations.entry(draft.conversation).or_default().push(Arc::clone(&message));
        Appended::Stored(message)
    }

    /// The message as it is now, and the change unless it was recalled before.
    fn recall(&mut self, id: MessageId, asker: &Asker, may: MayRecall) -> Result<Recalled, Reason> {
        let (message, fingerprint) = self.ids.get(&id).cloned().ok_or(Reason::MessageNotFound)?;
        may(&message)?;
        if message.recalled.is_some() {
            return Ok((message, None));
        }
        let recall = Recall { by: asker.user.clone(), at: asker.at };
        let recalled = Arc::new(message.recalled(recall));
        self.ids.insert(id, (Arc::clone(&recalled), fingerprint));
        let all = self.conversations.entry(message.conversation.clone()).or_default();
        if let Some(place) = all.iter_mut().find(|place| place.id == id) {
            *place = Arc::clone(&recalled);
        }
        let changes = self.changes.entry(message.conversation.clone()).or_default();
        let change = Arc::new(Change {
            conversation: message.conversation.clone(),
            seq: Seq(changes.len() as u64 + 1),
            by: asker.user.clone(),
            at: asker.at,
            kind: ChangeKind::Recalled {
                message: id,
                seq: message.seq,
                sender: message.sender.clone(),
            },
        });
        changes.push(Arc::clone(&change));
        Ok((recalled, Some(change)))
    }

    fn newest(&self, conversation: &ConversationId) -> Option<&Arc<Message>> {
        self.conversations.get(conversation)?.last()
    }

    fn max_seq(&self, conversation: &ConversationId) -> Seq {
        self.newest(conversation).map_or(Seq::ZERO, |message| message.seq)
    }

    fn standing(&self, conversation: &ConversationId, member: &Member) -> Standing {
        Standing {
            conversation: conversation.clone(),
            window: member.window,
            cursors: member.progress.cursors,
            max_seq: self.max_seq(conversation),
            change_seq: Seq(self.changes.get(conversation).map_or(0, |all| all.len() as u64)),
            updated_at: self.newest(conversation).map_or(Millis(0), |message| message.sent_at),
        }
    }

    fn advance(
        &mut self,
        key: &(UserId, ConversationId),
        kind: CursorKind,
        seq: Seq,
    ) -> Option<Moved> {
        let visible_max = self.standing(&key.1, self.members.get(key)?).visible_max();
        let progress = &mut self.members.get_mut(key)?.progress;
        let before = progress.cursors;
        progress.acknowledged(kind, seq.min(visible_max));
        Some(Moved { before, after: progress.cursors })
    }

    fn end_logins(&mut self, user: &UserId, which: &dyn Fn(&Login) -> bool) -> Vec<LoginId> {
        let picked = self.logins.values_mut().filter(|login| login.user == *user && !login.ended);
        let mut ended = Vec::new();
        for login in picked.filter(|login| which(login)) {
            login.ended = true;
            ended.push(login.id);
        }
        ended
    }

    fn create_login(&mut self, mut login: Login, version: u64, now: Millis) -> Option<SignedIn> {
        if self.users.get(&login.user)?.session_version != version {
            return None;
        }
        let mine = self.logins.values().filter(|old| old.user == login.user);
        login.created_at = sign_ins::begin(login.created_at, mine);
        self.logins.retain(|_, old| old.user != login.user || sign_ins::is_live(old, now));
        let mine = self.logins.values().filter(|old| old.user == login.user);
        let ended = sign_ins::too_many(mine, LIVE_MAX - 1);
        for old in &ended {
            if let Some(old) = self.logins.get_mut(old) {
                old.ended = true;
            }
        }
        self.logins.insert(login.id, login.clone());
        Some(SignedIn { login, ended })
    }

    fn rotate(
        &mut self,
        old_hash: [u8; 32],
        new_hash: [u8; 32],
        expires_at: Millis,
        now: Millis,
        grace_ms: u64,
    ) -> Rotated {
        let used = self.used.get(&old_hash).copied();
        let knows = |login: &&mut Login| login.refresh_hash == old_hash || used == Some(login.id);
        let Some(login) = self.logins.values_mut().find(knows) else { return Rotated::Unknown };
        let id = login.id;
        let rotated = sign_ins::rotate(login, old_hash, new_hash, expires_at, now, grace_ms);
        if let Rotated::Done(_) = rotated {
            self.used.insert(old_hash, id);
        }
        rotated
    }
}

impl Store for Memory {
    fn append(&self, _permit: Permit, draft: Draft) -> Stored<'static, Appended> {
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let origin = draft.origin;
        let outcome = {
            let mut state = self.state();
            if state.closed { Err(closed()) } else { Ok(state.append(draft)) }
        };
        if let (Ok(Appended::Stored(message)), Some(listener)) = (&outcome, self.listener.get()) {
            listener.committed(&[Kept::Message { message: Arc::clone(message), origin }]);
        }
        Box::pin(ready(outcome))
    }

    fn on_commit(&self, listener: Arc<dyn Committed>) {
        if self.listener.set(listener).is_err() {
            tracing::warn!("a second listener for commits was ignored");
        }
    }

    fn message(&self, id: MessageId) -> Stored<'_, Option<Arc<Message>>> {
        self.act(|state| state.ids.get(&id).map(|(message, _)| Arc::clone(message)))
    }

    fn messages(
        &self,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
        limit: Limit,
        order: Order,
    ) -> Stored<'_, Vec<Arc<Message>>> {
        self.act(|state| {
            let all = state.conversations.get(conversation).into_iter().flatten();
            let mut messages: Vec<_> =
                all.filter(|message| range.contains(&message.seq)).cloned().collect();
            if order == Order::Descending {
                messages.reverse();
            }
            let mut left = limit.bytes;
            let fits = messages.iter().enumerate().take_while(|(place, message)| {
                let fits = *place == 0 || message.weight() <= left;
                left = left.saturating_sub(message.weight());
                fits
            });
            let count = fits.count().min(limit.count);
            messages.truncate(count);
            messages
        })
    }

    fn recall(
        &self,
        id: MessageId,
        asker: Asker,
        may: MayRecall,
    ) -> Stored<'_, Result<Arc<Message>, Reason>> {
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = {
            let mut state = self.state();
            if state.closed { Err(closed()) } else { Ok(state.recall(id, &asker, may)) }
        };
        if let (Ok(Ok((_, Some(change)))), Some(listener)) = (&outcome, self.listener.get()) {
            let (change, origin) = (Arc::clone(change), asker.origin);
            listener.committed(&[Kept::Change { change, origin }]);
        }
        Box::pin(ready(outcome.map(|recalled| recalled.map(|(message, _)| message))))
    }

    fn changes(
        &self,
        conversation: &ConversationId,
        after: Seq,
        limit: usize,
    ) -> Stored<'_, Vec<Arc<Change>>> {
        self.act(|state| {
            let all = state.changes.get(conversation).into_iter().flatten();
            all.filter(|change| change.seq > after).take(limit).cloned().collect()
        })
    }

    fn standing(
        &self,
        user: &UserId,
        conversation: &ConversationId,
    ) -> Stored<'_, Option<Standing>> {
        self.act(|state| {
            let member = state.members.get(&(user.clone(), conversation.clone()))?;
            Some(state.standing(conversation, member))
        })
    }

    fn standings(
        &self,
        user: &UserId,
        after: Option<&ConversationId>,
        limit: usize,
    ) -> Stored<'_, Vec<Standing>> {
        self.act(|state| {
            let mine = state.members.iter().filter(|((member, _), _)| member == user);
            mine.filter(|((_, conversation), _)| after.is_none_or(|after| conversation > after))
                .map(|((_, conversation), member)| state.standing(conversation, member))
                .take(limit)
                .collect()
        })
    }

    fn advance(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        kind: CursorKind,
        seq: Seq,
    ) -> Stored<'_, Option<Moved>> {
        self.act(|state| state.advance(&(user.clone(), conversation.clone()), kind, seq))
    }

    fn create_user(&self, user: User) -> Stored<'_, bool> {
        self.change(|state| {
            let free = !state.users.contains_key(&user.id);
            if free {
                state.users.insert(user.id.clone(), user);
            }
            free
        })
    }

    fn user(&self, id: &UserId) -> Stored<'_, Option<Arc<User>>> {
        self.act(|state| state.users.get(id).cloned().map(Arc::new))
    }

    fn update_profile(&self, id: &UserId, change: ProfileChange) -> Stored<'_, Option<Profile>> {
        self.change(|state| {
            let user = state.users.get_mut(id)?;
            user.profile.apply(change);
            Some(user.profile.clone())
        })
    }

    fn change_password(
        &self,
        id: &UserId,
        session_version: u64,
        hash: String,
    ) -> Stored<'_, Option<u64>> {
        self.change(|state| {
            let user = state.users.get_mut(id)?;
            if user.session_version != session_version {
                return None;
            }
            user.password_hash = hash;
            user.session_version += 1;
            let version = user.session_version;
            state.end_logins(id, &|_| true);
            Some(version)
        })
    }

    fn create_login(
        &self,
        login: Login,
        session_version: u64,
        now: Millis,
    ) -> Stored<'_, Option<SignedIn>> {
        self.change(|state| state.create_login(login, session_version, now))
    }

    fn login(&self, id: LoginId) -> Stored<'_, Option<Login>> {
        self.act(|state| state.logins.get(&id).cloned())
    }

    fn rotate(
        &self,
        old_hash: [u8; 32],
        new_hash: [u8; 32],
        expires_at: Millis,
        now: Millis,
        grace_ms: u64,
    ) -> Stored<'_, Rotated> {
        self.change(|state| state.rotate(old_hash, new_hash, expires_at, now, grace_ms))
    }

    fn end_logins(
        &self,
        user: &UserId,
        which: Box<dyn Fn(&Login) -> bool + Send>,
    ) -> Stored<'_, Vec<LoginId>> {
        self.change(|state| state.end_logins(user, &which))
    }

    fn health(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn close(&self) -> Stored<'_, ()> {
        self.act(|state| state.closed = true)
    }
}
