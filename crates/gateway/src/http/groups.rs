//! Groups: made, shown, changed and ended.

use std::sync::Arc;

use axum::extract::State;
use nexo_chat::group::{self, Wanted};
use nexo_chat::ids::GroupId;
use nexo_chat::membership::{Group, GroupAct, GroupChange, GroupProfile, History, Joining};
use nexo_chat::model::Caller;
use nexo_chat::store::Decided;
use nexo_chat::{Chat, Error, Reason};
use nexo_wire::groups::{GroupCode, GroupInfo, GroupPage};
use nexo_wire::http::Nothing;
use nexo_wire::{shapes, words};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::answer::{Answer, Asked};
use super::named::{by_id_or_code, cursor, group_id, user_ids};
use super::paths::{Paths, paths};
use super::reading::limit;
use super::taken::{Authenticated, Body, Params};
use crate::gateway::Gateway;

type Shared = State<Arc<Gateway>>;

/// What anything done to a group may be refused for.
pub(super) const ACTING: [Reason; 5] = [
    Reason::MissingGroupId,
    Reason::GroupNotFound,
    Reason::GroupDissolved,
    Reason::NotGroupMember,
    Reason::MemberNotActive,
];

/// The paths of groups as such.
pub(super) fn paths(paths: &mut Paths) {
    paths.group("Groups", "Groups, who is in them, and what was said there.");
    paths! { paths:
        POST "/group/create" create, "Makes a group; you own it."
            [InvalidParam BadGroupName BadGroupProfile UserNotFound TooManyUsers GroupFull]
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

/// A group as the caller sees it now.
async fn shown(chat: &Chat, caller: &Caller, group: &Group) -> Result<GroupInfo, Error> {
    let member = chat.store.group_member(&group.id, &caller.user).await?;
    Ok(GroupInfo::new(group, member.as_ref()))
}

fn read_joining(word: Option<&str>) -> Result<Option<Joining>, Reason> {
    word.map(|word| words::read_joining(word).ok_or(Reason::InvalidParam)).transpose()
}

fn read_history(word: Option<&str>) -> Result<Option<History>, Reason> {
    word.map(|word| words::read_history(word).ok_or(Reason::InvalidParam)).transpose()
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "Friends", "member_ids": ["bob"] }))]
struct CreateGroupBody {
    #[serde(default)]
    #[schema(required, min_length = 1, max_length = 128)]
    name: String,
    #[serde(default)]
    introduction: String,
    #[serde(default)]
    announcement: String,
    #[serde(default)]
    avatar: String,
    #[serde(default)]
    extra: String,
    /// A number of your app's own.
    #[serde(default)]
    group_type: i32,
    #[serde(default)]
    member_ids: Vec<String>,
    /// How one comes in.
    #[schema(schema_with = shapes::joining)]
    join_type: Option<String>,
    /// What newcomers see: from when they joined, or all of it.
    #[schema(schema_with = shapes::history)]
    history: Option<String>,
}

impl CreateGroupBody {
    fn wanted(self) -> Result<Wanted, Reason> {
        let Self { name, introduction, announcement, avatar, extra, group_type, .. } = self;
        Ok(Wanted {
            profile: GroupProfile { name, introduction, announcement, avatar, extra, group_type },
            joining: read_joining(self.join_type.as_deref())?.unwrap_or_default(),
            history: read_history(self.history.as_deref())?.unwrap_or_default(),
            members: user_ids(&self.member_ids)?,
            least: 1, // over HTTP somebody may begin alone
        })
    }
}

async fn create(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<CreateGroupBody>,
) -> Answer<GroupInfo> {
    let created = async {
        let group = group::create(&gateway.chat, &caller, body.wanted()?).await?;
        shown(&gateway.chat, &caller, &group).await
    };
    asked.answer(created.await)
}

#[derive(Deserialize, IntoParams)]
struct InfoParams {
    group_id: Option<String>,
    group_code: Option<String>,
}

