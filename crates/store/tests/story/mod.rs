//! The history of a group, rebuilt from committed events: the simplest definition of what windows
//! are.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use nexo_chat::Reason;
use nexo_chat::event::Event;
use nexo_chat::ids::{ClientMsgId, ConversationId, GroupId, Millis, UserId};
use nexo_chat::membership::{
    GroupAction, GroupFacts, GroupProfile, HistoryPolicy, JoinCode, JoinPolicy, NewGroup,
};
use nexo_chat::model::{Change, ChangeKind, Content, Draft, Message, Standing};
use nexo_chat::policy::group::decide;
use nexo_chat::policy::send::Permit;
use nexo_chat::rules::GroupRules;
use nexo_chat::store::{
    Actor, Appended, CommitListener, GroupFactsQuery, GroupOutcome, Store, StoreFuture,
};

pub(crate) fn person(n: usize) -> UserId {
    UserId::parse(&format!("p{n}")).unwrap()
}

pub(crate) fn group_id() -> GroupId {
    GroupId::parse("storm").unwrap()
}

pub(crate) fn conversation() -> ConversationId {
    group_id().conversation()
}

/// Changes the group, by the real rules. The call decides its place in the order.
pub(crate) fn act(
    store: &Arc<dyn Store>,
    by: &UserId,
    act: GroupAction,
    at: Millis,
) -> StoreFuture<'static, Result<GroupOutcome, Reason>> {
    let asker = Actor { user: by.clone(), at, origin: None };
    let about = GroupFactsQuery { users: act.users().to_vec(), code: act.code().cloned() };
    let (rules, by) = (GroupRules::default(), by.clone());
    let decide = move |facts: &GroupFacts| decide(&rules, facts, &group_id(), &by, &act, at);
    store.change_group(&group_id(), asker, about, Box::new(decide))
}

/// Creates an open group of one user.
pub(crate) async fn create(store: &Arc<dyn Store>, owner: UserId) {
    let new = NewGroup {
        profile: GroupProfile { name: "Storm".into(), ..GroupProfile::default() },
        joining: JoinPolicy::Open,
        history: HistoryPolicy::Joined,
        members: Vec::new(),
        members_min: 1,
        code: JoinCode::random([7; 8]),
    };
    act(store, &owner, GroupAction::Create(new), Millis(1)).await.unwrap().unwrap();
}

/// Sends a message. The call decides its place in the order.
pub(crate) fn say(
    store: &Arc<dyn Store>,
    from: &UserId,
    client_id: &str,
    sent_at: Millis,
    marks_read: bool,
) -> StoreFuture<'static, Appended> {
    let draft = Draft {
        conversation: conversation(),
        sender: from.clone(),
        client_id: ClientMsgId::parse(client_id).unwrap(),
        // The text says it, so that the story can be replayed from the events alone.
        content: Content::text(if marks_read { "read" } else { "quiet" }),
        cleaned: None,
        sent_at,
        origin: None,
        marks_read,
    };
    store.append(Permit::for_tests(), draft)
}

/// Records committed events, in order.
#[derive(Default)]
pub(crate) struct EventRecorder(Mutex<Vec<Event>>);

impl EventRecorder {
    pub(crate) fn story(&self) -> Story {
        Story::of(std::mem::take(&mut *self.0.lock().unwrap()))
    }
}

impl CommitListener for EventRecorder {
    fn on_committed(&self, batch: &[Event]) {
        self.0.lock().unwrap().extend_from_slice(batch);
    }
}

/// One membership of a user in the group: what they see of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stay {
    pub(crate) min: u64,
    pub(crate) end: Option<u64>,
    pub(crate) change_min: u64,
    pub(crate) change_end: Option<u64>,
}

/// The committed events, and what follows from them.
#[derive(Default)]
pub(crate) struct Story {
    kept: Vec<Event>,
    messages: Vec<Arc<Message>>,
    changes: u64,
    stays: BTreeMap<UserId, Vec<Stay>>,
}

impl Story {
    fn of(kept: Vec<Event>) -> Self {
        let mut story = Self::default();
        for kept in &kept {
            match kept {
                Event::Message { message, members, .. } => story.hear(message, *members),
                Event::Change { change, .. } => story.change(change),
                other => panic!("nobody asked for {other:?}"),
            }
        }
        Self { kept, ..story }
    }

    fn is_in(&self, user: &UserId) -> bool {
        self.stays(user).last().is_some_and(|stay| stay.end.is_none())
    }

    fn hear(&mut self, message: &Arc<Message>, members: u32) {
        assert_eq!(message.seq.0, self.head() + 1, "seqs are heard in order");
        assert!(self.is_in(&message.sender), "{} speaks from outside", message.sender);
        let count = self.stays.keys().filter(|user| self.is_in(user)).count();
        assert_eq!(members as usize, count, "at {}", message.seq);
        self.messages.push(Arc::clone(message));
    }

