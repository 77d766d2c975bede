//! A user's own devices: where they are signed in.

use axum::extract::State;
use nexo_chat::admin::sessions::{self, EndLogins};
use nexo_chat::{DetailedReason, Error};
use nexo_wire::http::admin::users::{DeviceInfo, EndDevicesBody, EndedSessions, login_id};

use crate::http::extract::{Authenticated, Body, GatewayState};
use crate::http::openapi::paths::{Paths, paths};
use crate::http::response::{ApiResponse, RequestContext};

pub(in crate::http) fn paths(paths: &mut Paths) {
    paths.group("Devices", "Where you are signed in.");
    paths! { paths:
        GET "/user/devices" list, "Lists where you are signed in, newest first." []
        POST "/user/devices/end" end, "Ends one of your sign-ins, or all others; their sockets close at once."
            [NotFound]
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
