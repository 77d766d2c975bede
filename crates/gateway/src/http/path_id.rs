//! Ids in paths, such as `/admin/users/{user_id}`.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::response::Response;
use nexo_chat::Reason;
use nexo_chat::ids::{GroupId, MessageId, UserId};
use serde_json::json;

use crate::gateway::Gateway;
use crate::http::openapi::describe::{DescribeExtractor, Operation};
use crate::http::response::RequestContext;

/// The id in a path.
pub(super) struct PathId<T>(pub(super) T);

/// What a path can have as its id.
pub(super) trait InPath: Sized {
    /// The name between the braces.
    const NAME: &'static str;
    /// Why a text that cannot be an id is refused.
    const UNKNOWN: Reason;

    fn parse(text: &str) -> Option<Self>;
}

impl InPath for UserId {
    const NAME: &'static str = "user_id";
    const UNKNOWN: Reason = Reason::UserNotFound;

    fn parse(text: &str) -> Option<Self> {
        Self::parse(text).ok()
    }
}

impl InPath for GroupId {
    const NAME: &'static str = "group_id";
    const UNKNOWN: Reason = Reason::GroupNotFound;

    fn parse(text: &str) -> Option<Self> {
        Self::parse(text).ok()
    }
}

impl InPath for MessageId {
    const NAME: &'static str = "server_msg_id";
    const UNKNOWN: Reason = Reason::MessageNotFound;

    fn parse(text: &str) -> Option<Self> {
        Self::parse(text).ok()
    }
}

/// The id of an API key.
pub(super) struct KeyId(pub(super) String);

impl InPath for KeyId {
    const NAME: &'static str = "key_id";
    const UNKNOWN: Reason = Reason::NotFound;

    fn parse(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
    }
}

/// The id of an invite link.
pub(super) struct InviteId(pub(super) String);

impl InPath for InviteId {
    const NAME: &'static str = "invite_id";
    const UNKNOWN: Reason = Reason::NotFound;

    fn parse(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
    }
}

/// The id of a broadcast.
pub(super) struct BroadcastId(pub(super) String);

impl InPath for BroadcastId {
    const NAME: &'static str = "broadcast_id";
    const UNKNOWN: Reason = Reason::NotFound;

    fn parse(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
    }
}

impl<T: InPath> FromRequestParts<Arc<Gateway>> for PathId<T> {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Response> {
        let text = Path::<String>::from_request_parts(parts, gateway).await;
        let id = text.ok().and_then(|Path(text)| T::parse(&text));
        id.map(Self).ok_or_else(|| RequestContext::new(gateway, parts).refuse(T::UNKNOWN))
    }
}

impl<T: InPath> DescribeExtractor for PathId<T> {
    fn describe(operation: &mut Operation) {
        operation.parameters.push(json!({
            "name": T::NAME, "in": "path", "required": true, "schema": { "type": "string" },
        }));
        operation.reasons.push(T::UNKNOWN);
    }
}
