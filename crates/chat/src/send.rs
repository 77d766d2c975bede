//! Sending a message: gather facts, ask the policy, append. The store publishes what became durable (see
//! [`crate::chat::Chat::new`]), so receivers get the message even if the sender disconnects.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;

use crate::blocks;
use crate::chat::Chat;
use crate::command::{Accepted, NewMessage, Reply, Saved, Target};
use crate::cursor_audit;
use crate::group;
use crate::ids::{ConnectionId, ConversationId, MessageId, UserId};
use crate::invariants::is_visible;
use crate::keys::{Operator, Scope};
use crate::membership::MembershipStatus;
use crate::model::{Caller, Content, Draft, Message, ReplyTo};
use crate::policy::group::may_speak;
use crate::policy::send::{Permit, SendFacts, may_retry, may_send};
use crate::reason::{Error, Reason};
use crate::store::{Appended, StoreFuture};
use crate::strangers;
use crate::two_phase::{AcceptOutcome, TwoPhase};
use crate::user_lookup;

/// Resolves once the message is durable. The message already has its place in the order.
pub struct SaveFuture {
    appended: StoreFuture<'static, Appended>,
    original_body: Bytes,
    audit: Option<Box<cursor_audit::SendAudit>>,
}

impl Future for SaveFuture {
    type Output = Result<Saved, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let appended = std::task::ready!(self.appended.as_mut().poll(cx))?;
        if let (Some(audit), Appended::Stored(message)) = (&self.audit, &appended) {
            audit.log_saved(message);
        }
        Poll::Ready(append_result(appended, &self.original_body))
    }
}

fn append_result(appended: Appended, original_body: &Bytes) -> Result<Saved, Error> {
    match appended {
        Appended::Stored(message) => Ok(saved_reply(message, original_body, false)),
        Appended::Duplicate(message) => Ok(saved_reply(message, original_body, true)),
        Appended::Conflict => Err(Reason::ClientMsgIdConflict.into()),
        Appended::Refused(reason) => Err(reason.into()),
    }
}

/// Resolves once the message is durable or accepted. It already has its place among its sender's messages.
pub enum PendingSend {
    /// The reply comes when the message is durable.
    Save(SaveFuture),
    /// The reply comes when two-phase acknowledgement has accepted the message.
    Accept(AcceptFuture),
}

/// Resolves once two-phase acknowledgement has accepted the message.
pub struct AcceptFuture {
    outcome: StoreFuture<'static, AcceptOutcome>,
    accepted: Option<Box<Accepted>>,
    original_body: Bytes,
}

impl Future for PendingSend {
    type Output = Result<Reply, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Save(saving) => Pin::new(saving).poll(cx).map_ok(Reply::Saved),
            Self::Accept(it) => {
                let outcome = std::task::ready!(it.outcome.as_mut().poll(cx))?;
                Poll::Ready(match (outcome, it.accepted.take()) {
                    (AcceptOutcome::Appended(appended), _) => {
                        append_result(appended, &it.original_body).map(Reply::Saved)
                    }
                    (AcceptOutcome::Accepted, Some(accepted)) => Ok(Reply::Accepted(*accepted)),
                    (AcceptOutcome::Accepted, None) => Ok(Reply::Nothing), // polled again after completion
                })
            }
        }
    }
}

/// Sends a message. When this returns, the message has its place in the order. With `supports_two_phase`
/// the reply may be "accepted" before the message is saved.
pub async fn send(
    chat: &Chat,
    caller: &Caller,
    outgoing: NewMessage,
    supports_two_phase: bool,
) -> Result<PendingSend, Error> {
    let (permit, draft) = throttled_draft(chat, caller, outgoing).await?;
    match &chat.two_phase {
        Some(two_phase) if supports_two_phase && two_phase.accepts(&draft.conversation) => {
            check_may_speak(chat, &draft).await?;
            Ok(PendingSend::Accept(accept(&**two_phase, permit, draft)))
        }
        _ => {
            let audit = cursor_audit::begin_send(chat, caller, &draft).await?;
            Ok(PendingSend::Save(append(chat, permit, draft, audit)))
        }
    }
}

/// Sends a message without two-phase acknowledgement: the reply comes when it is durable.
pub async fn save(chat: &Chat, caller: &Caller, outgoing: NewMessage) -> Result<SaveFuture, Error> {
    let (permit, draft) = throttled_draft(chat, caller, outgoing).await?;
    let audit = cursor_audit::begin_send(chat, caller, &draft).await?;
    Ok(append(chat, permit, draft, audit))
}

