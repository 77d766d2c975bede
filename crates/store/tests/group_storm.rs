//! Fifty users join, leave, are kicked and send at once. Whatever order the store gives these,
//! every member's window follows it: at every moment, at the end, and after a restart.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod folder;
mod story;

use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::ids::{Millis, Seq, UserId};
use nexo_chat::membership::GroupAction;
use nexo_chat::model::{CursorKind, Standing};
use nexo_chat::store::{Appended, Limit, Order, Store};
use nexo_store::{Embedded, Memory};

use story::{EventRecorder, Story, act, conversation, create, group_id, person, say};

const PEOPLE: usize = 50;
const STEPS: usize = 16;

/// Repeatable choices by seed; the order in which they take effect is up to the scheduler.
struct SeededRng(u64);

impl SeededRng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

/// What the two tasks of a user do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Joins and leaves; the owner kicks others.
    Moves,
    /// Sends, acknowledges, and reads the standing.
    Talks,
}

/// A user in the storm, and every standing they read.
struct Live {
    store: Arc<dyn Store>,
    who: usize,
    side: Side,
    rng: SeededRng,
    seen: Vec<Standing>,
}

impl Live {
    async fn through(mut self) -> Vec<Standing> {
        let steps = if self.who == 0 { STEPS * 4 } else { STEPS };
        for n in 0..steps {
            let at = Millis(1_000_000 * (1 + self.side as u64) + 1000 * self.who as u64 + n as u64);
            match self.side {
                Side::Moves => self.go(at).await,
                Side::Talks if n % 2 == 0 => self.say(at).await,
                Side::Talks => self.look().await,
            }
            tokio::task::yield_now().await;
        }
        self.seen
    }

    async fn go(&mut self, at: Millis) {
        let whom = person(1 + usize::try_from(self.rng.below(PEOPLE as u64 - 1)).unwrap());
        let what = match self.rng.below(8) {
            _ if self.who == 0 => GroupAction::Kick(whom),
            0 => GroupAction::Kick(whom), // refused
            1 | 2 => GroupAction::Leave,
            _ => GroupAction::Join { message: String::new(), inviter: None },
        };
        let done = act(&self.store, &person(self.who), what.clone(), at).await.unwrap();
        let refusals: &[Reason] = match what {
            GroupAction::Kick(_) => &[
                Reason::TargetNotMember,
                Reason::NotGroupAdmin,
                Reason::TargetIsSelf,
                Reason::NotGroupMember,
                Reason::MemberNotActive,
            ],
            GroupAction::Leave => &[Reason::NotGroupMember, Reason::MemberNotActive],
            _ => &[Reason::AlreadyMember],
        };
        let is_known = done.as_ref().err().is_none_or(|reason| refusals.contains(reason));
        assert!(is_known, "{done:?}");
    }

    async fn say(&mut self, at: Millis) {
        let marks_read = self.rng.below(2) == 0;
        let said =
            say(&self.store, &person(self.who), &at.0.to_string(), at, marks_read).await.unwrap();
        let refused = [Reason::NotGroupMember, Reason::MemberNotActive].map(Appended::Refused);
        assert!(matches!(said, Appended::Stored(_)) || refused.contains(&said), "{said:?}");
    }

    /// Reads the standing many times, and acknowledges everything now and then.
    async fn look(&mut self) {
        let (me, place) = (person(self.who), conversation());
        let to = if self.rng.below(2) == 0 { u64::MAX } else { self.rng.below(400) };
        let kinds = [CursorKind::Read, CursorKind::Delivered];
        let kind = kinds[usize::try_from(self.rng.below(2)).unwrap()];
        for n in 0..self.rng.below(300) {
            if n % 16 == 7 {
                self.store.advance_cursor(&me, &place, kind, Seq(to)).await.unwrap();
            }
            let standing = self.store.standing(&me, &place).await.unwrap();
            let is_news = standing.as_ref() != self.seen.last();
            self.seen.extend(standing.filter(|_| is_news));
        }
    }
}

