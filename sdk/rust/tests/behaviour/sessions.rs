//! Signing in, staying signed in, and being signed out.
use std::sync::Arc;
use std::time::Duration;

use nexo_sdk::{Client, Event, FileStore, Options, Reason, State, Store, Target};

use crate::server::{PASSWORD, Server, online, options, person, picked, record, until};

fn state(event: &Event) -> Option<State> {
    match event {
        Event::State(state) => Some(*state),
        _ => None,
    }
}

async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

#[tokio::test]
async fn the_older_one_is_out_and_does_not_come_back_by_itself() {
    let server = Server::with(&[("NEXO_SESSION__POLICY", "single")]);
    let older = server.person("alice").await;
    let newer = server.client();
    newer.login("alice", PASSWORD).await.unwrap();
    until("kicked", async || older.state() == State::Kicked).await;
    online(&newer).await;
    older.connect();
    pause(1000).await;
    assert_eq!((older.state(), newer.state()), (State::Kicked, State::Online));
    older.login("alice", PASSWORD).await.unwrap(); // the user signs in again
    online(&older).await;
    until("kicked", async || newer.state() == State::Kicked).await;
}

#[tokio::test]
async fn a_token_is_renewed_before_it_dies_and_the_connection_stays() {
    let server = Server::with(&[("NEXO_AUTH__ACCESS_TOKEN_SECONDS", "3")]);
    let alice = server.person("alice").await;
    let heard = record(&alice);
    pause(5000).await;
    assert_eq!(picked(&heard, state), []);
    assert_eq!(alice.people().me().await.unwrap().user_id, "alice");
}

#[tokio::test]
async fn a_device_that_slept_longer_than_its_token_renews_it_and_comes_back() {
    let server = Server::with(&[("NEXO_AUTH__ACCESS_TOKEN_SECONDS", "1")]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("alice.store");
    let store = || -> Arc<dyn Store> { Arc::new(FileStore::open(&path).unwrap()) };
    let before = person(&server.url, "alice", |options| options.store = store()).await;
    before.close();
    pause(1500).await;
    let after = Client::new(Options { store: store(), ..options(&server.url) }).unwrap();
    assert!(after.resume().await.unwrap());
    online(&after).await;
    pause(1500).await;
    let people = after.people();
    let (a, b, c) = tokio::join!(people.me(), people.me(), people.me());
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
}

#[tokio::test]
async fn signing_out_and_a_new_password_end_it_everywhere_at_once() {
    let server = Server::start();
    let one = server.person("alice").await;
    let two = server.client();
    two.login("alice", PASSWORD).await.unwrap();
    online(&two).await;
    one.logout().await.unwrap();
    assert_eq!(one.state(), State::SignedOut { reason: None });
    assert_eq!((one.me(), two.state()), (None, State::Online));
    assert!(!one.resume().await.unwrap());
    let refusal = one.send(Target::to("bob"), "?").await.unwrap_err();
    assert_eq!(refusal.reason(), Some(Reason::MissingToken));
    two.change_password(PASSWORD, "test-password-2").await.unwrap();
    until("out", async || matches!(two.state(), State::SignedOut { reason: Some(_) })).await;
    let refusal = one.login("alice", PASSWORD).await.unwrap_err();
    assert_eq!(refusal.reason(), Some(Reason::LoginFailed));
    one.login("alice", "test-password-2").await.unwrap();
    online(&one).await;
}

#[tokio::test]
async fn who_forgot_their_password_sets_a_new_one_with_a_code() {
    let mut server = Server::start();
    let alice = server.person("alice").await;
    server.kill();
    let code = server.reset_code("alice");
    server.restart();
    let nobody = server.client();
    let refusal = nobody.reset_password("alice", "AAAA", "test-password-2").await.unwrap_err();
    assert_eq!(refusal.reason(), Some(Reason::ResetFailed));
    nobody.reset_password("alice", &code, "test-password-2").await.unwrap();
    nobody.login("alice", "test-password-2").await.unwrap();
    nobody.ready().await.unwrap();
    until("out", async || matches!(alice.state(), State::SignedOut { reason: Some(_) })).await;
}

#[tokio::test]
async fn ready_waits_for_the_conversations_or_tells_that_there_will_be_none() {
    let server = Server::with(&[("NEXO_SESSION__POLICY", "single")]);
    let bob = server.person("bob").await;
    let alice = server.person("alice").await;
    let sent = bob.send(Target::to("alice"), "hello").await.unwrap();
    bob.saved(&sent).await.unwrap();
    let tablet = server.client();
    let nobody = tablet.ready().await.unwrap_err();
    assert_eq!(nobody.reason(), Some(Reason::MissingToken));
    tablet.login("alice", PASSWORD).await.unwrap();
    tablet.ready().await.unwrap();
    assert_eq!(tablet.state(), State::Online);
    assert_eq!(tablet.conversations().await.unwrap().len(), 1);
    until("kicked", async || alice.state() == State::Kicked).await;
    assert_eq!(alice.ready().await.unwrap_err().reason(), Some(Reason::Kicked));
    // A pending call is rejected, too.
    bob.disconnect();
    let (ready, out) = tokio::join!(bob.ready(), bob.logout());
    out.unwrap();
    assert_eq!(ready.unwrap_err().reason(), Some(Reason::MissingToken));
}

#[tokio::test]
async fn stays_below_the_limits_of_the_server_however_much_there_is_to_say() {
    let server = Server::with(&[
        ("NEXO_LIMITS__CONNECTION_FRAMES_PER_SECOND", "60"),
        ("NEXO_LIMITS__USER_SENDS_PER_SECOND", "30"),
    ]);
    let alice = server.person("alice").await;
    server.person("bob").await;
    let heard = record(&alice);
    for number in 0..100 {
        alice.send(Target::to("bob"), number.to_string()).await.unwrap();
    }
    let saved = async || {
        let messages = alice.messages(Target::to("bob")).await.unwrap();
        messages.iter().all(|message| message.seq > 0)
    };
    until("all saved", saved).await;
    assert_eq!(picked(&heard, state), []);
}

#[tokio::test]
async fn a_server_that_died_is_found_again_and_nothing_is_lost() {
    let mut server = Server::start();
    let alice = server.person("alice").await;
    server.person("bob").await;
    let before = alice.send(Target::to("bob"), "before").await.unwrap();
    alice.saved(&before).await.unwrap();
    server.kill();
    until("away", async || alice.state() != State::Online).await;
    let sent = alice.send(Target::to("bob"), "meanwhile").await.unwrap();
    server.restart();
    assert_eq!(alice.saved(&sent).await.unwrap().seq, 2);
}

#[tokio::test]
async fn the_last_clone_that_is_dropped_ends_the_client() {
    let server = Server::start();
    let alice = server.person("alice").await;
    let (mut events, clone) = (alice.events(), alice.clone());
    drop(alice);
    assert_eq!(clone.state(), State::Online);
    drop(clone);
    while let Some(event) = events.next().await {
        assert!(!matches!(event, Event::Problem(_)), "{event:?}");
    }
}
