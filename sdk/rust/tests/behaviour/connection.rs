//! Close codes, tokens and timeouts.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use nexo_sdk::{Client, MemoryStore, Options, Reason, State, Store, Target};
use serde_json::json;

use crate::fake::{Fake, grant};
use crate::server::{online, options, until};

async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

#[tokio::test]
async fn forty_xx_comes_back() {
    let fake = Fake::start().await;
    let me = fake.person(|_| {}).await;
    fake.end(Some((4004, "shutting_down")));
    until("again", async || fake.connections() == 2).await;
    online(&me).await;
    fake.end(None);
    until("again", async || fake.connections() == 3).await;
    online(&me).await;
}

#[tokio::test]
async fn whoever_was_too_fast_waits_at_least_a_second() {
    let fake = Fake::start().await;
    let me = fake.person(|_| {}).await;
    fake.end(Some((4029, "too_many_requests")));
    until("away", async || me.state() != State::Online).await;
    let State::Offline { retry_in: Some(wait) } = me.state() else { panic!("{:?}", me.state()) };
    assert!(wait >= Duration::from_secs(1), "{wait:?}");
}

#[tokio::test]
async fn forty_one_xx_refreshes_the_token_first() {
    let fake = Fake::start().await;
    fake.answer("/auth/refresh", |_| (200, grant("token-2")));
    let me = fake.person(|_| {}).await;
    fake.end(Some((4100, "token_expired")));
    until("again", async || fake.connections() == 2).await;
    online(&me).await;
    assert_eq!(fake.until_heard("AUTH", 1).await[0]["token"], "token-2");
}

#[tokio::test]
async fn forty_four_xx_does_not_come_back() {
    let signed_out = |reason| State::SignedOut { reason: Some(reason) };
    for (code, reason, state) in [
        (4403, "kicked", State::Kicked),
        (4401, "session_invalid", signed_out(Reason::SessionInvalid)),
        (4405, "account_disabled", signed_out(Reason::AccountDisabled)),
        (4404, "origin_not_allowed", signed_out(Reason::OriginNotAllowed)),
    ] {
        let fake = Fake::start().await;
        let me = fake.person(|_| {}).await;
        fake.end(Some((code, reason)));
        until(reason, async || me.state() == state).await;
        pause(300).await;
        assert_eq!(fake.connections(), 1);
        // Either the sign-in has ended, or the server refuses the client and the sign-in stays
        // valid.
        assert_eq!(me.me().is_some(), code == 4404);
        assert_eq!(me.resume().await.unwrap(), code == 4404);
    }
}

#[tokio::test]
async fn whoever_is_kicked_leaves_the_sign_in_to_those_who_share_the_store() {
    for (code, reason, stays) in [(4403, "kicked", true), (4401, "session_invalid", false)] {
        let fake = Fake::start().await;
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let me = fake.person(|options| options.store = store.clone()).await;
        fake.end(Some((code, reason)));
        until(reason, async || me.me().is_none()).await;
        assert_eq!(store.get("session").unwrap().is_some(), stays, "{reason}");
        // It ended here, whether or not other clients go on.
        assert!(!me.resume().await.unwrap());
        let other = Client::new(Options { store, ..options(&fake.url) }).unwrap();
        assert_eq!(other.resume().await.unwrap(), stays, "{reason}");
    }
}

#[tokio::test]
async fn the_last_word_of_the_server_counts_even_if_its_close_frame_is_lost() {
    let fake = Fake::start().await;
    let me = fake.person(|_| {}).await;
    fake.say(&json!({ "type": "ERROR", "reason": "kicked", "message": "" }));
    fake.end(None);
    until("kicked", async || me.state() == State::Kicked).await;
}

#[tokio::test]
async fn many_requests_with_a_dead_token_cause_one_refresh() {
    let fake = Fake::start().await;
    let left = Arc::new(AtomicU64::new(3));
    fake.answer("/auth/refresh", |_| (200, grant("token-2")));
    fake.answer("/user/info", move |_| {
        if left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            return (401, json!({ "reason": "token_expired" }));
        }
        let me = json!({ "user_id": "me", "nickname": "", "avatar": "", "extra": "",
            "created_at": 0, "updated_at": 0 });
        (200, me)
    });
    let me = fake.person(|_| {}).await;
    let people = me.people();
    let (a, b, c) = tokio::join!(people.me(), people.me(), people.me());
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    assert_eq!(fake.asked("/auth/refresh"), 1);
    // The open socket reauthenticates with the new one.
    assert_eq!(fake.until_heard("REAUTH", 1).await[0]["token"], "token-2");
}

