//! Stores a batch of messages in one transaction.
//!
//! The rows of their conversations are locked first, in the order of their ids; whoever joins,
//! leaves or recalls locks the same row. What is looked at after that stays so until the commit.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use mysql_async::Value;
use nexo_chat::ids::{ConversationId, GroupId, MessageId, Millis, Seq, UserId};
use nexo_chat::membership::{Belonging, Group, GroupMember};
use nexo_chat::model::{Draft, Fingerprint, Kept, Message};
use nexo_chat::policy::group::may_speak;
use nexo_chat::store::Appended;

use super::act::Act;
use super::core::Core;
use super::cursors::{self, Place, Sent};
use super::fault::{Fault, damaged};
use super::groups;
use super::row::{self, Fields, MESSAGE};
use super::sql::{values, writing};
use crate::prepared::Prepared;

/// Whom a message to everybody is kept under.
pub(crate) const EVERYBODY: &str = "*";

/// What became of a batch.
#[derive(Default)]
pub(crate) struct Done {
    /// In the order of the drafts.
    pub(crate) outcomes: Vec<Appended>,
    /// What is to be told.
    pub(crate) kept: Vec<Kept>,
}

/// The newest places of a conversation.
#[derive(Clone, Copy)]
struct Head {
    seq: Seq,
    change_seq: Seq,
    newest_at: Millis,
}

/// What is known about a batch, as it will be when everything before has been decided.
#[derive(Default)]
struct Facts {
    heads: BTreeMap<ConversationId, Head>,
    messages: HashMap<MessageId, (Arc<Message>, Fingerprint)>,
    groups: HashMap<GroupId, Arc<Group>>,
    group_members: HashMap<(GroupId, UserId), GroupMember>,
    /// Senders who are in a group no more.
    former: BTreeSet<Place>,
    quiet: HashMap<Place, u64>,
}

/// The rows a batch adds.
#[derive(Default)]
struct Rows {
    messages: Vec<Vec<Value>>,
    heads: BTreeSet<ConversationId>,
    /// Those who become members by the first message of two.
    members: Vec<Place>,
    sent: Vec<Sent>,
    quiet: Vec<Vec<Value>>,
    mentions: Vec<Vec<Value>>,
}

/// Stores a batch, or tells why nothing of it is known to be stored.
///
/// Almost no message was stored before, and the database notices one that was: so whether they were
/// is looked up only if one of them looks like it, or once that happened.
pub(crate) async fn append(core: &Core, drafts: &[Prepared]) -> Result<Done, Fault> {
    let mut tries = core.tries();
    let mut looks_up = drafts.iter().any(|it| core.recent.get(&it.id).is_some());
    loop {
        let fault = match attempt(core, drafts, looks_up).await {
            Ok(done) => {
                for it in drafts {
                    core.recent.insert(it.id, ());
                }
                return Ok(done);
            }
            Err(fault) => fault,
        };
        match fault {
            Fault::Taken(_) if !looks_up => looks_up = true,
            fault => {
                looks_up = true; // an attempt whose answer was lost may be what is found now
                tries.again_or(fault).await?;
            }
        }
    }
}

async fn attempt(core: &Core, drafts: &[Prepared], looks_up: bool) -> Result<Done, Fault> {
    make_conversations(core, drafts).await?;
    let mut act = core.begin().await?;
    let mut facts = gather(core, &mut act, drafts, looks_up).await?;
    let (mut rows, mut done) = (Rows::default(), Done::default());
    for prepared in drafts {
        let outcome = facts.decide(prepared, &mut rows, &mut done.kept);
        done.outcomes.push(outcome);
    }
    // What was stored before stays so, whatever its sender may do by now.
    let is_doubtful = |it: &Appended| matches!(it, Appended::Refused(_));
    if !looks_up && done.outcomes.iter().any(is_doubtful) {
        act.roll_back().await?;
        return Err(Fault::Taken("what is refused may be stored already".into()));
    }
    if rows.messages.is_empty() {
        act.roll_back().await?;
        return Ok(done);
    }
    if let Err(fault) = facts.write(&mut act, rows).await {
        if let Fault::Taken(_) = fault {
            act.roll_back().await?;
        }
        return Err(fault);
    }
    act.commit().await?;
    Ok(done)
}

