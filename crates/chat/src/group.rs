//! Creating, changing and reading groups. The rules are in [`crate::policy::group`] and run inside the store's
//! transaction; this module resolves user ids, limits rates and hides groups from outsiders.

use std::sync::Arc;

use crate::audit::{self, Act};
use crate::blocks;
use crate::chat::Chat;
use crate::ids::{ConnectionId, ConversationId, GroupId, UserId};
use crate::membership::{
    Group, GroupAction, GroupChange, GroupFacts, GroupMember, GroupProfile, HistoryPolicy,
    JoinCode, JoinPolicy, JoinRequest, MemberProfileChange, NewGroup, Role,
};
use crate::model::{Audience, Caller, ChangeKind, Standing};
use crate::policy::group::{NAME_CHARS_MAX, decide, may_view};
use crate::policy::name;
use crate::read::Page;
use crate::reason::{DetailedReason, Error, Reason};
use crate::store::{Actor, GroupFactsQuery, GroupOutcome};
use crate::sync;
use crate::user_lookup;

/// Users named in one request that cost as much as one send.
const USERS_PER_TOKEN: usize = 10;

/// A request to create a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewGroupRequest {
    pub profile: GroupProfile,
    pub joining: JoinPolicy,
    pub history: HistoryPolicy,
    /// Initial members besides the caller.
    pub members: Vec<UserId>,
    /// Fewer members than this are refused.
    pub members_min: usize,
}

pub async fn create(
    chat: &Chat,
    caller: &Caller,
    request: NewGroupRequest,
) -> Result<Arc<Group>, Error> {
    let mut bytes = [0; 16];
    chat.rng.fill(&mut bytes);
    let NewGroupRequest { profile, joining, history, members, members_min } = request;
    let code = generate_join_code(chat);
    let new = NewGroup { profile, joining, history, members, members_min, code };
    let created = apply(chat, caller, &GroupId::random(bytes), GroupAction::Create(new)).await?;
    Ok(created.group)
}

/// A random join code. The store checks that no other group has it.
pub fn generate_join_code(chat: &Chat) -> JoinCode {
    let mut bytes = [0; 8];
    chat.rng.fill(&mut bytes);
    JoinCode::random(bytes)
}

pub async fn apply(
    chat: &Chat,
    caller: &Caller,
    id: &GroupId,
    action: GroupAction,
) -> Result<GroupOutcome, Error> {
    // An action costs what a send costs, and more if it names many users.
    let cost = 1 + action.users().len() / USERS_PER_TOKEN;
    if !chat.send_throttle.take_many(caller.user.clone(), cost, chat.clock.ticks()) {
        return Err(Reason::TooManyRequests.into());
    }
    if action.users().len() > chat.rules.groups.batch_max {
        return Err(Reason::TooManyUsers.into());
    }
    if let GroupAction::Invite(_) = &action {
        // Checked early: looking up many users is wasted if the caller is not a member.
        chat.store.group(id).await?.ok_or(Reason::GroupNotFound)?;
        require_member(chat, id, &caller.user).await?;
    }
    if let GroupAction::Create(_) | GroupAction::Join { .. } = &action {
        check_group_count(chat, &caller.user).await?;
    }
    let outcome = decide_in_store(chat, &caller.user, caller.connection, id, action).await?;
    for change in &outcome.changes {
        record_role_change(chat, caller, id, &change.kind).await?;
    }
    Ok(outcome)
}

/// Applies an operator's action: as the system user, who has the owner's rights in every group.
pub(crate) async fn apply_as_system(
    chat: &Chat,
    id: &GroupId,
    action: GroupAction,
) -> Result<GroupOutcome, Error> {
    if action.users().len() > chat.rules.groups.batch_max {
        return Err(Reason::TooManyUsers.into());
    }
    decide_in_store(chat, &UserId::system(), None, id, action).await
}

/// Resolves the named users and lets the store ask the policy in its transaction.
async fn decide_in_store(
    chat: &Chat,
    by: &UserId,
    origin: Option<ConnectionId>,
    id: &GroupId,
    mut action: GroupAction,
) -> Result<GroupOutcome, Error> {
    normalize_name(&mut action);
    let adds_members = matches!(action, GroupAction::Create(_) | GroupAction::Invite(_));
    for user in action.users_mut() {
        match user_lookup::find_id(chat, user).await? {
            Some(id) => *user = id,
            None if adds_members => {
                return Err(DetailedReason::new(Reason::UserNotFound, user.as_str()).into());
            }
            None => {} // the policy refuses: only users with an account are members
        }
    }
    if adds_members && !by.is_system() {
        keep_willing(chat, by, &mut action).await?;
    }
    let now = chat.clock.now();
    let actor = Actor { user: by.clone(), at: now, origin };
    let query = GroupFactsQuery { users: action.users().to_vec(), code: action.code().cloned() };
    let rules = chat.rules.groups;
    let (by, group) = (by.clone(), id.clone());
    let decide_group =
        Box::new(move |facts: &GroupFacts| decide(&rules, facts, &group, &by, &action, now));
    // The store publishes the resulting changes and requests to join.
    Ok(chat.store.change_group(id, actor, query, decide_group).await??)
}

