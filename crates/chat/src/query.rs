//! Requests that the numbered and dotted dialects make by frames and the typed one over HTTP. Both end in the
//! same features.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::chat::{Chat, SessionState};
use crate::command::Target;
use crate::conversations::{self, ConversationSummary, ListCursor, ListFilter};
use crate::group::{self, NewGroupRequest};
use crate::ids::{ConversationId, GroupId, MessageId, Seq, UserId};
use crate::membership::{Group, GroupAction, GroupMember};
use crate::model::{Caller, Message, Standing, User};
use crate::read::{self, Page};
use crate::reason::{Error, Reason};
use crate::{auth, blocks, profile, user_lookup};

/// A conversation, by its id or by its peer or group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversationRef {
    Conversation(ConversationId),
    With(Target),
}

impl ConversationRef {
    async fn resolve(&self, chat: &Chat, caller: &Caller) -> Result<ConversationId, Error> {
        match self {
            Self::Conversation(id) => Ok(id.clone()),
            Self::With(target) => Ok(user_lookup::resolve_target(chat, target.clone())
                .await?
                .conversation(&caller.user)),
        }
    }
}

/// A request other than those in [`crate::command::Command`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// The newest seq the caller may see in each conversation.
    Newest(Vec<ConversationId>),
    /// The messages with these seqs.
    Fetch(ConversationId, Vec<Seq>),
    Pull(ConversationId, RangeInclusive<Seq>, usize),
    /// The caller's standing.
    State(ConversationId),
    /// Mark everything up to a message as read, or everything.
    MarkRead(ConversationRef, Option<MessageId>),
    /// The messages before one, newest first.
    History(ConversationRef, Option<MessageId>, usize),
    /// The next page of undelivered messages.
    Offline {
        /// Whether to continue after the page before, which is thereby acknowledged, or start over.
        continues: bool,
        limit: usize,
    },
    Conversations(Option<ListCursor>, usize),
    /// Hide a conversation from the list until a message comes.
    Hide(ConversationRef),
    /// Delete a group's conversation, which dissolves the group.
    DeleteConversation(ConversationRef),
    /// Make a group.
    CreateGroup(NewGroupRequest),
    ChangeGroup(GroupId, GroupAction),
    Group(GroupId),
    /// Members of a group: how many to skip, how many to return.
    Members(GroupId, usize, usize),
    MyGroups,
    Block(UserId),
    Unblock(UserId),
    /// The users that the caller has blocked.
    Blocks,
    Logout,
}

#[derive(Clone, Debug)]
pub enum QueryReply {
    /// In the order of the request; zero where the caller can see nothing.
    Newest(Vec<(ConversationId, Seq)>),
    /// A page of messages, and the newest seq the caller may see.
    Messages(Page<Arc<Message>>, Seq),
    /// The caller's standing.
    State(Standing),
    Offline(Page<Arc<Message>>),
    Conversations(Page<ConversationSummary>),
    /// The group as it is now, and the caller's membership.
    Group(Arc<Group>, Option<GroupMember>),
    /// Members with their accounts, ordered by id.
    Members(Arc<Group>, Vec<(GroupMember, Arc<User>)>),
    Groups(Vec<Arc<Group>>),
    /// In the order of their ids.
    Blocks(Vec<UserId>),
    Done,
    /// The sign-in has ended; this connection closes.
    SignedOut,
}

/// Seqs that one request may name.
const FETCHED_MAX: usize = 100;
const SKIPPED_MAX: usize = 1_000_000;

