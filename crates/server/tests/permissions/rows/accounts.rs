//! Accounts and sign-ins.

use nexo_sim::person::PASSWORD;
use serde_json::json;

use super::{Row, prepared, row, row_about};
use crate::request::{Request, body, empty, query};
use crate::world::{World, text};

const NEW_PASSWORD: &str = "another good password";

pub(super) fn rows() -> Vec<Row> {
    vec![
        row("POST /user/register", |w| {
            let id = w.id("newcomer");
            body(&json!({ "user_id": id, "nickname": "New", "password": PASSWORD }))
        }),
        row("POST /auth/login", |w| {
            body(&json!({ "user_id": w.id("target"), "password": PASSWORD, "platform_id": 5 }))
        }),
        row("POST /auth/token", |w| {
            let token = w.site.provider.token("first", &w.id("newcomer"), &json!({}));
            body(&json!({ "token": token }))
        }),
        row("GET /auth/oidc/start", |_| empty()),
        prepared("GET /auth/oidc/callback", "", |w| Box::pin(callback(w))),
        prepared("POST /auth/oidc/finish", "", |w| Box::pin(finish(w))),
        prepared("POST /auth/refresh", "", |w| {
            Box::pin(async {
                let path = format!("/admin/users/{}/login", w.id("target"));
                let signed = w.site.operate(&path, &json!({})).await;
                body(&json!({ "refresh_token": signed["refresh_token"] }))
            })
        }),
        row("POST /auth/logout", |_| empty()),
        row("POST /user/change_password", |_| {
            body(&json!({ "old_password": PASSWORD, "new_password": NEW_PASSWORD }))
        }),
        prepared("POST /user/reset_password", "", |w| {
            Box::pin(async {
                let id = w.id("target");
                let path = format!("/admin/users/{id}/reset_code");
                let code = text(&w.site.operate(&path, &json!({})).await["code"]);
                body(&json!({ "user_id": id, "code": code, "new_password": NEW_PASSWORD }))
            })
        }),
        row_about("GET /user/info", "own", |_| empty()),
        row_about("GET /user/info", "of another user", |w| {
            query(format!("user_id={}", w.id("target")))
        }),
        row("PUT /user/update", |_| body(&json!({ "nickname": "Other" }))),
        row("POST /user/get_users_online_status", |w| {
            body(&json!({ "user_ids": [w.id("target")] }))
        }),
    ]
}

/// A browser that was sent back by the provider: its cookie, and the path it is sent to.
async fn back_from_provider(world: &World<'_>) -> (String, String) {
    let started = world.site.server.http.get("/auth/oidc/start", "").await;
    let cookie = started.header("set-cookie").expect("a cookie");
    let cookie = cookie.split(';').next().expect("its value").to_owned();
    let page = started.header("location").expect("a page");
    let back = world.site.provider.sign_in(page, &world.id("newcomer"), &json!({}));
    (cookie, back.strip_prefix("http://x").expect("this server").to_owned())
}

async fn callback(world: &World<'_>) -> Request {
    let (cookie, back) = back_from_provider(world).await;
    let (_, parameters) = back.split_once('?').expect("a query");
    query(parameters).header("Cookie", &cookie)
}

async fn finish(world: &World<'_>) -> Request {
    let (cookie, back) = back_from_provider(world).await;
    let bytes = empty().header("Cookie", &cookie).bytes("GET", &back, "", &world.address());
    let end = world.site.server.http.raw(&bytes).await;
    let (_, code) = end.header("location").expect("a page").split_once("#oidc=").expect("a code");
    body(&json!({ "code": code })).header("Cookie", &cookie)
}
