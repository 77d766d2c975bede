//! The HTTP surface: the same port, the same domain, real status codes.

mod accounts;
mod answer;
mod conversations;
mod group_joining;
mod group_members;
mod group_reading;
mod groups;
mod messages;
mod operations;
mod reading;
mod socket;

use std::sync::Arc;

use axum::Router;
use axum::http::Uri;
use axum::response::Response;
use axum::routing::{get, post, put};
use nexo_chat::Reason;

use crate::gateway::Gateway;
use answer::Asked;

/// All paths.
pub fn router(gateway: Arc<Gateway>) -> Router {
    Router::new()
        .route("/", get(operations::welcome))
        .route("/healthz", get(operations::healthz))
        .route("/readyz", get(operations::readyz))
        .route("/metrics", get(operations::metrics))
        .route("/ws", get(socket::upgrade))
        .route("/user/register", post(accounts::register))
        .route("/user/info", get(accounts::info))
        .route("/user/update", put(accounts::update))
        .route("/user/change_password", post(accounts::change_password))
        .route("/user/get_users_online_status", post(accounts::online_status))
        .route("/auth/login", post(accounts::login))
        .route("/auth/refresh", post(accounts::refresh))
        .route("/auth/logout", post(accounts::logout))
        .route("/single-chat/message/cursor", get(reading::cursor))
        .route("/single-chat/message/since", get(reading::since))
        .route("/single-chat/conversation/cursor", get(reading::conversations))
        .route("/conversation/heads", get(reading::heads))
        .route("/conversation/changes", get(reading::changes))
        .route("/msg/send", post(messages::send))
        .route("/msg/send_without_mark_read", post(messages::send_without_mark_read))
        .route("/system/send", post(messages::system))
        .route("/msg/pull", get(messages::pull))
        .route("/msg/max_seq", get(messages::max_seq))
        .route("/msg/recall", post(messages::recall))
        .route("/msg/readers", get(messages::readers))
        .route("/msg/mentions", get(messages::mentioned))
        .route("/conversation/list", get(conversations::list).post(conversations::list))
        .route("/conversation/all", get(conversations::all).post(conversations::all))
        .route("/conversation/update", put(conversations::update))
        .route("/conversation/delete", post(conversations::delete))
        .route("/conversation/info", get(conversations::info))
        .route("/conversation/mark_read", post(conversations::mark_read))
        .route("/conversation/max_read_seq", get(conversations::max_read_seq))
        .route("/conversation/unread_count", get(conversations::unread_count))
        .route("/conversation/unread_total", get(conversations::unread_total))
        .route("/single-chat/member/state", get(reading::member_state))
        .merge(groups())
        .fallback(async |asked: Asked, _: Uri| -> Response { asked.refuse(Reason::NotFound) })
        .method_not_allowed_fallback(async |asked: Asked| -> Response {
            asked.refuse(Reason::MethodNotAllowed)
        })
        .with_state(gateway)
}

/// The paths of groups.
fn groups() -> Router<Arc<Gateway>> {
    Router::new()
        .route("/group/create", post(groups::create))
        .route("/group/info", get(groups::info))
        .route("/group/joined", get(groups::joined))
        .route("/group/update", put(groups::update))
        .route("/group/mute_all", post(groups::mute_all))
        .route("/group/reset_code", post(groups::reset_code))
        .route("/group/dissolve", post(groups::dissolve))
        .route("/group/dismiss", post(groups::dismiss))
        .route("/group/members", get(group_members::members))
        .route("/group/member", get(group_members::member))
        .route("/group/invite", post(group_members::invite))
        .route("/group/quit", post(group_members::leave))
        .route("/group/leave", post(group_members::leave))
        .route("/group/kick", post(group_members::kick))
        .route("/group/set_role", post(group_members::set_role))
        .route("/group/transfer", post(group_members::transfer))
        .route("/group/mute", post(group_members::mute))
        .route("/group/join", post(group_joining::join))
        .route("/group/join_request", post(group_joining::join))
        .route("/group/join_requests", get(group_joining::requests))
        .route("/group/join_decide", post(group_joining::decide))
        .route("/group/message/cursor", get(group_reading::cursor))
        .route("/group/message/since", get(group_reading::since))
        .route("/group/conversation/cursor", get(group_reading::conversations))
}

/// `/metrics` alone, open: for a listener that the operator keeps private.
pub fn metrics_router(gateway: Arc<Gateway>) -> Router {
    Router::new()
        .route("/metrics", get(operations::open_metrics))
        .fallback(async |asked: Asked| -> Response { asked.refuse(Reason::NotFound) })
        .with_state(gateway)
}
