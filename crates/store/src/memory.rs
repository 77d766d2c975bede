//! The reference engine: the shortest correct reading of the contract. Keeps nothing over a restart.

mod groups;
mod logins;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::ready;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use nexo_chat::Reason;
use nexo_chat::ids::{ConversationId, FoldedId, GroupId, LoginId, MessageId, Millis, Seq, UserId};
use nexo_chat::membership::{Belonging, Group, GroupMember, JoinCode, JoinRequest};
use nexo_chat::model::{
    Change, ChangeKind, CursorKind, Cursors, Draft, Fingerprint, Kept, Login, Message,
    ProfileChange, Recall, ResetCode, Settings, SettingsChange, Standing, User, Window,
};
use nexo_chat::policy::group::may_speak;
use nexo_chat::policy::send::Permit;
use nexo_chat::progress::Progress;
use nexo_chat::store::{
    About, Appended, Asker, Committed, Decide, Decided, Limit, MayRecall, Moved, Order,
    RecallFacts, Rotated, SignedIn, Store, StoreError, Stored,
};

use crate::told;

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
    /// Messages that speak to somebody in particular.
    mentions: BTreeMap<(UserId, ConversationId), BTreeSet<Seq>>,
    /// Messages that speak to everybody in particular, and who said them.
    mentions_all: HashMap<ConversationId, BTreeMap<Seq, UserId>>,
    groups: HashMap<GroupId, Arc<Group>>,
    group_members: BTreeMap<(GroupId, UserId), GroupMember>,
    requests: BTreeMap<(GroupId, UserId), JoinRequest>,
    mutes: BTreeMap<(GroupId, UserId), Millis>,
    codes: HashMap<JoinCode, GroupId>,
    seen: HashMap<UserId, Millis>,
    users: HashMap<UserId, User>,
    resets: HashMap<UserId, ResetCode>,
    /// Who holds which folded id.
    folded: HashMap<FoldedId, UserId>,
    logins: BTreeMap<LoginId, Login>,
    /// Refresh tokens that were replaced.
    used: HashMap<[u8; 32], LoginId>,
    closed: bool,
}

type Recalled = (Arc<Message>, Option<Arc<Change>>);

struct Member {
    window: Window,
    progress: Progress,
    settings: Settings,
    /// Own messages that were sent without marking anything read.
    quiet: BTreeSet<Seq>,
}

impl Member {
    fn new(window: Window, progress: Progress) -> Self {
        Self { window, progress, settings: Settings::default(), quiet: BTreeSet::new() }
    }
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

