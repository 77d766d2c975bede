//! Groups.

use serde_json::{Value, json};

use super::{Row, prepared, row, row_about};
use crate::request::{Request, body, empty, query};
use crate::world::World;

/// A body about the group.
fn about(world: &World, mut fields: Value) -> Request {
    fields["group_id"] = json!(world.group);
    body(&fields)
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = vec![
        row("POST /group/create", |w| {
            body(&json!({ "name": "Another", "member_ids": [w.id("guest")] }))
        }),
        row("GET /group/joined", |_| empty()),
        row("GET /group/conversation/cursor", |_| empty()),
        row("GET /group/member", |w| {
            query(format!("group_id={}&user_id={}", w.group, w.id("target")))
        }),
    ];
    for operation in ["GET /group/members", "GET /group/read_state", "GET /group/join_requests"] {
        rows.push(row(operation, |w| query(format!("group_id={}", w.group))));
    }
    for operation in ["GET /group/message/cursor", "GET /group/message/since"] {
        rows.push(row(operation, |w| query(format!("groupId={}", w.group))));
    }
    for operation in [
        "POST /group/join_request",
        "POST /group/leave",
        "POST /group/quit",
        "POST /group/dissolve",
        "POST /group/dismiss",
        "POST /group/reset_code",
    ] {
        rows.push(row(operation, |w| about(w, json!({}))));
    }
    rows.extend([
        row_about("GET /group/info", "group by approval", |w| {
            query(format!("group_id={}", w.group))
        }),
        prepared("GET /group/info", "group by invitation", |w| {
            Box::pin(async {
                set_join_type(w, "invite").await;
                query(format!("group_id={}", w.group))
            })
        }),
        row_about("POST /group/join", "group by approval", |w| about(w, json!({}))),
        prepared("POST /group/join", "group by invitation", |w| {
            Box::pin(async {
                set_join_type(w, "invite").await;
                about(w, json!({}))
            })
        }),
        prepared("POST /group/join", "open group", |w| {
            Box::pin(async {
                set_join_type(w, "open").await;
                about(w, json!({}))
            })
        }),
        row_about("POST /group/invite", "group by approval", |w| {
            about(w, json!({ "user_ids": [w.id("guest")] }))
        }),
        prepared("POST /group/invite", "open group", |w| {
            Box::pin(async {
                set_join_type(w, "open").await;
                about(w, json!({ "user_ids": [w.id("guest")] }))
            })
        }),
        row("POST /group/join_decide", |w| {
            about(w, json!({ "user_id": w.id("asker"), "accept": true }))
        }),
        row("PUT /group/update", |w| about(w, json!({ "name": "New name" }))),
        row("PUT /group/member_info", |w| about(w, json!({ "group_nickname": "Nick" }))),
        row("POST /group/mute_all", |w| about(w, json!({ "on": true }))),
        row("POST /group/set_role", |w| about(w, json!({ "user_id": w.id("target"), "role": 1 }))),
        row("POST /group/transfer", |w| about(w, json!({ "user_id": w.id("target") }))),
        row_about("POST /group/mute", "a member", |w| {
            about(w, json!({ "user_id": w.id("target"), "seconds": 60 }))
        }),
        prepared("POST /group/mute", "an admin", |w| {
            Box::pin(async {
                make_target_admin(w).await;
                about(w, json!({ "user_id": w.id("target"), "seconds": 60 }))
            })
        }),
        row_about("POST /group/kick", "a member", |w| {
            about(w, json!({ "user_id": w.id("target") }))
        }),
        prepared("POST /group/kick", "an admin", |w| {
            Box::pin(async {
                make_target_admin(w).await;
                about(w, json!({ "user_id": w.id("target") }))
            })
        }),
    ]);
    rows
}

async fn make_target_admin(world: &World<'_>) {
    let body = json!({ "group_id": world.group, "user_id": world.id("target"), "role": 1 });
    world.post("owner", "/group/set_role", &body).await;
}

/// How others join the group from now on.
async fn set_join_type(world: &World<'_>, join_type: &str) {
    let body = json!({ "group_id": world.group, "join_type": join_type });
    let owner = world.sign_in("owner").await;
    world.site.server.http.put("/group/update", &owner, body).await.data();
}