    fn change(&mut self, change: &Change) {
        assert_eq!(change.seq.0, self.changes + 1, "changes are heard in order");
        self.changes = change.seq.0;
        match &change.kind {
            ChangeKind::Joined { users, from } => {
                assert_eq!(from.0, self.head() + 1, "{users:?} see what is said from now on");
                for user in users {
                    assert!(!self.is_in(user), "{user} came twice");
                    let stay =
                        Stay { min: from.0, end: None, change_min: self.changes, change_end: None };
                    self.stays.entry(user.clone()).or_default().push(stay);
                }
            }
            ChangeKind::Left => self.close(&change.by),
            ChangeKind::Kicked { user } => self.close(user),
            other => panic!("nobody asked for {other:?}"),
        }
    }

    fn close(&mut self, user: &UserId) {
        assert!(self.is_in(user), "{user} went twice");
        let (end, change_end) = (Some(self.head()), Some(self.changes));
        let stay = self.stays.get_mut(user).and_then(|stays| stays.last_mut()).unwrap();
        *stay = Stay { end, change_end, ..*stay };
    }

    /// The newest seq.
    fn head(&self) -> u64 {
        self.messages.len() as u64
    }

    /// All memberships of a user.
    fn stays(&self, user: &UserId) -> &[Stay] {
        self.stays.get(user).map_or(&[], Vec::as_slice)
    }

    /// Counts messages of others after a seq, up to another.
    fn unread(&self, user: &UserId, read: u64, end: u64) -> u64 {
        let above = self.messages.iter().filter(|it| it.seq.0 > read && it.seq.0 <= end);
        above.filter(|message| message.sender != *user).count() as u64
    }

    /// Checks that every standing is as the story says, and that unread is what a recount finds.
    pub(crate) async fn check(&self, store: &Arc<dyn Store>, people: impl Iterator<Item = UserId>) {
        for who in people {
            let standing = store.standing(&who, &conversation()).await.unwrap();
            let Some(stay) = self.stays(&who).last() else {
                assert_eq!(standing, None, "{who} was never there");
                continue;
            };
            let standing = standing.unwrap();
            let Standing { window, cursors, max_seq, change_seq, .. } = standing;
            assert_eq!((max_seq.0, change_seq.0), (self.head(), self.changes), "{who}");
            let seqs = (window.min.0, window.end.map(|end| end.seq.0));
            assert_eq!(seqs, (stay.min, stay.end), "{who}");
            let changes = (window.change_min.0, window.end.map(|end| end.change_seq.0));
            assert_eq!(changes, (stay.change_min, stay.change_end), "{who}");
            let inside = stay.min - 1..=standing.visible_max().0;
            for cursor in [cursors.read.0, cursors.delivered.0] {
                assert!(inside.contains(&cursor), "{who}: {cursors:?} outside of {inside:?}");
            }
            let unread = self.unread(&who, cursors.read.0, standing.visible_max().0);
            assert_eq!(standing.unread(), unread, "{who}: {standing:?}");
        }
    }

    /// Checks that a standing that was read at some moment was within one of the user's windows,
    /// and that no cursor was beyond what they could see.
    pub(crate) fn check_moment(&self, who: &UserId, standing: &Standing) {
        let Standing { window, cursors, .. } = standing;
        let mut stays = self.stays(who).iter();
        let stay = stays.find(|it| (it.min, it.change_min) == (window.min.0, window.change_min.0));
        let stay = stay.unwrap_or_else(|| panic!("{who} never came so: {standing:?}"));
        let visible = standing.visible_max();
        let is_theirs = stay.end.is_none_or(|end| visible.0 <= end);
        assert!(is_theirs, "{who} could see beyond {:?}: {standing:?}", stay.end);
        let changes = standing.visible_change_max();
        let is_theirs = stay.change_end.is_none_or(|end| changes.0 <= end);
        assert!(is_theirs, "{who} could see changes beyond {:?}: {standing:?}", stay.change_end);
        assert!(cursors.read <= visible, "{who} had read what is not there: {standing:?}");
        assert!(cursors.delivered <= visible, "{who} had what is not there: {standing:?}");
    }

    /// Replays the events on another store.
    pub(crate) async fn replay(&self, store: &Arc<dyn Store>) {
        for kept in &self.kept {
            match kept {
                Event::Message { message, .. } => {
                    let marks_read = &*message.content.body == b"read";
                    let (sender, id) = (&message.sender, message.client_id.as_str());
                    let said = say(store, sender, id, message.sent_at, marks_read).await.unwrap();
                    assert_eq!(said, Appended::Stored(Arc::clone(message)));
                }
                Event::Change { change, .. } => {
                    let what = match &change.kind {
                        ChangeKind::Joined { .. } if change.seq.0 == 1 => {
                            create(store, change.by.clone()).await;
                            continue;
                        }
                        ChangeKind::Joined { .. } => {
                            GroupAction::Join { message: String::new(), inviter: None }
                        }
                        ChangeKind::Left => GroupAction::Leave,
                        ChangeKind::Kicked { user } => GroupAction::Kick(user.clone()),
                        other => panic!("nobody asked for {other:?}"),
                    };
                    let done = act(store, &change.by, what, change.at).await.unwrap().unwrap();
                    assert_eq!(done.changes, [Arc::clone(change)]);
                }
                other => panic!("nobody asked for {other:?}"),
            }
        }
    }
}
