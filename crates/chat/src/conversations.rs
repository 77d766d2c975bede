//! The list of conversations: what is in it, in which order, and what its owner chose.

use std::sync::Arc;

use crate::chat::Chat;
use crate::group::{self, group_of};
use crate::ids::{ConversationId, Millis, Seq, UserId};
use crate::membership::{Group, GroupAct, GroupProfile};
use crate::model::{Caller, Cursors, Hiding, Message, Profile, Settings, SettingsChange, Standing};
use crate::policy::account::good_extra;
use crate::policy::group::may_look;
use crate::read::{self, Listed, message_at};
use crate::reason::{Error, Reason};

/// Mentions counted at most.
const MENTIONS_COUNTED: usize = 1000;

/// A line of the conversation list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where the caller stands.
    pub standing: Standing,
    /// With whom.
    pub with: With,
    /// Unread messages that speak to the caller in particular.
    pub mentions: u64,
    /// The newest message the caller may see.
    pub last_message: Option<Arc<Message>>,
}

/// With whom a conversation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum With {
    /// One person.
    Peer {
        /// Who.
        user: UserId,
        /// How they are seen.
        profile: Profile,
        /// How far they have received and read.
        cursors: Cursors,
    },
    /// A group.
    Group(Arc<Group>),
}

/// Where a page of the list begins: after this line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    /// Whether it was pinned; looked up if it is not told.
    pub pinned: Option<bool>,
    /// When something last happened there.
    pub updated_at: Millis,
    /// Which.
    pub conversation: ConversationId,
}

/// Which conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All.
    All,
    /// Those with one person.
    Private,
    /// Those of groups.
    Groups,
}

impl Which {
    fn includes(self, conversation: &ConversationId) -> bool {
        match self {
            Self::All => true,
            Self::Private => conversation.group().is_none(),
            Self::Groups => conversation.group().is_some(),
        }
    }
}

/// The caller's conversations: the pinned ones first, then the latest. Also where the next page
/// begins. What has ended is not among them, nor what they hid and nobody spoke in since.
pub async fn list(
    chat: &Chat,
    caller: &Caller,
    which: Which,
    after: Option<After>,
    limit: usize,
) -> Result<(Listed<Line>, Option<After>), Error> {
    let mut standings = chat.store.standings(&caller.user, None, usize::MAX).await?;
    standings.retain(|standing| which.includes(&standing.conversation));
    let place = |standing: &Standing| {
        (standing.settings.pinned, standing.updated_at(), standing.conversation.clone())
    };
    if let Some(after) = after {
        let known = standings.iter().find(|it| it.conversation == after.conversation);
        let pinned = after.pinned.or(known.map(|it| it.settings.pinned)).unwrap_or_default();
        let after = (pinned, after.updated_at, after.conversation);
        standings.retain(|standing| place(standing) < after);
    }
    standings.retain(Standing::is_listed);
    standings.sort_by_cached_key(|standing| std::cmp::Reverse(place(standing)));
    let page = Listed::cut(standings, limit);
    let next = page.items.last().filter(|_| page.has_more).map(|last| After {
        pinned: Some(last.settings.pinned),
        updated_at: last.updated_at(),
        conversation: last.conversation.clone(),
    });
    let mut items = Vec::with_capacity(page.items.len());
    for standing in page.items {
        items.extend(line(chat, caller, standing).await?);
    }
    Ok((Listed { items, has_more: page.has_more }, next))
}

/// A conversation as a line of the list.
pub async fn line(chat: &Chat, caller: &Caller, standing: Standing) -> Result<Option<Line>, Error> {
    let conversation = &standing.conversation;
    let with = match conversation.peer_of(&caller.user) {
        Some(user) => {
            let theirs = chat.store.standing(&user, conversation).await?;
            let cursors = theirs.map(|theirs| theirs.cursors).unwrap_or_default();
            let account = chat.store.user(&user).await?;
            let profile = account.map(|account| account.profile.clone()).unwrap_or_default();
            With::Peer { user, profile, cursors }
        }
        None => match group_of(chat, &standing).await? {
            Some(group) if knows(&group, &standing) => With::Group(group),
            Some(group) => With::Group(Arc::new(without_profile(&group))),
            None => return Ok(None),
        },
    };
    let newest = standing.visible_max();
    let last_message = if newest >= standing.window.min {
        message_at(chat, conversation, newest).await?
    } else {
        None
    };
    let mentions = mention_unread(chat, caller, &standing).await?;
    Ok(Some(Line { standing, with, mentions, last_message }))
}

/// Whether somebody may know how a group is seen: whoever may look, and whoever was in it when it
/// ended.
fn knows(group: &Group, standing: &Standing) -> bool {
    let end = group.ended.map(|ended| ended.edge);
    let was_there = end.is_some() && standing.window.end == end;
    was_there || may_look(Some(group), standing.is_active()).is_ok()
}

/// A group as somebody sees it who may not look at it any more: that it was there.
fn without_profile(group: &Group) -> Group {
    Group { profile: GroupProfile::default(), members: 0, ..group.clone() }
}

/// How many unread messages speak to the caller in particular.
async fn mention_unread(chat: &Chat, caller: &Caller, standing: &Standing) -> Result<u64, Error> {
    if standing.unread() == 0 {
        return Ok(0);
    }
    let range = standing.read_from().next()..=standing.visible_max();
    let conversation = &standing.conversation;
    let found = chat.store.mentions(&caller.user, conversation, range, MENTIONS_COUNTED).await?;
    Ok(found.len() as u64)
}

/// Changes what the caller chose for a conversation.
pub async fn choose(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    mut change: SettingsChange,
) -> Result<Settings, Error> {
    if !chat.sends.take(caller.user.clone(), chat.clock.ticks()) {
        return Err(Reason::TooManyRequests.into()); // it costs what a send costs
    }
    good_extra(change.extra.as_deref().unwrap_or_default())?;
    // A mark that does not hide any more is not carried on: devices go by whether there is one.
    let standing = read::standing(chat, caller, conversation).await?;
    if change.hiding.is_none() && standing.settings.hidden.is_some() && !standing.is_hidden() {
        change.hiding = Some(Hiding::Show);
    }
    let settings = chat.store.update_settings(&caller.user, conversation, change).await?;
    Ok(settings.ok_or(Reason::ConversationNotFound)?)
}

/// Takes a conversation out of the caller's list until something is said there that they can see.
/// Whatever it is: private, of a group, left, ended. It is still there to be read. Whoever says how
/// far they have seen it hides no message that came meanwhile.
pub async fn hide(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    seen: Option<Seq>,
) -> Result<(), Error> {
    let mut hidden = read::standing(chat, caller, conversation).await?.hidden_now();
    hidden.seq = seen.unwrap_or(hidden.seq).min(hidden.seq);
    put_in_list(chat, caller, conversation, Hiding::Hide(hidden)).await
}

/// Puts a hidden conversation back into the caller's list.
pub async fn show(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
) -> Result<(), Error> {
    put_in_list(chat, caller, conversation, Hiding::Show).await
}

async fn put_in_list(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    hiding: Hiding,
) -> Result<(), Error> {
    let change = SettingsChange { hiding: Some(hiding), ..SettingsChange::default() };
    choose(chat, caller, conversation, change).await?;
    Ok(())
}

/// Deletes a conversation: that of a group by its owner, which ends the
/// group and keeps what was said; a private one by nobody.
pub async fn delete(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
) -> Result<(), Error> {
    let group = conversation.group().ok_or(Reason::CannotDeletePrivate)?;
    group::act(chat, caller, &group, GroupAct::Dissolve).await?;
    Ok(())
}
