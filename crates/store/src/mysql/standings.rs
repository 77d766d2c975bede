//! Reads standings: one task reads all that are requested at the same time with one statement.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use mysql_async::{Row, Value};
use nexo_chat::ids::{ConversationId, Seq, UserId};
use nexo_chat::model::Standing;
use nexo_chat::store::StoreError;
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::core::Core;
use super::fault::SqlFault;
use super::fields::Fields;
use super::sql::{LIST_MAX, select_in, values};
use crate::member_key::MemberKey;

/// Statements at the same time: while one waits for the database, requests for the next collect.
const READS_AT_ONCE: usize = 2;

/// The columns of [`standing`], of `members m` and `conversations c`.
const STANDING: &str = "SELECT m.user_id, m.conversation_id, m.min_seq, m.min_change_seq, m.since, m.end_seq, \
     m.end_change_seq, m.end_at, m.delivered_seq, m.read_seq, m.own_first, m.own_last, \
     m.quiet_seq, m.pinned, m.receive, m.hidden_seq, m.hidden_since, m.extra, c.max_seq, \
     c.change_seq, c.newest_at, c.end_seq, c.end_change_seq, c.end_at \
     FROM members m JOIN conversations c ON c.id = m.conversation_id";

/// Reads a page of a user's standings with one statement.
pub(crate) async fn read_page(
    core: &Core,
    user: &UserId,
    after: Option<&ConversationId>,
    limit: usize,
) -> Result<Vec<Standing>, StoreError> {
    let after = after.map_or("", ConversationId::as_str);
    let sql = format!(
        "{STANDING} WHERE m.user_id = ? AND m.conversation_id > ? \
         ORDER BY m.conversation_id LIMIT ?"
    );
    let rows = core.rows(&sql, values![user.as_str(), after, limit as u64]).await?;
    let mut standings = Vec::with_capacity(rows.len());
    for row in rows {
        standings.push(standing(core, row).await?.1);
    }
    Ok(standings)
}

/// A request for the standing of a member.
pub(crate) type StandingRequest =
    (MemberKey, oneshot::Sender<Result<Option<Standing>, StoreError>>);

/// Runs until the store is dropped.
pub(crate) async fn run(core: Arc<Core>, mut queue: mpsc::Receiver<StandingRequest>) {
    let at_once = Arc::new(Semaphore::new(READS_AT_ONCE));
    let mut requests = Vec::new();
    while queue.recv_many(&mut requests, LIST_MAX).await > 0 {
        let Ok(permit) = Arc::clone(&at_once).acquire_owned().await else { return };
        while requests.len() < LIST_MAX
            && let Ok(request) = queue.try_recv()
        {
            requests.push(request);
        }
        let (core, requests) = (Arc::clone(&core), std::mem::take(&mut requests));
        tokio::spawn(async move {
            answer_requests(&core, requests).await;
            drop(permit);
        });
    }
}

async fn answer_requests(core: &Core, requests: Vec<StandingRequest>) {
    let member_keys: BTreeSet<&MemberKey> =
        requests.iter().map(|(member_key, _)| member_key).collect();
    let keys: Vec<_> =
        member_keys.into_iter().map(|(user, at)| values![user.as_str(), at.as_str()]).collect();
    let found = read_by_keys(core, &keys).await;
    for (member_key, answer) in requests {
        let standing = match &found {
            Ok(found) => Ok(found.get(&member_key).cloned()),
            Err(error) => Err(StoreError::Unavailable(error.to_string().into())),
        };
        drop(answer.send(standing)); // the caller may have dropped the future
    }
}

async fn read_by_keys(
    core: &Core,
    keys: &[Vec<Value>],
) -> Result<HashMap<MemberKey, Standing>, StoreError> {
    let sql = format!("{STANDING} WHERE (m.user_id, m.conversation_id) IN {{}}");
    let mut found = HashMap::with_capacity(keys.len());
    for (sql, params) in select_in(&sql, &[], keys) {
        for row in core.rows(&sql, params).await? {
            let (user, standing) = standing(core, row).await?;
            found.insert((user, standing.conversation.clone()), standing);
        }
    }
    Ok(found)
}

async fn standing(core: &Core, row: Row) -> Result<(UserId, Standing), StoreError> {
    let (user, mut standing, sent_without_read) = read_standing(core, row)?;
    let from = standing.read_up_to();
    if sent_without_read > from {
        let member_key = (user.clone(), standing.conversation.clone());
        let up_to = sent_without_read_up_to(core, &member_key, standing.visible_max()).await?;
        standing.own_unread =
            up_to.saturating_sub(sent_without_read_up_to(core, &member_key, from).await?);
    }
    Ok((user, standing))
}

fn read_standing(core: &Core, row: Row) -> Result<(UserId, Standing, Seq), SqlFault> {
    let mut fields = Fields::from(row);
    let user = fields.user()?;
    let (conversation, window) = (fields.conversation()?, fields.window()?);
    let (mut progress, settings) = (fields.progress()?, fields.settings()?);
    let member_key = (user, conversation);
    core.delivered.add_to(&member_key, &mut progress);
    let (user, conversation) = member_key;
    let (max_seq, change_seq, newest_at) = (fields.seq()?, fields.seq()?, fields.millis()?);
    let end = fields.window_end()?;
    let standing = Standing {
        conversation,
        window: window.until(end),
        cursors: progress.cursors,
        own_unread: 0,
        settings,
        max_seq,
        change_seq,
        newest_at,
        has_ended: end.is_some(),
    };
    Ok((user, standing, progress.quiet))
}

/// Counts the messages up to a seq that a member sent without marking anything read.
pub(crate) async fn sent_without_read_up_to(
    core: &Core,
    member_key: &MemberKey,
    seq: Seq,
) -> Result<u64, StoreError> {
    let sql = "SELECT total FROM quiet_messages WHERE user_id = ? AND conversation_id = ? \
         AND seq <= ? ORDER BY seq DESC LIMIT 1";
    let rows = core.rows(sql, values![member_key.0.as_str(), member_key.1.as_str(), seq.0]).await?;
    Ok(rows.into_iter().next().map_or(Ok(0), |row| Fields::from(row).u64())?)
}
