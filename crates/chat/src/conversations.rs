//! The list of conversations, and a member's settings of a conversation.

use std::sync::Arc;

use crate::chat::Chat;
use crate::group::{self, group_of};
use crate::ids::{ConversationId, Millis, Seq, UserId};
use crate::membership::{Group, GroupAction, GroupProfile};
use crate::model::{
    Caller, Cursors, HiddenChange, Message, Profile, Settings, SettingsChange, Standing,
};
use crate::policy::account::check_extra;
use crate::policy::group::may_view;
use crate::read::{self, Page, message_at};
use crate::reason::{Error, Reason};

/// Unread mentions are counted up to this number.
const MENTIONS_COUNTED: usize = 1000;

/// An entry of the conversation list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationSummary {
    /// The caller's standing.
    pub standing: Standing,
    pub with: Counterpart,
    /// Unread messages that mention the caller or reply to them.
    pub mentions: u64,
    /// The newest message that the caller may see.
    pub last_message: Option<Arc<Message>>,
}

/// The other side of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counterpart {
    Peer { user: UserId, profile: Profile, cursors: Cursors },
    Group(Arc<Group>),
}

/// The entry after which a page of the list begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListCursor {
    /// Whether it was pinned; looked up if absent.
    pub pinned: Option<bool>,
    /// [`Standing::updated_at`] of the entry.
    pub updated_at: Millis,
    pub conversation: ConversationId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListFilter {
    All,
    Private,
    Groups,
}

impl ListFilter {
    fn includes(self, conversation: &ConversationId) -> bool {
        match self {
            Self::All => true,
            Self::Private => conversation.group().is_none(),
            Self::Groups => conversation.group().is_some(),
        }
    }
}

/// The caller's listed conversations, pinned ones first, then by latest activity; and the cursor of the
/// next page.
pub async fn list(
    chat: &Chat,
    caller: &Caller,
    which: ListFilter,
    after: Option<ListCursor>,
    limit: usize,
) -> Result<(Page<ConversationSummary>, Option<ListCursor>), Error> {
    let mut standings = chat.store.standings(&caller.user, None, usize::MAX).await?;
    standings.retain(|standing| which.includes(&standing.conversation));
    let sort_key = |standing: &Standing| {
        (standing.settings.pinned, standing.updated_at(), standing.conversation.clone())
    };
    if let Some(after) = after {
        let known = standings.iter().find(|it| it.conversation == after.conversation);
        let pinned = after.pinned.or(known.map(|it| it.settings.pinned)).unwrap_or_default();
        let after = (pinned, after.updated_at, after.conversation);
        standings.retain(|standing| sort_key(standing) < after);
    }
    standings.retain(Standing::is_listed);
    standings.sort_by_cached_key(|standing| std::cmp::Reverse(sort_key(standing)));
    let page = Page::cut(standings, limit);
    let next = page.items.last().filter(|_| page.has_more).map(|last| ListCursor {
        pinned: Some(last.settings.pinned),
        updated_at: last.updated_at(),
        conversation: last.conversation.clone(),
    });
    let mut items = Vec::with_capacity(page.items.len());
    for standing in page.items {
        match summarize(chat, caller, standing).await {
            // Left out, so that one damaged record does not take the whole list.
            Err(error) if error.reason() == Reason::Damaged => {}
            summary => items.extend(summary?),
        }
    }
    Ok((Page::new(items, page.has_more), next))
}

/// A conversation as an entry of the list; `None` if its group does not exist.
pub async fn summarize(
    chat: &Chat,
    caller: &Caller,
    standing: Standing,
) -> Result<Option<ConversationSummary>, Error> {
    let conversation = &standing.conversation;
    let with = match conversation.peer_of(&caller.user) {
        Some(user) => {
            let theirs = chat.store.standing(&user, conversation).await?;
            let cursors = theirs.map(|theirs| theirs.cursors).unwrap_or_default();
            let account = chat.store.user(&user).await?;
            let profile = account.map(|account| account.profile.clone()).unwrap_or_default();
            Counterpart::Peer { user, profile, cursors }
        }
        None => match group_of(chat, &standing).await? {
            Some(group) if may_view_profile(&group, &standing) => Counterpart::Group(group),
            Some(group) => Counterpart::Group(Arc::new(without_profile(&group))),
            None => return Ok(None),
        },
    };
    let newest = standing.visible_max();
    let last_message = if newest >= standing.window.min {
        message_at(chat, conversation, newest).await?
    } else {
        None
    };
    let mentions = unread_mentions(chat, caller, &standing).await?;
    Ok(Some(ConversationSummary { standing, with, mentions, last_message }))
}

