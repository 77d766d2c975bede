//! The user's own joins to groups that are new on this device.
use std::collections::HashMap;
use std::sync::Arc;

use crate::account_state::AccountState;
use crate::conversation::Head;
use crate::error::Error;
use crate::events::Event;
use crate::http::ApiRequest;
use crate::jobs::AccountJobs;
use crate::messages::ChangeInfo;
use crate::people::People;
use crate::storage::BestEffortStore;
use crate::tokens::SignIn;
use crate::types::{Change, ChangeKind};

const CHANGES_PAGE: u64 = 200;

/// Which of the user's own `joined` changes the app was told of. A new conversation skips its
/// earlier changes, and the message cursor does not tell whether the join is news: with the history
/// of all messages it starts at the newest message. So the time of the join is compared with the
/// newest join that this device knows of.
pub(crate) struct OwnJoins {
    key: String,
    store: BestEffortStore,
    /// Joins up to this time are no news; loaded once per sign-in.
    news_after: Option<u64>,
    /// The newest join that was stored; 0 for a user without a group.
    newest: Option<u64>,
    /// Heads to look at; they stay here until their changes could be loaded.
    pending: HashMap<String, Head>,
    /// The change seq of the last emitted join, by conversation.
    emitted: HashMap<String, u64>,
}

impl OwnJoins {
    pub(crate) fn new(me: &str, store: BestEffortStore) -> Self {
        Self {
            key: format!("joins/{me}"),
            store,
            news_after: None,
            newest: None,
            pending: HashMap::new(),
            emitted: HashMap::new(),
        }
    }

    /// Deletes what is stored, at sign-out.
    pub(crate) fn clear(&self) {
        self.store.delete(&self.key);
    }

    /// Remembers a head whose earlier changes this device skipped.
    pub(crate) fn look_at(&mut self, head: &Head) {
        if head.is_active && head.joined_at.is_some() {
            self.pending.insert(head.conversation_id.clone(), head.clone());
        }
    }

    fn note(&mut self, id: &str, change_seq: u64, at: u64) {
        self.emitted.insert(id.to_owned(), change_seq);
        if self.news_after.is_some() {
            self.store_newest(at);
        }
    }

    fn store_newest(&mut self, at: u64) {
        if Some(at) > self.newest {
            self.newest = Some(at);
            self.store.set(&self.key, &at);
        }
    }

    /// The pending heads that are news, the oldest join first; the others are dropped.
    fn take_news(&mut self) -> Vec<Head> {
        let after = self.news_after.unwrap_or_default();
        self.pending.retain(|_, head| head.joined_at > Some(after));
        let mut news: Vec<_> = self.pending.values().cloned().collect();
        news.sort_by_key(|head| head.joined_at);
        news
    }
}

impl AccountState {
    /// Records a change that is emitted.
    pub(crate) fn note_own_join(&mut self, change: &Change) {
        if is_join_of(change, &self.me) {
            self.own_joins.note(&change.conversation_id, change.change_seq, change.at);
        }
    }

    fn emit_own_join(&mut self, id: &str, join: Option<Change>) {
        self.own_joins.pending.remove(id);
        let Some(join) = join else { return };
        if self.own_joins.emitted.get(id) == Some(&join.change_seq) {
            return;
        }
        self.note_own_join(&join);
        self.listeners.emit(&Event::Change(Arc::new(join)));
    }
}

/// Emits the joins among the heads that [`OwnJoins::look_at`] was given; `newest` is the time of the
/// newest join of all heads.
pub(crate) async fn announce(
    account_jobs: &AccountJobs,
    sign_in: &SignIn,
    newest: u64,
) -> Result<(), Error> {
    let (me, is_loaded, stored) = account_jobs
        .call(|account| {
            let joins = &account.own_joins;
            let stored = joins.store.get::<u64>(&joins.key);
            (account.me.clone(), joins.news_after.is_some(), stored)
        })
        .await?;
    if !is_loaded {
        let after = match stored {
            _ if newest == 0 => 0, // a user without a group gets news of the first one
            Some(stored) => stored,
            None => last_online(sign_in, &me, newest).await?,
        };
        account_jobs.call(move |account| account.own_joins.news_after = Some(after)).await?;
    }
    for head in account_jobs.call(|account| account.own_joins.take_news()).await? {
        let join = find(sign_in, &head, &me).await?;
        account_jobs
            .call(move |account| account.emit_own_join(&head.conversation_id, join))
            .await?;
    }
    account_jobs.call(move |account| account.own_joins.store_newest(newest)).await
}

/// The time after which a join is news on a device that knows of none: when the user was last
/// online. If the user is online on another device, that one was told.
async fn last_online(sign_in: &SignIn, me: &str, newest: u64) -> Result<u64, Error> {
    let own = People(sign_in.clone()).presence(&[me]).await?.pop();
    let is_online = own.as_ref().is_some_and(|own| own.is_online);
    Ok(if is_online { newest } else { own.and_then(|own| own.last_seen_at).unwrap_or_default() })
}

/// The user's latest join, searched from the newest change back.
async fn find(sign_in: &SignIn, head: &Head, me: &str) -> Result<Option<Change>, Error> {
    let first = head.min_change_seq.saturating_sub(1);
    let mut end = head.change_seq;
    while end > first {
        let since = first.max(end.saturating_sub(CHANGES_PAGE));
        let (from, limit) = (since.to_string(), (end - since).to_string());
        let query = [
            ("conversation_id", head.conversation_id.as_str()),
            ("since", &from),
            ("limit", &limit),
        ];
        let page: Vec<ChangeInfo> =
            sign_in.fetch(ApiRequest::get("/conversation/changes", &query)).await?;
        let mut changes: Vec<Change> = page.into_iter().map(Change::from).collect();
        let is_before = changes.first().is_none_or(|change| Some(change.at) < head.joined_at);
        let join = changes.iter().rposition(|change| is_join_of(change, me));
        if join.is_some() || is_before {
            return Ok(join.map(|index| changes.swap_remove(index)));
        }
        end = since;
    }
    Ok(None)
}

fn is_join_of(change: &Change, user_id: &str) -> bool {
    change.kind == ChangeKind::Joined && change.user_ids.iter().any(|one| one == user_id)
}
