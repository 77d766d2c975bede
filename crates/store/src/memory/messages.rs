//! Messages of the reference engine.

use std::collections::BTreeSet;
use std::future::ready;
use std::ops::RangeInclusive;
use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::event::Event;
use nexo_chat::ids::{ConversationId, MessageId, Seq, UserId};
use nexo_chat::membership::MembershipStatus;
use nexo_chat::model::{Change, ChangeKind, Draft, Message, Recall};
use nexo_chat::policy::group::may_speak;
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{
    Actor, Appended, Limit, MayRecall, MessagePage, MessageStore, Order, RecallFacts, StoreError,
    StoreFuture,
};

use super::{Memory, MemoryMember, MemoryState};

/// A recalled message, and the change unless it was recalled before.
type RecalledMessage = (Arc<Message>, Option<Arc<Change>>);

impl Memory {
    /// Appends one message; the caller holds the lock of the order.
    fn append_next(&self, draft: Draft) -> Result<Appended, StoreError> {
        let (origin, conversation) = (draft.origin, draft.conversation.clone());
        let (outcome, members, change_seq) = self.try_write(|state| {
            let members = state.group_size(&conversation);
            let change_seq = state.change_seq(&conversation);
            (state.append(draft), members, change_seq)
        })?;
        if let Appended::Stored(message) = &outcome {
            let message = Arc::clone(message);
            self.announce(&[Event::Message { message, origin, members, change_seq }]);
        }
        Ok(outcome)
    }
}

