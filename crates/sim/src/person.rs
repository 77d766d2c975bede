//! An account with its tokens.

use serde_json::{Value, json};

use crate::http::Http;

/// A signed-in user.
#[derive(Clone, Debug)]
pub struct Person {
    pub id: String,
    pub token: String,
    pub refresh: String,
}

/// The password of all test users.
pub const PASSWORD: &str = "correct horse battery";

impl Person {
    /// Registers and signs in.
    pub async fn new(http: &Http, id: &str) -> Self {
        let body = json!({ "user_id": id, "nickname": id, "password": PASSWORD });
        http.post("/user/register", "", body).await.data();
        Self::sign_in(http, id, 5).await
    }

    /// Signs in on another device.
    pub async fn sign_in(http: &Http, id: &str, platform: i32) -> Self {
        let body = json!({ "user_id": id, "password": PASSWORD, "platform_id": platform });
        let answer = http.post("/auth/login", "", body).await;
        let text = |value: &Value| value.as_str().expect("a token").to_owned();
        let data = answer.data();
        Self {
            id: id.to_owned(),
            token: text(&data["token"]),
            refresh: text(&data["refresh_token"]),
        }
    }
}