async fn throttled_draft(
    chat: &Chat,
    caller: &Caller,
    outgoing: NewMessage,
) -> Result<(Permit, Draft), Error> {
    if !chat.send_throttle.take(caller.user.clone(), chat.clock.ticks()) {
        return Err(Reason::TooManyRequests.into());
    }
    build_draft(chat, caller.user.clone(), caller.connection, outgoing).await
}

/// A message whose receiver was looked up: `to` is the id of the account, in whatever case it was typed.
struct ResolvedSend {
    outgoing: NewMessage,
    receiver_exists: bool,
}

async fn resolve_receiver(chat: &Chat, mut outgoing: NewMessage) -> Result<ResolvedSend, Error> {
    dedupe_mentions(&mut outgoing.content);
    let mut receiver_exists = true;
    if let Target::User(user) = &mut outgoing.to {
        match user_lookup::find_id(chat, user).await? {
            Some(id) => *user = id,
            None => receiver_exists = false,
        }
    }
    Ok(ResolvedSend { outgoing, receiver_exists })
}

/// Whether the sender may post in the group. The append checks it again, but by then other clients may
/// have been shown the accepted message.
async fn check_may_speak(chat: &Chat, draft: &Draft) -> Result<(), Error> {
    let Some(group) = draft.conversation.group() else { return Ok(()) };
    let member = chat.store.group_member(&group, &draft.sender).await?;
    let was_member = match member {
        Some(_) => true,
        None => chat.store.standing(&draft.sender, &draft.conversation).await?.is_some(),
    };
    let group = chat.store.group(&group).await?;
    let sender = MembershipStatus::new(member.as_ref(), was_member);
    let Err(reason) = may_speak(group.as_deref(), sender, draft) else { return Ok(()) };
    let id = MessageId::of(&draft.sender, &draft.client_id);
    // A retry of a stored message is acknowledged, even if its sender may not post any more.
    if chat.store.message(id).await?.is_some() { Ok(()) } else { Err(reason.into()) }
}

fn accept(two_phase: &dyn TwoPhase, permit: Permit, draft: Draft) -> AcceptFuture {
    let accepted = Accepted {
        id: MessageId::of(&draft.sender, &draft.client_id),
        conversation: draft.conversation.clone(),
        sender: draft.sender.clone(),
        client_id: draft.client_id.clone(),
        at: draft.sent_at,
        cleaned: draft.cleaned.clone(),
    };
    let original_body = draft.content.body.clone();
    let outcome = two_phase.accept(permit, draft);
    AcceptFuture { outcome, accepted: Some(Box::new(accepted)), original_body }
}

/// Sends a message from the system user, to any user or group.
pub async fn send_as_system(
    chat: &Chat,
    operator: &Operator,
    outgoing: NewMessage,
) -> Result<Saved, Error> {
    operator.require(Scope::System)?;
    send_from_system(chat, outgoing).await
}

/// The same, for an operator whose scope was checked.
pub(crate) async fn send_from_system(chat: &Chat, outgoing: NewMessage) -> Result<Saved, Error> {
    let (permit, draft) = build_draft(chat, UserId::system(), None, outgoing).await?;
    append(chat, permit, draft, None).await
}

async fn build_draft(
    chat: &Chat,
    sender: UserId,
    origin: Option<ConnectionId>,
    outgoing: NewMessage,
) -> Result<(Permit, Draft), Error> {
    let mut resolved = resolve_receiver(chat, outgoing).await?;
    let conversation = resolved.outgoing.to.conversation(&sender);
    let permit = request_permit(chat, &sender, &conversation, &mut resolved).await?;
    let ResolvedSend { outgoing, .. } = resolved;
    let draft = Draft {
        conversation,
        sender,
        client_id: outgoing.client_id,
        cleaned: chat.rules.word_filter.as_ref().and_then(|words| words.apply(&outgoing.content)),
        content: outgoing.content,
        sent_at: chat.clock.now(),
        origin,
        marks_read: outgoing.marks_read,
    };
    Ok((permit, draft))
}

