//! A call of every operation, grouped by subject, for the test that compares answers with the document.

use nexo_sim::Person;
use serde_json::{Value, json};

use crate::Asking;

pub(crate) async fn privacy(asking: &mut Asking<'_>, alice: &Person, system: &str) {
    let devices = asking.get(alice, "/user/devices").await;
    assert!(devices.as_array().is_some_and(|devices| !devices.is_empty()));
    asking.post(alice, "/user/devices/end", json!({ "others": true })).await;
    asking.post(alice, "/user/devices/end", json!({ "login_id": "x" })).await; // refused
    second_factor(asking, alice).await;
    asking.post(alice, "/user/block", json!({ "user_id": "carol" })).await;
    asking.get(alice, "/user/blocks").await;
    asking.post(alice, "/user/unblock", json!({ "user_id": "carol" })).await;
    asking.put(alice, "/user/consent", json!({ "write": "shared_group" })).await;
    asking.get(alice, "/user/consent").await;
    asking.post(alice, "/user/invites", json!({})).await;
    let mine = asking.get(alice, "/user/invites").await;
    let id = text(&mine[0]["invite_id"]);
    asking.ask(&alice.token, "delete", &format!("/user/invites/{id}"), Value::Null).await;
    let made = asking.ask(system, "post", "/admin/invites", json!({ "uses": 2 })).await;
    asking.ask(system, "get", "/admin/invites", Value::Null).await;
    let path = format!("/admin/invites/{}", text(&made["invite_id"]));
    asking.ask(system, "delete", &path, Value::Null).await;
}

async fn second_factor(asking: &mut Asking<'_>, alice: &Person) {
    let password = nexo_sim::person::PASSWORD;
    let begun = asking.post(alice, "/user/totp/begin", json!({ "password": password })).await;
    let secret =
        data_encoding::BASE32_NOPAD.decode(text(&begun["secret"]).as_bytes()).expect("base32");
    let now = nexo_sim::clock::wall_clock();
    let code = nexo_chat::totp::shown_at(&secret, now).expect("a code");
    asking.post(alice, "/user/totp/confirm", json!({ "code": "1" })).await; // refused
    let codes = asking.post(alice, "/user/totp/confirm", json!({ "code": code })).await;
    let body = json!({ "password": password, "code": codes["recovery_codes"][0] });
    asking.post(alice, "/user/totp/remove", body).await;
}

