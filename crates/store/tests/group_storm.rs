//! Fifty people come, go, are put out and speak at once. Whatever order that takes, it is the one
//! order that everybody's window follows: at every moment, in the end, and in the folder.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod folder;
mod story;

use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::ids::{Millis, Seq, UserId};
use nexo_chat::membership::GroupAct;
use nexo_chat::model::{CursorKind, Standing};
use nexo_chat::store::{Appended, Limit, Order, Store};
use nexo_store::{Embedded, Memory};

use story::{Ear, Story, act, conversation, create, group_id, person, say};

const PEOPLE: usize = 50;
const STEPS: usize = 16;

/// The same choices for the same start; what order they take is for the machine to choose.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

/// The two sides of a person, each a task of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Comes and goes; the owner puts others out.
    Moves,
    /// Speaks, acknowledges, and looks where they stand.
    Talks,
}

/// Somebody in the storm, and every place they found themselves at.
struct Live {
    store: Arc<dyn Store>,
    who: usize,
    side: Side,
    dice: Dice,
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
        let whom = person(1 + usize::try_from(self.dice.below(PEOPLE as u64 - 1)).unwrap());
        let what = match self.dice.below(8) {
            _ if self.who == 0 => GroupAct::Kick(whom),
            0 => GroupAct::Kick(whom), // which is refused
            1 | 2 => GroupAct::Leave,
            _ => GroupAct::Join { message: String::new(), inviter: None },
        };
        let done = act(&self.store, &person(self.who), what.clone(), at).await.unwrap();
        let refusals: &[Reason] = match what {
            GroupAct::Kick(_) => &[
                Reason::TargetNotMember,
                Reason::NotGroupAdmin,
                Reason::TargetIsSelf,
                Reason::NotGroupMember,
                Reason::MemberNotActive,
            ],
            GroupAct::Leave => &[Reason::NotGroupMember, Reason::MemberNotActive],
            _ => &[Reason::AlreadyMember],
        };
        let is_known = done.as_ref().err().is_none_or(|reason| refusals.contains(reason));
        assert!(is_known, "{done:?}");
    }

    async fn say(&mut self, at: Millis) {
        let marks_read = self.dice.below(2) == 0;
        let said =
            say(&self.store, &person(self.who), &at.0.to_string(), at, marks_read).await.unwrap();
        let refused = [Reason::NotGroupMember, Reason::MemberNotActive].map(Appended::Refused);
        assert!(matches!(said, Appended::Stored(_)) || refused.contains(&said), "{said:?}");
    }

    /// Looks many times, and says now and then that everything came, whatever that is by then.
    async fn look(&mut self) {
        let (me, place) = (person(self.who), conversation());
        let to = if self.dice.below(2) == 0 { u64::MAX } else { self.dice.below(400) };
        let kinds = [CursorKind::Read, CursorKind::Delivered];
        let kind = kinds[usize::try_from(self.dice.below(2)).unwrap()];
        for n in 0..self.dice.below(300) {
            if n % 16 == 7 {
                self.store.advance(&me, &place, kind, Seq(to)).await.unwrap();
            }
            let standing = self.store.standing(&me, &place).await.unwrap();
            let is_news = standing.as_ref() != self.seen.last();
            self.seen.extend(standing.filter(|_| is_news));
        }
    }
}

/// Lets the storm pass over a store; returns what became durable, and what each saw meanwhile.
async fn storm(store: &Arc<dyn Store>, start: u64) -> (Story, Vec<(UserId, Vec<Standing>)>) {
    let ear = Arc::new(Ear::default());
    store.on_commit(Arc::clone(&ear) as _);
    create(store, person(0)).await;
    let mut tasks = Vec::new();
    for who in 0..PEOPLE {
        for side in [Side::Moves, Side::Talks] {
            let dice = Dice(start << 32 | (2 * who + side as usize) as u64);
            let live = Live { store: Arc::clone(store), who, side, dice, seen: Vec::new() };
            tasks.push((person(who), tokio::spawn(live.through())));
        }
    }
    let mut seen = Vec::new();
    for (who, task) in tasks {
        seen.push((who, task.await.unwrap()));
    }
    (ear.story(), seen)
}

async fn standings(store: &Arc<dyn Store>) -> Vec<(UserId, Option<Standing>)> {
    let mut all = Vec::new();
    for who in (0..PEOPLE).map(person) {
        let standing = store.standing(&who, &conversation()).await.unwrap();
        all.push((who, standing));
    }
    all
}

/// The reference engine, told the same in the same order, knows the same; only cursors may be
/// further here, since acknowledgements take no place in the order.
async fn stand_as_in_memory(store: &Arc<dyn Store>, told: &Story) {
    let reference: Arc<dyn Store> = Memory::new();
    told.tell(&reference).await;
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
            let messages = store.messages(&conversation(), all, limit, order).await.unwrap();
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
    let (told, _) = storm(&store, start).await;
    told.check(&store, (0..PEOPLE).map(person)).await;
    stand_as_in_memory(&store, &told).await;
    folder::copy(folder.path(), crashed.path());
    let before = standings(&store).await;
    store.close().await.unwrap();
    drop(store);
    let store: Arc<dyn Store> = open(folder.path());
    assert_eq!(standings(&store).await, before, "after a stop");
    let store: Arc<dyn Store> = open(crashed.path());
    told.check(&store, (0..PEOPLE).map(person)).await;
    stand_as_in_memory(&store, &told).await;
}

/// Whatever somebody saw of their own place in the middle of it was so at some time.
async fn check_every_moment(start: u64) {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Embedded::open(folder.path(), &folder::options()).unwrap();
    let (told, seen) = storm(&store, start).await;
    for (who, seen) in &seen {
        for standing in seen {
            told.check_moment(who, standing);
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
