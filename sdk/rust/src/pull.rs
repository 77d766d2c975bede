//! Pulls what is missing.
use std::sync::Arc;

use serde::Deserialize;

use crate::account_state::AccountState;
use crate::conversation::Head;
use crate::error::Error;
use crate::http::ApiRequest;
use crate::inbox::ConversationInfo;
use crate::jobs::AccountJobs;
use crate::messages::{ChangeInfo, MessageInfo};
use crate::own_joins;
use crate::reason::Reason;
use crate::tokens::SignIn;
use crate::types::Message;

const PAGE: u64 = 100;
const HEADS_PAGE: &str = "1000";

#[derive(Deserialize)]
struct HeadsPage {
    heads: Vec<Head>,
    has_more: bool,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct InfosPage {
    list: Vec<ConversationInfo>,
}

#[derive(Deserialize)]
struct MessagesPage {
    messages: Vec<MessageInfo>,
    max_seq: u64,
    /// Seqs of the page whose messages cannot be read any more.
    #[serde(default)]
    damaged: Vec<DamagedRange>,
}

#[derive(Deserialize)]
struct DamagedRange {
    from: u64,
    to: u64,
}

impl MessagesPage {
    /// The messages in seq order, with a placeholder for each that the server cannot read any more.
    fn into_messages(self, conversation_id: &str, me: &str) -> Vec<Message> {
        let mut messages: Vec<Message> =
            self.messages.into_iter().map(|info| Message::pulled(info, me)).collect();
        for DamagedRange { from, to } in self.damaged {
            let before = messages.iter().rev().find(|message| message.seq < from);
            let at = before.or(messages.first()).map_or(0, |message| message.at);
            messages.extend((from..=to).map(|seq| Message::damaged(conversation_id, seq, at)));
        }
        messages.sort_by_key(|message| message.seq);
        messages
    }
}

/// Compares every conversation with the head of the server; `is_first` right after sign-in.
pub(crate) async fn heads(
    account_jobs: &AccountJobs,
    sign_in: &SignIn,
    is_first: bool,
) -> Result<(), Error> {
    let mut cursor = None;
    let mut newest_join = 0;
    loop {
        let mut query = vec![("limit", HEADS_PAGE), ("include_empty", "true")];
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let page: HeadsPage = sign_in.fetch(ApiRequest::get("/conversation/heads", &query)).await?;
        let joins = page.heads.iter().filter_map(|head| head.joined_at);
        newest_join = joins.fold(newest_join, u64::max);
        account_jobs.call(move |account| account.apply_heads(&page.heads, is_first)).await?;
        cursor = page.next_cursor.filter(|_| page.has_more);
        if cursor.is_none() {
            return own_joins::announce(account_jobs, sign_in, newest_join).await;
        }
    }
}

/// Loads the infos of all conversations.
pub(crate) async fn infos(account_jobs: &AccountJobs, sign_in: &SignIn) -> Result<(), Error> {
    let query = [("with_last_message", "true"), ("limit", HEADS_PAGE)];
    let page: InfosPage = sign_in.fetch(ApiRequest::get("/conversation/all", &query)).await?;
    let apply = |account: &mut AccountState| {
        account.apply_infos(page.list);
        account.sync.infos_at = Some(account.now);
        // Conversations beyond the first page are treated as loaded.
        let listed =
            account.conversations.values_mut().filter(|one| one.has_begun && one.is_listed());
        for one in listed {
            one.details.has_info = true;
        }
    };
    account_jobs.call(apply).await
}

/// Loads the info of one conversation.
pub(crate) async fn info(
    account_jobs: &AccountJobs,
    sign_in: &SignIn,
    id: String,
) -> Result<(), Error> {
    match sign_in.fetch(ApiRequest::get("/conversation/info", &[("conversation_id", &id)])).await {
        Ok(info) => account_jobs.call(move |account| account.apply_infos(vec![info])).await,
        Err(error) if error.is_passing() => Err(error),
        Err(_) => {
            account_jobs
                .call(move |account| account.get_or_create(&id).details.has_info = true)
                .await
        } // it does not exist
    }
}

/// Fills the gaps of a conversation as far as the server can.
pub(crate) async fn fill(
    account_jobs: &AccountJobs,
    sign_in: &SignIn,
    id: &str,
) -> Result<(), Error> {
    fill_messages(account_jobs, sign_in, id).await?;
    fill_changes(account_jobs, sign_in, id).await
}

async fn fill_messages(
    account_jobs: &AccountJobs,
    sign_in: &SignIn,
    id: &str,
) -> Result<(), Error> {
    let conversation_id = id.to_owned();
    let gap = account_jobs
        .call(move |account| account.get_or_create(&conversation_id).arrived.gap())
        .await?;
    let Some((mut from, to)) = gap else { return Ok(()) };
    while from <= to {
        let page = pull(sign_in, id, from, to).await?;
        let id = id.to_owned();
        let next = account_jobs.call(move |account| account.apply_page(&id, from, page)).await?;
        let Some(next) = next else { return Ok(()) };
        from = next;
    }
    Ok(())
}

async fn fill_changes(account_jobs: &AccountJobs, sign_in: &SignIn, id: &str) -> Result<(), Error> {
    loop {
        let conversation_id = id.to_owned();
        let since = move |account: &mut AccountState| {
            let changes = &account.get_or_create(&conversation_id).changes;
            changes.gap().map(|_| changes.last())
        };
        let Some(since) = account_jobs.call(since).await? else { return Ok(()) };
        let (from, limit) = (since.to_string(), PAGE.to_string());
        let query = [("conversation_id", id), ("since", &from), ("limit", &limit)];
        let page: Vec<ChangeInfo> =
            sign_in.fetch(ApiRequest::get("/conversation/changes", &query)).await?;
        let id = id.to_owned();
        if !account_jobs.call(move |account| account.apply_changes(&id, since, page)).await? {
            return Ok(());
        }
    }
}

/// Pulls messages older than those on this device.
pub(crate) async fn older(
    account_jobs: &AccountJobs,
    sign_in: &SignIn,
    id: String,
    limit: u64,
) -> Result<Vec<Arc<Message>>, Error> {
    let conversation_id = id.clone();
    let range = move |account: &mut AccountState| {
        let conversation = account.conversations.get(&conversation_id)?;
        Some((conversation.min_seq, conversation.messages.first() - 1))
    };
    let Some((min, end)) = account_jobs.call(range).await? else { return Ok(Vec::new()) };
    let begin = min.max((end + 1).saturating_sub(limit));
    let me = account_jobs.call(|account| account.me.clone()).await?;
    let mut found: Vec<Message> = Vec::new();
    let mut next = begin;
    while next <= end {
        let page = pull(sign_in, &id, next, end).await?.into_messages(&id, &me);
        if page.first().is_none_or(|message| message.seq != next) {
            break;
        }
        next += page.len() as u64;
        found.extend(page);
    }
    account_jobs.call(move |account| account.apply_older(&id, found)).await
}

async fn pull(sign_in: &SignIn, id: &str, begin: u64, end: u64) -> Result<MessagesPage, Error> {
    let (last, whole) = (end, DamagedRange { from: begin, to: end });
    let limit = PAGE.min(end + 1 - begin).to_string();
    let (begin, end) = (begin.to_string(), end.to_string());
    let range_query = [("begin_seq", begin.as_str()), ("end_seq", &end), ("limit", &limit)];
    let query = [&[("conversation_id", id)], &range_query[..]].concat();
    match sign_in.fetch(ApiRequest::get("/msg/pull", &query)).await {
        // Nothing of the range can be read, and asking again would not help.
        Err(error) if error.reason() == Some(Reason::Damaged) => {
            Ok(MessagesPage { messages: Vec::new(), max_seq: last, damaged: vec![whole] })
        }
        page => page,
    }
}

impl AccountState {
    /// Applies a page of a gap; returns where to continue, or `None` if the requested seq did not
    /// come.
    fn apply_page(&mut self, id: &str, from: u64, page: MessagesPage) -> Option<u64> {
        let max_seq = page.max_seq;
        let messages = page.into_messages(id, &self.me);
        let is_empty = messages.is_empty();
        for message in messages {
            self.receive(message);
        }
        let arrived = &mut self.get_or_create(id).arrived;
        if arrived.last() >= from {
            return Some(arrived.last() + 1);
        }
        // Nothing came for the requested seq: the user may not see it, or it does not exist.
        arrived.lower_expected(max_seq);
        if !is_empty {
            self.sync.schedule_heads(self.now);
        }
        None
    }

    /// Applies the changes after a seq; returns whether there were any.
    fn apply_changes(&mut self, id: &str, since: u64, page: Vec<ChangeInfo>) -> bool {
        let changes = &mut self.get_or_create(id).changes;
        let Some(first) = page.first().map(|info| info.change_seq) else {
            changes.lower_expected(since);
            return false;
        };
        changes.skip_to(first.saturating_sub(1)); // changes from before the user joined are not visible
        for info in page {
            self.receive_change(info.into());
        }
        true
    }

    fn apply_older(&mut self, id: &str, found: Vec<Message>) -> Vec<Arc<Message>> {
        let conversation = self.get_or_create(id);
        let first = conversation.messages.first();
        // A concurrent call may have loaded them.
        let missing = found.into_iter().filter(|message| message.seq < first);
        let missing: Vec<Message> = missing.collect();
        let seqs = missing.iter().rev().map(|message| message.seq);
        if missing.is_empty() || !seqs.eq((1..first).rev().take(missing.len())) {
            return Vec::new();
        }
        let fresh = conversation.prepend_older(missing);
        self.touch(id);
        fresh
    }
}
