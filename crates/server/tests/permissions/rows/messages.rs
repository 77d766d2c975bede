//! Messages: sending, reading and recalling them.

use serde_json::json;

use super::{Row, in_both, prepared, row_about};
use crate::request::{body, query};
use crate::world::text;

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for operation in ["POST /msg/send", "POST /msg/send_without_mark_read"] {
        rows.push(row_about(operation, "to a user", |w| {
            body(&w.to_user("guest", "second", "hello"))
        }));
        rows.push(row_about(operation, "to the group", |w| body(&w.to_group("second", "hello"))));
    }
    let operation = "POST /system/send";
    rows.push(row_about(operation, "to a user", |w| {
        body(&w.to_user("guest", &w.id("s"), "hello"))
    }));
    rows.push(row_about(operation, "to the group", |w| body(&w.to_group(&w.id("s"), "hello"))));
    let pages =
        ["GET /msg/pull", "GET /msg/max_seq", "GET /msg/mentions", "GET /conversation/changes"];
    for operation in pages {
        rows.extend(in_both(operation, |id| query(format!("conversation_id={id}"))));
    }
    let operation = "GET /msg/readers";
    rows.push(row_about(operation, "private chat", |w| {
        query(format!("server_msg_id={}", w.private_message))
    }));
    rows.push(row_about(operation, "group", |w| {
        query(format!("server_msg_id={}", w.group_message))
    }));
    let operation = "POST /msg/recall";
    rows.push(row_about(operation, "private message of the peer", |w| {
        body(&json!({ "server_msg_id": w.private_message }))
    }));
    rows.push(row_about(operation, "group message of the member", |w| {
        body(&json!({ "server_msg_id": w.group_message }))
    }));
    rows.push(prepared(operation, "group message of the owner", |w| {
        Box::pin(async {
            let sent = w.post("owner", "/msg/send", &w.to_group("second", "hello")).await;
            body(&json!({ "server_msg_id": text(&sent["server_msg_id"]) }))
        })
    }));
    rows
}