/// Two people who never spoke need a row to lock.
async fn make_conversations(core: &Core, drafts: &[Prepared]) -> Result<(), Fault> {
    let all: BTreeSet<&ConversationId> = drafts.iter().map(|it| &it.draft.conversation).collect();
    let private = all.into_iter().filter(|conversation| conversation.group().is_none());
    let private: Vec<ConversationId> = private.cloned().collect();
    let unmade = core.unmade(&private);
    if unmade.is_empty() {
        return Ok(());
    }
    let rows = unmade.iter().map(|conversation| values![conversation.as_str(), 0, 0, 0]).collect();
    let sql = "INSERT IGNORE INTO conversations (id, max_seq, change_seq, newest_at) VALUES {}";
    let mut lease = core.pool.lease().await?;
    for (sql, params) in writing(sql, rows) {
        lease.run(sql, params).await?;
    }
    core.are_made(unmade);
    Ok(())
}

async fn gather(
    core: &Core,
    act: &mut Act,
    drafts: &[Prepared],
    looks_up: bool,
) -> Result<Facts, Fault> {
    let mut facts = Facts::default();
    let all: BTreeSet<&str> = drafts.iter().map(|it| it.draft.conversation.as_str()).collect();
    let all: Vec<_> = all.into_iter().map(|conversation| values![conversation]).collect();
    let sql = "SELECT id, max_seq, change_seq, newest_at FROM conversations WHERE id IN {} \
         ORDER BY id FOR UPDATE";
    for row in act.look(sql, &all).await? {
        let mut fields = Fields::from(row);
        let conversation = fields.conversation()?;
        let (seq, change_seq) = (fields.seq()?, fields.seq()?);
        let head = Head { seq, change_seq, newest_at: fields.millis()? };
        facts.heads.insert(conversation, head);
    }
    let lost = drafts.iter().map(|it| &it.draft.conversation);
    let lost = lost.filter(|it| it.group().is_none() && !facts.heads.contains_key(*it));
    let lost: Vec<ConversationId> = lost.cloned().collect();
    if !lost.is_empty() {
        core.forget_made(&lost); // somebody took the row away
        return Err(Fault::Again("a conversation is gone".into()));
    }
    if looks_up {
        let ids: BTreeSet<[u8; 16]> = drafts.iter().map(|it| it.id.0).collect();
        let ids: Vec<_> = ids.iter().map(|id| values![&id[..]]).collect();
        let sql = format!("SELECT {MESSAGE} FROM messages WHERE id IN {{}}");
        for row in act.look(&sql, &ids).await? {
            let (message, fingerprint) = row::message(row)?;
            facts.messages.insert(message.id, (Arc::new(message), fingerprint));
        }
    }
    let new = drafts.iter().filter(|it| !facts.messages.contains_key(&it.id));
    let new: Vec<&Prepared> = new.collect();
    gather_groups(act, &new, &mut facts).await?;
    for draft in new.iter().map(|it| &it.draft).filter(|draft| !draft.marks_read) {
        let place = (draft.sender.clone(), draft.conversation.clone());
        let total = cursors::quiet_total(act, &place).await?;
        facts.quiet.insert(place, total);
    }
    Ok(facts)
}

async fn gather_groups(
    act: &mut Act,
    drafts: &[&Prepared],
    facts: &mut Facts,
) -> Result<(), Fault> {
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
    facts.groups = groups::load(act, &ids).await?;
    facts.group_members = groups::load_members(act, &senders).await?;
    senders.retain(|sender| !facts.group_members.contains_key(sender));
    let strangers = senders.into_iter().map(|(group, user)| (user, group.conversation()));
    facts.former = cursors::are_there(act, &strangers.collect()).await?;
    Ok(())
}