    /// Appends, by whoever holds the order.
    fn append_next(&self, draft: Draft) -> Result<Appended, StoreError> {
        let (origin, conversation) = (draft.origin, draft.conversation.clone());
        let (outcome, members, change_seq) = {
            let mut state = self.state();
            let members = state.members_of(&conversation);
            let change_seq = state.change_seq(&conversation);
            let outcome = if state.closed { Err(closed()) } else { Ok(state.append(draft)) };
            (outcome, members, change_seq)
        };
        if let (Ok(Appended::Stored(message)), Some(listener)) = (&outcome, self.listener.get()) {
            let message = Arc::clone(message);
            listener.committed(&[Kept::Message { message, origin, members, change_seq }]);
        }
        outcome
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

/// How many of these are in a range, which may be empty.
fn count(seqs: &BTreeSet<Seq>, range: RangeInclusive<Seq>) -> u64 {
    seqs.iter().filter(|seq| range.contains(seq)).count() as u64
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}

impl State {
    /// Replaces a password of somebody who is there, and returns the session version.
    fn set_password(&mut self, id: &UserId, hash: String) -> u64 {
        let mut version = 0;
        if let Some(user) = self.users.get_mut(id) {
            user.password_hash = hash;
            user.session_version += 1;
            version = user.session_version;
        }
        self.resets.remove(id);
        self.end_logins(id, &|_| true);
        version
    }

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
        if let Some(id) = draft.conversation.group() {
            let group = self.groups.get(&id).map(|group| &**group);
            let member = self.group_members.get(&(id, draft.sender.clone()));
            let place = (draft.sender.clone(), draft.conversation.clone());
            let sender = Belonging::new(member, self.members.contains_key(&place));
            if let Err(reason) = may_speak(group, sender, &draft) {
                return Appended::Refused(reason);
            }
        }
        let seq = self.max_seq(&draft.conversation).next();
        if let (Seq(1), Some((a, b))) = (seq, draft.conversation.pair()) {
            for user in [a, b] {
                let member = Member::new(Window::ALL, Progress::default());
                self.members.insert((user, draft.conversation.clone()), member);
            }
        }
        if let Some(member) =
            self.members.get_mut(&(draft.sender.clone(), draft.conversation.clone()))
        {
            member.progress.sent(seq, draft.marks_read);
            if !draft.marks_read {
                member.quiet.insert(seq);
            }
        }
        self.note_mentions(&draft, seq);
        let message = Arc::new(draft.into_message(id, seq));
        self.ids.insert(id, (Arc::clone(&message), fingerprint));
        let conversation = message.conversation.clone();
        self.conversations.entry(conversation).or_default().push(Arc::clone(&message));
        Appended::Stored(message)
    }

    fn note_mentions(&mut self, draft: &Draft, seq: Seq) {
        let Draft { conversation, sender, content, .. } = draft;
        if content.mentions_all {
            let all = self.mentions_all.entry(conversation.clone()).or_default();
            all.insert(seq, sender.clone());
        }
        let answered = content.reply_to.as_ref().map(|reply| &reply.sender);
        for user in content.mentions.iter().chain(answered).filter(|user| *user != sender) {
            let place = (user.clone(), conversation.clone());
            self.mentions.entry(place).or_default().insert(seq);
        }
    }

    /// The message as it is now, and the change unless it was recalled before.
    fn recall(
        &mut self,
        id: MessageId,
        asker: &Asker,
        may: &MayRecall,
    ) -> Result<Recalled, Reason> {
        let (message, fingerprint) = self.ids.get(&id).cloned().ok_or(Reason::MessageNotFound)?;
        let group = message.conversation.group();
        let is_member = group
            .clone()
            .is_some_and(|group| self.group_members.contains_key(&(group, asker.user.clone())));
        let group = group.and_then(|group| self.groups.get(&group)).filter(|it| it.ended.is_none());
        may(RecallFacts { message: &message, group: group.map(|group| &**group), is_member })?;
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
        let kind =
            ChangeKind::Recalled { message: id, seq: message.seq, sender: message.sender.clone() };
        let change = self.note(&message.conversation, asker, kind);
        Ok((recalled, Some(change)))
    }

    /// Writes a change under the next change seq.
    fn note(
        &mut self,
        conversation: &ConversationId,
        asker: &Asker,
        kind: ChangeKind,
    ) -> Arc<Change> {
        let changes = self.changes.entry(conversation.clone()).or_default();
        let change = Arc::new(Change {
            conversation: conversation.clone(),
            seq: Seq(changes.len() as u64 + 1),
            by: asker.user.clone(),
            at: asker.at,
            kind,
        });
        changes.push(Arc::clone(&change));
        change
    }

    fn change_seq(&self, conversation: &ConversationId) -> Seq {
        Seq(self.changes.get(conversation).map_or(0, |all| all.len() as u64))
    }

    /// How many members a conversation's group has.
    fn members_of(&self, conversation: &ConversationId) -> u32 {
        let group = conversation.group().and_then(|group| self.groups.get(&group));
        group.map_or(0, |group| group.members)
    }

    fn newest(&self, conversation: &ConversationId) -> Option<&Arc<Message>> {
        self.conversations.get(conversation)?.last()
    }

    fn max_seq(&self, conversation: &ConversationId) -> Seq {
        self.newest(conversation).map_or(Seq::ZERO, |message| message.seq)
    }

    fn standing(&self, conversation: &ConversationId, member: &Member) -> Standing {
        let group = conversation.group().and_then(|group| self.groups.get(&group));
        let ended = group.and_then(|group| group.ended);
        let mut standing = Standing {
            conversation: conversation.clone(),
            window: member.window.until(ended.map(|ended| ended.edge)),
            cursors: member.progress.cursors,
            own_unread: 0,
            settings: member.settings.clone(),
            max_seq: self.max_seq(conversation),
            change_seq: self.change_seq(conversation),
            newest_at: self.newest(conversation).map_or(Millis(0), |message| message.sent_at),
            has_ended: ended.is_some(),
        };
        let above = (standing.read_from().next(), standing.visible_max());
        standing.own_unread = count(&member.quiet, above.0..=above.1);
        standing
    }

    fn mentions(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        range: &RangeInclusive<Seq>,
    ) -> BTreeSet<Seq> {
        let all = self.mentions_all.get(conversation).into_iter().flatten();
        let by_others = all.filter(|(_, sender)| *sender != user).map(|(seq, _)| seq);
        let named = self.mentions.get(&(user.clone(), conversation.clone()));
        let both = by_others.chain(named.into_iter().flatten());
        both.filter(|seq| range.contains(seq)).copied().collect()
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
}

impl Store for Memory {
    fn append(&self, _permit: Permit, draft: Draft) -> Stored<'static, Appended> {
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        Box::pin(ready(self.append_next(draft)))
    }

    fn append_run(&self, _permit: Permit, drafts: Vec<Draft>) -> Stored<'static, Vec<Appended>> {
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        Box::pin(ready(drafts.into_iter().map(|draft| self.append_next(draft)).collect()))
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
            if state.closed { Err(closed()) } else { Ok(state.recall(id, &asker, &may)) }
        };
        if let (Ok(Ok((_, Some(change)))), Some(listener)) = (&outcome, self.listener.get()) {
            let members = self.state().members_of(&change.conversation);
            let (change, origin) = (Arc::clone(change), asker.origin);
            listener.committed(&[Kept::Change { change, origin, members }]);
        }
        Box::pin(ready(outcome.map(|recalled| recalled.map(|(message, _)| message))))
    }

    fn mentions(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
        limit: usize,
    ) -> Stored<'_, Vec<Seq>> {
        self.act(|state| {
            state.mentions(user, conversation, &range).into_iter().take(limit).collect()
        })
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

    fn quiet(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
    ) -> Stored<'_, u64> {
        self.act(|state| {
            let member = state.members.get(&(user.clone(), conversation.clone()));
            member.map_or(0, |member| count(&member.quiet, range))
        })
    }

    fn update_settings(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        change: SettingsChange,
    ) -> Stored<'_, Option<Settings>> {
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let (user, conversation) = (user.clone(), conversation.clone());
        let chosen = {
            let mut state = self.state();
            if state.closed {
                return Box::pin(ready(Err(closed())));
            }
            let member = state.members.get_mut(&(user.clone(), conversation.clone()));
            member.map(|member| {
                member.settings = member.settings.clone().with(change);
                member.settings.clone()
            })
        };
        if let (Some(settings), Some(listener)) = (chosen.clone(), self.listener.get()) {
            listener.committed(&[Kept::Chose { user, conversation, settings }]);
        }
        Box::pin(ready(Ok(chosen)))
    }

    fn change_group(
        &self,
        id: &GroupId,
        asker: Asker,
        about: About,
        decide: Decide,
    ) -> Stored<'static, Result<Decided, Reason>> {
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = {
            let mut state = self.state();
            if state.closed {
                Err(closed())
            } else {
                Ok(state.change_group(id, &asker, about, &decide))
            }
        };
        if let (Ok(Ok(decided)), Some(listener)) = (&outcome, self.listener.get()) {
            let kept = told::told(decided, &asker);
            if !kept.is_empty() {
                listener.committed(&kept);
            }
        }
        Box::pin(ready(outcome))
    }

    fn group(&self, id: &GroupId) -> Stored<'_, Option<Arc<Group>>> {
        self.act(|state| state.groups.get(id).cloned())
    }

    fn group_by_code(&self, code: &JoinCode) -> Stored<'_, Option<GroupId>> {
        self.act(|state| state.codes.get(code).cloned())
    }

    fn group_member(&self, group: &GroupId, user: &UserId) -> Stored<'_, Option<GroupMember>> {
        self.act(|state| state.group_member(group, user).cloned())
    }

    fn group_members(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> Stored<'_, Vec<GroupMember>> {
        self.act(|state| match state.groups.get(group) {
            Some(it) if it.ended.is_none() => {
                groups::page(&state.group_members, group, after, limit)
            }
            _ => Vec::new(),
        })
    }

    fn group_cursors(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> Stored<'_, Vec<(GroupMember, Cursors)>> {
        self.act(|state| match state.groups.get(group) {
            Some(it) if it.ended.is_none() => {
                let page = groups::page(&state.group_members, group, after, limit);
                let come = |member: GroupMember| {
                    let place = (member.user.clone(), group.conversation());
                    let known = state.members.get(&place);
                    (member, known.map(|known| known.progress.cursors).unwrap_or_default())
                };
                page.into_iter().map(come).collect()
            }
            _ => Vec::new(),
        })
    }

    fn acquainted(&self, user: &UserId, others: Vec<UserId>) -> Stored<'_, Vec<bool>> {
        self.act(|state| others.iter().map(|other| state.acquainted(user, other)).collect())
    }

    fn join_requests(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> Stored<'_, Vec<JoinRequest>> {
        self.act(|state| groups::page(&state.requests, group, after, limit))
    }

    fn seen(&self, user: &UserId, at: Millis) -> Stored<'_, ()> {
        self.change(|state| {
            state.seen.insert(user.clone(), at);
        })
    }

    fn last_seen(&self, user: &UserId) -> Stored<'_, Option<Millis>> {
        self.act(|state| state.seen.get(user).copied())
    }

    fn create_user(&self, user: User) -> Stored<'_, bool> {
        self.change(|state| {
            let folded = user.id.folded();
            let free = !state.folded.contains_key(&folded);
            if free {
                state.folded.insert(folded, user.id.clone());
                state.users.insert(user.id.clone(), user);
            }
            free
        })
    }

    fn holder<'a>(&'a self, folded: &'a FoldedId) -> Stored<'a, Option<UserId>> {
        self.act(|state| state.folded.get(folded).cloned())
    }

    fn user(&self, id: &UserId) -> Stored<'_, Option<Arc<User>>> {
        self.act(|state| state.users.get(id).cloned().map(Arc::new))
    }

    fn update_profile(
        &self,
        id: &UserId,
        change: ProfileChange,
        at: Millis,
    ) -> Stored<'_, Option<Arc<User>>> {
        self.change(|state| {
            let user = state.users.get_mut(id)?;
            user.update(change, at);
            Some(Arc::new(user.clone()))
        })
    }

    fn change_password(
        &self,
        id: &UserId,
        session_version: u64,
        hash: String,
    ) -> Stored<'_, Option<u64>> {
        self.change(|state| {
            let user = state.users.get(id)?;
            if user.session_version != session_version {
                return None;
            }
            Some(state.set_password(id, hash))
        })
    }

    fn put_reset_code(&self, id: &UserId, code: ResetCode) -> Stored<'_, bool> {
        self.change(|state| {
            let exists = state.users.contains_key(id);
            if exists {
                state.resets.insert(id.clone(), code);
            }
            exists
        })
    }

    fn reset_code(&self, id: &UserId) -> Stored<'_, Option<ResetCode>> {
        self.act(|state| state.resets.get(id).copied())
    }

    fn reset_password(
        &self,
        id: &UserId,
        code_hash: [u8; 32],
        now: Millis,
        hash: String,
    ) -> Stored<'_, Option<u64>> {
        self.change(|state| {
            let is_right = state.resets.get(id)?.is(code_hash, now);
            is_right.then(|| state.set_password(id, hash))
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
        which: Box<dyn Fn(&Login) -> bool + Send + Sync>,
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
