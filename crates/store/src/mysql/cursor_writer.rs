//! The cursor writer: one task that moves the cursors of all waiting requests in one transaction, and
//! writes those that were moved in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use nexo_chat::ids::{ConversationId, Millis, Seq, UserId};
use nexo_chat::model::{CursorKind, Window, WindowEnd};
use nexo_chat::progress::Progress;
use nexo_chat::store::{CursorMove, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::core::Core;
use super::delivered::WRITE_AFTER;
use super::fault::SqlFault;
use super::fields::Fields;
use super::members;
use super::sql::{LIST_MAX, values};
use super::transaction::Transaction;
use crate::member_key::MemberKey;

pub(crate) enum CursorRequest {
    Advance {
        member_key: MemberKey,
        kind: CursorKind,
        seq: Seq,
        answer: oneshot::Sender<Result<Option<CursorMove>, StoreError>>,
    },
    Seen {
        user: UserId,
        at: Millis,
        answer: oneshot::Sender<Result<(), StoreError>>,
    },
    /// A delivered cursor moved in memory, and is to be written.
    DeliveredMoved,
    /// Ends the task: everything before it is done.
    Close(oneshot::Sender<()>),
}

/// Runs until it is closed or the store is dropped.
pub(crate) async fn run(core: Arc<Core>, mut queue: mpsc::Receiver<CursorRequest>) {
    let mut waiting = Vec::with_capacity(LIST_MAX);
    let mut write_at = None;
    loop {
        let received = queue.recv_many(&mut waiting, LIST_MAX);
        let is_open = match write_at {
            Some(at) => timeout_at(at, received).await.map_or(true, |count| count > 0),
            None => received.await > 0,
        };
        if !is_open {
            return;
        }
        let (mut requests, mut seen, mut closing) = (Vec::new(), BTreeMap::new(), None);
        let mut seen_answers = Vec::new();
        for request in waiting.drain(..) {
            match request {
                CursorRequest::Advance { member_key, kind, seq, answer } => {
                    requests.push((member_key, kind, seq, answer));
                }
                CursorRequest::Seen { user, at, answer } => {
                    seen_answers.push(answer);
                    let newest = seen.entry(user).or_insert(at);
                    *newest = at.max(*newest);
                }
                CursorRequest::DeliveredMoved => {}
                CursorRequest::Close(answer) => closing = Some(answer),
            }
        }
        // Whoever was seen has disconnected, and may come back through another node.
        let is_due = !seen.is_empty() || write_at.is_some_and(|at| at <= Instant::now());
        if is_due || closing.is_some() {
            write_at = None;
            core.delivered.write(&core).await;
        }
        if !seen.is_empty() {
            let noted = write_last_seen(&core, &seen).await.map_err(|fault| fault.to_string());
            for answer in seen_answers {
                let noted = noted.clone().map_err(|error| StoreError::Unavailable(error.into()));
                drop(answer.send(noted)); // the caller may have dropped the future
            }
        }
        advance(&core, requests).await;
        if write_at.is_none() && core.delivered.has_unsaved() {
            write_at = Some(Instant::now() + WRITE_AFTER);
        }
        if let Some(answer) = closing {
            drop(answer); // the caller waits for the drop
            return;
        }
    }
}

type AdvanceRequest =
    (MemberKey, CursorKind, Seq, oneshot::Sender<Result<Option<CursorMove>, StoreError>>);

async fn advance(core: &Core, requests: Vec<AdvanceRequest>) {
    if requests.is_empty() {
        return;
    }
    let mut retry = core.retry_policy();
    let done = loop {
        match try_advance(core, &requests).await {
            Ok(done) => break Ok(done),
            Err(fault) => match retry.wait(fault).await {
                Ok(()) => {}
                Err(error) => break Err(error.to_string()),
            },
        }
    };
    match done {
        Ok(done) => {
            for ((.., answer), moved) in requests.into_iter().zip(done) {
                drop(answer.send(Ok(moved))); // the caller may have dropped the future
            }
        }
        Err(error) => {
            for (.., answer) in requests {
                drop(answer.send(Err(StoreError::Unavailable(error.clone().into()))));
            }
        }
    }
}

async fn try_advance(
    core: &Core,
    requests: &[AdvanceRequest],
) -> Result<Vec<Option<CursorMove>>, SqlFault> {
    let mut transaction = core.begin().await?;
    let member_keys: BTreeSet<MemberKey> =
        requests.iter().map(|(member_key, ..)| member_key.clone()).collect();
    let mut found = members::lock(&mut transaction, &member_keys).await?;
    for (member_key, (_, progress)) in &mut found {
        core.delivered.add_to(member_key, progress);
    }
    let heads = heads(&mut transaction, &member_keys).await?;
    let mut moved_keys = BTreeSet::new();
    let mut done = Vec::with_capacity(requests.len());
    for (member_key, kind, seq, _) in requests {
        let (Some((window, progress)), Some((head, end))) =
            (found.get_mut(member_key), heads.get(&member_key.1))
        else {
            done.push(None);
            continue;
        };
        let end = window.until(*end).end;
        let visible_max = end.map_or(*head, |end| end.seq.min(*head));
        let before = progress.cursors;
        progress.acknowledged(*kind, (*seq).min(visible_max));
        if progress.cursors != before {
            moved_keys.insert(member_key);
        }
        done.push(Some(CursorMove { before, after: progress.cursors }));
    }
    let remember = |found: &BTreeMap<MemberKey, (Window, Progress)>| {
        for (member_key, (_, progress)) in found {
            let head = heads.get(&member_key.1).map_or(Seq::ZERO, |(head, _)| *head);
            core.delivered.remember(member_key, *progress, head);
        }
    };
    if moved_keys.is_empty() {
        transaction.roll_back().await?;
        remember(&found);
        return Ok(done);
    }
    let changed = found.iter().filter(|(member_key, _)| moved_keys.contains(member_key));
    members::save(
        &mut transaction,
        changed.map(|(member_key, (window, progress))| (member_key, *window, *progress)),
    )
    .await?;
    transaction.commit().await?;
    remember(&found);
    Ok(done)
}

/// Reads the newest seq of each conversation, and the edge at which it ended. Not locked: heads
/// only grow.
async fn heads(
    transaction: &mut Transaction,
    member_keys: &BTreeSet<MemberKey>,
) -> Result<HashMap<ConversationId, (Seq, Option<WindowEnd>)>, SqlFault> {
    let ids: BTreeSet<&str> = member_keys.iter().map(|(_, at)| at.as_str()).collect();
    let ids: Vec<_> = ids.into_iter().map(|id| values![id]).collect();
    let sql =
        "SELECT id, max_seq, end_seq, end_change_seq, end_at FROM conversations WHERE id IN {}";
    let rows = transaction.rows_by_keys(sql, &ids).await?;
    rows.into_iter()
        .map(|row| {
            let mut fields = Fields::from(row);
            Ok((fields.conversation()?, (fields.seq()?, fields.window_end()?)))
        })
        .collect()
}

async fn write_last_seen(core: &Core, seen: &BTreeMap<UserId, Millis>) -> Result<(), SqlFault> {
    let mut transaction = core.begin().await?;
    let rows = seen.iter().map(|(user, at)| values![user.as_str(), at.0]).collect();
    let sql =
        "INSERT INTO last_seen (user_id, at) VALUES {} ON DUPLICATE KEY UPDATE at = VALUES(at)";
    transaction.write(sql, rows).await?;
    transaction.commit().await
}