#[tokio::test]
async fn a_refresh_that_is_refused_ends_the_sign_in_and_one_that_nobody_answers_does_not() {
    let fake = Fake::start().await;
    let me = fake.person(|_| {}).await;
    fake.end(Some((4100, "token_expired")));
    until("several tries", async || fake.asked("/auth/refresh") > 2).await;
    assert!(me.me().is_some());
    fake.answer("/auth/refresh", |_| (401, json!({ "reason": "invalid_refresh_token" })));
    let reason = Some(Reason::InvalidRefreshToken);
    until("out", async || me.state() == State::SignedOut { reason }).await;
    assert_eq!(me.me(), None);
}

#[tokio::test]
async fn a_disabled_account_is_signed_out_by_a_request_or_a_refresh_as_well() {
    let disabled = |_: &str| (403, json!({ "reason": "account_disabled" }));
    let reason = Some(Reason::AccountDisabled);
    let requested = Fake::start().await;
    requested.answer("/user/info", disabled);
    let refreshed = Fake::start().await;
    refreshed.answer("/auth/refresh", disabled);
    let (one, other) = (requested.person(|_| {}).await, refreshed.person(|_| {}).await);
    assert_eq!(one.people().me().await.unwrap_err().reason(), reason);
    refreshed.end(Some((4100, "token_expired")));
    for (client, fake) in [(one, requested), (other, refreshed)] {
        until("out", async || client.state() == State::SignedOut { reason }).await;
        pause(300).await;
        assert_eq!((client.me(), fake.connections()), (None, 1));
        assert!(!client.resume().await.unwrap());
    }
}

#[tokio::test]
async fn a_refresh_whose_answer_is_lost_is_tried_again_soon_and_nobody_notices() {
    let fake = Fake::start().await;
    fake.answer("/auth/login", |_| {
        let mut brief = grant("token-1");
        brief["expires_in"] = json!(2); // renewed after 0.6 s
        (200, brief)
    });
    fake.answer("/auth/refresh", |_| (200, grant("token-2")));
    fake.delay("/auth/refresh", 60_000);
    let me = fake.person(|options| options.timing.refresh_timeout_ms = 100).await;
    until("several tries", async || fake.asked("/auth/refresh") == 3).await;
    fake.delay("/auth/refresh", 0);
    assert_eq!(fake.until_heard("REAUTH", 1).await[0]["token"], "token-2");
    assert_eq!((me.state(), fake.connections()), (State::Online, 1));
}

#[tokio::test]
async fn a_late_answer_to_a_refresh_changes_nothing_for_whoever_signed_in_since() {
    for (status, answer) in
        [(200, grant("late")), (401, json!({ "reason": "invalid_refresh_token" }))]
    {
        let fake = Fake::start().await;
        fake.answer("/user/info", |_| (401, json!({ "reason": "token_expired" })));
        fake.answer("/auth/refresh", move |_| (status, answer.clone()));
        fake.delay("/auth/refresh", 500);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let me = fake.person(|options| options.store = store.clone()).await;
        let people = me.people();
        let earlier = tokio::spawn(async move { people.me().await });
        until("a refresh", async || fake.asked("/auth/refresh") == 1).await;
        fake.answer("/auth/login", |_| (200, grant("token-2")));
        me.login("me", "password").await.unwrap();
        online(&me).await;
        assert!(earlier.await.unwrap().is_err());
        pause(200).await;
        assert_eq!((me.state(), fake.connections()), (State::Online, 2));
        assert!(fake.heard("REAUTH").is_empty());
        assert_eq!(store.get("session").unwrap().unwrap()["token"], "token-2");
    }
}

#[tokio::test]
async fn a_silent_server_is_asked_and_given_up() {
    let fake = Fake::start().await;
    let impatient = |options: &mut Options| {
        options.timing.ping_after_ms = 100;
        options.timing.pong_timeout_ms = 100;
    };
    let me = fake.person(impatient).await;
    fake.until_heard("PING", 1).await;
    until("again", async || fake.connections() == 2).await;
    online(&me).await;
    for _ in 0..6 {
        pause(50).await;
        fake.say(&json!({ "type": "PING" }));
    }
    fake.until_heard("PONG", 6).await;
    assert_eq!(fake.connections(), 2);
}

#[tokio::test]
async fn a_server_that_does_not_read_is_given_up_too_and_nothing_is_lost() {
    let fake = Fake::start().await;
    let impatient = |options: &mut Options| {
        options.timing.ping_after_ms = 100;
        options.timing.pong_timeout_ms = 200;
    };
    let me = fake.person(impatient).await;
    fake.deafen(true);
    pause(50).await;
    // More than the socket buffers, so that writing blocks.
    for number in 0..100 {
        me.send(Target::to("you"), format!("{number}{}", "x".repeat(100_000))).await.unwrap();
    }
    until("given up", async || me.state() != State::Online).await;
    fake.deafen(false);
    until("again", async || fake.connections() > 1 && me.state() == State::Online).await;
    let said = fake.until_heard("SINGLE_CHAT", 1).await;
    assert!(said[0]["body"].as_str().unwrap().starts_with("0x"));
}
