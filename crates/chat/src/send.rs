//! Saying something: facts, policy, append. What became durable is announced by the store itself
//! (see [`crate::announce`]), so a sender who disconnects takes nothing away from the receiver.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;

use crate::chat::Chat;
use crate::command::{Accepted, Outgoing, Reply, Saved, Target};
use crate::group;
use crate::ids::{ConnectionId, ConversationId, MessageId, UserId};
use crate::intake::{Intake, Taken};
use crate::invariants::visible;
use crate::membership::Belonging;
use crate::model::{Caller, Content, Draft, Message, ReplyTo};
use crate::people;
use crate::policy::group::may_speak;
use crate::policy::send::{Facts, Permit, may_repeat, may_send};
use crate::reason::{Error, Reason};
use crate::store::{Appended, Stored};
use crate::trail;

/// A message that has its place in the order; the answer comes once it is durable.
pub struct Saving {
    appended: Stored<'static, Appended>,
    as_sent: Bytes,
    trail: Option<Box<trail::Sending>>,
}

impl Future for Saving {
    type Output = Result<Saved, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let appended = std::task::ready!(self.appended.as_mut().poll(cx))?;
        if let (Some(trail), Appended::Stored(message)) = (&self.trail, &appended) {
            trail.saved(message);
        }
        Poll::Ready(outcome(appended, &self.as_sent))
    }
}

fn outcome(appended: Appended, as_sent: &Bytes) -> Result<Saved, Error> {
    match appended {
        Appended::Stored(message) => Ok(saved(message, as_sent, false)),
        Appended::Duplicate(message) => Ok(saved(message, as_sent, true)),
        Appended::Conflict => Err(Reason::ClientMsgIdConflict.into()),
        Appended::Refused(reason) => Err(reason.into()),
    }
}

/// A message that has its place among those of its sender; the answer comes once it is durable, or
/// once somebody has taken it in.
pub enum Sending {
    /// On the ordinary way.
    Saving(Saving),
    /// On the early one.
    Accepting(Accepting),
}

/// A message that somebody takes in before it is saved.
pub struct Accepting {
    taken: Stored<'static, Taken>,
    accepted: Option<Box<Accepted>>,
    as_sent: Bytes,
}

impl Future for Sending {
    type Output = Result<Reply, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Saving(saving) => Pin::new(saving).poll(cx).map_ok(Reply::Saved),
            Self::Accepting(it) => {
                let taken = std::task::ready!(it.taken.as_mut().poll(cx))?;
                Poll::Ready(match (taken, it.accepted.take()) {
                    (Taken::Appended(appended), _) => {
                        outcome(appended, &it.as_sent).map(Reply::Saved)
                    }
                    (Taken::Accepted, Some(accepted)) => Ok(Reply::Accepted(*accepted)),
                    (Taken::Accepted, None) => Ok(Reply::Quiet), // asked again after the answer
                })
            }
        }
    }
}

/// Sends a message. When this returns, the message has its place in the order. Whoever `knows` what
/// accepted means may be told that much before it is saved.
pub async fn send(
    chat: &Chat,
    caller: &Caller,
    outgoing: Outgoing,
    knows_accepted: bool,
) -> Result<Sending, Error> {
    let (permit, draft) = draft(chat, caller, outgoing).await?;
    match &chat.intake {
        Some(intake) if knows_accepted && intake.takes(&draft.conversation) => {
            still_speaks(chat, &draft).await?;
            Ok(Sending::Accepting(accept(&**intake, permit, draft)))
        }
        _ => {
            let trail = trail::sending(chat, caller, &draft).await?;
            Ok(Sending::Saving(append(chat, permit, draft, trail)))
        }
    }
}

/// Sends a message the ordinary way.
pub async fn save(chat: &Chat, caller: &Caller, outgoing: Outgoing) -> Result<Saving, Error> {
    let (permit, draft) = draft(chat, caller, outgoing).await?;
    let trail = trail::sending(chat, caller, &draft).await?;
    Ok(append(chat, permit, draft, trail))
}

