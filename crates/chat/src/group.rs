//! Groups: made, joined, led and ended. The rules are in [`crate::policy::group`] and are asked
//! inside the store's atomic act; here are the facts they cannot see and the words that go round.

use std::sync::Arc;

use crate::chat::Chat;
use crate::ids::{ConversationId, GroupId, UserId};
use crate::membership::{
    Group, GroupAct, GroupChange, GroupFacts, GroupMember, GroupProfile, History, JoinCode,
    JoinRequest, Joining, MemberProfileChange, NewGroup, Role,
};
use crate::model::{Caller, Standing};
use crate::people;
use crate::policy::group::{NAME_CHARS_MAX, decide, may_look};
use crate::policy::name;
use crate::read::Listed;
use crate::reason::{Error, Reason};
use crate::store::{About, Asker, Decided};

/// People of one request that cost as much as one send.
const USERS_PER_TOKEN: usize = 10;

/// What a new group is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// How it is seen.
    pub profile: GroupProfile,
    /// How one comes in.
    pub joining: Joining,
    /// What newcomers see.
    pub history: History,
    /// Who is in it from the start, beside the caller.
    pub members: Vec<UserId>,
    /// How many people it needs.
    pub least: usize,
}

/// Makes a group.
pub async fn create(chat: &Chat, caller: &Caller, wanted: Wanted) -> Result<Arc<Group>, Error> {
    let mut bytes = [0; 16];
    chat.dice.fill(&mut bytes);
    let Wanted { profile, joining, history, members, least } = wanted;
    let code = draw_code(chat);
    let new = NewGroup { profile, joining, history, members, least, code };
    let made = act(chat, caller, &GroupId::random(bytes), GroupAct::Create(new)).await?;
    Ok(made.group)
}

/// A code that leads to one group, we hope; the store knows.
pub fn draw_code(chat: &Chat) -> JoinCode {
    let mut bytes = [0; 8];
    chat.dice.fill(&mut bytes);
    JoinCode::random(bytes)
}

/// Does something to a group.
pub async fn act(
    chat: &Chat,
    caller: &Caller,
    id: &GroupId,
    mut act: GroupAct,
) -> Result<Decided, Error> {
    // One costs what a send costs, and many people more.
    let cost = 1 + act.users().len() / USERS_PER_TOKEN;
    if !chat.sends.take_many(caller.user.clone(), cost, chat.clock.ticks()) {
        return Err(Reason::TooManyRequests.into());
    }
    if act.users().len() > chat.rules.groups.batch_max {
        return Err(Reason::TooManyUsers.into());
    }
    if let GroupAct::Invite(_) = &act {
        // Not worth looking for all those people if the caller is not in.
        chat.store.group(id).await?.ok_or(Reason::GroupNotFound)?;
        must_be_in(chat, id, &caller.user).await?;
    }
    tidy_name(&mut act);
    let brings_people = matches!(act, GroupAct::Create(_) | GroupAct::Invite(_));
    for user in act.users_mut() {
        match people::known(chat, user).await? {
            Some(id) => *user = id,
            None if brings_people => return Err(Reason::UserNotFound.into()),
            None => {} // whoever is in the group has an account
        }
    }
    let now = chat.clock.now();
    let asker = Asker { user: caller.user.clone(), at: now, origin: caller.connection };
    let about = About { users: act.users().to_vec(), code: act.code().cloned() };
    let rules = chat.rules.groups;
    let (by, group) = (caller.user.clone(), id.clone());
    let deciding =
        Box::new(move |facts: &GroupFacts| decide(&rules, facts, &group, &by, &act, now));
    // What comes of it is announced by the store, changes and wishes alike.
    Ok(chat.store.change_group(id, asker, about, deciding).await??)
}

/// Puts a group's or a member's name into the form in which it is kept; a bad one stays and is refused.
fn tidy_name(act: &mut GroupAct) {
    let given = match act {
        GroupAct::Create(new) => &mut new.profile.name,
        GroupAct::Update(GroupChange { name: Some(name), .. })
        | GroupAct::SetProfile(MemberProfileChange { nickname: Some(name), .. }) => name,
        _ => return,
    };
    if let Some(tidy) = name::tidy(given, NAME_CHARS_MAX) {
        *given = tidy;
    }
}

/// A group as the caller may see it, and whether they are in it.
pub async fn info(
    chat: &Chat,
    caller: &Caller,
    id: &GroupId,
) -> Result<(Arc<Group>, Option<GroupMember>), Error> {
    let group = chat.store.group(id).await?;
    let member = chat.store.group_member(id, &caller.user).await?;
    if let Err(reason) = may_look(group.as_deref(), member.is_some()) {
        // Whoever was in it knows of it.
        return Err(match not_in(chat, id, &caller.user).await? {
            Reason::NotGroupMember => reason,
            known => known,
        }
        .into());
    }
    Ok((group.ok_or(Reason::GroupNotFound)?, member))
}