pub(crate) async fn administration(asking: &mut Asking<'_>, alice: &Person, system: &str) {
    let key = asking
        .ask(system, "post", "/admin/keys", json!({ "name": "k", "scopes": ["backend"] }))
        .await;
    let (backend, id) = (text(&key["key"]), text(&key["key_id"]));
    asking.ask(&backend, "get", "/admin/keys", Value::Null).await; // refused
    asking.ask(system, "get", "/admin/keys", Value::Null).await;
    asking.ask(&backend, "put", "/admin/users/frank", json!({ "nickname": "Frank" })).await;
    asking.ask(&backend, "post", "/admin/users/frank/login", json!({})).await;
    asking.ask(&backend, "post", "/admin/users/import", json!({ "user_id": "gina" })).await;
    asking.ask(&backend, "get", "/admin/users?limit=2", Value::Null).await;
    asking.ask(&backend, "get", "/admin/users/frank", Value::Null).await;
    asking.ask(system, "delete", &format!("/admin/keys/{id}"), Value::Null).await;
    asking.ask(&backend, "get", "/admin/users", Value::Null).await; // refused
    let frank = "/admin/users/frank";
    asking.ask(system, "get", &format!("{frank}/sessions"), Value::Null).await;
    asking.ask(system, "post", &format!("{frank}/sessions/end"), json!({})).await;
    asking
        .ask(system, "post", &format!("{frank}/disable"), json!({ "reason": "r", "seconds": 60 }))
        .await;
    asking.ask(system, "get", "/admin/users?status=disabled", Value::Null).await;
    asking.ask(system, "post", &format!("{frank}/enable"), json!({})).await;
    asking.ask(system, "post", &format!("{frank}/reset_code"), json!({})).await;
    let body = json!({ "name": "Admins", "member_ids": ["carol"] });
    let group = text(&asking.post(alice, "/group/create", body).await["group_id"]);
    let path = format!("/admin/groups/{group}");
    asking.ask(system, "get", "/admin/groups?search=admins", Value::Null).await;
    asking.ask(system, "get", &path, Value::Null).await;
    asking.ask(system, "get", &format!("{path}/members?limit=1"), Value::Null).await;
    asking.ask(system, "post", &format!("{path}/add"), json!({ "user_ids": ["frank"] })).await;
    asking.ask(system, "post", &format!("{path}/remove"), json!({ "user_id": "frank" })).await;
    asking.ask(system, "post", &format!("{path}/transfer"), json!({ "user_id": "carol" })).await;
    asking.ask(system, "post", &format!("{path}/dissolve"), json!({})).await;
    asking.ask(system, "delete", &format!("{frank}?messages=remove"), Value::Null).await;
    let body = json!({ "client_msg_id": "m", "session_type": 1, "recv_id": "carol", "msg_type": 1,
        "content": { "text": "hello" } });
    let message = text(&asking.post(alice, "/msg/send", body).await["server_msg_id"]);
    let path = format!("/admin/messages/{message}");
    asking.ask(system, "get", &path, Value::Null).await;
    asking.ask(system, "get", &format!("{path}/around"), Value::Null).await;
    asking.ask(system, "post", &format!("{path}/recall"), json!({})).await;
    let body = json!({ "text": "hello", "user_ids": ["carol"] });
    let broadcast =
        text(&asking.ask(system, "post", "/admin/broadcast", body).await["broadcast_id"]);
    asking.ask(system, "get", &format!("/admin/broadcast/{broadcast}"), Value::Null).await;
    asking.ask(system, "get", "/admin/statistics", Value::Null).await;
    asking.ask(system, "get", "/admin/audit?limit=3", Value::Null).await;
    asking.ask(system, "get", "/admin/audit/verify", Value::Null).await;
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

pub(crate) async fn accounts(asking: &mut Asking<'_>, alice: &Person) {
    let password = nexo_sim::person::PASSWORD;
    let dora = json!({ "user_id": "dora", "nickname": "Dora", "password": password });
    asking.ask("", "post", "/user/register", dora.clone()).await;
    asking.ask("", "post", "/user/register", dora).await; // taken
    let dora = json!({ "user_id": "dora", "password": password, "platform_id": 5 });
    let signed = asking.ask("", "post", "/auth/login", dora).await;
    let body = json!({ "refresh_token": signed["refresh_token"] });
    let signed = asking.ask("", "post", "/auth/refresh", body).await;
    let body = json!({ "token": "a.b.c", "platform_id": 5 });
    asking.ask("", "post", "/auth/token", body).await; // there is no provider
    asking.ask("", "post", "/auth/oidc/finish", json!({ "code": "a.b" })).await;
    let body = json!({ "old_password": password, "new_password": "another password" });
    let token = text(&signed["token"]);
    asking.ask(&token, "post", "/user/change_password", body).await;
    let body = json!({ "user_id": "dora", "code": "A4DQ-OBYH", "new_password": "a new password" });
    asking.ask("", "post", "/user/reset_password", body).await; // refused
    asking.get(alice, "/user/info?user_id=dora").await;
    asking.put(alice, "/user/update", json!({ "nickname": "Alice" })).await;
    let body = json!({ "user_ids": ["dora", "alice"] });
    asking.post(alice, "/user/get_users_online_status", body).await;
}

pub(crate) async fn private(asking: &mut Asking<'_>, alice: &Person, bob: &Person) {
    let said = |id: &str| {
        json!({ "client_msg_id": id, "session_type": 1, "recv_id": "bob", "msg_type": 1,
            "content": { "text": "hello" } })
    };
    let first = asking.post(alice, "/msg/send", said("1")).await;
    asking.post(alice, "/msg/send_without_mark_read", said("2")).await;
    let conversation = text(&first["conversation_id"]);
    let message = text(&first["server_msg_id"]);
    asking.get(alice, &format!("/msg/readers?server_msg_id={message}")).await;
    asking.post(alice, "/msg/recall", json!({ "server_msg_id": message })).await;
    asking.post(alice, "/conversation/delete", json!({ "conversation_id": conversation })).await;
    for path in [
        "/single-chat/message/cursor?peerUserId=alice",
        "/single-chat/message/since?peerUserId=alice",
        "/single-chat/conversation/cursor",
        "/single-chat/member/state?peerUserId=alice",
        "/conversation/heads",
        "/conversation/unread_total",
        "/conversation/list?with_last_message=true&limit=1",
        "/conversation/all",
    ] {
        asking.get(bob, path).await;
    }
    for path in [
        "/msg/pull",
        "/msg/max_seq",
        "/msg/mentions",
        "/conversation/info",
        "/conversation/changes",
        "/conversation/max_read_seq",
        "/conversation/unread_count",
    ] {
        asking.get(bob, &format!("{path}?conversation_id={conversation}")).await;
    }
    asking.post(bob, "/conversation/list", json!({ "limit": 5 })).await;
    asking.post(bob, "/conversation/all", json!({ "with_last_message": true })).await;
    let body = json!({ "conversation_id": conversation, "is_pinned": true, "recv_msg_opt": 1 });
    asking.put(bob, "/conversation/update", body).await;
    let body = json!({ "conversation_id": conversation, "read_seq": 2 });
    asking.post(bob, "/conversation/mark_read", body).await;
    let body = json!({ "conversation_id": conversation, "seq": 2 });
    asking.post(bob, "/conversation/hide", body).await;
}

pub(crate) async fn group(asking: &mut Asking<'_>, alice: &Person, bob: &Person, carol: &Person) {
    let wanted = json!({ "name": "Friends", "member_ids": ["bob"], "join_type": "approval" });
    let made = asking.post(alice, "/group/create", wanted).await;
    let id = text(&made["group_id"]);
    let with = |more: Value| {
        let mut body = json!({ "group_id": id });
        for (name, value) in more.as_object().expect("fields") {
            body[name] = value.clone();
        }
        body
    };
    asking.post(carol, "/group/join", with(json!({ "message": "please" }))).await;
    asking.get(carol, &format!("/group/info?group_id={id}")).await;
    asking.get(alice, &format!("/group/info?group_id={id}")).await;
    asking.get(alice, &format!("/group/join_requests?group_id={id}")).await;
    let accept = with(json!({ "user_id": "carol", "accept": true }));
    asking.post(alice, "/group/join_decide", accept).await;
    asking.post(alice, "/group/invite", with(json!({ "user_ids": ["dora"] }))).await;
    let said = json!({ "client_msg_id": "g", "session_type": 2, "msg_type": 1,
        "content": { "text": "hello" }, "mentions": ["bob"] });
    asking.post(alice, "/msg/send", with(said)).await;
    asking.post(alice, "/group/set_role", with(json!({ "user_id": "bob", "role": 1 }))).await;
    asking.post(alice, "/group/mute", with(json!({ "user_id": "carol", "seconds": 60 }))).await;
    asking.post(alice, "/group/mute_all", with(json!({ "on": true }))).await;
    asking.put(alice, "/group/update", with(json!({ "name": "Old friends" }))).await;
    asking.post(alice, "/group/reset_code", with(json!({}))).await;
    for path in ["/group/message/cursor", "/group/message/since"] {
        asking.get(bob, &format!("{path}?groupId={id}")).await;
    }
    for path in ["/group/joined", "/group/conversation/cursor", "/conversation/list"] {
        asking.get(bob, path).await;
    }
    asking.get(bob, &format!("/group/members?group_id={id}&limit=1")).await;
    asking.get(bob, &format!("/group/member?group_id={id}&user_id=alice")).await;
    asking.get(bob, &format!("/group/read_state?group_id={id}")).await;
    asking.put(bob, "/group/member_info", with(json!({ "group_nickname": "Bobby" }))).await;
    asking.get(bob, &format!("/conversation/changes?conversation_id=sg_{id}")).await;
    asking.post(alice, "/group/kick", with(json!({ "user_id": "dora" }))).await;
    asking.post(carol, "/group/quit", with(json!({}))).await;
    asking.post(carol, "/group/join_request", with(json!({}))).await;
    asking.post(alice, "/group/transfer", with(json!({ "user_id": "bob" }))).await;
    asking.post(alice, "/group/leave", with(json!({}))).await;
    asking.post(bob, "/group/dissolve", with(json!({}))).await;
    asking.get(bob, "/conversation/list").await;
    let made = asking.post(bob, "/group/create", json!({ "name": "Another" })).await;
    asking.post(bob, "/group/dismiss", json!({ "group_id": made["group_id"] })).await;
    let made = asking.post(bob, "/group/create", json!({ "name": "A third" })).await;
    let body = json!({ "conversation_id": made["conversation_id"] });
    asking.post(bob, "/conversation/delete", body).await;
    asking.get(bob, "/group/conversation/cursor").await;
}