async fn info(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<InfoParams>,
) -> Answer<GroupInfo> {
    let found = async {
        let (id, code) = (params.group_id.as_deref(), params.group_code.as_deref());
        let id = by_id_or_code(&gateway.chat, &caller, id, code).await?;
        let (group, member) = group::info(&gateway.chat, &caller, &id).await?;
        Ok::<_, Error>(GroupInfo::new(&group, member.as_ref()))
    };
    asked.answer(found.await)
}

#[derive(Deserialize, IntoParams)]
struct JoinedParams {
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many at most: up to 1,000, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 100)]
    limit: Option<usize>,
}

async fn joined(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<JoinedParams>,
) -> Answer<GroupPage<GroupInfo>> {
    let found = async {
        let limit = limit(params.limit, 100, 1000);
        let after = cursor(params.cursor.as_deref(), GroupId::parse)?;
        let page = group::joined(&gateway.chat, &caller, after.as_ref(), limit).await?;
        let end = page.items.last().map(|group| group.id.to_string());
        let mut list = Vec::with_capacity(page.items.len());
        for group in &page.items {
            list.push(shown(&gateway.chat, &caller, group).await?);
        }
        let (has_more, next_cursor) = (page.has_more, end.filter(|_| page.has_more));
        Ok::<_, Error>(GroupPage { list, has_more, next_cursor, total: None })
    };
    asked.answer(found.await)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UpdateGroupBody {
    #[schema(value_type = String)]
    group_id: Option<String>,
    #[schema(min_length = 1, max_length = 128)]
    name: Option<String>,
    introduction: Option<String>,
    announcement: Option<String>,
    avatar: Option<String>,
    extra: Option<String>,
    #[schema(schema_with = shapes::joining)]
    join_type: Option<String>,
    #[schema(schema_with = shapes::history)]
    history: Option<String>,
}

impl UpdateGroupBody {
    fn change(self) -> Result<GroupChange, Reason> {
        let joining = read_joining(self.join_type.as_deref())?;
        let history = read_history(self.history.as_deref())?;
        let Self { name, introduction, announcement, avatar, extra, .. } = self;
        Ok(GroupChange { name, introduction, announcement, avatar, extra, joining, history })
    }
}

async fn update(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<UpdateGroupBody>,
) -> Answer<GroupInfo> {
    let updated = async {
        let id = group_id(body.group_id.as_deref())?;
        let act = GroupAct::Update(body.change()?);
        let decided = group::act(&gateway.chat, &caller, &id, act).await?;
        shown(&gateway.chat, &caller, &decided.group).await
    };
    asked.answer(updated.await)
}

/// A request that only names a group.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupBody {
    #[schema(value_type = String)]
    group_id: Option<String>,
}

impl GroupBody {
    /// Does something to the group.
    pub(super) async fn act(
        self,
        chat: &Chat,
        caller: &Caller,
        act: GroupAct,
    ) -> Result<Decided, Error> {
        let id = group_id(self.group_id.as_deref())?;
        group::act(chat, caller, &id, act).await
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MuteAllBody {
    #[schema(value_type = String)]
    group_id: Option<String>,
    on: bool,
}

async fn mute_all(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<MuteAllBody>,
) -> Answer<Nothing> {
    let MuteAllBody { group_id, on } = body;
    let muted = GroupBody { group_id }.act(&gateway.chat, &caller, GroupAct::MuteAll(on)).await;
    asked.answer(muted.map(|_| Nothing))
}

async fn reset_code(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<GroupBody>,
) -> Answer<GroupCode> {
    let act = GroupAct::ResetCode(group::draw_code(&gateway.chat));
    let reset = body.act(&gateway.chat, &caller, act).await;
    asked.answer(reset.map(|decided| GroupCode::from(&*decided.group)))
}

async fn dissolve(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<GroupBody>,
) -> Answer<Nothing> {
    let ended = body.act(&gateway.chat, &caller, GroupAct::Dissolve).await;
    asked.answer(ended.map(|_| Nothing))
}

async fn dismiss(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<GroupBody>,
) -> Answer<Nothing> {
    let ended = body.act(&gateway.chat, &caller, GroupAct::Dismiss).await;
    asked.answer(ended.map(|_| Nothing))
}