/// Whether a member may see the group's profile: current members, members when it ended, and anyone if
/// the group is not by invitation only.
fn may_view_profile(group: &Group, standing: &Standing) -> bool {
    let end = group.ended.map(|ended| ended.window_end);
    let was_there = end.is_some() && standing.window.end == end;
    was_there || may_view(Some(group), standing.is_active()).is_ok()
}

/// The group as a former member sees it who may not view its profile any more.
fn without_profile(group: &Group) -> Group {
    Group { profile: GroupProfile::default(), members: 0, ..group.clone() }
}

/// How many unread messages mention the caller or reply to them.
async fn unread_mentions(chat: &Chat, caller: &Caller, standing: &Standing) -> Result<u64, Error> {
    if standing.unread() == 0 {
        return Ok(0);
    }
    let range = standing.read_up_to().next()..=standing.visible_max();
    let conversation = &standing.conversation;
    let found = chat.store.mentions(&caller.user, conversation, range, MENTIONS_COUNTED).await;
    match found.map_err(Error::from) {
        // Only a hint, so it does not take the conversation from the list.
        Err(error) if error.reason() == Reason::Damaged => Ok(0),
        found => Ok(found?.len() as u64),
    }
}

/// One conversation of the caller as an entry of the list. With anyone the caller could send to it is found
/// before the first message, with the settings that they have chosen or would change.
pub async fn info(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
) -> Result<ConversationSummary, Error> {
    let known = chat.store.standing(&caller.user, conversation).await?;
    if known.is_none() {
        require_peer(chat, caller, conversation).await?;
    }
    let standing = known.unwrap_or_else(|| Standing::before_first_message(conversation.clone()));
    Ok(summarize(chat, caller, standing).await?.ok_or(Reason::ConversationNotFound)?)
}

/// Changes the caller's settings of a conversation. In private they can be chosen before the first message,
/// for anyone the caller could send to.
pub async fn update_settings(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    mut change: SettingsChange,
) -> Result<Settings, Error> {
    if !chat.send_throttle.take(caller.user.clone(), chat.clock.ticks()) {
        return Err(Reason::TooManyRequests.into()); // it costs what a send costs
    }
    check_extra(change.extra.as_deref().unwrap_or_default())?;
    match chat.store.standing(&caller.user, conversation).await? {
        // Clear a hidden mark that a newer message has overtaken: clients only look at whether there is one.
        Some(standing) => {
            let is_overtaken = standing.settings.hidden.is_some() && !standing.is_hidden();
            if change.hidden.is_none() && is_overtaken {
                change.hidden = Some(HiddenChange::Show);
            }
        }
        None => require_peer(chat, caller, conversation).await?,
    }
    let settings = chat.store.update_settings(&caller.user, conversation, change).await?;
    Ok(settings.ok_or(Reason::ConversationNotFound)?)
}

/// Fails unless it is a private conversation of the caller with someone who has an account. The system user
/// has none, so nobody can send to it either.
async fn require_peer(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
) -> Result<(), Error> {
    let peer = conversation.peer_of(&caller.user).ok_or(Reason::ConversationNotFound)?;
    if chat.store.user_exists(&peer).await? {
        Ok(())
    } else {
        Err(Reason::ConversationNotFound.into())
    }
}

/// Hides a conversation of any kind from the caller's list until a visible message comes. It can still be
/// read. With `seen`, messages after that seq are not hidden: they came while the client sent the request.
pub async fn hide(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    seen: Option<Seq>,
) -> Result<(), Error> {
    let mut hidden = read::standing(chat, caller, conversation).await?.hidden_mark();
    hidden.seq = seen.unwrap_or(hidden.seq).min(hidden.seq);
    set_hidden(chat, caller, conversation, HiddenChange::Hide(hidden)).await
}

/// Shows a hidden conversation in the caller's list again.
pub async fn show(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
) -> Result<(), Error> {
    read::standing(chat, caller, conversation).await?;
    set_hidden(chat, caller, conversation, HiddenChange::Show).await
}

async fn set_hidden(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    hiding: HiddenChange,
) -> Result<(), Error> {
    let change = SettingsChange { hidden: Some(hiding), ..SettingsChange::default() };
    update_settings(chat, caller, conversation, change).await?;
    Ok(())
}

/// Deletes a group's conversation: its owner dissolves the group, and its messages stay. Private
/// conversations cannot be deleted.
pub async fn delete(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
) -> Result<(), Error> {
    let group = conversation.group().ok_or(Reason::CannotDeletePrivate)?;
    group::apply(chat, caller, &group, GroupAction::Dissolve).await?;
    Ok(())
}