/// Leaves out the users who do not let `by` add them to groups. The outcome says who joined, and nothing tells
/// somebody who is blocked from somebody who lets nobody add them.
async fn keep_willing(chat: &Chat, by: &UserId, action: &mut GroupAction) -> Result<(), Error> {
    let users = match action {
        GroupAction::Create(new) => &mut new.members,
        GroupAction::Invite(users) => users,
        _ => return Ok(()),
    };
    let known = chat.store.share_conversation(by, users.clone()).await?;
    let mut willing = Vec::with_capacity(users.len());
    for (user, is_known) in users.drain(..).zip(known) {
        if user == *by || lets_add(chat, &user, by, is_known).await? {
            willing.push(user);
        }
    }
    *users = willing;
    Ok(())
}

/// `is_known`: the two share a conversation.
async fn lets_add(chat: &Chat, user: &UserId, by: &UserId, is_known: bool) -> Result<bool, Error> {
    if blocks::has_blocked(chat, user, by).await? {
        return Ok(false);
    }
    let account = chat.store.user(user).await?;
    let audience = account.map(|account| account.details.consent.invite).unwrap_or_default();
    let accepts = match audience {
        Audience::Everybody => true,
        Audience::SharedGroup | Audience::Contacts => is_known,
        Audience::Nobody => false,
    };
    let is_welcome =
        || is_known || chat.stranger_group_throttle.take(user.clone(), chat.clock.ticks());
    Ok(accepts && is_welcome())
}

/// Fails if the user is in as many groups as one may be.
async fn check_group_count(chat: &Chat, user: &UserId) -> Result<(), Error> {
    let standings = sync::standings(chat, user).await?;
    let is_in =
        |standing: &&Standing| standing.conversation.group().is_some() && standing.is_active();
    if standings.iter().filter(is_in).count() < chat.rules.groups.per_user_max {
        Ok(())
    } else {
        Err(Reason::TooManyGroups.into())
    }
}

/// Records a change of roles, or the end of a group, in the audit log.
async fn record_role_change(
    chat: &Chat,
    caller: &Caller,
    id: &GroupId,
    change: &ChangeKind,
) -> Result<(), Error> {
    let (action, user) = match change {
        ChangeKind::Role { user, role: Role::Admin } => ("admin_made", user.as_str()),
        ChangeKind::Role { user, .. } => ("admin_removed", user.as_str()),
        ChangeKind::Owner { user } => ("group_transferred", user.as_str()),
        ChangeKind::Dissolved | ChangeKind::Dismissed => ("group_dissolved", ""),
        _ => return Ok(()),
    };
    let act = Act { target: format!("group:{id}"), ..Act::by_user(&caller.user, action, None) };
    audit::record_now(chat, &act.with("users", user)).await
}

/// Normalizes a group's or member's name. An invalid one stays as it is, and the policy refuses it.
fn normalize_name(action: &mut GroupAction) {
    let raw_name = match action {
        GroupAction::Create(new) => &mut new.profile.name,
        GroupAction::Update(GroupChange { name: Some(name), .. })
        | GroupAction::SetProfile(MemberProfileChange { nickname: Some(name), .. }) => name,
        _ => return,
    };
    if let Some(normalized) = name::normalize(raw_name, NAME_CHARS_MAX) {
        *raw_name = normalized;
    }
}

/// A group that the caller may see, and the caller's membership.
pub async fn info(
    chat: &Chat,
    caller: &Caller,
    id: &GroupId,
) -> Result<(Arc<Group>, Option<GroupMember>), Error> {
    let group = chat.store.group(id).await?;
    let member = chat.store.group_member(id, &caller.user).await?;
    if let Err(reason) = may_view(group.as_deref(), member.is_some()) {
        // Former members get the precise reason; to others the group does not exist.
        return Err(match non_member_reason(chat, id, &caller.user).await? {
            Reason::NotGroupMember => reason,
            known => known,
        }
        .into());
    }
    Ok((group.ok_or(Reason::GroupNotFound)?, member))
}

/// The membership of a user, or the reason why they are not a member.
pub(crate) async fn require_member(
    chat: &Chat,
    id: &GroupId,
    user: &UserId,
) -> Result<GroupMember, Error> {
    match chat.store.group_member(id, user).await? {
        Some(member) => Ok(member),
        None => Err(non_member_reason(chat, id, user).await?.into()),
    }
}

