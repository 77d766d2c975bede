//! Members of conversations: standings, cursors and settings.

use std::ops::RangeInclusive;

use nexo_chat::event::Event;
use nexo_chat::ids::{ConversationId, Seq, UserId};
use nexo_chat::model::{CursorKind, Cursors, Settings, SettingsChange, Standing, Window};
use nexo_chat::store::{ConversationStore, CursorMove, Order, StoreFuture};

use super::core::Core;
use super::keys::Keyspace;
use super::members::MemberChange;
use super::pending::Pending;
use super::poison::EngineFault;
use super::record::{SettingsRecord, WindowRecord};
use super::{CHANGE_BYTES, Embedded, groups, keys, record};
use crate::member_key::{MemberKey, is_private_member};

impl ConversationStore for Embedded {
    fn standing(
        &self,
        user: &UserId,
        conversation: &ConversationId,
    ) -> StoreFuture<'_, Option<Standing>> {
        self.read_now(|core| read_standing(core, &(user.clone(), conversation.clone())))
    }

    fn standings(
        &self,
        user: &UserId,
        after: Option<&ConversationId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Standing>> {
        let (user, after) = (user.clone(), after.cloned());
        self.read_blocking(move |core| read_standings(core, &user, after.as_ref(), limit))
    }

    fn advance_cursor(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        kind: CursorKind,
        seq: Seq,
    ) -> StoreFuture<'_, Option<CursorMove>> {
        let member_key = (user.clone(), conversation.clone());
        self.read_now(|core| {
            let head = core.heads.get_readable(core, &member_key.1)?.head.seq;
            core.members.advance_cursor(&core.engine, head, &member_key, kind, seq)
        })
    }

    fn sent_without_read(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
    ) -> StoreFuture<'_, u64> {
        let member_key = (user.clone(), conversation.clone());
        self.read_now(|core| count_sent_without_read(core, &member_key, &range))
    }

    fn update_settings(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        change: SettingsChange,
    ) -> StoreFuture<'_, Option<Settings>> {
        let member_key = (user.clone(), conversation.clone());
        self.submit(CHANGE_BYTES, move |pending| update_settings(pending, member_key, change))
    }
}

/// Reads the standing of a member.
pub(crate) fn read_standing(
    core: &Core,
    member_key: &MemberKey,
) -> Result<Option<Standing>, EngineFault> {
    loop {
        let Some(standing) = try_read_standing(core, member_key)? else { return Ok(None) };
        // If the window changed while the head was read, read again: the old window must not be
        // combined with the newer head.
        let again = core.members.get(&core.engine, member_key)?;
        if again.is_some_and(|member| member.window == standing.1) {
            return Ok(Some(standing.0));
        }
    }
}

/// Reads a standing, and the member's window that it was built from.
fn try_read_standing(
    core: &Core,
    member_key: &MemberKey,
) -> Result<Option<(Standing, Window)>, EngineFault> {
    // The cursors first: the head can only grow meanwhile, so no cursor is beyond it.
    let Some(member) = core.members.get(&core.engine, member_key)? else { return Ok(None) };
    let group = match member_key.1.group() {
        Some(group) => groups::find_group(core, &group)?,
        None => None,
    };
    let ended = group.and_then(|group| group.ended);
    let head = core.heads.get_readable(core, &member_key.1)?.head;
    // A member that was just loaded from disk may be ahead of the cached head; where a cursor is,
    // there is a message.
    let Cursors { delivered, read } = member.progress.cursors;
    let mut standing = Standing {
        conversation: member_key.1.clone(),
        window: member.window.until(ended.map(|ended| ended.window_end)),
        cursors: member.progress.cursors,
        own_unread: 0,
        settings: member.settings,
        max_seq: head.seq.max(delivered).max(read),
        change_seq: head.change_seq,
        newest_at: head.sent_at,
        has_ended: ended.is_some(),
    };
    if member.progress.quiet > standing.read_up_to() {
        let above = standing.read_up_to().next()..=standing.visible_max();
        standing.own_unread = count_sent_without_read(core, member_key, &above)?;
    }
    Ok(Some((standing, member.window)))
}

/// Reads a page of a user's standings. One that cannot be read is left out, so that one damaged group does
/// not take all conversations from its members; asked for itself, it is refused as damaged.
pub(crate) fn read_standings(
    core: &Core,
    user: &UserId,
    after: Option<&ConversationId>,
    limit: usize,
) -> Result<Vec<Standing>, EngineFault> {
    let mut standings = Vec::new();
    let mut after = after.cloned();
    // A page that is not full is the last, so what was left out is made up for.
    while standings.len() < limit {
        let (range, wanted) = (keys::members_of(user, after.as_ref()), limit - standings.len());
        let found =
            core.engine.scan(Keyspace::Members, range, wanted, Order::Ascending, usize::MAX)?;
        let is_last = found.len() < wanted;
        for (key, _) in found {
            let conversation = keys::conversation_of(&key, user)
                .ok_or_else(|| record::impossible(Keyspace::Members, "no conversation"))?;
            after = Some(conversation.clone());
            match read_standing(core, &(user.clone(), conversation)) {
                Ok(standing) => standings.extend(standing),
                Err(fault) => core.pass_damage(fault)?,
            }
        }
        if is_last {
            break;
        }
    }
    Ok(standings)
}

/// Counts the messages of a range that a member sent without marking anything read. Each of them is
/// stored with its running number, so the count is the difference of two reads.
fn count_sent_without_read(
    core: &Core,
    member_key: &MemberKey,
    range: &RangeInclusive<Seq>,
) -> Result<u64, EngineFault> {
    let up_to = sent_without_read_up_to(core, member_key, *range.end())?;
    Ok(up_to.saturating_sub(sent_without_read_up_to(core, member_key, range.start().previous())?))
}

/// Counts them up to a seq.
pub(crate) fn sent_without_read_up_to(
    core: &Core,
    member_key: &MemberKey,
    seq: Seq,
) -> Result<u64, EngineFault> {
    let range = keys::message_marks(member_key.0.as_str(), &member_key.1, &(Seq::ZERO..=seq));
    match core.engine.last(Keyspace::SentWithoutRead, range)? {
        Some((key, bytes)) => record::decode(Keyspace::SentWithoutRead, &key, &bytes),
        None => Ok(0),
    }
}

fn update_settings(
    pending: &mut Pending<'_>,
    member_key: MemberKey,
    change: SettingsChange,
) -> Result<Option<Settings>, EngineFault> {
    let key = keys::member(&member_key.0, &member_key.1);
    let is_known = pending.get(Keyspace::Members, &key)?.is_some();
    let before = match pending.get(Keyspace::Settings, &key)? {
        Some(bytes) => {
            record::decode::<SettingsRecord<'_>>(Keyspace::Settings, &key, &bytes)?.settings()?
        }
        None => Settings::default(),
    };
    if !is_known {
        if !is_private_member(&member_key) {
            return Ok(None);
        }
        // Before the first message, which writes the same record again and leaves the settings.
        pending.set(Keyspace::Members, key.clone(), &WindowRecord::from(Window::ALL))?;
    }
    let settings = before.with(change);
    pending.set(Keyspace::Settings, key, &SettingsRecord::from(&settings))?;
    let (user, conversation) = member_key.clone();
    let effects = pending.effects();
    effects.members.push((member_key, MemberChange::SettingsChanged(settings.clone())));
    let chose = Event::Settings { user, conversation, settings: settings.clone() };
    effects.events.push(chose);
    Ok(Some(settings))
}
