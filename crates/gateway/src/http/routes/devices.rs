//! A user's own devices: where they are signed in.

use axum::extract::State;
use nexo_chat::admin::sessions::{self, EndLogins};
use nexo_chat::{DetailedReason, Error, second_factor};
use nexo_wire::http::accounts::{
    BeginTotpBody, ConfirmTotpBody, RecoveryCodes, RemoveTotpBody, TotpSecret,
};
use nexo_wire::http::admin::users::{DeviceInfo, EndDevicesBody, EndedSessions, login_id};
use nexo_wire::http::envelope::NoData;

use crate::http::extract::{Authenticated, Body, GatewayState};
use crate::http::openapi::paths::{Paths, paths};
use crate::http::response::{ApiResponse, RequestContext};

pub(in crate::http) fn paths(paths: &mut Paths) {
    paths.group("Devices", "Where you are signed in, and what signing in asks for.");
    paths! { paths:
        GET "/user/devices" list, "Lists where you are signed in, newest first." []
        POST "/user/devices/end" end, "Ends one of your sign-ins, or all others; their sockets close at once."
            [NotFound]
        POST "/user/totp/begin" begin_totp, "Makes a secret for your authenticator app." [LoginFailed Forbidden]
        POST "/user/totp/confirm" confirm_totp,
            "Turns on that sign-in asks for a code of your app, and shows the recovery codes, this once." [TotpWrong]
        POST "/user/totp/remove" remove_totp, "Turns that off." [LoginFailed TotpRequired TotpWrong]
    }
}

async fn list(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
) -> ApiResponse<Vec<DeviceInfo>> {
    let found = sessions::own(&gateway.chat, &caller).await;
    context.respond(found.map(|devices| {
        devices.iter().map(|device| DeviceInfo::new(device, Some(caller.login))).collect()
    }))
}

async fn end(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<EndDevicesBody>,
) -> ApiResponse<EndedSessions> {
    let ended = async {
        let which = match (&body.login_id, body.others) {
            (Some(id), false) => EndLogins::One(login_id(id)?),
            (None, true) => EndLogins::Others(caller.login),
            _ => return Err(Error::from(DetailedReason::field("login_id"))),
        };
        let ended = sessions::end_own(&gateway.chat, &caller, which).await?;
        Ok(EndedSessions { ended: ended as u64 })
    };
    context.respond(ended.await)
}

async fn begin_totp(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<BeginTotpBody>,
) -> ApiResponse<TotpSecret> {
    let (chat, from) = (&gateway.chat, context.client_ip);
    let begun = second_factor::begin(chat, &caller, from, body.password).await;
    context.respond(begun.map(|setup| TotpSecret { secret: setup.secret, uri: setup.uri }))
}

async fn confirm_totp(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<ConfirmTotpBody>,
) -> ApiResponse<RecoveryCodes> {
    let (chat, from) = (&gateway.chat, context.client_ip);
    let confirmed = second_factor::confirm(chat, &caller, from, &body.code).await;
    context.respond(confirmed.map(|recovery_codes| RecoveryCodes { recovery_codes }))
}

async fn remove_totp(
    State(gateway): GatewayState,
    context: RequestContext,
    Authenticated(caller): Authenticated,
    Body(body): Body<RemoveTotpBody>,
) -> ApiResponse<NoData> {
    let (chat, from) = (&gateway.chat, context.client_ip);
    let removed = second_factor::remove(chat, &caller, from, body.password, &body.code).await;
    context.respond(removed.map(|()| NoData))
}
