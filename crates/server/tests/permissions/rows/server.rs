//! Pages, probes, metrics and the socket.

use super::{Row, row, row_about};
use crate::request::{empty, upgrade};

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for operation in [
        "GET /",
        "GET /docs",
        "GET /healthz",
        "GET /metrics",
        "GET /openapi.json",
        "GET /readyz",
        "GET /server/info",
    ] {
        rows.push(row(operation, |_| empty()));
    }
    rows.extend([
        row("GET /docs/{file}", |_| empty().param("file", "typed.schema.json")),
        row_about("GET /ws", "signs in by its first frame", |_| upgrade("")),
        row_about("GET /ws", "names the caller in its query", |w| {
            upgrade(format!("send_id={}&platform_id=5&operation_id=1", w.caller_id()))
        }),
    ]);
    rows
}
