//! What was said in groups, over the camelCase paths.

use std::sync::Arc;

use axum::extract::State;
use nexo_chat::conversations::{self as listing, Which};
use nexo_chat::ids::{ConversationId, GroupId, Seq};
use nexo_chat::{Error, Reason, group, read};
use nexo_wire::camel::{GroupLine, MessageEntity};
use serde::Deserialize;
use utoipa::IntoParams;

use super::answer::{Answers, Asked};
use super::named::group_id;
use super::paths::{Paths, paths};
use super::reading::{after, limit};
use super::taken::{Authenticated, Params};
use crate::gateway::Gateway;

type Shared = State<Arc<Gateway>>;

/// The paths of what was said in groups.
pub(super) fn paths(paths: &mut Paths) {
    paths! { paths:
        GET "/group/message/cursor" cursor, "Reads backwards: messages before `lastSeq`, newest first."
            [MissingGroupId GroupNotFound NotGroupMember]
        GET "/group/message/since" since, "Reads on: messages after `sinceSeq`, oldest first."
            [MissingGroupId GroupNotFound NotGroupMember]
        GET "/group/conversation/cursor" conversations, "Lists the conversations of groups."
            [GroupNotFound]
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
struct CursorParams {
    #[param(value_type = String)]
    group_id: Option<String>,
    /// How many at most: up to 100, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 20)]
    limit: Option<usize>,
    last_seq: Option<u64>,
}

async fn cursor(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<CursorParams>,
) -> Answers<MessageEntity> {
    let found = async {
        let limit = limit(params.limit, 20, 100);
        let id = group_id(params.group_id.as_deref())?;
        let conversation = group::conversation(&gateway.chat, &caller, &id).await?;
        let before = params.last_seq.map(Seq);
        read::history(&gateway.chat, &caller, &conversation, before, limit).await
    };
    asked.list(found.await, |it| Some(MessageEntity::from(&**it)))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
struct SinceParams {
    #[param(value_type = String)]
    group_id: Option<String>,
    /// How many at most: up to 200, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 50)]
    limit: Option<usize>,
    #[serde(default)]
    since_seq: u64,
}

async fn since(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<SinceParams>,
) -> Answers<MessageEntity> {
    let found = async {
        let limit = limit(params.limit, 50, 200);
        let id = group_id(params.group_id.as_deref())?;
        let conversation = group::conversation(&gateway.chat, &caller, &id).await?;
        read::since(&gateway.chat, &caller, &conversation, Seq(params.since_seq), limit).await
    };
    asked.list(found.await, |it| Some(MessageEntity::from(&**it)))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
struct ConversationParams {
    /// How many at most: up to 100, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 20)]
    limit: Option<usize>,
    /// With `lastId`, the last line of the page before.
    last_updated_at: Option<u64>,
    last_id: Option<String>,
}

/// The last line of a page is named by its group or by its conversation; no group id looks like a
/// conversation's.
fn last_line(id: &str) -> Result<ConversationId, Reason> {
    ConversationId::parse(id).or_else(|_| Ok(GroupId::parse(id)?.conversation()))
}

async fn conversations(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<ConversationParams>,
) -> Answers<GroupLine> {
    let found = async {
        let limit = limit(params.limit, 20, 100);
        let last = params.last_id.as_deref().map(last_line).transpose()?;
        let after = after(params.last_updated_at, last, None)?;
        let which = Which::Groups;
        let (page, _) = listing::list(&gateway.chat, &caller, which, after, limit).await?;
        Ok::<_, Error>(page)
    };
    asked.list(found.await, GroupLine::new)
}
