//! Accounts and sign-ins.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use nexo_chat::auth::{self, Register};
use nexo_chat::ids::{Platform, UserId};
use nexo_chat::model::{Profile, ProfileChange};
use nexo_chat::{Error, Reason, presence, profile};
use nexo_wire::http::{Nothing, OnlineStatus, SignedIn, UserInfo};
use serde::Deserialize;

use super::answer::{Asked, Authenticated, Body, Params};
use crate::gateway::Gateway;

type Shared = State<Arc<Gateway>>;

#[derive(Deserialize)]
pub(super) struct RegisterBody {
    user_id: Option<String>,
    #[serde(default)]
    nickname: String,
    password: String,
    #[serde(default)]
    avatar: String,
    #[serde(default)]
    extra: String,
}

pub(super) async fn register(
    State(gateway): Shared,
    asked: Asked,
    Body(body): Body<RegisterBody>,
) -> Response {
    let wanted = Register {
        user_id: body.user_id,
        profile: Profile { nickname: body.nickname, avatar: body.avatar, extra: body.extra },
        password: body.password,
    };
    let created = auth::register(&gateway.chat, asked.from, wanted).await;
    asked.answer(created.map(|user| UserInfo::from(&user)))
}

#[derive(Deserialize)]
pub(super) struct LoginBody {
    user_id: String,
    password: String,
    #[serde(default)]
    platform_id: i32,
}

pub(super) async fn login(
    State(gateway): Shared,
    asked: Asked,
    Body(body): Body<LoginBody>,
) -> Response {
    let LoginBody { user_id, password, platform_id } = body;
    let platform = Platform(platform_id);
    let signed = auth::login(&gateway.chat, asked.from, &user_id, password, platform).await;
    asked.answer(signed.map(|(tokens, user)| SignedIn::new(tokens, &user)))
}

#[derive(Deserialize)]
pub(super) struct RefreshBody {
    #[serde(alias = "refreshToken")]
    refresh_token: String,
}

pub(super) async fn refresh(
    State(gateway): Shared,
    asked: Asked,
    Body(body): Body<RefreshBody>,
) -> Response {
    let renewed = auth::refresh(&gateway.chat, &body.refresh_token).await;
    asked.answer(renewed.map(|(tokens, user)| SignedIn::new(tokens, &user)))
}

pub(super) async fn logout(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
) -> Response {
    asked.answer(auth::logout(&gateway.chat, &caller).await.map(|()| Nothing))
}

#[derive(Deserialize)]
pub(super) struct ChangePasswordBody {
    old_password: String,
    new_password: String,
}

pub(super) async fn change_password(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<ChangePasswordBody>,
) -> Response {
    let ChangePasswordBody { old_password, new_password } = body;
    let changed = auth::change_password(&gateway.chat, &caller, old_password, new_password).await;
    asked.answer(changed.map(|()| Nothing))
}

#[derive(Deserialize)]
pub(super) struct InfoParams {
    user_id: Option<String>,
}

pub(super) async fn info(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<InfoParams>,
) -> Response {
    let found = async {
        let id = match params.user_id {
            Some(id) => UserId::parse(&id).map_err(|_| Reason::UserNotFound)?,
            None => caller.user,
        };
        let user = profile::profile(&gateway.chat, &id).await?;
        Ok::<_, Error>(UserInfo::from(&*user))
    };
    asked.answer(found.await)
}

#[derive(Deserialize)]
pub(super) struct UpdateBody {
    nickname: Option<String>,
    avatar: Option<String>,
    extra: Option<String>,
}

pub(super) async fn update(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<UpdateBody>,
) -> Response {
    let UpdateBody { nickname, avatar, extra } = body;
    let change = ProfileChange { nickname, avatar, extra };
    let updated = profile::update(&gateway.chat, &caller, change).await;
    asked.answer(updated.map(|user| UserInfo::from(&user)))
}

#[derive(Deserialize)]
pub(super) struct OnlineStatusBody {
    user_ids: Vec<String>,
}

pub(super) async fn online_status(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<OnlineStatusBody>,
) -> Response {
    let found = async {
        if !(1..=100).contains(&body.user_ids.len()) {
            return Err(Error::from(Reason::InvalidParam));
        }
        let users: Result<Vec<UserId>, Reason> =
            body.user_ids.iter().map(|id| UserId::parse(id)).collect();
        let seen = presence::presence(&gateway.chat, &caller, users?).await?;
        Ok(seen.iter().map(OnlineStatus::from).collect::<Vec<_>>())
    };
    asked.answer(found.await)
}
