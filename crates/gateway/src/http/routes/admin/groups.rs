//! Groups.

use axum::extract::State;
use nexo_chat::Error;
use nexo_chat::admin::groups::{self, GroupOrder};
use nexo_chat::ids::{GroupId, UserId};
use nexo_wire::http::admin::PageParams;
use nexo_wire::http::admin::groups::{
    AddedMembers, AdminGroup, AdminGroupPage, AdminMember, AdminMemberPage, GroupsParams,
    ManyUsersBody, OneUserBody,
};
use nexo_wire::parse_ids::{user_id, user_ids};

use crate::http::extract::{Body, EmptyBody, GatewayState, Params};
use crate::http::openapi::paths::{Paths, paths};
use crate::http::paging::{page_cursor, page_size};
use crate::http::path_id::PathId;
use crate::http::response::{ApiResponse, RequestContext};
use crate::http::with_key::{Admin, WithKey};

pub(super) fn paths(paths: &mut Paths) {
    paths! { paths:
        GET "/admin/groups" list, "Lists and searches groups, by id; ended ones too." []
        GET "/admin/groups/{group_id}" get, "Shows a group." []
        GET "/admin/groups/{group_id}/members" members, "Lists the members of a group, by id." []
        POST "/admin/groups/{group_id}/dissolve" dissolve, "Ends a group; its messages stay." [GroupDissolved]
        POST "/admin/groups/{group_id}/transfer" transfer, "Makes a member the owner."
            [GroupDissolved UserNotFound TargetNotMember CannotTouchOwner]
        POST "/admin/groups/{group_id}/add" add, "Adds users to a group."
            [GroupDissolved UserNotFound GroupFull TooManyUsers]
        POST "/admin/groups/{group_id}/remove" remove, "Removes a member, except the owner."
            [GroupDissolved UserNotFound TargetNotMember CannotTouchOwner]
    }
}

async fn list(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    Params(params): Params<GroupsParams>,
) -> ApiResponse<AdminGroupPage> {
    let found = async {
        let after = page_cursor(params.cursor.as_deref(), GroupId::parse)?;
        let limit = page_size(params.limit, 100, 1000);
        let text = params.search.unwrap_or_default();
        let (page, next) = groups::list(&gateway.chat, &operator, &text, after, limit).await?;
        Ok::<_, Error>(AdminGroupPage {
            groups: page.items.iter().map(|group| AdminGroup::from(&**group)).collect(),
            has_more: page.has_more,
            next_cursor: next.map(|id| id.to_string()),
        })
    };
    context.respond(found.await)
}

async fn get(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    PathId(id): PathId<GroupId>,
) -> ApiResponse<AdminGroup> {
    let found = groups::get(&gateway.chat, &operator, &id).await;
    context.respond(found.map(|group| AdminGroup::from(&*group)))
}

async fn members(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    PathId(id): PathId<GroupId>,
    Params(params): Params<PageParams>,
) -> ApiResponse<AdminMemberPage> {
    let found = async {
        let after = page_cursor(params.cursor.as_deref(), UserId::parse)?;
        let limit = page_size(params.limit, 100, 1000);
        let chat = &gateway.chat;
        let (group, page) = groups::members(chat, &operator, &id, after.as_ref(), limit).await?;
        let next = page.items.last().filter(|_| page.has_more).map(|last| last.user.to_string());
        Ok::<_, Error>(AdminMemberPage {
            members: page.items.iter().map(|member| AdminMember::new(&group, member)).collect(),
            has_more: page.has_more,
            next_cursor: next,
        })
    };
    context.respond(found.await)
}

async fn dissolve(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    PathId(id): PathId<GroupId>,
    _: EmptyBody,
) -> ApiResponse<AdminGroup> {
    let ended = groups::change(&gateway.chat, &operator, &id, GroupOrder::Dissolve).await;
    context.respond(ended.map(|(group, _)| AdminGroup::from(&*group)))
}

async fn transfer(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    PathId(id): PathId<GroupId>,
    Body(body): Body<OneUserBody>,
) -> ApiResponse<AdminGroup> {
    let changed = async {
        let order = GroupOrder::Transfer(user_id(&body.user_id)?);
        groups::change(&gateway.chat, &operator, &id, order).await
    };
    context.respond(changed.await.map(|(group, _)| AdminGroup::from(&*group)))
}

async fn add(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    PathId(id): PathId<GroupId>,
    Body(body): Body<ManyUsersBody>,
) -> ApiResponse<AddedMembers> {
    let changed = async {
        let order = GroupOrder::Add(user_ids(&body.user_ids)?);
        groups::change(&gateway.chat, &operator, &id, order).await
    };
    let names = |users: Vec<UserId>| users.iter().map(ToString::to_string).collect();
    context.respond(changed.await.map(|(_, joined)| AddedMembers { joined: names(joined) }))
}

async fn remove(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    PathId(id): PathId<GroupId>,
    Body(body): Body<OneUserBody>,
) -> ApiResponse<AdminGroup> {
    let changed = async {
        let order = GroupOrder::Remove(user_id(&body.user_id)?);
        groups::change(&gateway.chat, &operator, &id, order).await
    };
    context.respond(changed.await.map(|(group, _)| AdminGroup::from(&*group)))
}
