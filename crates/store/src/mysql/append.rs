//! Stores a batch of messages in one transaction.
//!
//! The rows of their conversations are locked first, in the order of their ids; a join, a leave and
//! a recall lock the same row. So what is read after that does not change until the commit.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use mysql_async::Value;
use nexo_chat::event::Event;
use nexo_chat::ids::{ConversationId, GroupId, MessageId, Millis, Seq, UserId};
use nexo_chat::membership::{Group, GroupMember, MembershipStatus};
use nexo_chat::model::{Draft, Fingerprint, Message};
use nexo_chat::policy::group::may_speak;
use nexo_chat::store::Appended;

use super::core::Core;
use super::fault::{SqlFault, damaged};
use super::fields::Fields;
use super::row::MESSAGE;
use super::sql::{insert_rows, values};
use super::transaction::Transaction;
use super::{group_rows, members, row};
use crate::member_key::{MemberKey, OwnSend};
use crate::prepared::Prepared;

/// The user of a row in `mentions` for a message to all members.
pub(crate) const MENTION_ALL: &str = "*";

#[derive(Default)]
pub(crate) struct AppendOutcome {
    /// In the order of the drafts.
    pub(crate) outcomes: Vec<Appended>,
    pub(crate) events: Vec<Event>,
}

/// The newest seqs of a conversation whose row is locked.
#[derive(Clone, Copy)]
struct LockedHead {
    seq: Seq,
    change_seq: Seq,
    newest_at: Millis,
}

/// The facts of a batch, updated after each decision.
#[derive(Default)]
struct AppendFacts {
    heads: BTreeMap<ConversationId, LockedHead>,
    messages: HashMap<MessageId, (Arc<Message>, Fingerprint)>,
    groups: HashMap<GroupId, Arc<Group>>,
    group_members: HashMap<(GroupId, UserId), GroupMember>,
    /// Senders who are former members of their group.
    former: BTreeSet<MemberKey>,
    sent_without_read: HashMap<MemberKey, u64>,
}

/// The rows that a batch adds.
#[derive(Default)]
struct AppendRows {
    messages: Vec<Vec<Value>>,
    heads: BTreeSet<ConversationId>,
    /// Both users of a private conversation, with its first message.
    members: Vec<MemberKey>,
    own_sends: Vec<OwnSend>,
    sent_without_read: Vec<Vec<Value>>,
    mentions: Vec<Vec<Value>>,
}

/// Stores a batch, or returns why it is not known whether any of it was stored.
///
/// Almost no message is a duplicate, and a unique key catches those that are: so stored messages
/// are looked up only if an id was stored through this node before, or after such a conflict.
pub(crate) async fn append(core: &Core, drafts: &[Prepared]) -> Result<AppendOutcome, SqlFault> {
    let mut retry = core.retry_policy();
    let mut looks_up = drafts.iter().any(|it| core.recent_ids.get(&it.id).is_some());
    loop {
        let fault = match attempt(core, drafts, looks_up).await {
            Ok(done) => {
                for it in drafts {
                    core.recent_ids.insert(it.id, ());
                }
                return Ok(done);
            }
            Err(fault) => fault,
        };
        match fault {
            SqlFault::DuplicateKey(_) if !looks_up => looks_up = true,
            fault => {
                looks_up = true; // an attempt whose answer was lost may have stored them
                retry.wait_or_fault(fault).await?;
            }
        }
    }
}

async fn attempt(
    core: &Core,
    drafts: &[Prepared],
    looks_up: bool,
) -> Result<AppendOutcome, SqlFault> {
    make_conversations(core, drafts).await?;
    let mut transaction = core.begin().await?;
    let mut facts = gather(core, &mut transaction, drafts, looks_up).await?;
    let (mut rows, mut done) = (AppendRows::default(), AppendOutcome::default());
    for prepared in drafts {
        let outcome = facts.decide(prepared, &mut rows, &mut done.events);
        done.outcomes.push(outcome);
    }
    // A duplicate is answered as such, even if its sender may not speak any more.
    let is_doubtful = |it: &Appended| matches!(it, Appended::Refused(_));
    if !looks_up && done.outcomes.iter().any(is_doubtful) {
        transaction.roll_back().await?;
        return Err(SqlFault::DuplicateKey("what is refused may be stored already".into()));
    }
    if rows.messages.is_empty() {
        transaction.roll_back().await?;
        return Ok(done);
    }
    if let Err(fault) = facts.write(&mut transaction, rows).await {
        if let SqlFault::DuplicateKey(_) = fault {
            transaction.roll_back().await?;
        }
        return Err(fault);
    }
    transaction.commit().await?;
    for (Prepared { draft, .. }, outcome) in drafts.iter().zip(&done.outcomes) {
        if let (Appended::Stored(message), None) = (outcome, draft.conversation.group()) {
            let member_key = (draft.sender.clone(), draft.conversation.clone());
            core.delivered.sent(&member_key, message.seq, draft.marks_read);
        }
    }
    Ok(done)
}

