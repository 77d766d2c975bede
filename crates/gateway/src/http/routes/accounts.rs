//! Accounts and sign-ins.

use axum::extract::State;
use nexo_chat::auth::{self, PasswordLogin, RegisterRequest, SignInDevice};
use nexo_chat::ids::{Platform, UserId};
use nexo_chat::model::{Profile, ProfileChange};
use nexo_chat::policy::account;
use nexo_chat::{DetailedReason, Error, Reason, external_login, password_reset, presence, profile};
use nexo_wire::http::accounts::{
    ChangePasswordBody, LoginBody, OnlineStatus, OnlineStatusBody, ProfileBody, RefreshBody,
    RegisterBody, ResetPasswordBody, SignedIn, TokenBody, UserInfo, UserInfoParams,
};
use nexo_wire::http::envelope::NoData;
use nexo_wire::parse_ids::user_id;

use crate::http::extract::{Authenticated, Body, EmptyBody, GatewayState, Params};
use crate::http::openapi::paths::{Paths, paths};
use crate::http::response::{ApiResponse, RequestContext};

pub(in crate::http) fn paths(paths: &mut Paths) {
    paths.group("Accounts", "Making an account, signing in, and who people are.");
    paths! { paths:
        POST "/user/register" register, "Makes an account."
            [RegistrationClosed InviteInvalid BadUserId ReservedUserId UserExists BadNickname BadPassword BadProfile
             TooManyRequests]
        POST "/auth/login" login, "Signs in on a device and gives its tokens."
            [LoginFailed TotpRequired TotpWrong AccountDisabled TooManyRequests]
        POST "/auth/token" login_with_token,
            "Signs in with a token of the operator's own identity provider; `forbidden` if there is none."
            [Forbidden TokenRefused AccountDisabled TooManyRequests]
        POST "/auth/refresh" refresh, "Gives new tokens for a refresh token, which is used up by this."
            [InvalidRefreshToken]
        POST "/auth/logout" logout, "Ends this sign-in, its sockets too." []
        POST "/user/change_password" change_password, "Changes the password and ends every sign-in."
            [LoginFailed BadPassword]
        POST "/user/reset_password" reset_password,
            "Sets a new password by a one-time code from the operator, and ends every sign-in."
            [ResetFailed BadPassword TooManyRequests]
        GET "/user/info" info, "Shows a person; without `user_id` yourself." [UserNotFound]
        PUT "/user/update" update, "Changes your profile: what is given is taken, the rest stays."
            [BadNickname BadProfile UserNotFound]
        POST "/user/get_users_online_status" online_status,
            "Tells who of these people is online, as far as it is yours to know."
            [InvalidParam BadUserId]
    }
}

async fn register(
    State(gateway): GatewayState,
    context: RequestContext,
    Body(body): Body<RegisterBody>,
) -> ApiResponse<UserInfo> {
    let request = RegisterRequest {
        user_id: body.user_id,
        profile: Profile { nickname: body.nickname, avatar: body.avatar, extra: body.extra },
        password: body.password,
        invite: body.invite,
    };
    let created = auth::register(&gateway.chat, context.client_ip, request).await;
    context.respond(created.map(|user| UserInfo::from(&user)))
}

async fn login(
    State(gateway): GatewayState,
    context: RequestContext,
    Body(body): Body<LoginBody>,
) -> ApiResponse<SignedIn> {
    let LoginBody { user_id, password, platform_id, device_name, totp_code } = body;
    let signed = async {
        let name = account::normalize_device_name(&device_name)?;
        let (address, platform) = (context.client_ip, Platform(platform_id));
        let device = SignInDevice { address, platform, name };
        auth::login(&gateway.chat, PasswordLogin { user_id, password, totp_code }, &device).await
    };
    let signed = signed.await;
    context.respond(signed.map(|(tokens, user)| SignedIn::new(tokens, &user)))
}

async fn login_with_token(
    State(gateway): GatewayState,
    context: RequestContext,
    Body(body): Body<TokenBody>,
) -> ApiResponse<SignedIn> {
    let signed = async {
        let name = account::normalize_device_name(&body.device_name)?;
        let platform = Platform(body.platform_id);
        let device = SignInDevice { address: context.client_ip, platform, name };
        external_login::login_with_token(&gateway.chat, &body.token, &device).await
    };
    let signed = signed.await;
    context.respond(signed.map(|(tokens, user)| SignedIn::new(tokens, &user)))
}

async fn refresh(
    State(gateway): GatewayState,
    context: RequestContext,
    Body(body): Body<RefreshBody>,
) -> ApiResponse<SignedIn> {
    let renewed = auth::refresh(&gateway.chat, &body.refresh_token).await;
    context.respond(renewed.map(|(tokens, user)| SignedIn::new(tokens, &user)))
}

async fn logout(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    _: EmptyBody,
) -> ApiResponse<NoData> {
    context.respond(auth::logout(&gateway.chat, &caller).await.map(|()| NoData))
}

async fn change_password(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<ChangePasswordBody>,
) -> ApiResponse<NoData> {
    let ChangePasswordBody { old_password, new_password } = body;
    let chat = &gateway.chat;
    let changed =
        auth::change_password(chat, &caller, context.client_ip, old_password, new_password).await;
    context.respond(changed.map(|()| NoData))
}

async fn reset_password(
    State(gateway): GatewayState,
    context: RequestContext,
    Body(body): Body<ResetPasswordBody>,
) -> ApiResponse<NoData> {
    let ResetPasswordBody { user_id, code, new_password } = body;
    let chat = &gateway.chat;
    let set =
        password_reset::reset_password(chat, context.client_ip, &user_id, &code, new_password)
            .await;
    context.respond(set.map(|()| NoData))
}

async fn info(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Params(params): Params<UserInfoParams>,
) -> ApiResponse<UserInfo> {
    let found = async {
        let id = match params.user_id {
            Some(id) => user_id(&id)?,
            None => caller.user,
        };
        let user = profile::profile(&gateway.chat, &id).await?;
        Ok::<_, Error>(UserInfo::from(&*user))
    };
    context.respond(found.await)
}

async fn update(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<ProfileBody>,
) -> ApiResponse<UserInfo> {
    let ProfileBody { nickname, avatar, extra } = body;
    let change = ProfileChange { nickname, avatar, extra };
    let updated = profile::update(&gateway.chat, &caller, change).await;
    context.respond(updated.map(|user| UserInfo::from(&*user)))
}

async fn online_status(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<OnlineStatusBody>,
) -> ApiResponse<Vec<OnlineStatus>> {
    let found = async {
        if !(1..=100).contains(&body.user_ids.len()) {
            return Err(Error::from(DetailedReason::field("user_ids")));
        }
        let users: Result<Vec<UserId>, Reason> =
            body.user_ids.iter().map(|id| UserId::parse(id)).collect();
        let seen = presence::presence(&gateway.chat, &caller, users?).await?;
        Ok(seen.iter().map(OnlineStatus::from).collect::<Vec<_>>())
    };
    context.respond(found.await)
}
