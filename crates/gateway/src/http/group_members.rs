//! Who is in a group, and what they are there.

use std::sync::Arc;

use axum::extract::State;
use nexo_chat::ids::{Millis, UserId};
use nexo_chat::membership::{Group, GroupAct, GroupMember, MemberProfileChange, Role};
use nexo_chat::model::Caller;
use nexo_chat::store::Decided;
use nexo_chat::{Chat, Error, Reason, group, read};
use nexo_wire::groups::{GroupPage, GroupReadState, Invited, MemberInfo};
use nexo_wire::http::Nothing;
use nexo_wire::words;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::answer::{Answer, Asked};
use super::groups::{ACTING, GroupBody};
use super::named::{cursor, group_id, user_id, user_ids};
use super::paths::{Paths, paths};
use super::reading::limit;
use super::taken::{Authenticated, Body, Params};
use crate::gateway::Gateway;

type Shared = State<Arc<Gateway>>;

/// The paths of a group's people.
pub(super) fn paths(paths: &mut Paths) {
    paths! { paths:
        GET "/group/members" members, "Lists who is in a group. For members.", ACTING []
        GET "/group/member" member, "Shows one member. For members.",
            ACTING [UserNotFound TargetNotMember]
        GET "/group/read_state" read_state,
            "Tells how far everybody has received and read. For members; large groups are not told.",
            ACTING []
        PUT "/group/member_info" set_profile,
            "Says how you want to be seen in a group: what is given is taken, the rest stays.",
            ACTING [BadNickname BadGroupProfile]
        POST "/group/invite" invite, "Brings people in; those who are in already are skipped.",
            ACTING [InvalidParam UserNotFound TooManyUsers GroupFull NotGroupAdmin]
        POST "/group/quit" leave, "Leaves a group. Not for the owner.", ACTING [OwnerMustTransfer]
        POST "/group/leave" leave, "Leaves a group, as `/group/quit`.", ACTING [OwnerMustTransfer]
        POST "/group/kick" kick, "Puts somebody out: the owner anybody, admins members.",
            ACTING [UserNotFound TargetNotMember TargetIsSelf NotGroupAdmin CannotTouchOwner
                    CannotTouchAdmin]
        POST "/group/set_role" set_role, "Makes somebody an admin or a member again. For the owner.",
            ACTING [InvalidParam UserNotFound TargetNotMember TargetIsSelf NotGroupOwner TooManyAdmins]
        POST "/group/transfer" transfer, "Gives the group to another member. For the owner.",
            ACTING [UserNotFound TargetNotMember TargetIsSelf NotGroupOwner]
        POST "/group/mute" mute, "Lets somebody not speak for a while: the owner anybody, admins members.",
            ACTING [InvalidParam UserNotFound TargetNotMember TargetIsSelf NotGroupAdmin
                    CannotTouchOwner CannotTouchAdmin]
    }
}

/// For ever: the largest whole number that every JSON reader keeps.
const FOR_EVER: Millis = Millis(9_007_199_254_740_991);

/// A year in seconds, the longest that is not for ever.
const MUTE_SECONDS_MAX: i64 = 31_536_000;

async fn shown(chat: &Chat, group: &Group, member: &GroupMember) -> Result<MemberInfo, Error> {
    let account = chat.store.user(&member.user).await?;
    Ok(MemberInfo::new(group, member, account.as_deref()))
}

#[derive(Deserialize, IntoParams)]
struct MembersParams {
    #[param(value_type = String)]
    group_id: Option<String>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many at most: up to 1,000, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 100)]
    limit: Option<usize>,
}

async fn members(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<MembersParams>,
) -> Answer<GroupPage<MemberInfo>> {
    let found = async {
        let chat = &gateway.chat;
        let id = group_id(params.group_id.as_deref())?;
        let limit = limit(params.limit, 100, 1000);
        let after = cursor(params.cursor.as_deref(), UserId::parse)?;
        let (group, page) = group::members(chat, &caller, &id, after.as_ref(), limit).await?;
        let end = page.items.last().map(|member| member.user.to_string());
        let mut list = Vec::with_capacity(page.items.len());
        for member in &page.items {
            list.push(shown(chat, &group, member).await?);
        }
        let (has_more, next_cursor) = (page.has_more, end.filter(|_| page.has_more));
        Ok::<_, Error>(GroupPage { list, has_more, next_cursor, total: Some(group.members) })
    };
    asked.answer(found.await)
}

#[derive(Deserialize, IntoParams)]
struct MemberParams {
    #[param(value_type = String)]
    group_id: Option<String>,
    user_id: String,
}

