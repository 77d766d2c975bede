//! Backups of a running server.

use axum::extract::State;
use nexo_chat::{DetailedReason, Reason};
use nexo_wire::http::admin::backup::BackupStatus;

use crate::http::extract::{EmptyBody, GatewayState};
use crate::http::openapi::paths::{Paths, paths};
use crate::http::response::{ApiResponse, RequestContext};
use crate::http::with_key::{Admin, WithKey};

pub(in crate::http) fn paths(paths: &mut Paths) {
    paths! { paths:
        POST "/admin/backup" start_backup,
            "Begins a backup to the target of the settings, or joins the one being made." [Forbidden]
        GET "/admin/backup" backup_status, "Tells how the last backup is doing." []
    }
}

async fn start_backup(
    State(gateway): GatewayState,
    context: RequestContext,
    _: WithKey<Admin>,
    _: EmptyBody,
) -> ApiResponse<BackupStatus> {
    let started = match gateway.backups() {
        Some(backups) => backups.start(),
        None => Err("this server makes no backups".to_owned()),
    };
    let refused = |why: String| DetailedReason::new(Reason::Forbidden, why).into();
    context.respond(started.map_err(refused))
}

async fn backup_status(
    State(gateway): GatewayState,
    context: RequestContext,
    _: WithKey<Admin>,
) -> ApiResponse<BackupStatus> {
    context.respond(Ok(gateway.backups().map(|it| it.status()).unwrap_or_default()))
}