async fn draft(chat: &Chat, caller: &Caller, outgoing: Outgoing) -> Result<(Permit, Draft), Error> {
    if !chat.sends.take(caller.user.clone(), chat.clock.ticks()) {
        return Err(Reason::TooManyRequests.into());
    }
    drafted(chat, caller.user.clone(), caller.connection, outgoing).await
}

/// A message whose receiver was looked up: `to` is their own id, however it was typed.
struct Addressed {
    outgoing: Outgoing,
    receiver_exists: bool,
}

async fn look_up(chat: &Chat, mut outgoing: Outgoing) -> Result<Addressed, Error> {
    once_each(&mut outgoing.content);
    let mut receiver_exists = true;
    if let Target::User(user) = &mut outgoing.to {
        match people::known(chat, user).await? {
            Some(id) => *user = id,
            None => receiver_exists = false,
        }
    }
    Ok(Addressed { outgoing, receiver_exists })
}

/// The append will ask too, but then others may have been told that it was accepted.
async fn still_speaks(chat: &Chat, draft: &Draft) -> Result<(), Error> {
    let Some(group) = draft.conversation.group() else { return Ok(()) };
    let member = chat.store.group_member(&group, &draft.sender).await?;
    let was_in = match member {
        Some(_) => true,
        None => chat.store.standing(&draft.sender, &draft.conversation).await?.is_some(),
    };
    let group = chat.store.group(&group).await?;
    let sender = Belonging::new(member.as_ref(), was_in);
    let Err(reason) = may_speak(group.as_deref(), sender, draft) else { return Ok(()) };
    let id = MessageId::of(&draft.sender, &draft.client_id);
    // What is stored already is answered, whatever its sender may do by now.
    if chat.store.message(id).await?.is_some() { Ok(()) } else { Err(reason.into()) }
}

fn accept(intake: &dyn Intake, permit: Permit, draft: Draft) -> Accepting {
    let accepted = Accepted {
        id: MessageId::of(&draft.sender, &draft.client_id),
        conversation: draft.conversation.clone(),
        sender: draft.sender.clone(),
        client_id: draft.client_id.clone(),
        at: draft.sent_at,
        cleaned: draft.cleaned.clone(),
    };
    let as_sent = draft.content.body.clone();
    let taken = intake.take(permit, draft);
    Accepting { taken, accepted: Some(Box::new(accepted)), as_sent }
}

/// Says something with the operator's own voice, to anybody or to any group.
pub async fn system(chat: &Chat, outgoing: Outgoing) -> Result<Saved, Error> {
    let (permit, draft) = drafted(chat, UserId::system(), None, outgoing).await?;
    append(chat, permit, draft, None).await
}

async fn drafted(
    chat: &Chat,
    sender: UserId,
    origin: Option<ConnectionId>,
    outgoing: Outgoing,
) -> Result<(Permit, Draft), Error> {
    let mut addressed = look_up(chat, outgoing).await?;
    let conversation = addressed.outgoing.to.conversation(&sender);
    let permit = permit(chat, &sender, &conversation, &mut addressed).await?;
    let Addressed { outgoing, .. } = addressed;
    let draft = Draft {
        conversation,
        sender,
        client_id: outgoing.client_id,
        cleaned: chat.rules.words.as_ref().and_then(|words| words.clean(&outgoing.content)),
        content: outgoing.content,
        sent_at: chat.clock.now(),
        origin,
        marks_read: outgoing.marks_read,
    };
    Ok((permit, draft))
}

fn append(chat: &Chat, permit: Permit, draft: Draft, trail: Option<Box<trail::Sending>>) -> Saving {
    let as_sent = draft.content.body.clone();
    Saving { appended: chat.store.append(permit, draft), as_sent, trail }
}

