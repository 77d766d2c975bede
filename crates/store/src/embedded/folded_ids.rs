//! The index of folded ids. It is derived from the accounts, so it is not exported; it is built for
//! an imported folder, and for one that is older than the index.

use std::ops::Bound;
use std::sync::mpsc::sync_channel;

use nexo_chat::ids::{FoldedId, Millis, UserId};
use nexo_chat::store::Order;

use super::committer::{CommitRequest, Completion};
use super::core::Core;
use super::export::PAGE_BYTES;
use super::keys::{self, ALL_IDS_FOLDED, Keyspace};
use super::pending::Pending;
use super::poison::EngineFault;
use super::record::{self, UserRecord, user_id};
use super::{Embedded, accounts};

/// Accounts indexed at a time.
const PAGE: usize = 1024;

/// Returns the user that holds a folded id.
pub(crate) fn holder(core: &Core, folded: &FoldedId) -> Result<Option<UserId>, EngineFault> {
    let key = keys::folded(folded);
    let Some(bytes) = core.engine.get(Keyspace::FoldedIds, &key)? else { return Ok(None) };
    user_id(record::decode(Keyspace::FoldedIds, &key, &bytes)?).map(Some)
}

/// The same, as it will be after the batch.
pub(crate) fn current(
    pending: &Pending<'_>,
    folded: &FoldedId,
) -> Result<Option<UserId>, EngineFault> {
    let key = keys::folded(folded);
    let Some(bytes) = pending.get(Keyspace::FoldedIds, &key)? else { return Ok(None) };
    user_id(record::decode(Keyspace::FoldedIds, &key, &bytes)?).map(Some)
}

/// Adds a user to the index.
pub(crate) fn put(pending: &mut Pending<'_>, id: &UserId) -> Result<(), EngineFault> {
    pending.set(Keyspace::FoldedIds, keys::folded(&id.folded()), &id.as_str())
}

impl Embedded {
    /// Builds the index unless it was built completely before. No other write may run meanwhile.
    pub(super) fn index_folded_ids_once(&self) -> Result<(), EngineFault> {
        match self.core.engine.get(Keyspace::FoldedIds, &ALL_IDS_FOLDED) {
            Ok(Some(_)) => Ok(()),
            Ok(None) => self.index_folded_ids(),
            // Something is indexed, else nothing could be damaged.
            Err(fault) => self.core.pass_damage(fault),
        }
    }

    /// Indexes every account. Of those that fold to the same id the oldest holds it; the others
    /// stay, and are found by their exact ids.
    pub(super) fn index_folded_ids(&self) -> Result<(), EngineFault> {
        let mut from = Bound::Unbounded;
        let mut alike = 0;
        loop {
            let range = (from, Bound::Unbounded);
            let keyspace = Keyspace::Users;
            let page =
                self.core.engine.scan(keyspace, range, PAGE, Order::Ascending, PAGE_BYTES)?;
            let Some((last, _)) = page.last() else { break };
            from = Bound::Excluded(last.to_vec());
            let mut users = Vec::with_capacity(page.len());
            for (key, value) in &page {
                let id = std::str::from_utf8(key).unwrap_or_default();
                let record: UserRecord<'_> = record::decode(keyspace, key, value)?;
                let user = record.user(&user_id(id)?)?;
                users.push((user.created_at, user.id));
            }
            alike += self.submit_blocking(move |pending| index_users(pending, users))?;
        }
        if alike > 0 {
            tracing::warn!(
                target: "nexo::store",
                accounts = alike,
                "accounts have ids that differ only in case or look from older ones: they stay, and \
                 sign in with their exact ids",
            );
        }
        self.submit_blocking(|pending| {
            pending.set(Keyspace::FoldedIds, ALL_IDS_FOLDED.to_vec(), &())
        })
    }

    /// Submits a write to the committer and blocks until it is durable.
    fn submit_blocking<T: Send + 'static>(
        &self,
        decide: impl FnOnce(&mut Pending<'_>) -> Result<T, EngineFault> + Send + 'static,
    ) -> Result<T, EngineFault> {
        let (sender, outcome) = sync_channel(1);
        let decide = Box::new(move |pending: &mut Pending<'_>| {
            let outcome = decide(pending)?;
            Ok(Box::new(move || drop(sender.send(outcome))) as Completion)
        });
        let gone = || EngineFault::new(self.core.unavailable().to_string());
        self.core.waiting.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.queue.send(CommitRequest::Write(decide, 0)).map_err(|_| gone())?;
        outcome.recv().map_err(|_| gone())
    }
}

/// Indexes accounts, and returns how many of them fold to an id that another user has.
fn index_users(
    pending: &mut Pending<'_>,
    users: Vec<(Millis, UserId)>,
) -> Result<u64, EngineFault> {
    let mut alike = 0;
    for (created_at, id) in users {
        if let Some(other) = current(pending, &id.folded())? {
            if other == id {
                continue;
            }
            alike += 1;
            let other = accounts::current_user(pending, &other)?;
            if other.is_some_and(|other| (other.created_at, &other.id) <= (created_at, &id)) {
                continue;
            }
        }
        put(pending, &id)?;
    }
    Ok(alike)
}
