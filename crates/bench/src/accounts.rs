//! The users of a run: registered and signed in over HTTP, a few at a time.

use std::hash::{BuildHasher, RandomState};

use anyhow::{Context, Result};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::json;

use crate::http::post;
use crate::progress::Progress;

/// Password hashing is all processor and memory: more at once would only queue in the server.
const AT_ONCE: usize = 8;
/// Any known platform; the typed dialect calls 5 the web.
const PLATFORM: u32 = 5;

/// Somebody who may connect.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) user: String,
    pub(crate) token: String,
}

/// Registers `count` users that no earlier run can have registered, in order.
pub(crate) async fn sign_up(
    authority: &str,
    count: usize,
    progress: &Progress,
) -> Result<Vec<Account>> {
    let run = run_name();
    let bar = progress.counting("users signed in", count);
    let bar = &bar;
    let accounts = stream::iter((0..count).map(|number| format!("b{run}-{number}")))
        .map(|user| async move {
            let account = sign_up_one(authority, user).await;
            bar.inc(1);
            account
        })
        .buffered(AT_ONCE)
        .try_collect()
        .await;
    bar.finish_and_clear();
    accounts
}

async fn sign_up_one(authority: &str, user: String) -> Result<Account> {
    // Nobody signs in again after the run, so the password need not be kept or be secret.
    let password = "bench-password-1";
    let form = json!({ "user_id": user, "nickname": user, "password": password });
    post(authority, "/user/register", &form).await.context(
        "cannot register; a server under load needs its registration and send limits off",
    )?;
    let form = json!({ "user_id": user, "password": password, "platform_id": PLATFORM });
    let data = post(authority, "/auth/login", &form).await?;
    let token = data["token"].as_str().context("the answer to /auth/login has no token")?;
    Ok(Account { token: token.to_owned(), user })
}

/// A name for this run: process ids repeat, above all in containers.
fn run_name() -> String {
    let random = RandomState::new().hash_one(std::process::id());
    format!("{:08x}", random >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_do_not_share_names() {
        assert_ne!(run_name(), run_name());
        assert!(run_name().bytes().all(|byte| byte.is_ascii_alphanumeric()));
    }
}
