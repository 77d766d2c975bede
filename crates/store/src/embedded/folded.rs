//! Who holds which folded id. It follows from the accounts, so it is no thing of its own when data
//! moves; it is made for a folder that was filled, or that is older than it.

use std::ops::Bound;
use std::sync::mpsc::sync_channel;

use nexo_chat::ids::{FoldedId, Millis, UserId};
use nexo_chat::store::Order;

use super::committer::{Answer, Work};
use super::core::Core;
use super::export::PAGE_BYTES;
use super::keys::{self, ALL_FOLDED, Space};
use super::pending::Pending;
use super::poison::Fault;
use super::record::{self, UserRecord, user_id};
use super::{Embedded, accounts};

/// Accounts taken in at a time.
const PAGE: usize = 1024;

/// Who holds a folded id.
pub(crate) fn holder(core: &Core, folded: &FoldedId) -> Result<Option<UserId>, Fault> {
    let key = keys::folded(folded);
    let Some(bytes) = core.engine.get(Space::Folded, &key)? else { return Ok(None) };
    user_id(record::decode(Space::Folded, &key, &bytes)?).map(Some)
}

/// The same, as it will be after the batch.
pub(crate) fn current(pending: &Pending<'_>, folded: &FoldedId) -> Result<Option<UserId>, Fault> {
    let key = keys::folded(folded);
    let Some(bytes) = pending.get(Space::Folded, &key)? else { return Ok(None) };
    user_id(record::decode(Space::Folded, &key, &bytes)?).map(Some)
}

/// Lets somebody hold their folded id.
pub(crate) fn hold(pending: &mut Pending<'_>, id: &UserId) -> Result<(), Fault> {
    pending.set(Space::Folded, keys::folded(&id.folded()), &id.as_str())
}

impl Embedded {
    /// Takes every account in that is not yet, if that was never done to the end. Nobody else may
    /// change anything meanwhile.
    pub(super) fn fold_if_new(&self) -> Result<(), Fault> {
        match self.core.engine.get(Space::Folded, &ALL_FOLDED)? {
            Some(_) => Ok(()),
            None => self.fold_all(),
        }
    }

    /// Takes every account in. Of those that look alike the oldest holds the folded id; the others
    /// stay, and are found by their exact ids.
    pub(super) fn fold_all(&self) -> Result<(), Fault> {
        let mut from = Bound::Unbounded;
        let mut alike = 0;
        loop {
            let range = (from, Bound::Unbounded);
            let users = Space::Users;
            let page = self.core.engine.scan(users, range, PAGE, Order::Ascending, PAGE_BYTES)?;
            let Some((last, _)) = page.last() else { break };
            from = Bound::Excluded(last.to_vec());
            let mut people = Vec::with_capacity(page.len());
            for (key, value) in &page {
                let id = std::str::from_utf8(key).unwrap_or_default();
                let record: UserRecord<'_> = record::decode(users, key, value)?;
                let user = record.user(&user_id(id)?);
                people.push((user.created_at, user.id));
            }
            alike += self.decide(move |pending| take_in(pending, people))?;
        }
        if alike > 0 {
            tracing::warn!(
                target: "nexo::store",
                accounts = alike,
                "accounts have ids that differ only in case or look from older ones: they stay, and \
                 sign in with their exact ids",
            );
        }
        self.decide(|pending| pending.set(Space::Folded, ALL_FOLDED.to_vec(), &()))
    }

    /// Has something decided by the committer, and waits until it is durable.
    fn decide<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Pending<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let (sender, outcome) = sync_channel(1);
        let act = Box::new(move |pending: &mut Pending<'_>| {
            let decided = act(pending)?;
            Ok(Box::new(move || drop(sender.send(decided))) as Answer)
        });
        let gone = || Fault::new(self.core.gone().to_string());
        self.core.waiting.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.queue.send(Work::Act(act, 0)).map_err(|_| gone())?;
        outcome.recv().map_err(|_| gone())
    }
}

/// Takes accounts in, and tells how many of them look like one that is in already.
fn take_in(pending: &mut Pending<'_>, people: Vec<(Millis, UserId)>) -> Result<u64, Fault> {
    let mut alike = 0;
    for (created_at, id) in people {
        if let Some(other) = current(pending, &id.folded())? {
            if other == id {
                continue;
            }
            alike += 1;
            let other = accounts::current(pending, &other)?;
            if other.is_some_and(|other| (other.created_at, &other.id) <= (created_at, &id)) {
                continue;
            }
        }
        hold(pending, &id)?;
    }
    Ok(alike)
}
