//! Messages over HTTP.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use nexo_chat::ids::MessageId;
use nexo_chat::{Error, recall as recalling};
use nexo_wire::http::MessageEntity;
use serde::Deserialize;

use super::answer::{Asked, Authenticated, Body};
use crate::gateway::Gateway;

type Shared = State<Arc<Gateway>>;

#[derive(Deserialize)]
pub(super) struct RecallBody {
    server_msg_id: String,
}

pub(super) async fn recall(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<RecallBody>,
) -> Response {
    let recalled = async {
        let id = MessageId::parse(&body.server_msg_id)?;
        let message = recalling::recall(&gateway.chat, &caller, id).await?;
        Ok::<_, Error>(MessageEntity::from(&*message))
    };
    asked.answer(recalled.await)
}