/// Why a user is not a member: the group has ended, or they left or were removed, or they never were a
/// member.
async fn non_member_reason(chat: &Chat, id: &GroupId, user: &UserId) -> Result<Reason, Error> {
    Ok(match chat.store.standing(user, &id.conversation()).await? {
        Some(standing) if standing.has_ended => Reason::GroupDissolved,
        Some(_) => Reason::MemberNotActive,
        None => Reason::NotGroupMember,
    })
}

/// The group with a join code. A lookup costs as much as a send, which limits guessing; groups by
/// invitation only are not found.
pub async fn find_by_code(chat: &Chat, caller: &Caller, code: &str) -> Result<GroupId, Error> {
    if !chat.send_throttle.take(caller.user.clone(), chat.clock.ticks()) {
        return Err(Reason::TooManyRequests.into());
    }
    let code = JoinCode::parse(code).ok_or(Reason::GroupNotFound)?;
    let id = chat.store.group_by_code(&code).await?.ok_or(Reason::GroupNotFound)?;
    let group = chat.store.group(&id).await?;
    let member = chat.store.group_member(&id, &caller.user).await?;
    may_view(group.as_deref(), member.is_some())?;
    Ok(id)
}

/// A page of members, ordered by id. Only for members.
pub async fn members(
    chat: &Chat,
    caller: &Caller,
    id: &GroupId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<(Arc<Group>, Page<GroupMember>), Error> {
    let group = group_for_member(chat, caller, id).await?;
    let found = chat.store.group_members(id, after, limit + 1).await?;
    Ok((group, Page::cut(found, limit)))
}

/// One member. Only for members.
pub async fn member(
    chat: &Chat,
    caller: &Caller,
    id: &GroupId,
    user: &UserId,
) -> Result<(Arc<Group>, GroupMember), Error> {
    let group = group_for_member(chat, caller, id).await?;
    let user = user_lookup::resolve_id(chat, user.clone()).await?;
    let member = chat.store.group_member(id, &user).await?;
    Ok((group, member.ok_or(Reason::TargetNotMember)?))
}

/// The conversation of a group that the caller is or was a member of. Anyone else gets the same error
/// whether or not the group exists.
pub async fn conversation(
    chat: &Chat,
    caller: &Caller,
    id: &GroupId,
) -> Result<ConversationId, Error> {
    let conversation = id.conversation();
    let standing = chat.store.standing(&caller.user, &conversation).await?;
    standing.ok_or(Reason::NotGroupMember)?;
    Ok(conversation)
}

/// The group, if the caller is a member.
pub(crate) async fn group_for_member(
    chat: &Chat,
    caller: &Caller,
    id: &GroupId,
) -> Result<Arc<Group>, Error> {
    let (group, member) = info(chat, caller, id).await?;
    match member {
        Some(_) => Ok(group),
        None => Err(non_member_reason(chat, id, &caller.user).await?.into()),
    }
}

/// A page of requests to join. Only for the owner and admins.
pub async fn join_requests(
    chat: &Chat,
    caller: &Caller,
    id: &GroupId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<Page<JoinRequest>, Error> {
    let group = group_for_member(chat, caller, id).await?;
    if group.role(&caller.user) < Role::Admin {
        return Err(Reason::NotGroupAdmin.into());
    }
    let found = chat.store.join_requests(id, after, limit + 1).await?;
    Ok(Page::cut(found, limit))
}

/// A page of the groups that the caller is a member of, ordered by id.
pub async fn joined_groups(
    chat: &Chat,
    caller: &Caller,
    after: Option<&GroupId>,
    limit: usize,
) -> Result<Page<Arc<Group>>, Error> {
    let mut at = after.map(GroupId::conversation);
    let mut groups = Vec::new();
    // Former members keep their standing, so a page may take several reads.
    loop {
        let standings = chat.store.standings(&caller.user, at.as_ref(), limit + 1).await?;
        let is_last = standings.len() <= limit;
        at = standings.last().map(|standing| standing.conversation.clone());
        for standing in standings.iter().filter(|standing| standing.is_active()) {
            groups.extend(group_of(chat, standing).await?);
        }
        if is_last || groups.len() > limit {
            return Ok(Page::cut(groups, limit));
        }
    }
}

/// The group of a standing; `None` for a private conversation.
pub(crate) async fn group_of(
    chat: &Chat,
    standing: &Standing,
) -> Result<Option<Arc<Group>>, Error> {
    match standing.conversation.group() {
        Some(id) => Ok(chat.store.group(&id).await?),
        None => Ok(None),
    }
}
