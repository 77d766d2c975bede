//! What operators and backends do with their keys.

use serde_json::json;

use super::{Row, prepared, row, row_about};
use crate::request::{body, empty, lines};
use crate::world::text;

pub(super) fn rows() -> Vec<Row> {
    let mut rows = users();
    for operation in [
        "GET /admin/audit",
        "GET /admin/audit/verify",
        "GET /admin/backup",
        "POST /admin/backup",
        "GET /admin/groups",
        "GET /admin/groups/{group_id}",
        "GET /admin/groups/{group_id}/members",
        "POST /admin/groups/{group_id}/dissolve",
        "GET /admin/invites",
        "GET /admin/keys",
        "GET /admin/messages/{server_msg_id}",
        "GET /admin/messages/{server_msg_id}/around",
        "POST /admin/messages/{server_msg_id}/recall",
        "GET /admin/statistics",
    ] {
        rows.push(row(operation, |_| empty()));
    }
    rows.extend([
        row("POST /admin/groups/{group_id}/add", |w| body(&json!({ "user_ids": [w.id("guest")] }))),
        row("POST /admin/groups/{group_id}/remove", |w| {
            body(&json!({ "user_id": w.id("target") }))
        }),
        row("POST /admin/groups/{group_id}/transfer", |w| {
            body(&json!({ "user_id": w.id("target") }))
        }),
        row("POST /admin/broadcast", |w| {
            body(&json!({ "text": "hello", "user_ids": [w.id("target")] }))
        }),
        prepared("GET /admin/broadcast/{broadcast_id}", "", |w| {
            Box::pin(async {
                let body = json!({ "text": "hello", "user_ids": [w.id("target")] });
                let made = w.site.operate("/admin/broadcast", &body).await;
                empty().param("broadcast_id", &text(&made["broadcast_id"]))
            })
        }),
        row("POST /admin/invites", |_| body(&json!({ "uses": 2 }))),
        prepared("DELETE /admin/invites/{invite_id}", "", |w| {
            Box::pin(async {
                let made = w.site.operate("/admin/invites", &json!({})).await;
                empty().param("invite_id", &text(&made["invite_id"]))
            })
        }),
        row_about("POST /admin/keys", "scope `backend`", |_| {
            body(&json!({ "name": "made", "scopes": ["backend"] }))
        }),
        row_about("POST /admin/keys", "every scope but `system`", |_| {
            body(&json!({ "name": "made", "scopes": ["backend", "admin", "metrics"] }))
        }),
        prepared("DELETE /admin/keys/{key_id}", "", |w| {
            Box::pin(async {
                let made = w.site.new_key("metrics").await;
                empty().param("key_id", &text(&made["key_id"]))
            })
        }),
    ]);
    rows
}

fn users() -> Vec<Row> {
    let mut rows = Vec::new();
    for operation in [
        "GET /admin/users",
        "GET /admin/users/{user_id}",
        "DELETE /admin/users/{user_id}",
        "POST /admin/users/{user_id}/enable",
        "POST /admin/users/{user_id}/reset_code",
        "GET /admin/users/{user_id}/sessions",
    ] {
        rows.push(row(operation, |_| empty()));
    }
    rows.extend([
        row("POST /admin/users/import", |w| {
            lines(&json!({ "user_id": w.id("newcomer") }).to_string())
        }),
        row_about("PUT /admin/users/{user_id}", "new user", |w| {
            body(&json!({ "nickname": "New" })).param("user_id", &w.id("newcomer"))
        }),
        row_about("PUT /admin/users/{user_id}", "another's nickname", |_| {
            body(&json!({ "nickname": "Other" }))
        }),
        row_about("PUT /admin/users/{user_id}", "another's password", |_| {
            body(&json!({ "password": "another good password" }))
        }),
        row("POST /admin/users/{user_id}/disable", |_| body(&json!({ "reason": "spam" }))),
        row("POST /admin/users/{user_id}/login", |_| body(&json!({}))),
        row("POST /admin/users/{user_id}/sessions/end", |_| body(&json!({}))),
    ]);
    rows
}