impl MessageStore for Memory {
    fn append(&self, _permit: Permit, draft: Draft) -> StoreFuture<'static, Appended> {
        let _order = self.lock_order();
        Box::pin(ready(self.append_next(draft)))
    }

    fn append_run(
        &self,
        _permit: Permit,
        drafts: Vec<Draft>,
    ) -> StoreFuture<'static, Vec<Appended>> {
        let _order = self.lock_order();
        Box::pin(ready(drafts.into_iter().map(|draft| self.append_next(draft)).collect()))
    }

    fn message(&self, id: MessageId) -> StoreFuture<'_, Option<Arc<Message>>> {
        self.read(|state| state.messages_by_id.get(&id).map(|(message, _)| Arc::clone(message)))
    }

    fn messages(
        &self,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
        limit: Limit,
        order: Order,
    ) -> StoreFuture<'_, MessagePage> {
        self.read(|state| {
            let all = state.conversations.get(conversation).into_iter().flatten();
            let mut messages: Vec<_> =
                all.filter(|message| range.contains(&message.seq)).cloned().collect();
            if order == Order::Descending {
                messages.reverse();
            }
            let mut left = limit.bytes;
            let fits = messages.iter().enumerate().take_while(|(index, message)| {
                let fits = *index == 0 || message.weight() <= left;
                left = left.saturating_sub(message.weight());
                fits
            });
            let count = fits.count().min(limit.count);
            messages.truncate(count);
            messages.into()
        })
    }

    fn recall(
        &self,
        id: MessageId,
        asker: Actor,
        may: MayRecall,
    ) -> StoreFuture<'_, Result<Arc<Message>, Reason>> {
        let _order = self.lock_order();
        let outcome = self.try_write(|state| state.recall(id, &asker, &may));
        if let Ok(Ok((_, Some(change)))) = &outcome {
            let members = self.state().group_size(&change.conversation);
            let (change, origin) = (Arc::clone(change), asker.origin);
            self.announce(&[Event::Change { change, origin, members }]);
        }
        Box::pin(ready(outcome.map(|recalled| recalled.map(|(message, _)| message))))
    }

    fn mentions(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Seq>> {
        self.read(|state| {
            state.mentions(user, conversation, &range).into_iter().take(limit).collect()
        })
    }

    fn changes(
        &self,
        conversation: &ConversationId,
        after: Seq,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Arc<Change>>> {
        self.read(|state| {
            let all = state.changes.get(conversation).into_iter().flatten();
            all.filter(|change| change.seq > after).take(limit).cloned().collect()
        })
    }
}

impl MemoryState {
    fn append(&mut self, draft: Draft) -> Appended {
        let id = MessageId::of(&draft.sender, &draft.client_id);
        let fingerprint = draft.content.fingerprint(&draft.conversation);
        if let Some((message, known)) = self.messages_by_id.get(&id) {
            return if *known == fingerprint {
                Appended::Duplicate(Arc::clone(message))
            } else {
                Appended::Conflict
            };
        }
        if let Some(id) = draft.conversation.group() {
            let group = self.groups.get(&id).map(|group| &**group);
            let member = self.group_members.get(&(id, draft.sender.clone()));
            let member_key = (draft.sender.clone(), draft.conversation.clone());
            let sender = MembershipStatus::new(member, self.members.contains_key(&member_key));
            if let Err(reason) = may_speak(group, sender, &draft) {
                return Appended::Refused(reason);
            }
        }
        let seq = self.max_seq(&draft.conversation).next();
        if let (Seq(1), Some((a, b))) = (seq, draft.conversation.pair()) {
            for user in [a, b] {
                // A user who chose settings before is a member already, and keeps them.
                let member_key = (user, draft.conversation.clone());
                self.members.entry(member_key).or_insert_with(MemoryMember::of_pair);
            }
        }
        if let Some(member) =
            self.members.get_mut(&(draft.sender.clone(), draft.conversation.clone()))
        {
            member.progress.sent(seq, draft.marks_read);
            if !draft.marks_read {
                member.sent_without_read.insert(seq);
            }
        }
        self.note_mentions(&draft, seq);
        let message = Arc::new(draft.into_message(id, seq));
        self.messages_by_id.insert(id, (Arc::clone(&message), fingerprint));
        let conversation = message.conversation.clone();
        self.conversations.entry(conversation).or_default().push(Arc::clone(&message));
        Appended::Stored(message)
    }

    fn note_mentions(&mut self, draft: &Draft, seq: Seq) {
        let Draft { conversation, sender, content, .. } = draft;
        if content.mentions_all {
            let all = self.mentions_all.entry(conversation.clone()).or_default();
            all.insert(seq, sender.clone());
        }
        let replied_to = content.reply_to.as_ref().map(|reply| &reply.sender);
        for user in content.mentions.iter().chain(replied_to).filter(|user| *user != sender) {
            let member_key = (user.clone(), conversation.clone());
            self.mentions.entry(member_key).or_default().insert(seq);
        }
    }

    fn recall(
        &mut self,
        id: MessageId,
        asker: &Actor,
        may: &MayRecall,
    ) -> Result<RecalledMessage, Reason> {
        let (message, fingerprint) =
            self.messages_by_id.get(&id).cloned().ok_or(Reason::MessageNotFound)?;
        let group = message.conversation.group();
        let is_member = group
            .clone()
            .is_some_and(|group| self.group_members.contains_key(&(group, asker.user.clone())));
        let group = group.and_then(|group| self.groups.get(&group)).filter(|it| it.ended.is_none());
        may(RecallFacts { message: &message, group: group.map(|group| &**group), is_member })?;
        if message.recalled.is_some() {
            return Ok((message, None));
        }
        let recall = Recall { by: asker.user.clone(), at: asker.at };
        let recalled = Arc::new(message.recalled(recall));
        self.messages_by_id.insert(id, (Arc::clone(&recalled), fingerprint));
        let all = self.conversations.entry(message.conversation.clone()).or_default();
        if let Some(slot) = all.iter_mut().find(|slot| slot.id == id) {
            *slot = Arc::clone(&recalled);
        }
        let kind =
            ChangeKind::Recalled { message: id, seq: message.seq, sender: message.sender.clone() };
        let change = self.append_change(&message.conversation, asker, kind);
        Ok((recalled, Some(change)))
    }

    /// Writes a change under the next change seq.
    pub(super) fn append_change(
        &mut self,
        conversation: &ConversationId,
        asker: &Actor,
        kind: ChangeKind,
    ) -> Arc<Change> {
        let changes = self.changes.entry(conversation.clone()).or_default();
        let change = Arc::new(Change {
            conversation: conversation.clone(),
            seq: Seq(changes.len() as u64 + 1),
            by: asker.user.clone(),
            at: asker.at,
            kind,
        });
        changes.push(Arc::clone(&change));
        change
    }

    pub(super) fn change_seq(&self, conversation: &ConversationId) -> Seq {
        Seq(self.changes.get(conversation).map_or(0, |all| all.len() as u64))
    }

    /// Returns how many members a conversation's group has; 0 for a private conversation.
    fn group_size(&self, conversation: &ConversationId) -> u32 {
        let group = conversation.group().and_then(|group| self.groups.get(&group));
        group.map_or(0, |group| group.members)
    }

    pub(super) fn newest(&self, conversation: &ConversationId) -> Option<&Arc<Message>> {
        self.conversations.get(conversation)?.last()
    }

    pub(super) fn max_seq(&self, conversation: &ConversationId) -> Seq {
        self.newest(conversation).map_or(Seq::ZERO, |message| message.seq)
    }

    fn mentions(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        range: &RangeInclusive<Seq>,
    ) -> BTreeSet<Seq> {
        let all = self.mentions_all.get(conversation).into_iter().flatten();
        let by_others = all.filter(|(_, sender)| *sender != user).map(|(seq, _)| seq);
        let named = self.mentions.get(&(user.clone(), conversation.clone()));
        let both = by_others.chain(named.into_iter().flatten());
        both.filter(|seq| range.contains(seq)).copied().collect()
    }
}