/// Somebody in a group; whoever is not learns why as far as they may know.
pub(crate) async fn must_be_in(
    chat: &Chat,
    id: &GroupId,
    user: &UserId,
) -> Result<GroupMember, Error> {
    match chat.store.group_member(id, user).await? {
        Some(member) => Ok(member),
        None => Err(not_in(chat, id, user).await?.into()),
    }
}

/// Why somebody is not in a group: it has ended, they left or were put out, or they never were in
/// it, and then they learn nothing of it.
async fn not_in(chat: &Chat, id: &GroupId, user: &UserId) -> Result<Reason, Error> {
    Ok(match chat.store.standing(user, &id.conversation()).await? {
        Some(standing) if standing.has_ended => Reason::GroupDissolved,
        Some(_) => Reason::MemberNotActive,
        None => Reason::NotGroupMember,
    })
}

/// The group a code leads to. Guessing costs what sending costs, and groups by invitation only are
/// not found this way.
pub async fn by_code(chat: &Chat, caller: &Caller, code: &str) -> Result<GroupId, Error> {
    if !chat.sends.take(caller.user.clone(), chat.clock.ticks()) {
        return Err(Reason::TooManyRequests.into());
    }
    let code = JoinCode::parse(code).ok_or(Reason::GroupNotFound)?;
    let id = chat.store.group_by_code(&code).await?.ok_or(Reason::GroupNotFound)?;
    let group = chat.store.group(&id).await?;
    let member = chat.store.group_member(&id, &caller.user).await?;
    may_look(group.as_deref(), member.is_some())?;
    Ok(id)
}

/// Members by their ids, for members.
pub async fn members(
    chat: &Chat,
    caller: &Caller,
    id: &GroupId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<(Arc<Group>, Listed<GroupMember>), Error> {
    let group = for_members(chat, caller, id).await?;
    let found = chat.store.group_members(id, after, limit + 1).await?;
    Ok((group, Listed::cut(found, limit)))
}

/// One member, for members.
pub async fn member(
    chat: &Chat,
    caller: &Caller,
    id: &GroupId,
    user: &UserId,
) -> Result<(Arc<Group>, GroupMember), Error> {
    let group = for_members(chat, caller, id).await?;
    let user = people::meant(chat, user.clone()).await?;
    let member = chat.store.group_member(id, &user).await?;
    Ok((group, member.ok_or(Reason::TargetNotMember)?))
}

/// The conversation of a group the caller is or was in. Whoever never was learns nothing of it, not
/// even whether there is such a group.
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

/// A group, for its members.
pub(crate) async fn for_members(
    chat: &Chat,
    caller: &Caller,
    id: &GroupId,
) -> Result<Arc<Group>, Error> {
    let (group, member) = info(chat, caller, id).await?;
    match member {
        Some(_) => Ok(group),
        None => Err(not_in(chat, id, &caller.user).await?.into()),
    }
}

/// Those who wait to be let in, for those who decide.
pub async fn requests(
    chat: &Chat,
    caller: &Caller,
    id: &GroupId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<Listed<JoinRequest>, Error> {
    let group = for_members(chat, caller, id).await?;
    if group.role(&caller.user) < Role::Admin {
        return Err(Reason::NotGroupAdmin.into());
    }
    let found = chat.store.join_requests(id, after, limit + 1).await?;
    Ok(Listed::cut(found, limit))
}

/// The groups the caller is in, by their ids.
pub async fn joined(
    chat: &Chat,
    caller: &Caller,
    after: Option<&GroupId>,
    limit: usize,
) -> Result<Listed<Arc<Group>>, Error> {
    let mut at = after.map(GroupId::conversation);
    let mut groups = Vec::new();
    // Former members keep their standing, so a page may take several looks.
    loop {
        let standings = chat.store.standings(&caller.user, at.as_ref(), limit + 1).await?;
        let is_last = standings.len() <= limit;
        at = standings.last().map(|standing| standing.conversation.clone());
        for standing in standings.iter().filter(|standing| standing.is_active()) {
            groups.extend(group_of(chat, standing).await?);
        }
        if is_last || groups.len() > limit {
            return Ok(Listed::cut(groups, limit));
        }
    }
}

/// The group of a standing, if it is one.
pub(crate) async fn group_of(
    chat: &Chat,
    standing: &Standing,
) -> Result<Option<Arc<Group>>, Error> {
    match standing.conversation.group() {
        Some(id) => Ok(chat.store.group(&id).await?),
        None => Ok(None),
    }
}
