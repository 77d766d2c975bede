//! Accounts and sign-ins.

use std::sync::Arc;

use axum::extract::State;
use nexo_chat::auth::{self, Register};
use nexo_chat::ids::{Platform, UserId};
use nexo_chat::model::{Profile, ProfileChange};
use nexo_chat::{Error, Reason, presence, profile};
use nexo_wire::http::{Nothing, OnlineStatus, SignedIn, UserInfo};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::answer::{Answer, Asked};
use super::paths::{Paths, paths};
use super::taken::{Authenticated, Body, Params};
use crate::gateway::Gateway;

type Shared = State<Arc<Gateway>>;

/// The paths of accounts.
pub(super) fn paths(paths: &mut Paths) {
    paths.group("Accounts", "Making an account, signing in, and who people are.");
    paths! { paths:
        POST "/user/register" register, "Makes an account."
            [BadUserId UserExists BadNickname BadPassword BadProfile TooManyRequests]
        POST "/auth/login" login, "Signs in on a device and gives its tokens."
            [LoginFailed TooManyRequests]
        POST "/auth/refresh" refresh, "Gives new tokens for a refresh token, which is used up by this."
            [InvalidRefreshToken]
        POST "/auth/logout" logout, "Ends this sign-in, its sockets too." []
        POST "/user/change_password" change_password, "Changes the password and ends every sign-in."
            [LoginFailed BadPassword]
        GET "/user/info" info, "Shows a person; without `user_id` yourself." [UserNotFound]
        PUT "/user/update" update, "Changes your profile: what is given is taken, the rest stays."
            [BadNickname BadProfile UserNotFound]
        POST "/user/get_users_online_status" online_status,
            "Tells who of these people is online, as far as it is yours to know."
            [InvalidParam BadUserId]
    }
}

#[derive(Deserialize, ToSchema)]
#[schema(example = json!({ "user_id": "alice", "nickname": "Alice", "password": "correct horse" }))]
struct RegisterBody {
    /// The wanted id; without one the server makes it.
    #[schema(pattern = "^[A-Za-z0-9.-]{1,64}$")]
    user_id: Option<String>,
    #[serde(default)]
    #[schema(required, min_length = 1, max_length = 128)]
    nickname: String,
    #[schema(min_length = 8, max_length = 128)]
    password: String,
    #[serde(default)]
    avatar: String,
    #[serde(default)]
    extra: String,
}

async fn register(
    State(gateway): Shared,
    asked: Asked,
    Body(body): Body<RegisterBody>,
) -> Answer<UserInfo> {
    let wanted = Register {
        user_id: body.user_id,
        profile: Profile { nickname: body.nickname, avatar: body.avatar, extra: body.extra },
        password: body.password,
    };
    let created = auth::register(&gateway.chat, asked.from, wanted).await;
    asked.answer(created.map(|user| UserInfo::from(&user)))
}

#[derive(Deserialize, ToSchema)]
#[schema(example = json!({ "user_id": "alice", "password": "correct horse", "platform_id": 5 }))]
struct LoginBody {
    user_id: String,
    password: String,
    /// 1 iOS, 2 Android, 3 Windows, 4 macOS, 5 Web; anything else is a device without a name.
    #[serde(default)]
    platform_id: i32,
}

async fn login(
    State(gateway): Shared,
    asked: Asked,
    Body(body): Body<LoginBody>,
) -> Answer<SignedIn> {
    let LoginBody { user_id, password, platform_id } = body;
    let platform = Platform(platform_id);
    let signed = auth::login(&gateway.chat, asked.from, &user_id, password, platform).await;
    asked.answer(signed.map(|(tokens, user)| SignedIn::new(tokens, &user)))
}

#[derive(Deserialize, ToSchema)]
struct RefreshBody {
    /// What signing in or the last refresh gave; `refreshToken` is understood too.
    #[serde(alias = "refreshToken")]
    refresh_token: String,
}

async fn refresh(
    State(gateway): Shared,
    asked: Asked,
    Body(body): Body<RefreshBody>,
) -> Answer<SignedIn> {
    let renewed = auth::refresh(&gateway.chat, &body.refresh_token).await;
    asked.answer(renewed.map(|(tokens, user)| SignedIn::new(tokens, &user)))
}

async fn logout(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
) -> Answer<Nothing> {
    asked.answer(auth::logout(&gateway.chat, &caller).await.map(|()| Nothing))
}

#[derive(Deserialize, ToSchema)]
struct ChangePasswordBody {
    old_password: String,
    #[schema(min_length = 8, max_length = 128)]
    new_password: String,
}

async fn change_password(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<ChangePasswordBody>,
) -> Answer<Nothing> {
    let ChangePasswordBody { old_password, new_password } = body;
    let changed = auth::change_password(&gateway.chat, &caller, old_password, new_password).await;
    asked.answer(changed.map(|()| Nothing))
}

#[derive(Deserialize, IntoParams)]
struct InfoParams {
    /// Whom to show.
    user_id: Option<String>,
}

async fn info(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Params(params): Params<InfoParams>,
) -> Answer<UserInfo> {
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

#[derive(Deserialize, ToSchema)]
struct ProfileBody {
    #[schema(min_length = 1, max_length = 128)]
    nickname: Option<String>,
    avatar: Option<String>,
    extra: Option<String>,
}

async fn update(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<ProfileBody>,
) -> Answer<UserInfo> {
    let ProfileBody { nickname, avatar, extra } = body;
    let change = ProfileChange { nickname, avatar, extra };
    let updated = profile::update(&gateway.chat, &caller, change).await;
    asked.answer(updated.map(|user| UserInfo::from(&user)))
}

#[derive(Deserialize, ToSchema)]
struct OnlineStatusBody {
    #[schema(min_items = 1, max_items = 100)]
    user_ids: Vec<String>,
}

async fn online_status(
    State(gateway): Shared,
    asked: Asked,
    Authenticated(caller): Authenticated,
    Body(body): Body<OnlineStatusBody>,
) -> Answer<Vec<OnlineStatus>> {
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
