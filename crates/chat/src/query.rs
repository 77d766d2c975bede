//! What a socket may ask beside talking: the questions that other dialects have as frames and the
//! typed one as HTTP paths. Each is answered by the same features.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::chat::{Chat, Session};
use crate::command::Target;
use crate::conversations::{self, After, Line, Which};
use crate::group::{self, Wanted};
use crate::ids::{ConversationId, GroupId, MessageId, Seq};
use crate::membership::{Group, GroupAct, GroupMember};
use crate::model::{Caller, Message, Standing, User};
use crate::read::{self, Listed};
use crate::reason::{Error, Reason};
use crate::{auth, people, profile};

/// A conversation, by its id or by whom the caller talks with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// By its id.
    Conversation(ConversationId),
    /// With somebody, or in a group.
    With(Target),
}

impl Where {
    async fn conversation(&self, chat: &Chat, caller: &Caller) -> Result<ConversationId, Error> {
        match self {
            Self::Conversation(id) => Ok(id.clone()),
            Self::With(target) => {
                Ok(people::target(chat, target.clone()).await?.conversation(&caller.user))
            }
        }
    }
}

/// A question or a wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// The newest places the caller may see, in these conversations.
    Newest(Vec<ConversationId>),
    /// Messages at these places.
    Fetch(ConversationId, Vec<Seq>),
    /// Messages of a range.
    Pull(ConversationId, RangeInclusive<Seq>, usize),
    /// How far the caller has come.
    State(ConversationId),
    /// Everything up to a message is read, or everything.
    MarkRead(Where, Option<MessageId>),
    /// Messages before one, the newest first.
    History(Where, Option<MessageId>, usize),
    /// The next page of what was not delivered; from the beginning, or after the page before, which
    /// has arrived then.
    Offline {
        /// Whether this continues.
        goes_on: bool,
        /// Messages at most.
        limit: usize,
    },
    /// The list of conversations: a page after a line.
    Conversations(Option<After>, usize),
    /// Out of the list until something is said.
    Hide(Where),
    /// End a group by deleting its conversation.
    DeleteConversation(Where),
    /// Make a group.
    CreateGroup(Wanted),
    /// Do something to a group.
    Act(GroupId, GroupAct),
    /// A group.
    Group(GroupId),
    /// Members of a group, some of them skipped.
    Members(GroupId, usize, usize),
    /// The groups the caller is in.
    MyGroups,
    /// Sign out.
    Logout,
}

/// The answer.
#[derive(Clone, Debug)]
pub enum Found {
    /// Newest places, in the order asked; zero where there is nothing to see.
    Newest(Vec<(ConversationId, Seq)>),
    /// Messages, the newest place that can be seen, and whether there is more.
    Messages(Listed<Arc<Message>>, Seq),
    /// How far the caller has come.
    State(Standing),
    /// A page of what was not delivered.
    Offline(Listed<Arc<Message>>),
    /// A page of the list of conversations.
    Conversations(Listed<Line>),
    /// A group as it is now, and the caller in it.
    Group(Arc<Group>, Option<GroupMember>),
    /// Members with their accounts, by id.
    Members(Arc<Group>, Vec<(GroupMember, Arc<User>)>),
    /// Groups.
    Groups(Vec<Arc<Group>>),
    /// It is done.
    Done,
    /// The sign-in has ended, and this connection with it.
    SignedOut,
}

/// Messages one question may name by their places.
const FETCHED_MAX: usize = 100;
/// Members one question may skip.
const SKIPPED_MAX: usize = 1_000_000;

/// Answers a question.
pub async fn answer(chat: &Chat, session: &mut Session, query: Query) -> Result<Found, Error> {
    let caller = &session.caller.clone();
    Ok(match query {
        Query::Newest(conversations) => newest(chat, caller, conversations).await?,
        Query::Fetch(conversation, seqs) => fetch(chat, caller, &conversation, seqs).await?,
        Query::Pull(conversation, range, limit) => {
            let (found, max) = read::range(chat, caller, &conversation, range, limit).await?;
            Found::Messages(found, max)
        }
        Query::State(conversation) => {
            Found::State(read::standing(chat, caller, &conversation).await?)
        }
        Query::MarkRead(place, message) => mark_read(chat, caller, &place, message).await?,
        Query::History(place, before, limit) => {
            history(chat, caller, &place, before, limit).await?
        }
        Query::Offline { goes_on, limit } => {
            let page = session.catchup.offline(chat, caller, goes_on, limit).await?;
            Found::Offline(Listed { items: page.messages, has_more: page.has_more })
        }
        Query::Conversations(after, limit) => {
            let (lines, _) = conversations::list(chat, caller, Which::All, after, limit).await?;
            Found::Conversations(lines)
        }
        Query::Hide(place) => {
            let conversation = place.conversation(chat, caller).await?;
            conversations::hide(chat, caller, &conversation, None).await?;
            Found::Done
        }
        Query::DeleteConversation(place) => {
            let conversation = place.conversation(chat, caller).await?;
            conversations::delete(chat, caller, &conversation).await?;
            Found::Done
        }
        Query::CreateGroup(wanted) => {
            let made = group::create(chat, caller, wanted).await?;
            let member = chat.store.group_member(&made.id, &caller.user).await?;
            Found::Group(made, member)
        }
        Query::Act(id, act) => {
            group::act(chat, caller, &id, act).await?;
            Found::Done
        }
        Query::Group(id) => {
            let (group, member) = group::info(chat, caller, &id).await?;
            Found::Group(group, member)
        }
        Query::Members(id, skip, limit) => members(chat, caller, &id, skip, limit).await?,
        Query::MyGroups => {
            Found::Groups(group::joined(chat, caller, None, usize::MAX - 1).await?.items)
        }
        Query::Logout => {
            auth::logout(chat, caller).await?;
            Found::SignedOut
        }
    })
}

