//! The audit log.

use axum::extract::State;
use nexo_chat::audit;
use nexo_wire::http::admin::audit::{AuditPage, AuditParams, AuditRow, AuditVerification};

use crate::http::extract::{GatewayState, Params};
use crate::http::openapi::paths::{Paths, paths};
use crate::http::paging::page_size;
use crate::http::response::{ApiResponse, RequestContext};
use crate::http::with_key::{Admin, WithKey};

pub(super) fn paths(paths: &mut Paths) {
    paths! { paths:
        GET "/admin/audit" list, "Lists what operators and backends did, and sign-ins, newest first." []
        GET "/admin/audit/verify" verify, "Checks that no entry was changed, removed or inserted." []
    }
}

async fn list(
    State(gateway): GatewayState,
    context: RequestContext,
    WithKey(operator, _): WithKey<Admin>,
    Params(params): Params<AuditParams>,
) -> ApiResponse<AuditPage> {
    let limit = page_size(params.limit, 100, 1000);
    let found = audit::page(&gateway.chat, &operator, params.cursor, limit + 1).await;
    context.respond(found.map(|mut entries| {
        let has_more = entries.len() > limit;
        entries.truncate(limit);
        AuditPage {
            next_cursor: entries.last().filter(|_| has_more).map(|last| last.number),
            entries: entries.iter().map(AuditRow::from).collect(),
            has_more,
        }
    }))
}

async fn verify(
    State(gateway): GatewayState,
    context: RequestContext,
    _: WithKey<Admin>,
) -> ApiResponse<AuditVerification> {
    let found = audit::verify(&*gateway.chat.store).await;
    context.respond(found.map(AuditVerification::from))
}