/// One member, for members.
async fn member(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<MemberParams>,
) -> Answer<MemberInfo> {
    let found = async {
        let chat = &gateway.chat;
        let id = group_id(params.group_id.as_deref())?;
        let user = user_id(&params.user_id)?;
        let (group, member) = group::member(chat, &caller, &id, &user).await?;
        shown(chat, &group, &member).await
    };
    asked.answer(found.await)
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct ReadStateParams {
    #[param(value_type = String)]
    group_id: Option<String>,
}

/// How far everybody has come, for the ticks of a client that was away.
async fn read_state(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<ReadStateParams>,
) -> Answer<GroupReadState> {
    let found = async {
        let id = group_id(params.group_id.as_deref())?;
        let found = read::group_cursors(&gateway.chat, &caller, &id).await?;
        Ok::<_, Error>(GroupReadState::from(found))
    };
    asked.answer(found.await)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MemberInfoBody {
    #[schema(value_type = String)]
    group_id: Option<String>,
    /// Your name in this group; empty is that of your account.
    #[schema(max_length = 128)]
    group_nickname: Option<String>,
    group_avatar: Option<String>,
    /// Your app's own data, up to 4,096 bytes; the members see it.
    extra: Option<String>,
}

/// The caller as they want to be seen.
async fn set_profile(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<MemberInfoBody>,
) -> Answer<MemberInfo> {
    let set = async {
        let chat = &gateway.chat;
        let id = group_id(body.group_id.as_deref())?;
        let change = MemberProfileChange {
            nickname: body.group_nickname,
            avatar: body.group_avatar,
            extra: body.extra,
        };
        group::act(chat, &caller, &id, GroupAct::SetProfile(change)).await?;
        let (group, member) = group::member(chat, &caller, &id, &caller.user).await?;
        shown(chat, &group, &member).await
    };
    asked.answer(set.await)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct InviteBody {
    #[schema(value_type = String)]
    group_id: Option<String>,
    #[schema(min_items = 1)]
    user_ids: Vec<String>,
}

/// Those who are in already are skipped; the answer tells who came.
async fn invite(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<InviteBody>,
) -> Answer<Invited> {
    let invited = async {
        let id = group_id(body.group_id.as_deref())?;
        let users = user_ids(&body.user_ids)?;
        if users.is_empty() {
            return Err(Error::from(Reason::InvalidParam));
        }
        let decided = group::act(&gateway.chat, &caller, &id, GroupAct::Invite(users)).await?;
        Ok(Invited::from(&decided.joined[..]))
    };
    asked.answer(invited.await)
}

async fn leave(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<GroupBody>,
) -> Answer<Nothing> {
    let left = body.act(&gateway.chat, &caller, GroupAct::Leave).await;
    asked.answer(left.map(|_| Nothing))
}

/// A request about one person of a group.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct TargetBody {
    #[schema(value_type = String)]
    group_id: Option<String>,
    user_id: String,
}

impl TargetBody {
    async fn act(
        self,
        chat: &Chat,
        caller: &Caller,
        act: impl FnOnce(UserId) -> GroupAct,
    ) -> Result<Decided, Error> {
        let id = group_id(self.group_id.as_deref())?;
        group::act(chat, caller, &id, act(user_id(&self.user_id)?)).await
    }
}

async fn kick(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<TargetBody>,
) -> Answer<Nothing> {
    let kicked = body.act(&gateway.chat, &caller, GroupAct::Kick).await;
    asked.answer(kicked.map(|_| Nothing))
}

async fn transfer(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<TargetBody>,
) -> Answer<Nothing> {
    let given = body.act(&gateway.chat, &caller, GroupAct::Transfer).await;
    asked.answer(given.map(|_| Nothing))
}

/// A role by its number or its word.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
enum GivenRole {
    Number(i64),
    Word(String),
}

impl GivenRole {
    fn read(&self) -> Result<Role, Reason> {
        let role = match self {
            Self::Number(number) => words::role_at(*number),
            Self::Word(word) => words::read_role(word),
        };
        role.ok_or(Reason::InvalidParam)
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RoleBody {
    #[schema(value_type = String)]
    group_id: Option<String>,
    user_id: String,
    /// 0 or `member`, 1 or `admin`.
    role: GivenRole,
}

async fn set_role(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<RoleBody>,
) -> Answer<Nothing> {
    let set = async {
        let RoleBody { group_id, user_id, role } = body;
        let role = role.read()?;
        let target = TargetBody { group_id, user_id };
        target.act(&gateway.chat, &caller, |user| GroupAct::SetRole(user, role)).await
    };
    asked.answer(set.await.map(|_| Nothing))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MuteBody {
    #[schema(value_type = String)]
    group_id: Option<String>,
    user_id: String,
    /// Up to a year; -1 is for ever, 0 ends it.
    #[schema(minimum = -1, maximum = 31_536_000)]
    seconds: i64,
}

async fn mute(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<MuteBody>,
) -> Answer<Nothing> {
    let muted = async {
        let MuteBody { group_id, user_id, seconds } = body;
        let until = muted_until(seconds, gateway.chat.clock.now())?;
        let target = TargetBody { group_id, user_id };
        target.act(&gateway.chat, &caller, |user| GroupAct::Mute(user, until)).await
    };
    asked.answer(muted.await.map(|_| Nothing))
}

/// When a mute of so many seconds ends: -1 is never, 0 is now.
fn muted_until(seconds: i64, now: Millis) -> Result<Millis, Reason> {
    match u64::try_from(seconds) {
        Err(_) if seconds == -1 => Ok(FOR_EVER),
        Ok(0) => Ok(Millis(0)),
        Ok(some) if seconds <= MUTE_SECONDS_MAX => Ok(now.plus(some * 1000)),
        _ => Err(Reason::InvalidParam),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mute_lasts_up_to_a_year_or_for_ever() {
        let check = |seconds, expect| {
            assert_eq!(muted_until(seconds, Millis(5)), expect, "{seconds}");
        };
        check(-1, Ok(FOR_EVER));
        check(0, Ok(Millis(0)));
        check(1, Ok(Millis(1005)));
        check(31_536_000, Ok(Millis(31_536_000_005)));
        for bad in [-2, 31_536_001, i64::MIN, i64::MAX] {
            check(bad, Err(Reason::InvalidParam));
        }
    }
}
