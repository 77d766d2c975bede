//! Groups, as an operator sees and changes them. The operator acts as the system user, who is a member of no group
//! and has the owner's rights in each.

use std::sync::Arc;

use crate::audit::{self, Act};
use crate::chat::Chat;
use crate::group::apply_as_system;
use crate::ids::{GroupId, UserId};
use crate::keys::{Operator, Scope};
use crate::membership::{Group, GroupAction, GroupMember, Role};
use crate::read::Page;
use crate::reason::{Error, Reason};
use crate::sync;

/// Groups that one search looks at; the page then says where to go on.
const SEARCHED_MAX: usize = 20_000;
const READ_PAGE: usize = 500;

/// A page of groups in the order of their ids whose id, name or owner contains a text, and where the next page
/// begins. Ended groups are included.
pub async fn list(
    chat: &Chat,
    operator: &Operator,
    text: &str,
    after: Option<GroupId>,
    limit: usize,
) -> Result<(Page<Arc<Group>>, Option<GroupId>), Error> {
    operator.require(Scope::Admin)?;
    let text = text.trim().to_lowercase();
    let has_text = |field: &str| field.to_lowercase().contains(&text);
    let (mut at, mut found, mut seen) = (after, Vec::new(), 0);
    loop {
        let groups = chat.store.groups(at.as_ref(), READ_PAGE).await?;
        let is_last = groups.len() < READ_PAGE;
        seen += groups.len();
        for group in groups {
            if found.len() == limit {
                return Ok((Page::new(found, true), at));
            }
            at = Some(group.id.clone());
            let fields = [group.id.as_str(), &group.profile.name, group.owner.as_str()];
            if fields.into_iter().any(has_text) {
                found.push(group);
            }
        }
        if is_last {
            return Ok((Page::new(found, false), None));
        }
        if seen >= SEARCHED_MAX {
            return Ok((Page::new(found, true), at));
        }
    }
}

/// A group, ended or not.
pub async fn get(chat: &Chat, operator: &Operator, id: &GroupId) -> Result<Arc<Group>, Error> {
    operator.require(Scope::Admin)?;
    Ok(chat.store.group(id).await?.ok_or(Reason::GroupNotFound)?)
}

/// A page of members in the order of their ids.
pub async fn members(
    chat: &Chat,
    operator: &Operator,
    id: &GroupId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<(Arc<Group>, Page<GroupMember>), Error> {
    let group = get(chat, operator, id).await?;
    let found = chat.store.group_members(id, after, limit + 1).await?;
    Ok((group, Page::cut(found, limit)))
}

/// What an operator can do to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupOrder {
    Dissolve,
    Transfer(UserId),
    Add(Vec<UserId>),
    Remove(UserId),
}

/// Carries out an order. Members are told as if the owner had done it. Returns the group, and who joined.
pub async fn change(
    chat: &Chat,
    operator: &Operator,
    id: &GroupId,
    order: GroupOrder,
) -> Result<(Arc<Group>, Vec<UserId>), Error> {
    operator.require(Scope::Admin)?;
    let (action, name, whom) = match order {
        GroupOrder::Dissolve => (GroupAction::Dissolve, "group_dissolved", String::new()),
        GroupOrder::Transfer(user) => {
            let whom = user.to_string();
            (GroupAction::Transfer(user), "group_transferred", whom)
        }
        GroupOrder::Add(users) => {
            let whom: Vec<&str> = users.iter().map(UserId::as_str).collect();
            let whom = whom.join(" ");
            (GroupAction::Invite(users), "group_members_added", whom)
        }
        GroupOrder::Remove(user) => {
            let whom = user.to_string();
            (GroupAction::Kick(user), "group_member_removed", whom)
        }
    };
    let outcome = apply_as_system(chat, id, action).await?;
    let act = Act::by(operator, name, format!("group:{id}")).with("users", whom);
    audit::record_now(chat, &act).await?;
    Ok((outcome.group, outcome.joined))
}

/// Takes a user out of all their groups. A group they own goes to an admin, else to the member with the first id;
/// one without other members ends.
pub(crate) async fn leave_everything(chat: &Chat, user: &UserId) -> Result<(), Error> {
    for standing in sync::standings(chat, user).await? {
        let Some(id) = standing.conversation.group().filter(|_| standing.is_active()) else {
            continue;
        };
        match leave(chat, &id, user).await {
            // Ended or left meanwhile.
            Err(error) if is_gone(error.reason()) => {}
            left => left?,
        }
    }
    Ok(())
}

fn is_gone(reason: Reason) -> bool {
    matches!(reason, Reason::GroupDissolved | Reason::GroupNotFound | Reason::TargetNotMember)
}

async fn leave(chat: &Chat, id: &GroupId, user: &UserId) -> Result<(), Error> {
    let group = chat.store.group(id).await?.ok_or(Reason::GroupNotFound)?;
    if group.role(user) == Role::Owner {
        let Some(heir) = heir(chat, &group).await? else {
            apply_as_system(chat, id, GroupAction::Dissolve).await?;
            return Ok(());
        };
        apply_as_system(chat, id, GroupAction::Transfer(heir)).await?;
    }
    apply_as_system(chat, id, GroupAction::Kick(user.clone())).await?;
    Ok(())
}

async fn heir(chat: &Chat, group: &Group) -> Result<Option<UserId>, Error> {
    if let Some(admin) = group.admins.first() {
        return Ok(Some(admin.clone()));
    }
    let members = chat.store.group_members(&group.id, None, 2).await?;
    Ok(members.into_iter().map(|member| member.user).find(|user| *user != group.owner))
}