/// Inserts the rows of private conversations that may have none, so that they can be locked.
async fn make_conversations(core: &Core, drafts: &[Prepared]) -> Result<(), SqlFault> {
    let all: BTreeSet<&ConversationId> = drafts.iter().map(|it| &it.draft.conversation).collect();
    let private = all.into_iter().filter(|conversation| conversation.group().is_none());
    let private: Vec<ConversationId> = private.cloned().collect();
    let unmade = core.unknown_conversations(&private);
    if unmade.is_empty() {
        return Ok(());
    }
    let rows = unmade.iter().map(|conversation| values![conversation.as_str(), 0, 0, 0]).collect();
    let sql = "INSERT IGNORE INTO conversations (id, max_seq, change_seq, newest_at) VALUES {}";
    let mut connection = core.pool.acquire().await?;
    for (sql, params) in insert_rows(sql, rows) {
        connection.run(sql, params).await?;
    }
    core.remember_conversations(unmade);
    Ok(())
}

async fn gather(
    core: &Core,
    transaction: &mut Transaction,
    drafts: &[Prepared],
    looks_up: bool,
) -> Result<AppendFacts, SqlFault> {
    let mut facts = AppendFacts::default();
    let all: BTreeSet<&str> = drafts.iter().map(|it| it.draft.conversation.as_str()).collect();
    let all: Vec<_> = all.into_iter().map(|conversation| values![conversation]).collect();
    let sql = "SELECT id, max_seq, change_seq, newest_at FROM conversations WHERE id IN {} \
         ORDER BY id FOR UPDATE";
    for row in transaction.rows_by_keys(sql, &all).await? {
        let mut fields = Fields::from(row);
        let conversation = fields.conversation()?;
        let (seq, change_seq) = (fields.seq()?, fields.seq()?);
        let head = LockedHead { seq, change_seq, newest_at: fields.millis()? };
        facts.heads.insert(conversation, head);
    }
    let lost = drafts.iter().map(|it| &it.draft.conversation);
    let lost = lost.filter(|it| it.group().is_none() && !facts.heads.contains_key(*it));
    let lost: Vec<ConversationId> = lost.cloned().collect();
    if !lost.is_empty() {
        core.forget_conversations(&lost); // the row was deleted in the database
        return Err(SqlFault::Retryable("a conversation is gone".into()));
    }
    if looks_up {
        let ids: BTreeSet<[u8; 16]> = drafts.iter().map(|it| it.id.0).collect();
        let ids: Vec<_> = ids.iter().map(|id| values![&id[..]]).collect();
        let sql = format!("SELECT {MESSAGE} FROM messages WHERE id IN {{}}");
        for row in transaction.rows_by_keys(&sql, &ids).await? {
            let (message, fingerprint) = row::message(row)?;
            facts.messages.insert(message.id, (Arc::new(message), fingerprint));
        }
    }
    let new = drafts.iter().filter(|it| !facts.messages.contains_key(&it.id));
    let new: Vec<&Prepared> = new.collect();
    gather_groups(transaction, &new, &mut facts).await?;
    for draft in new.iter().map(|it| &it.draft).filter(|draft| !draft.marks_read) {
        let member_key = (draft.sender.clone(), draft.conversation.clone());
        let total = members::sent_without_read_total(transaction, &member_key).await?;
        facts.sent_without_read.insert(member_key, total);
    }
    Ok(facts)
}

async fn gather_groups(
    transaction: &mut Transaction,
    drafts: &[&Prepared],
    facts: &mut AppendFacts,
) -> Result<(), SqlFault> {
    let mut ids = BTreeSet::new();
    let mut senders = BTreeSet::new();
    for Prepared { draft, .. } in drafts {
        if let Some(group) = draft.conversation.group() {
            senders.insert((group.clone(), draft.sender.clone()));
            ids.insert(group);
        }
    }
    if ids.is_empty() {
        return Ok(());
    }
    facts.groups = group_rows::load(transaction, &ids).await?;
    facts.group_members = group_rows::load_members(transaction, &senders).await?;
    senders.retain(|sender| !facts.group_members.contains_key(sender));
    let strangers = senders.into_iter().map(|(group, user)| (user, group.conversation()));
    facts.former = members::existing(transaction, &strangers.collect()).await?;
    Ok(())
}

