//! Members of conversations in the reference engine: standings, cursors and settings.

use std::collections::BTreeSet;
use std::future::ready;
use std::ops::RangeInclusive;

use nexo_chat::event::Event;
use nexo_chat::ids::{ConversationId, Millis, Seq, UserId};
use nexo_chat::model::{CursorKind, Settings, SettingsChange, Standing};
use nexo_chat::store::{ConversationStore, CursorMove, StoreFuture};

use super::{Memory, MemoryMember, MemoryState};
use crate::member_key::{MemberKey, is_private_member};

impl ConversationStore for Memory {
    fn standing(
        &self,
        user: &UserId,
        conversation: &ConversationId,
    ) -> StoreFuture<'_, Option<Standing>> {
        self.read(|state| {
            let member = state.members.get(&(user.clone(), conversation.clone()))?;
            Some(state.standing(conversation, member))
        })
    }

    fn standings(
        &self,
        user: &UserId,
        after: Option<&ConversationId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Standing>> {
        self.read(|state| {
            let mine = state.members.iter().filter(|((member, _), _)| member == user);
            mine.filter(|((_, conversation), _)| after.is_none_or(|after| conversation > after))
                .map(|((_, conversation), member)| state.standing(conversation, member))
                .take(limit)
                .collect()
        })
    }

    fn advance_cursor(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        kind: CursorKind,
        seq: Seq,
    ) -> StoreFuture<'_, Option<CursorMove>> {
        let member_key = (user.clone(), conversation.clone());
        Box::pin(ready(Ok(self.state().advance_cursor(&member_key, kind, seq))))
    }

    fn sent_without_read(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
    ) -> StoreFuture<'_, u64> {
        self.read(|state| {
            let member = state.members.get(&(user.clone(), conversation.clone()));
            member.map_or(0, |member| count(&member.sent_without_read, range))
        })
    }

    fn update_settings(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        change: SettingsChange,
    ) -> StoreFuture<'_, Option<Settings>> {
        let _order = self.lock_order();
        let member_key = (user.clone(), conversation.clone());
        let changed = self.try_write(|state| {
            if is_private_member(&member_key) {
                state.members.entry(member_key.clone()).or_insert_with(MemoryMember::of_pair);
            }
            let member = state.members.get_mut(&member_key)?;
            member.settings = member.settings.clone().with(change);
            Some(member.settings.clone())
        });
        if let Ok(Some(settings)) = &changed {
            let (user, conversation) = member_key;
            self.announce(&[Event::Settings { user, conversation, settings: settings.clone() }]);
        }
        Box::pin(ready(changed))
    }
}

impl MemoryState {
    fn standing(&self, conversation: &ConversationId, member: &MemoryMember) -> Standing {
        let group = conversation.group().and_then(|group| self.groups.get(&group));
        let ended = group.and_then(|group| group.ended);
        let mut standing = Standing {
            conversation: conversation.clone(),
            window: member.window.until(ended.map(|ended| ended.window_end)),
            cursors: member.progress.cursors,
            own_unread: 0,
            settings: member.settings.clone(),
            max_seq: self.max_seq(conversation),
            change_seq: self.change_seq(conversation),
            newest_at: self.newest(conversation).map_or(Millis(0), |message| message.sent_at),
            has_ended: ended.is_some(),
        };
        let above = (standing.read_up_to().next(), standing.visible_max());
        standing.own_unread = count(&member.sent_without_read, above.0..=above.1);
        standing
    }

    fn advance_cursor(
        &mut self,
        key: &MemberKey,
        kind: CursorKind,
        seq: Seq,
    ) -> Option<CursorMove> {
        let visible_max = self.standing(&key.1, self.members.get(key)?).visible_max();
        let progress = &mut self.members.get_mut(key)?.progress;
        let before = progress.cursors;
        progress.acknowledged(kind, seq.min(visible_max));
        Some(CursorMove { before, after: progress.cursors })
    }
}

/// Counts the seqs in a range, which may be empty.
fn count(seqs: &BTreeSet<Seq>, range: RangeInclusive<Seq>) -> u64 {
    seqs.iter().filter(|seq| range.contains(seq)).count() as u64
}
