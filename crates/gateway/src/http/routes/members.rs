//! Group members: their profiles, roles, mutes and read state.

use axum::extract::State;
use nexo_chat::ids::UserId;
use nexo_chat::membership::{Group, GroupAction, GroupMember, MemberProfileChange};
use nexo_chat::model::Caller;
use nexo_chat::{Chat, DetailedReason, Error, group, read};
use nexo_wire::http::envelope::NoData;
use nexo_wire::http::groups::{GroupBody, GroupPage};
use nexo_wire::http::members::{
    GroupPageParams, GroupReadState, GroupReadStateParams, InviteBody, InviteResult, MemberInfo,
    MemberInfoBody, MemberParams, MuteBody, RoleBody, TargetBody,
};

use nexo_wire::parse_ids::{group_id, user_id, user_ids};

use crate::http::extract::{Authenticated, Body, GatewayState, Params};
use crate::http::openapi::paths::{Paths, paths};
use crate::http::paging::{page_cursor, page_size};
use crate::http::response::{ApiResponse, RequestContext};
use crate::http::routes::groups::{ACTING, act_only};

pub(in crate::http) fn paths(paths: &mut Paths) {
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

async fn member_info(
    chat: &Chat,
    group: &Group,
    member: &GroupMember,
) -> Result<MemberInfo, Error> {
    let account = chat.store.user(&member.user).await?;
    Ok(MemberInfo::new(group, member, account.as_deref()))
}

async fn members(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<GroupPageParams>,
) -> ApiResponse<GroupPage<MemberInfo>> {
    let found = async {
        let chat = &gateway.chat;
        let id = group_id(params.group_id.as_deref())?;
        let limit = page_size(params.limit, 100, 1000);
        let after = page_cursor(params.cursor.as_deref(), UserId::parse)?;
        let (group, page) = group::members(chat, &caller, &id, after.as_ref(), limit).await?;
        let end = page.items.last().map(|member| member.user.to_string());
        let mut list = Vec::with_capacity(page.items.len());
        for member in &page.items {
            list.push(member_info(chat, &group, member).await?);
        }
        let (has_more, next_cursor) = (page.has_more, end.filter(|_| page.has_more));
        Ok::<_, Error>(GroupPage { list, has_more, next_cursor, total: Some(group.members) })
    };
    context.respond(found.await)
}

async fn member(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<MemberParams>,
) -> ApiResponse<MemberInfo> {
    let found = async {
        let chat = &gateway.chat;
        let id = group_id(params.group_id.as_deref())?;
        let user = user_id(&params.user_id)?;
        let (group, member) = group::member(chat, &caller, &id, &user).await?;
        member_info(chat, &group, &member).await
    };
    context.respond(found.await)
}

/// The cursors of every member: a client that was offline has missed their receipts.
async fn read_state(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<GroupReadStateParams>,
) -> ApiResponse<GroupReadState> {
    let found = async {
        let id = group_id(params.group_id.as_deref())?;
        let found = read::group_cursors(&gateway.chat, &caller, &id).await?;
        Ok::<_, Error>(GroupReadState::from(found))
    };
    context.respond(found.await)
}

async fn set_profile(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<MemberInfoBody>,
) -> ApiResponse<MemberInfo> {
    let set = async {
        let chat = &gateway.chat;
        let id = group_id(body.group_id.as_deref())?;
        let change = MemberProfileChange {
            nickname: body.group_nickname,
            avatar: body.group_avatar,
            extra: body.extra,
        };
        group::apply(chat, &caller, &id, GroupAction::SetProfile(change)).await?;
        let (group, member) = group::member(chat, &caller, &id, &caller.user).await?;
        member_info(chat, &group, &member).await
    };
    context.respond(set.await)
}

/// Skips users who are members already; the answer lists those who joined.
async fn invite(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<InviteBody>,
) -> ApiResponse<InviteResult> {
    let invited = async {
        let id = group_id(body.group_id.as_deref())?;
        let users = user_ids(&body.user_ids)?;
        if users.is_empty() {
            return Err(Error::from(DetailedReason::field("user_ids")));
        }
        let outcome = group::apply(&gateway.chat, &caller, &id, GroupAction::Invite(users)).await?;
        Ok(InviteResult::from(&outcome.joined[..]))
    };
    context.respond(invited.await)
}

async fn leave(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<GroupBody>,
) -> ApiResponse<NoData> {
    context.respond(act_only(&gateway.chat, &caller, body, GroupAction::Leave).await)
}

/// Does something to one member; the answer has no data.
async fn act_on_member(
    chat: &Chat,
    caller: &Caller,
    body: TargetBody,
    action: impl FnOnce(UserId) -> GroupAction,
) -> Result<NoData, Error> {
    let id = group_id(body.group_id.as_deref())?;
    let action = action(user_id(&body.user_id)?);
    group::apply(chat, caller, &id, action).await.map(|_| NoData)
}

async fn kick(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<TargetBody>,
) -> ApiResponse<NoData> {
    context.respond(act_on_member(&gateway.chat, &caller, body, GroupAction::Kick).await)
}

async fn transfer(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<TargetBody>,
) -> ApiResponse<NoData> {
    context.respond(act_on_member(&gateway.chat, &caller, body, GroupAction::Transfer).await)
}

async fn set_role(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<RoleBody>,
) -> ApiResponse<NoData> {
    let set = async {
        let RoleBody { group_id, user_id, role } = body;
        let role = role.role()?;
        let target = TargetBody { group_id, user_id };
        let set_role = |user| GroupAction::SetRole(user, role);
        act_on_member(&gateway.chat, &caller, target, set_role).await
    };
    context.respond(set.await)
}

async fn mute(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<MuteBody>,
) -> ApiResponse<NoData> {
    let muted = async {
        let until = body.until(gateway.chat.clock.now())?;
        let MuteBody { group_id, user_id, .. } = body;
        let target = TargetBody { group_id, user_id };
        let mute = |user| GroupAction::Mute(user, until);
        act_on_member(&gateway.chat, &caller, target, mute).await
    };
    context.respond(muted.await)
}