impl AppendFacts {
    fn decide(
        &mut self,
        it: &Prepared,
        rows: &mut AppendRows,
        events: &mut Vec<Event>,
    ) -> Appended {
        let Prepared { draft, id, fingerprint } = it;
        if let Some((message, known)) = self.messages.get(id) {
            return if known == fingerprint {
                Appended::Duplicate(Arc::clone(message))
            } else {
                Appended::Conflict
            };
        }
        let mut members = 0;
        if let Some(id) = draft.conversation.group() {
            let group = self.groups.get(&id).map(|group| &**group);
            let member = self.group_members.get(&(id, draft.sender.clone()));
            let was_member =
                self.former.contains(&(draft.sender.clone(), draft.conversation.clone()));
            if let Err(reason) = may_speak(group, MembershipStatus::new(member, was_member), draft)
            {
                return Appended::Refused(reason);
            }
            members = group.map_or(0, |group| group.members);
        }
        let head = self.heads.get_mut(&draft.conversation);
        let Some(head) = head else { return Appended::Refused(nexo_chat::Reason::GroupNotFound) };
        head.seq = head.seq.next();
        head.newest_at = draft.sent_at;
        let (seq, change_seq) = (head.seq, head.change_seq);
        self.mark_message(draft, seq, rows);
        let message = Arc::new(draft.clone().into_message(*id, seq));
        rows.messages.push(row::message_values(&message, *fingerprint));
        rows.heads.insert(draft.conversation.clone());
        self.messages.insert(*id, (Arc::clone(&message), *fingerprint));
        let (shared, origin) = (Arc::clone(&message), draft.origin);
        events.push(Event::Message { message: shared, origin, members, change_seq });
        Appended::Stored(message)
    }

    /// Adds the rows of what a message means for members: makes both users of a private
    /// conversation members with its first message, moves the sender's cursors (the system user has
    /// none in a group), counts a message that marks nothing read, and adds an entry for everybody
    /// it mentions.
    fn mark_message(&mut self, draft: &Draft, seq: Seq, rows: &mut AppendRows) {
        let Draft { conversation, sender, content, marks_read, .. } = draft;
        if let (Seq(1), Some((a, b))) = (seq, conversation.pair()) {
            rows.members.extend([a, b].map(|user| (user, conversation.clone())));
        }
        let member_key = (sender.clone(), conversation.clone());
        if conversation.group().is_none() || !sender.is_system() {
            rows.own_sends.push(OwnSend {
                member_key: member_key.clone(),
                seq,
                marks_read: *marks_read,
            });
        }
        if !marks_read {
            let total = self.sent_without_read.entry(member_key).or_default();
            *total += 1;
            rows.sent_without_read.push(values![
                sender.as_str(),
                conversation.as_str(),
                seq.0,
                *total
            ]);
        }
        let answered = content.reply_to.as_ref().map(|reply| &reply.sender);
        let named = content.mentions.iter().chain(answered).filter(|user| *user != sender);
        let mut whom: BTreeSet<&str> = named.map(UserId::as_str).collect();
        whom.extend(content.mentions_all.then_some(MENTION_ALL));
        for user in whom {
            let row = values![user, conversation.as_str(), seq.0, sender.as_str()];
            rows.mentions.push(row);
        }
    }

    async fn write(&self, transaction: &mut Transaction, rows: AppendRows) -> Result<(), SqlFault> {
        let sql = format!("INSERT INTO messages ({MESSAGE}) VALUES {{}}");
        transaction.write(&sql, rows.messages).await?;
        let mut heads = Vec::with_capacity(rows.heads.len());
        for conversation in &rows.heads {
            let head = self.heads.get(conversation).ok_or_else(|| damaged("no head"))?;
            let LockedHead { seq, change_seq, newest_at } = head;
            heads.push(values![conversation.as_str(), seq.0, change_seq.0, newest_at.0]);
        }
        let sql = "INSERT INTO conversations (id, max_seq, change_seq, newest_at) VALUES {} \
             ON DUPLICATE KEY UPDATE max_seq = VALUES(max_seq), newest_at = VALUES(newest_at)";
        transaction.write(sql, heads).await?;
        members::insert_pair(transaction, &rows.members).await?;
        members::apply_own_sends(transaction, rows.own_sends).await?;
        let sql = "INSERT INTO quiet_messages (user_id, conversation_id, seq, total) VALUES {}";
        transaction.write(sql, rows.sent_without_read).await?;
        let sql = "INSERT INTO mentions (user_id, conversation_id, seq, sender) VALUES {}";
        transaction.write(sql, rows.mentions).await
    }
}
