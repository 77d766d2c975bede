//! Conversations and the history of private chats.

use serde_json::json;

use super::{Row, in_both, row};
use crate::request::{body, empty, query};

pub(super) fn rows() -> Vec<Row> {
    let mut rows = vec![
        row("GET /conversation/list", |_| empty()),
        row("POST /conversation/list", |_| body(&json!({ "limit": 5 }))),
        row("GET /conversation/all", |_| empty()),
        row("POST /conversation/all", |_| body(&json!({}))),
        row("GET /conversation/heads", |_| empty()),
        row("GET /conversation/unread_total", |_| empty()),
        row("GET /single-chat/conversation/cursor", |_| empty()),
    ];
    // With the author: only the peer has a chat with them, the others see an empty one of their own.
    for operation in [
        "GET /single-chat/message/cursor",
        "GET /single-chat/message/since",
        "GET /single-chat/member/state",
    ] {
        rows.push(row(operation, |w| query(format!("peerUserId={}", w.id("author")))));
    }
    for operation in [
        "GET /conversation/info",
        "GET /conversation/max_read_seq",
        "GET /conversation/unread_count",
    ] {
        rows.extend(in_both(operation, |id| query(format!("conversation_id={id}"))));
    }
    rows.extend(in_both("PUT /conversation/update", |id| {
        body(&json!({ "conversation_id": id, "is_pinned": true }))
    }));
    rows.extend(in_both("POST /conversation/mark_read", |id| {
        body(&json!({ "conversation_id": id, "read_seq": 1 }))
    }));
    rows.extend(in_both("POST /conversation/hide", |id| {
        body(&json!({ "conversation_id": id, "seq": 1 }))
    }));
    rows.extend(in_both("POST /conversation/delete", |id| body(&json!({ "conversation_id": id }))));
    rows
}