impl Facts {
    fn decide(&mut self, it: &Prepared, rows: &mut Rows, kept: &mut Vec<Kept>) -> Appended {
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
            let was_in = self.former.contains(&(draft.sender.clone(), draft.conversation.clone()));
            if let Err(reason) = may_speak(group, Belonging::new(member, was_in), draft) {
                return Appended::Refused(reason);
            }
            members = group.map_or(0, |group| group.members);
        }
        let head = self.heads.get_mut(&draft.conversation);
        let Some(head) = head else { return Appended::Refused(nexo_chat::Reason::GroupNotFound) };
        head.seq = head.seq.next();
        head.newest_at = draft.sent_at;
        let (seq, change_seq) = (head.seq, head.change_seq);
        self.mark(draft, seq, rows);
        let message = Arc::new(draft.clone().into_message(*id, seq));
        rows.messages.push(row::message_values(&message, *fingerprint));
        rows.heads.insert(draft.conversation.clone());
        self.messages.insert(*id, (Arc::clone(&message), *fingerprint));
        let (told, origin) = (Arc::clone(&message), draft.origin);
        kept.push(Kept::Message { message: told, origin, members, change_seq });
        Appended::Stored(message)
    }

    /// Notes what a message means for people: the first one of two makes them members, its sender's
    /// cursors move (in a group the operator has none), one that marks nothing read is counted, and
    /// whom it speaks to finds it.
    fn mark(&mut self, draft: &Draft, seq: Seq, rows: &mut Rows) {
        let Draft { conversation, sender, content, marks_read, .. } = draft;
        if let (Seq(1), Some((a, b))) = (seq, conversation.pair()) {
            rows.members.extend([a, b].map(|user| (user, conversation.clone())));
        }
        let place = (sender.clone(), conversation.clone());
        if conversation.group().is_none() || !sender.is_system() {
            rows.sent.push(Sent { place: place.clone(), seq, marks_read: *marks_read });
        }
        if !marks_read {
            let total = self.quiet.entry(place).or_default();
            *total += 1;
            rows.quiet.push(values![sender.as_str(), conversation.as_str(), seq.0, *total]);
        }
        let answered = content.reply_to.as_ref().map(|reply| &reply.sender);
        let named = content.mentions.iter().chain(answered).filter(|user| *user != sender);
        let mut whom: BTreeSet<&str> = named.map(UserId::as_str).collect();
        whom.extend(content.mentions_all.then_some(EVERYBODY));
        for user in whom {
            let row = values![user, conversation.as_str(), seq.0, sender.as_str()];
            rows.mentions.push(row);
        }
    }

    async fn write(&self, act: &mut Act, rows: Rows) -> Result<(), Fault> {
        let sql = format!("INSERT INTO messages ({MESSAGE}) VALUES {{}}");
        act.write(&sql, rows.messages).await?;
        let mut heads = Vec::with_capacity(rows.heads.len());
        for conversation in &rows.heads {
            let head = self.heads.get(conversation).ok_or_else(|| damaged("no head"))?;
            let Head { seq, change_seq, newest_at } = head;
            heads.push(values![conversation.as_str(), seq.0, change_seq.0, newest_at.0]);
        }
        let sql = "INSERT INTO conversations (id, max_seq, change_seq, newest_at) VALUES {} \
             ON DUPLICATE KEY UPDATE max_seq = VALUES(max_seq), newest_at = VALUES(newest_at)";
        act.write(sql, heads).await?;
        cursors::begin(act, &rows.members).await?;
        cursors::sent(act, rows.sent).await?;
        let sql = "INSERT INTO quiet_messages (user_id, conversation_id, seq, total) VALUES {}";
        act.write(sql, rows.quiet).await?;
        let sql = "INSERT INTO mentions (user_id, conversation_id, seq, sender) VALUES {}";
        act.write(sql, rows.mentions).await
    }
}
