//! Recalls a message, under the lock of its conversation.

use std::collections::BTreeSet;
use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::event::Event;
use nexo_chat::ids::{ConversationId, GroupId, MessageId, UserId};
use nexo_chat::membership::Group;
use nexo_chat::model::{Change, ChangeKind, Message, Recall};
use nexo_chat::store::{Actor, MayRecall, RecallFacts, StoreError};

use super::core::Core;
use super::fault::{SqlFault, damaged};
use super::fields::Fields;
use super::row::MESSAGE;
use super::sql::values;
use super::transaction::Transaction;
use super::{change_group, group_rows, row};

/// A recall in the queue of a committer.
pub(crate) struct RecallRequest {
    pub(crate) id: MessageId,
    pub(crate) conversation: ConversationId,
    pub(crate) asker: Actor,
    pub(crate) may: MayRecall,
}

/// The rows that a recall is decided on.
struct RecallRows {
    message: Message,
    group: Option<Arc<Group>>,
    is_member: bool,
}

type RecalledMessage = (Arc<Message>, Option<(Arc<Change>, u32)>);

pub(crate) async fn recall(
    core: &Core,
    it: RecallRequest,
) -> Result<Result<Arc<Message>, Reason>, StoreError> {
    let mut retry = core.retry_policy();
    loop {
        match attempt(core, &it).await {
            Ok(Ok((message, change))) => {
                if let Some((change, members)) = change {
                    let origin = it.asker.origin;
                    core.announce(&[Event::Change { change, origin, members }]);
                }
                return Ok(Ok(message));
            }
            Ok(Err(reason)) => return Ok(Err(reason)),
            Err(fault) => retry.wait(fault).await?,
        }
    }
}

async fn attempt(
    core: &Core,
    it: &RecallRequest,
) -> Result<Result<RecalledMessage, Reason>, SqlFault> {
    let RecallRequest { id, conversation, asker, may } = it;
    let mut transaction = core.begin().await?;
    let sql = "SELECT change_seq FROM conversations WHERE id = ? FOR UPDATE";
    let row = transaction.rows(sql, values![conversation.as_str()]).await?.into_iter().next();
    let row = row.ok_or_else(|| damaged("a conversation is gone"))?;
    let change_seq = Fields::from(row).seq()?;
    let facts = gather(&mut transaction, *id, &asker.user).await?;
    let group = facts.group.as_deref().filter(|group| group.ended.is_none());
    let recall_facts = RecallFacts { message: &facts.message, group, is_member: facts.is_member };
    if let Err(reason) = may(recall_facts) {
        transaction.roll_back().await?;
        return Ok(Err(reason));
    }
    if facts.message.recalled.is_some() {
        transaction.roll_back().await?;
        return Ok(Ok((Arc::new(facts.message), None)));
    }
    let recall = Recall { by: asker.user.clone(), at: asker.at };
    let message = Arc::new(facts.message.recalled(recall));
    let sql = "UPDATE messages SET body = '', details = NULL, recalled_by = ?, recalled_at = ? \
         WHERE conversation_id = ? AND seq = ?";
    transaction
        .run(sql, values![asker.user.as_str(), asker.at.0, conversation.as_str(), message.seq.0])
        .await?;
    let (seq, sender) = (message.seq, message.sender.clone());
    let kind = ChangeKind::Recalled { message: *id, seq, sender };
    let changes = change_group::number_changes(conversation, change_seq, asker, vec![kind]);
    let rows = changes.iter().map(|change| row::change_values(change)).collect();
    let sql = format!("INSERT INTO changes (conversation_id, {}) VALUES {{}}", row::CHANGE);
    transaction.write(&sql, rows).await?;
    let sql = "UPDATE conversations SET change_seq = ? WHERE id = ?";
    transaction.run(sql, values![change_seq.next().0, conversation.as_str()]).await?;
    transaction.commit().await?;
    let members = facts.group.map_or(0, |group| group.members);
    Ok(Ok((message, changes.into_iter().next().map(|change| (change, members)))))
}

async fn gather(
    transaction: &mut Transaction,
    id: MessageId,
    asker: &UserId,
) -> Result<RecallRows, SqlFault> {
    let sql = format!("SELECT {MESSAGE} FROM messages WHERE id = ?");
    let row = transaction.rows(sql, values![&id.0[..]]).await?.into_iter().next();
    let (message, _) = row::message(row.ok_or_else(|| damaged("a message is gone"))?)?;
    let (mut group, mut is_member) = (None, false);
    if let Some(id) = message.conversation.group() {
        group = group_rows::load(transaction, &BTreeSet::from([id.clone()])).await?.remove(&id);
        let member_key: (GroupId, UserId) = (id, asker.clone());
        is_member =
            !group_rows::load_members(transaction, &BTreeSet::from([member_key])).await?.is_empty();
    }
    Ok(RecallRows { message, group, is_member })
}