pub async fn answer(
    chat: &Chat,
    session: &mut SessionState,
    query: Query,
) -> Result<QueryReply, Error> {
    let caller = &session.caller.clone();
    Ok(match query {
        Query::Newest(conversations) => newest(chat, caller, conversations).await?,
        Query::Fetch(conversation, seqs) => fetch(chat, caller, &conversation, seqs).await?,
        Query::Pull(conversation, range, limit) => {
            let (found, max) = read::range(chat, caller, &conversation, range, limit).await?;
            QueryReply::Messages(found, max)
        }
        Query::State(conversation) => {
            QueryReply::State(read::standing(chat, caller, &conversation).await?)
        }
        Query::MarkRead(conversation, message) => {
            mark_read(chat, caller, &conversation, message).await?
        }
        Query::History(conversation, before, limit) => {
            history(chat, caller, &conversation, before, limit).await?
        }
        Query::Offline { continues: goes_on, limit } => {
            let page = session.catchup.pull_page(chat, caller, goes_on, limit).await?;
            QueryReply::Offline(Page::new(page.messages, page.has_more))
        }
        Query::Conversations(after, limit) => {
            let (summaries, _) =
                conversations::list(chat, caller, ListFilter::All, after, limit).await?;
            QueryReply::Conversations(summaries)
        }
        Query::Hide(conversation) => {
            let conversation = conversation.resolve(chat, caller).await?;
            conversations::hide(chat, caller, &conversation, None).await?;
            QueryReply::Done
        }
        Query::DeleteConversation(conversation) => {
            let conversation = conversation.resolve(chat, caller).await?;
            conversations::delete(chat, caller, &conversation).await?;
            QueryReply::Done
        }
        Query::CreateGroup(request) => {
            let created = group::create(chat, caller, request).await?;
            let member = chat.store.group_member(&created.id, &caller.user).await?;
            QueryReply::Group(created, member)
        }
        Query::ChangeGroup(id, action) => {
            group::apply(chat, caller, &id, action).await?;
            QueryReply::Done
        }
        Query::Group(id) => {
            let (group, member) = group::info(chat, caller, &id).await?;
            QueryReply::Group(group, member)
        }
        Query::Members(id, skip, limit) => members(chat, caller, &id, skip, limit).await?,
        Query::Block(user) => {
            blocks::block(chat, caller, &user).await?;
            QueryReply::Done
        }
        Query::Unblock(user) => {
            blocks::unblock(chat, caller, &user).await?;
            QueryReply::Done
        }
        Query::Blocks => {
            QueryReply::Blocks(blocks::list(chat, caller, None, blocks::BLOCKS_MAX).await?.items)
        }
        Query::MyGroups => QueryReply::Groups(
            group::joined_groups(chat, caller, None, usize::MAX - 1).await?.items,
        ),
        Query::Logout => {
            auth::logout(chat, caller).await?;
            QueryReply::SignedOut
        }
    })
}

async fn newest(
    chat: &Chat,
    caller: &Caller,
    conversations: Vec<ConversationId>,
) -> Result<QueryReply, Error> {
    let mut newest = Vec::with_capacity(conversations.len());
    for conversation in conversations {
        let standing = chat.store.standing(&caller.user, &conversation).await?;
        let seq = standing.map_or(Seq::ZERO, |standing| standing.visible_max());
        newest.push((conversation, seq));
    }
    Ok(QueryReply::Newest(newest))
}

/// The messages with these seqs that the caller may see.
async fn fetch(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    mut seqs: Vec<Seq>,
) -> Result<QueryReply, Error> {
    if seqs.len() > FETCHED_MAX {
        return Err(Reason::InvalidParam.into());
    }
    seqs.sort_unstable();
    seqs.dedup();
    let (mut items, mut damaged) = (Vec::with_capacity(seqs.len()), Vec::new());
    let mut newest = Seq::ZERO;
    for run in seqs.chunk_by(|a, b| a.next() == *b) {
        let (first, last) = (run[0], run[run.len() - 1]);
        let found = read::range(chat, caller, conversation, first..=last, run.len()).await;
        let (found, max) = match found {
            Err(error) if error.reason() == Reason::Damaged => {
                damaged.push(first..=last);
                continue;
            }
            found => found?,
        };
        newest = newest.max(max);
        items.extend(found.items);
        damaged.extend(found.damaged);
    }
    if items.is_empty() && !damaged.is_empty() {
        return Err(Reason::Damaged.into());
    }
    if seqs.is_empty() {
        newest = read::standing(chat, caller, conversation).await?.visible_max();
    }
    Ok(QueryReply::Messages(Page { items, has_more: false, damaged }, newest))
}

async fn mark_read(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationRef,
    message: Option<MessageId>,
) -> Result<QueryReply, Error> {
    let conversation = conversation.resolve(chat, caller).await?;
    let up_to = match message {
        None => Seq(u64::MAX),
        Some(id) => visible_message(chat, caller, &conversation, id).await?.seq,
    };
    read::mark_read(chat, caller, &conversation, up_to).await?;
    Ok(QueryReply::Done)
}

async fn history(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationRef,
    before: Option<MessageId>,
    limit: usize,
) -> Result<QueryReply, Error> {
    let conversation = conversation.resolve(chat, caller).await?;
    let standing = read::standing(chat, caller, &conversation).await?;
    let before = match before {
        None => None,
        Some(id) => Some(visible_message(chat, caller, &conversation, id).await?.seq),
    };
    let found = read::history(chat, caller, &conversation, before, limit).await?;
    Ok(QueryReply::Messages(found, standing.visible_max()))
}

async fn visible_message(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    id: MessageId,
) -> Result<Arc<Message>, Error> {
    let message = chat.store.message(id).await?;
    let message = message.filter(|message| message.conversation == *conversation);
    let message = message.ok_or(Reason::MessageNotFound)?;
    read::require_visible(chat, caller, &message).await?;
    Ok(message)
}

/// Members by page number, for the dotted dialect.
async fn members(
    chat: &Chat,
    caller: &Caller,
    id: &GroupId,
    skip: usize,
    limit: usize,
) -> Result<QueryReply, Error> {
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
    Ok(QueryReply::Members(group, people))
}