fn append(
    chat: &Chat,
    permit: Permit,
    draft: Draft,
    audit: Option<Box<cursor_audit::SendAudit>>,
) -> SaveFuture {
    let original_body = draft.content.body.clone();
    SaveFuture { appended: chat.store.append(permit, draft), original_body, audit }
}

/// Asks the policy. A retry of a stored message is allowed even if its sender left the group since, or
/// cannot see the message it replies to any more.
async fn request_permit(
    chat: &Chat,
    sender: &UserId,
    conversation: &ConversationId,
    resolved: &mut ResolvedSend,
) -> Result<Permit, Error> {
    let decision = match gather_facts(chat, sender, conversation, resolved).await {
        Ok(facts) => may_send(&chat.rules, sender, &resolved.outgoing, facts),
        Err(Error::Refused(reason) | Error::RefusedWithDetail { reason, .. }) => Err(reason),
        Err(error) => return Err(error),
    };
    let reason = match decision {
        Ok(permit) => return Ok(permit),
        Err(reason) => reason,
    };
    let id = MessageId::of(sender, &resolved.outgoing.client_id);
    let stored = chat.store.message(id).await?;
    let permit = stored.and_then(|stored| may_retry(&stored, sender));
    Ok(permit.ok_or(reason)?)
}

/// Gathers the facts for the policy, and fills in the sender of the message that is replied to.
async fn gather_facts(
    chat: &Chat,
    sender: &UserId,
    conversation: &ConversationId,
    resolved: &mut ResolvedSend,
) -> Result<SendFacts, Error> {
    let ResolvedSend { outgoing, receiver_exists } = resolved;
    let mut facts = SendFacts {
        receiver_exists: *receiver_exists,
        mentions_are_members: true,
        reply_is_visible: true,
    };
    if let Target::User(receiver) = &outgoing.to
        && *receiver_exists
        && receiver != sender
        && !sender.is_system()
    {
        strangers::check_may_write(chat, sender, receiver, conversation).await?;
        if chat.rules.tell_blocked && blocks::has_blocked(chat, receiver, sender).await? {
            return Err(Reason::ReceiverBlocked.into());
        }
    }
    if let Some(id) = outgoing.reply_to {
        let original = chat.store.message(id).await?;
        let author = original.as_ref().map_or(sender, |original| &original.sender).clone();
        outgoing.content.reply_to = Some(ReplyTo { message: id, sender: author });
        facts.reply_is_visible = can_see(chat, sender, conversation, original.as_deref()).await?;
    }
    if outgoing.content.mentions.len() <= chat.rules.groups.mentions_max {
        facts.mentions_are_members = resolve_mentions(chat, sender, outgoing).await?;
    }
    if !(facts.mentions_are_members && facts.reply_is_visible)
        && let Target::Group(group) = &outgoing.to
        && !sender.is_system()
    {
        // A sender outside the group learns only that, not whether a mention or reply is valid.
        chat.store.group(group).await?.ok_or(Reason::GroupNotFound)?;
        group::require_member(chat, group, sender).await?;
    }
    Ok(facts)
}

/// Replaces mentions by the ids of their accounts. Returns whether all of them are in the conversation.
async fn resolve_mentions(
    chat: &Chat,
    sender: &UserId,
    outgoing: &mut NewMessage,
) -> Result<bool, Error> {
    let NewMessage { to, content, .. } = outgoing;
    let mut was_renamed = false;
    for mention in &mut content.mentions {
        if is_participant(chat, sender, to, mention).await? {
            continue;
        }
        let id = user_lookup::resolve_id(chat, mention.clone()).await?;
        if id == *mention || !is_participant(chat, sender, to, &id).await? {
            return Ok(false);
        }
        *mention = id;
        was_renamed = true;
    }
    if was_renamed {
        dedupe_mentions(content);
    }
    // `@all` is only valid in groups.
    Ok(!content.mentions_all || matches!(to, Target::Group(_)))
}

async fn is_participant(
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
    Ok(standing.is_some_and(|standing| is_visible(standing.window, message.seq)))
}

fn dedupe_mentions(content: &mut Content) {
    let mut seen = BTreeSet::new();
    content.mentions.retain(|user| seen.insert(user.clone()));
}

/// The same reply for every retry, even if the word list has changed since.
fn saved_reply(message: Arc<Message>, original_body: &Bytes, duplicate: bool) -> Saved {
    let cleaned = message.recalled.is_none() && message.content.body != *original_body;
    Saved { message, duplicate, cleaned }
}
