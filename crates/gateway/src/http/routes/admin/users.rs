//! Accounts and their sign-ins.

use axum::extract::State;
use nexo_chat::admin::sessions::{self, EndLogins};
use nexo_chat::admin::users::{self, UserUpsert};
use nexo_chat::auth::SignInDevice;
use nexo_chat::ids::{Platform, UserId};
use nexo_chat::model::ProfileChange;
use nexo_chat::policy::account;
use nexo_chat::{DetailedReason, Error};
use nexo_wire::http::accounts::SignedIn;
use nexo_wire::http::admin::users::{
    AdminUser, AdminUserPage, BackendLoginBody, DeleteUserParams, DeviceInfo, DisableBody,
    EndSessionsBody, EndedSessions, ImportFailure, ImportLine, ImportResult, IssuedResetCode,
    UpsertedUser, UserBody, UsersParams, login_id,
};
use nexo_wire::http::envelope::NoData;

use crate::http::extract::{Body, EmptyBody, GatewayState, Params};
use crate::http::lines::Lines;
use crate::http::openapi::paths::{Paths, paths};
use crate::http::paging::{page_cursor, page_size};
use crate::http::path_id::PathId;
use crate::http::response::{ApiResponse, RequestContext};
use crate::http::with_key::{Admin, Backend, WithKey};

/// Failed lines of an import that are named in its answer.
const FAILURES_NAMED_MAX: usize = 100;

pub(super) fn paths(paths: &mut Paths) {
    paths! { paths:
        GET "/admin/users" list, "Lists and searches accounts, by id." []
        GET "/admin/users/{user_id}" get, "Shows an account." []
        PUT "/admin/users/{user_id}" upsert, "Makes an account or changes it." [ReservedUserId UserExists
            BadNickname BadPassword BadProfile]
        POST "/admin/users/import" import,
            "Makes or changes many accounts: a JSON object with `user_id` on each line." []
        POST "/admin/users/{user_id}/login" login,
            "Signs a user in: for a backend that knows who they are." [AccountDisabled ReservedUserId
            UserExists BadNickname BadProfile]
        POST "/admin/users/{user_id}/disable" disable,
            "Ends every sign-in of a user, and lets none begin." []
        POST "/admin/users/{user_id}/enable" enable, "Lets a disabled user sign in again." []
        DELETE "/admin/users/{user_id}" delete,
            "Deletes an account: profile, password, sign-ins, memberships. Its id is never used again." []
        POST "/admin/users/{user_id}/reset_code" reset_code,
            "Makes a one-time code with which the user sets a new password." [BadPassword]
        GET "/admin/users/{user_id}/sessions" list_sessions, "Lists where a user is signed in." []
        POST "/admin/users/{user_id}/sessions/end" end_sessions,
            "Ends one sign-in of a user, or all; their sockets close at once." [NotFound]
    }
}

async fn list(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Backend>,
    Params(params): Params<UsersParams>,
) -> ApiResponse<AdminUserPage> {
    let found = async {
        let filter = params.filter()?;
        let after = page_cursor(params.cursor.as_deref(), UserId::parse)?;
        let limit = page_size(params.limit, 100, 1000);
        let (page, next) = users::list(&gateway.chat, &operator, filter, after, limit).await?;
        let now = gateway.chat.clock.now();
        Ok::<_, Error>(AdminUserPage {
            users: page.items.iter().map(|user| AdminUser::new(user, now)).collect(),
            has_more: page.has_more,
            next_cursor: next.map(|id| id.to_string()),
        })
    };
    context.respond(found.await)
}

async fn get(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Backend>,
    PathId(id): PathId<UserId>,
) -> ApiResponse<AdminUser> {
    let found = users::get(&gateway.chat, &operator, &id).await;
    context.respond(found.map(|user| AdminUser::new(&user, gateway.chat.clock.now())))
}

async fn upsert(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Backend>,
    PathId(id): PathId<UserId>,
    Body(body): Body<UserBody>,
) -> ApiResponse<UpsertedUser> {
    let stored = users::upsert(&gateway.chat, &operator, &id, body.into()).await;
    let now = gateway.chat.clock.now();
    context.respond(
        stored.map(|(user, created)| UpsertedUser { user: AdminUser::new(&user, now), created }),
    )
}

