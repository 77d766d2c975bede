//! Creates, shows, changes and ends groups.

use axum::extract::State;
use nexo_chat::ids::GroupId;
use nexo_chat::membership::{Group, GroupAction};
use nexo_chat::model::Caller;
use nexo_chat::store::GroupOutcome;
use nexo_chat::{Chat, Error, Reason, group};
use nexo_wire::http::envelope::NoData;
use nexo_wire::http::groups::{
    CreateGroupBody, GroupBody, GroupCode, GroupInfo, GroupInfoParams, GroupPage,
    JoinedGroupsParams, MuteAllBody, UpdateGroupBody,
};
use nexo_wire::parse_ids::group_id;

use crate::http::extract::{Authenticated, Body, GatewayState, Params};
use crate::http::openapi::paths::{Paths, paths};
use crate::http::paging::{page_cursor, page_size};
use crate::http::response::{ApiResponse, RequestContext};

/// Why any action on a group may be refused.
pub(in crate::http) const ACTING: [Reason; 5] = [
    Reason::MissingGroupId,
    Reason::GroupNotFound,
    Reason::GroupDissolved,
    Reason::NotGroupMember,
    Reason::MemberNotActive,
];

pub(in crate::http) fn paths(paths: &mut Paths) {
    paths.group("Groups", "Groups, who is in them, and what was said there.");
    paths! { paths:
        POST "/group/create" create, "Makes a group; you own it."
            [InvalidParam BadGroupName BadGroupProfile UserNotFound TooManyUsers GroupFull TooManyGroups]
        GET "/group/info" info, "Shows a group by its id or by its code; members see more."
            [MissingGroupId GroupNotFound GroupDissolved MemberNotActive]
        GET "/group/joined" joined, "Lists the groups you are in." []
        PUT "/group/update" update, "Changes a group: what is given is taken, the rest stays. For owner and admins.",
            ACTING [InvalidParam BadGroupName BadGroupProfile NotGroupAdmin]
        POST "/group/mute_all" mute_all, "Lets only owner and admins speak, or everybody again. For owner and admins.",
            ACTING [NotGroupAdmin]
        POST "/group/reset_code" reset_code, "Makes a new join code, once a day. For owner and admins.",
            ACTING [NotGroupAdmin CooldownNotReached]
        POST "/group/dissolve" dissolve, "Ends a group; what was said stays. For the owner.",
            ACTING [NotGroupOwner]
        POST "/group/dismiss" dismiss, "Ends a group and forgets its profile; what was said stays. For the owner.",
            ACTING [NotGroupOwner]
    }
}

/// A group by its id, or by its join code.
pub(in crate::http) async fn by_id_or_code(
    chat: &Chat,
    caller: &Caller,
    id: Option<&str>,
    code: Option<&str>,
) -> Result<GroupId, Error> {
    match (id.filter(|id| !id.is_empty()), code) {
        (None, Some(code)) => group::find_by_code(chat, caller, code).await,
        (id, _) => Ok(group_id(id)?),
    }
}

/// A group with what the caller may see of it as a member.
async fn group_info(chat: &Chat, caller: &Caller, group: &Group) -> Result<GroupInfo, Error> {
    let member = chat.store.group_member(&group.id, &caller.user).await?;
    Ok(GroupInfo::new(group, member.as_ref()))
}

async fn create(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<CreateGroupBody>,
) -> ApiResponse<GroupInfo> {
    let created = async {
        let group = group::create(&gateway.chat, &caller, body.into_request()?).await?;
        group_info(&gateway.chat, &caller, &group).await
    };
    context.respond(created.await)
}

async fn info(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<GroupInfoParams>,
) -> ApiResponse<GroupInfo> {
    let found = async {
        let (id, code) = (params.group_id.as_deref(), params.group_code.as_deref());
        let id = by_id_or_code(&gateway.chat, &caller, id, code).await?;
        let (group, member) = group::info(&gateway.chat, &caller, &id).await?;
        Ok::<_, Error>(GroupInfo::new(&group, member.as_ref()))
    };
    context.respond(found.await)
}

async fn joined(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<JoinedGroupsParams>,
) -> ApiResponse<GroupPage<GroupInfo>> {
    let found = async {
        let limit = page_size(params.limit, 100, 1000);
        let after = page_cursor(params.cursor.as_deref(), GroupId::parse)?;
        let page = group::joined_groups(&gateway.chat, &caller, after.as_ref(), limit).await?;
        let end = page.items.last().map(|group| group.id.to_string());
        let mut list = Vec::with_capacity(page.items.len());
        for group in &page.items {
            list.push(group_info(&gateway.chat, &caller, group).await?);
        }
        let (has_more, next_cursor) = (page.has_more, end.filter(|_| page.has_more));
        Ok::<_, Error>(GroupPage { list, has_more, next_cursor, total: None })
    };
    context.respond(found.await)
}

async fn update(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<UpdateGroupBody>,
) -> ApiResponse<GroupInfo> {
    let updated = async {
        let id = group_id(body.group_id.as_deref())?;
        let action = GroupAction::Update(body.into_change()?);
        let outcome = group::apply(&gateway.chat, &caller, &id, action).await?;
        group_info(&gateway.chat, &caller, &outcome.group).await
    };
    context.respond(updated.await)
}

/// Does something to the group that a request names.
async fn act(
    chat: &Chat,
    caller: &Caller,
    id: Option<&str>,
    action: GroupAction,
) -> Result<GroupOutcome, Error> {
    group::apply(chat, caller, &group_id(id)?, action).await
}

/// Does something to a group; the answer has no data.
pub(in crate::http) async fn act_only(
    chat: &Chat,
    caller: &Caller,
    body: GroupBody,
    action: GroupAction,
) -> Result<NoData, Error> {
    act(chat, caller, body.group_id.as_deref(), action).await.map(|_| NoData)
}

async fn mute_all(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<MuteAllBody>,
) -> ApiResponse<NoData> {
    let MuteAllBody { group_id, on } = body;
    let group = GroupBody { group_id };
    context.respond(act_only(&gateway.chat, &caller, group, GroupAction::MuteAll(on)).await)
}

async fn reset_code(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<GroupBody>,
) -> ApiResponse<GroupCode> {
    let action = GroupAction::ResetCode(group::generate_join_code(&gateway.chat));
    let reset = act(&gateway.chat, &caller, body.group_id.as_deref(), action).await;
    context.respond(reset.map(|outcome| GroupCode::from(&*outcome.group)))
}

async fn dissolve(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<GroupBody>,
) -> ApiResponse<NoData> {
    context.respond(act_only(&gateway.chat, &caller, body, GroupAction::Dissolve).await)
}

async fn dismiss(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<GroupBody>,
) -> ApiResponse<NoData> {
    context.respond(act_only(&gateway.chat, &caller, body, GroupAction::Dismiss).await)
}