/// Asks the policy. What is stored already may be sent again, even by somebody who is not let in any
/// more or who answered what they no longer see.
async fn permit(
    chat: &Chat,
    sender: &UserId,
    conversation: &ConversationId,
    addressed: &mut Addressed,
) -> Result<Permit, Error> {
    let asked = match facts(chat, sender, conversation, addressed).await {
        Ok(facts) => may_send(&chat.rules, sender, &addressed.outgoing, facts),
        Err(Error::Refused(reason)) => Err(reason),
        Err(error) => return Err(error),
    };
    let reason = match asked {
        Ok(permit) => return Ok(permit),
        Err(reason) => reason,
    };
    let id = MessageId::of(sender, &addressed.outgoing.client_id);
    let stored = chat.store.message(id).await?;
    let permit = stored.and_then(|stored| may_repeat(&stored, sender));
    Ok(permit.ok_or(reason)?)
}

/// Gathers what the policy asks, and fills in who had said what is answered.
async fn facts(
    chat: &Chat,
    sender: &UserId,
    conversation: &ConversationId,
    addressed: &mut Addressed,
) -> Result<Facts, Error> {
    let Addressed { outgoing, receiver_exists } = addressed;
    let mut facts = Facts {
        receiver_exists: *receiver_exists,
        mentions_are_there: true,
        answers_something: true,
    };
    if let Some(id) = outgoing.reply_to {
        let answered = chat.store.message(id).await?;
        let author = answered.as_ref().map_or(sender, |answered| &answered.sender).clone();
        outgoing.content.reply_to = Some(ReplyTo { message: id, sender: author });
        facts.answers_something = can_see(chat, sender, conversation, answered.as_deref()).await?;
    }
    if outgoing.content.mentions.len() <= chat.rules.groups.mentions_max {
        facts.mentions_are_there = mentions_are_there(chat, sender, outgoing).await?;
    }
    if !(facts.mentions_are_there && facts.answers_something)
        && let Target::Group(group) = &outgoing.to
        && !sender.is_system()
    {
        // To whoever is not in the group, that is all there is to say.
        chat.store.group(group).await?.ok_or(Reason::GroupNotFound)?;
        group::must_be_in(chat, group, sender).await?;
    }
    Ok(facts)
}

/// Whether everybody who is mentioned is in the conversation. Mentions become their own ids.
async fn mentions_are_there(
    chat: &Chat,
    sender: &UserId,
    outgoing: &mut Outgoing,
) -> Result<bool, Error> {
    let Outgoing { to, content, .. } = outgoing;
    let mut was_renamed = false;
    for mention in &mut content.mentions {
        if is_there(chat, sender, to, mention).await? {
            continue;
        }
        let meant = people::meant(chat, mention.clone()).await?;
        if meant == *mention || !is_there(chat, sender, to, &meant).await? {
            return Ok(false);
        }
        *mention = meant;
        was_renamed = true;
    }
    if was_renamed {
        once_each(content);
    }
    // Between two people nobody is everybody.
    Ok(!content.mentions_all || matches!(to, Target::Group(_)))
}

async fn is_there(
    chat: &Chat,
    sender: &UserId,
    to: &Target,
    mention: &UserId,
) -> Result<bool, Error> {
    match to {
        Target::User(user) => Ok(mention == user || mention == sender),
        Target::Group(group) => Ok(chat.store.group_member(group, mention).await?.is_some()),
    }
}

async fn can_see(
    chat: &Chat,
    sender: &UserId,
    conversation: &ConversationId,
    message: Option<&Message>,
) -> Result<bool, Error> {
    let Some(message) = message.filter(|message| message.conversation == *conversation) else {
        return Ok(false);
    };
    let standing = chat.store.standing(sender, conversation).await?;
    Ok(standing.is_some_and(|standing| visible(standing.window, message.seq)))
}

/// Nobody is mentioned twice.
fn once_each(content: &mut Content) {
    let mut named = BTreeSet::new();
    content.mentions.retain(|user| named.insert(user.clone()));
}

/// The answer: the same for every retry, whatever the word list says by then.
fn saved(message: Arc<Message>, as_sent: &Bytes, duplicate: bool) -> Saved {
    let cleaned = message.recalled.is_none() && message.content.body != *as_sent;
    Saved { message, duplicate, cleaned }
}
