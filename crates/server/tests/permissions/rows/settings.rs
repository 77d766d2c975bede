//! Devices, privacy and the invite links of users.

use data_encoding::BASE32_NOPAD;
use nexo_chat::totp;
use nexo_sim::clock::wall_clock;
use nexo_sim::person::PASSWORD;
use serde_json::json;

use super::{Row, prepared, row, row_about};
use crate::request::{body, empty};
use crate::world::text;

pub(super) fn rows() -> Vec<Row> {
    vec![
        row("GET /user/devices", |_| empty()),
        row_about("POST /user/devices/end", "all others of the caller", |_| {
            body(&json!({ "others": true }))
        }),
        prepared("POST /user/devices/end", "one of the member", |w| {
            Box::pin(async {
                let token = w.sign_in("member").await;
                let devices = w.site.server.http.get("/user/devices", &token).await;
                let newest = &devices.data()[0];
                body(&json!({ "login_id": newest["login_id"] }))
            })
        }),
        row("POST /user/totp/begin", |_| body(&json!({ "password": PASSWORD }))),
        prepared("POST /user/totp/confirm", "the code of the member", |w| {
            Box::pin(async {
                let password = json!({ "password": PASSWORD });
                let begun = w.post("member", "/user/totp/begin", &password).await;
                let secret = text(&begun["secret"]);
                let secret = BASE32_NOPAD.decode(secret.as_bytes()).expect("base32");
                body(&json!({ "code": totp::shown_at(&secret, wall_clock()) }))
            })
        }),
        row_about("POST /user/totp/remove", "there is none", |_| {
            body(&json!({ "password": PASSWORD, "code": "000000" }))
        }),
        row("POST /user/block", |w| body(&json!({ "user_id": w.id("guest") }))),
        row("POST /user/unblock", |w| body(&json!({ "user_id": w.id("guest") }))),
        row("GET /user/blocks", |_| empty()),
        row("GET /user/consent", |_| empty()),
        row("PUT /user/consent", |_| body(&json!({ "write": "shared_group" }))),
        row("GET /user/invites", |_| empty()),
        row("POST /user/invites", |_| body(&json!({}))),
        prepared("DELETE /user/invites/{invite_id}", "one of the member", |w| {
            Box::pin(async {
                let made = w.post("member", "/user/invites", &json!({})).await;
                empty().param("invite_id", &text(&made["invite_id"]))
            })
        }),
    ]
}