/// Lines are handled one after the other, and each is stored by itself, so an import that was cut off can be
/// repeated.
async fn import(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Backend>,
    Lines(mut lines): Lines,
) -> ApiResponse<ImportResult> {
    let imported = async {
        let mut result = ImportResult::default();
        let mut number = 0;
        while let Some(line) = lines.next().await? {
            number += 1;
            if line.trim_ascii().is_empty() {
                continue;
            }
            let parsed = serde_json::from_slice::<ImportLine>(&line);
            let user_id = parsed.as_ref().map(|line| line.user_id.clone()).unwrap_or_default();
            let stored = async {
                let line = parsed.map_err(|_| DetailedReason::field("line"))?;
                let id = UserId::parse(&line.user_id)?;
                users::upsert(&gateway.chat, &operator, &id, line.user.into()).await
            };
            match stored.await {
                Ok((_, true)) => result.created += 1,
                Ok((_, false)) => result.changed += 1,
                Err(error @ (Error::Unavailable(_) | Error::Internal(_))) => return Err(error),
                Err(error) => {
                    result.failed += 1;
                    if result.failures.len() < FAILURES_NAMED_MAX {
                        let reason = error.to_string();
                        result.failures.push(ImportFailure { line: number, user_id, reason });
                    }
                }
            }
        }
        Ok(result)
    };
    context.respond(imported.await)
}

async fn login(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Backend>,
    PathId(id): PathId<UserId>,
    Body(body): Body<BackendLoginBody>,
) -> ApiResponse<SignedIn> {
    let BackendLoginBody { platform_id, device_name, create, nickname } = body;
    let create_with = create.then(|| UserUpsert {
        profile: ProfileChange { nickname, ..ProfileChange::default() },
        ..UserUpsert::default()
    });
    let signed = async {
        let name = account::normalize_device_name(&device_name)?;
        let (address, platform) = (context.client_ip, Platform(platform_id));
        let device = SignInDevice { address, platform, name };
        users::login(&gateway.chat, &operator, &id, create_with, &device).await
    };
    let signed = signed.await;
    context.respond(signed.map(|(tokens, user)| SignedIn::new(tokens, &user)))
}

async fn disable(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    PathId(id): PathId<UserId>,
    Body(body): Body<DisableBody>,
) -> ApiResponse<AdminUser> {
    let now = gateway.chat.clock.now();
    let until = body.seconds.map(|seconds| now.plus(seconds.saturating_mul(1000)));
    let disabled = users::disable(&gateway.chat, &operator, &id, body.reason, until).await;
    context.respond(disabled.map(|user| AdminUser::new(&user, now)))
}

async fn enable(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    PathId(id): PathId<UserId>,
    _: EmptyBody,
) -> ApiResponse<AdminUser> {
    let enabled = users::enable(&gateway.chat, &operator, &id).await;
    context.respond(enabled.map(|user| AdminUser::new(&user, gateway.chat.clock.now())))
}

async fn delete(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    PathId(id): PathId<UserId>,
    Params(params): Params<DeleteUserParams>,
    _: EmptyBody,
) -> ApiResponse<NoData> {
    let deleted = async {
        let messages = params.messages()?;
        users::delete(&gateway.chat, &operator, &id, messages).await
    };
    context.respond(deleted.await.map(|()| NoData))
}

async fn reset_code(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    PathId(id): PathId<UserId>,
    _: EmptyBody,
) -> ApiResponse<IssuedResetCode> {
    let issued = users::issue_reset_code(&gateway.chat, &operator, &id).await;
    context.respond(issued.map(|issued| IssuedResetCode {
        user_id: issued.user.to_string(),
        code: issued.code,
        expires_at: issued.expires_at.0,
    }))
}

async fn list_sessions(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    PathId(id): PathId<UserId>,
) -> ApiResponse<Vec<DeviceInfo>> {
    let found = sessions::list(&gateway.chat, &operator, &id).await;
    context.respond(
        found.map(|devices| devices.iter().map(|device| DeviceInfo::new(device, None)).collect()),
    )
}

async fn end_sessions(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    PathId(id): PathId<UserId>,
    Body(body): Body<EndSessionsBody>,
) -> ApiResponse<EndedSessions> {
    let ended = async {
        let which = match &body.login_id {
            Some(id) => EndLogins::One(login_id(id)?),
            None => EndLogins::All,
        };
        let ended = sessions::end_of(&gateway.chat, &operator, &id, which).await?;
        Ok::<_, Error>(EndedSessions { ended: ended as u64 })
    };
    context.respond(ended.await)
}