async fn newest(
    chat: &Chat,
    caller: &Caller,
    conversations: Vec<ConversationId>,
) -> Result<Found, Error> {
    let mut newest = Vec::with_capacity(conversations.len());
    for conversation in conversations {
        let standing = chat.store.standing(&caller.user, &conversation).await?;
        let seq = standing.map_or(Seq::ZERO, |standing| standing.visible_max());
        newest.push((conversation, seq));
    }
    Ok(Found::Newest(newest))
}

/// Messages at some places, those of them that the caller may see.
async fn fetch(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    mut seqs: Vec<Seq>,
) -> Result<Found, Error> {
    if seqs.len() > FETCHED_MAX {
        return Err(Reason::InvalidParam.into());
    }
    seqs.sort_unstable();
    seqs.dedup();
    let (mut items, mut newest) = (Vec::with_capacity(seqs.len()), Seq::ZERO);
    for run in seqs.chunk_by(|a, b| a.next() == *b) {
        let (first, last) = (run[0], run[run.len() - 1]);
        let (found, max) = read::range(chat, caller, conversation, first..=last, run.len()).await?;
        newest = newest.max(max);
        items.extend(found.items);
    }
    if seqs.is_empty() {
        newest = read::standing(chat, caller, conversation).await?.visible_max();
    }
    Ok(Found::Messages(Listed { items, has_more: false }, newest))
}

async fn mark_read(
    chat: &Chat,
    caller: &Caller,
    place: &Where,
    message: Option<MessageId>,
) -> Result<Found, Error> {
    let conversation = place.conversation(chat, caller).await?;
    let up_to = match message {
        None => Seq(u64::MAX),
        Some(id) => seen(chat, caller, &conversation, id).await?.seq,
    };
    read::mark_read(chat, caller, &conversation, up_to).await?;
    Ok(Found::Done)
}

async fn history(
    chat: &Chat,
    caller: &Caller,
    place: &Where,
    before: Option<MessageId>,
    limit: usize,
) -> Result<Found, Error> {
    let conversation = place.conversation(chat, caller).await?;
    let standing = read::standing(chat, caller, &conversation).await?;
    let before = match before {
        None => None,
        Some(id) => Some(seen(chat, caller, &conversation, id).await?.seq),
    };
    let found = read::history(chat, caller, &conversation, before, limit).await?;
    Ok(Found::Messages(found, standing.visible_max()))
}

/// A message of a conversation, if the caller may see it.
async fn seen(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    id: MessageId,
) -> Result<Arc<Message>, Error> {
    let message = chat.store.message(id).await?;
    let message = message.filter(|message| message.conversation == *conversation);
    let message = message.ok_or(Reason::MessageNotFound)?;
    read::visible_to(chat, caller, &message).await?;
    Ok(message)
}

/// Pages by number, as the dotted dialect has them.
async fn members(
    chat: &Chat,
    caller: &Caller,
    id: &GroupId,
    skip: usize,
    limit: usize,
) -> Result<Found, Error> {
    if skip > SKIPPED_MAX {
        return Err(Reason::InvalidParam.into());
    }
    let mut after = None;
    if skip > 0 {
        let (_, skipped) = group::members(chat, caller, id, None, skip).await?;
        after = skipped.items.last().map(|member| member.user.clone());
    }
    let (group, page) = group::members(chat, caller, id, after.as_ref(), limit).await?;
    let mut people = Vec::with_capacity(page.items.len());
    for member in page.items {
        let user = profile::profile(chat, &member.user).await?;
        people.push((member, user));
    }
    Ok(Found::Members(group, people))
}
