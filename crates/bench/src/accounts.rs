//! The users of a run: registered and signed in over HTTP, a few at a time.

use std::hash::{BuildHasher, RandomState};

use anyhow::{Context, Result};
use serde_json::json;

use crate::http::post;
use crate::progress::{ProgressDisplay, run_all};

/// Hashing passwords takes processor and memory: more at a time would only queue in the server.
const AT_ONCE: usize = 16;
/// Any known platform; the typed dialect calls 5 the web.
pub(crate) const PLATFORM: u32 = 5;

/// All users have it. It protects nothing, so it need not be secret.
pub(crate) const PASSWORD: &str = "bench-password-1";

/// A user with an access token.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) user: String,
    pub(crate) token: String,
}

/// Registers `count` users that no earlier run can have registered, and signs them in, in order.
pub(crate) async fn sign_up(
    authority: &str,
    count: usize,
    progress: ProgressDisplay,
) -> Result<Vec<Account>> {
    let accounts = new_names(count).map(|user| async {
        register_one(authority, &user).await?;
        sign_in(authority, user).await
    });
    run_all(accounts, AT_ONCE, "users signed in", progress).await
}

/// Registers `count` users who never sign in.
pub(crate) async fn register(
    authority: &str,
    count: usize,
    progress: ProgressDisplay,
) -> Result<Vec<String>> {
    let users = new_names(count).map(|user| async {
        register_one(authority, &user).await?;
        Ok(user)
    });
    run_all(users, AT_ONCE, "users registered", progress).await
}

fn new_names(count: usize) -> impl ExactSizeIterator<Item = String> {
    let run = run_name();
    (0..count).map(move |number| format!("b{run}-{number}"))
}

async fn register_one(authority: &str, user: &str) -> Result<()> {
    let form = json!({ "user_id": user, "nickname": user, "password": PASSWORD });
    let registered = post(authority, "/user/register", "", &form).await;
    registered.context(
        "cannot register; a server under load needs its registration and send limits off",
    )?;
    Ok(())
}

/// Signs in a registered user.
pub(crate) async fn sign_in(authority: &str, user: String) -> Result<Account> {
    let form = json!({ "user_id": user, "password": PASSWORD, "platform_id": PLATFORM });
    let data = post(authority, "/auth/login", "", &form).await?;
    let token = data["token"].as_str().context("the answer to /auth/login has no token")?;
    Ok(Account { token: token.to_owned(), user })
}

/// A random name for this run: process ids repeat, above all in containers.
pub(crate) fn run_name() -> String {
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