/// Runs the storm on a store; returns the committed events, and the standings each user read
/// meanwhile.
async fn storm(store: &Arc<dyn Store>, start: u64) -> (Story, Vec<(UserId, Vec<Standing>)>) {
    let recorder = Arc::new(EventRecorder::default());
    store.set_commit_listener(Arc::clone(&recorder) as _);
    create(store, person(0)).await;
    let mut tasks = Vec::new();
    for who in 0..PEOPLE {
        for side in [Side::Moves, Side::Talks] {
            let rng = SeededRng(start << 32 | (2 * who + side as usize) as u64);
            let live = Live { store: Arc::clone(store), who, side, rng, seen: Vec::new() };
            tasks.push((person(who), tokio::spawn(live.through())));
        }
    }
    let mut seen = Vec::new();
    for (who, task) in tasks {
        seen.push((who, task.await.unwrap()));
    }
    (recorder.story(), seen)
}

async fn standings(store: &Arc<dyn Store>) -> Vec<(UserId, Option<Standing>)> {
    let mut all = Vec::new();
    for who in (0..PEOPLE).map(person) {
        let standing = store.standing(&who, &conversation()).await.unwrap();
        all.push((who, standing));
    }
    all
}

/// Replays the history on the reference engine and compares; only cursors may be further here, since
/// acknowledgements have no place in the order.
async fn stand_as_in_memory(store: &Arc<dyn Store>, history: &Story) {
    let reference: Arc<dyn Store> = Memory::new();
    history.replay(&reference).await;
    let (ours, theirs) = (standings(store).await, standings(&reference).await);
    for ((who, ours), (_, theirs)) in ours.into_iter().zip(theirs) {
        let (Some(ours), Some(theirs)) = (&ours, &theirs) else {
            assert_eq!(ours, theirs, "{who}");
            continue;
        };
        assert!(ours.cursors.read >= theirs.cursors.read, "{who}: {ours:?} {theirs:?}");
        let Standing { cursors, own_unread, .. } = *ours;
        assert_eq!(*ours, Standing { cursors, own_unread, ..theirs.clone() }, "{who}");
    }
    let all = Seq(1)..=Seq(u64::MAX);
    let read = |store: Arc<dyn Store>| {
        let all = all.clone();
        async move {
            let (limit, order) = (Limit::of(usize::MAX), Order::Ascending);
            let messages =
                store.messages(&conversation(), all, limit, order).await.unwrap().messages;
            let changes = store.changes(&conversation(), Seq::ZERO, usize::MAX).await.unwrap();
            (messages, changes, store.group_members(&group_id(), None, usize::MAX).await.unwrap())
        }
    };
    assert_eq!(read(Arc::clone(store)).await, read(reference).await);
}

async fn check_the_end(start: u64) {
    let (folder, crashed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let open = |path| Embedded::open(path, &folder::options()).unwrap();
    let store: Arc<dyn Store> = open(folder.path());
    let (history, _) = storm(&store, start).await;
    history.check(&store, (0..PEOPLE).map(person)).await;
    stand_as_in_memory(&store, &history).await;
    folder::copy(folder.path(), crashed.path());
    let before = standings(&store).await;
    store.close().await.unwrap();
    drop(store);
    let store: Arc<dyn Store> = open(folder.path());
    assert_eq!(standings(&store).await, before, "after a stop");
    let store: Arc<dyn Store> = open(crashed.path());
    history.check(&store, (0..PEOPLE).map(person)).await;
    stand_as_in_memory(&store, &history).await;
}

/// Checks that every standing that was read in the middle was true at some time.
async fn check_every_moment(start: u64) {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Embedded::open(folder.path(), &folder::options()).unwrap();
    let (history, seen) = storm(&store, start).await;
    for (who, seen) in &seen {
        for standing in seen {
            history.check_moment(who, standing);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn everybody_ends_where_the_one_order_leaves_them() {
    for start in 1..=3 {
        check_the_end(start).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_is_beyond_their_window_even_for_a_moment() {
    for start in 1..=3 {
        check_every_moment(start).await;
    }
}
