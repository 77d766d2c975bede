//! Takes a message back, under the lock of its conversation.

use std::collections::BTreeSet;
use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::ids::{ConversationId, GroupId, MessageId, UserId};
use nexo_chat::membership::Group;
use nexo_chat::model::{Change, ChangeKind, Kept, Message, Recall};
use nexo_chat::store::{Asker, MayRecall, RecallFacts, StoreError};

use super::act::Act;
use super::core::Core;
use super::fault::{Fault, damaged};
use super::row::{self, Fields, MESSAGE};
use super::sql::values;
use super::{group_acts, groups};

/// A recall that waits for its turn.
pub(crate) struct RecallAct {
    pub(crate) id: MessageId,
    pub(crate) conversation: ConversationId,
    pub(crate) asker: Asker,
    pub(crate) may: MayRecall,
}

/// What a permission is given on.
struct Facts {
    message: Message,
    group: Option<Arc<Group>>,
    is_member: bool,
}

type Recalled = (Arc<Message>, Option<(Arc<Change>, u32)>);

/// Takes a message back.
pub(crate) async fn recall(
    core: &Core,
    it: RecallAct,
) -> Result<Result<Arc<Message>, Reason>, StoreError> {
    let mut tries = core.tries();
    loop {
        match attempt(core, &it).await {
            Ok(Ok((message, change))) => {
                if let Some((change, members)) = change {
                    let origin = it.asker.origin;
                    core.announce(&[Kept::Change { change, origin, members }]);
                }
                return Ok(Ok(message));
            }
            Ok(Err(reason)) => return Ok(Err(reason)),
            Err(fault) => tries.again(fault).await?,
        }
    }
}

async fn attempt(core: &Core, it: &RecallAct) -> Result<Result<Recalled, Reason>, Fault> {
    let RecallAct { id, conversation, asker, may } = it;
    let mut act = core.begin().await?;
    let sql = "SELECT change_seq FROM conversations WHERE id = ? FOR UPDATE";
    let row = act.rows(sql, values![conversation.as_str()]).await?.into_iter().next();
    let row = row.ok_or_else(|| damaged("a conversation is gone"))?;
    let change_seq = Fields::from(row).seq()?;
    let facts = gather(&mut act, *id, &asker.user).await?;
    let group = facts.group.as_deref().filter(|group| group.ended.is_none());
    let asked = RecallFacts { message: &facts.message, group, is_member: facts.is_member };
    if let Err(reason) = may(asked) {
        act.roll_back().await?;
        return Ok(Err(reason));
    }
    if facts.message.recalled.is_some() {
        act.roll_back().await?;
        return Ok(Ok((Arc::new(facts.message), None)));
    }
    let recall = Recall { by: asker.user.clone(), at: asker.at };
    let message = Arc::new(facts.message.recalled(recall));
    let sql = "UPDATE messages SET body = '', details = NULL, recalled_by = ?, recalled_at = ? \
         WHERE conversation_id = ? AND seq = ?";
    let place = (conversation.as_str(), message.seq.0);
    act.run(sql, values![asker.user.as_str(), asker.at.0, place.0, place.1]).await?;
    let (seq, sender) = (message.seq, message.sender.clone());
    let kind = ChangeKind::Recalled { message: *id, seq, sender };
    let changes = group_acts::number(conversation, change_seq, asker, vec![kind]);
    let rows = changes.iter().map(|change| row::change_values(change)).collect();
    let sql = format!("INSERT INTO changes (conversation_id, {}) VALUES {{}}", row::CHANGE);
    act.write(&sql, rows).await?;
    let sql = "UPDATE conversations SET change_seq = ? WHERE id = ?";
    act.run(sql, values![change_seq.next().0, conversation.as_str()]).await?;
    act.commit().await?;
    let members = facts.group.map_or(0, |group| group.members);
    Ok(Ok((message, changes.into_iter().next().map(|change| (change, members)))))
}

async fn gather(act: &mut Act, id: MessageId, asker: &UserId) -> Result<Facts, Fault> {
    let sql = format!("SELECT {MESSAGE} FROM messages WHERE id = ?");
    let row = act.rows(sql, values![&id.0[..]]).await?.into_iter().next();
    let (message, _) = row::message(row.ok_or_else(|| damaged("a message is gone"))?)?;
    let (mut group, mut is_member) = (None, false);
    if let Some(id) = message.conversation.group() {
        group = groups::load(act, &BTreeSet::from([id.clone()])).await?.remove(&id);
        let place: (GroupId, UserId) = (id, asker.clone());
        is_member = !groups::load_members(act, &BTreeSet::from([place])).await?.is_empty();
    }
    Ok(Facts { message, group, is_member })
}
