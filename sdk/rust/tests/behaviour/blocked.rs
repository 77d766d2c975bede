//! Blocked conversations.
use std::time::Duration;

use nexo_sdk::{Client, Event, Receive, Target};

use crate::server::{PASSWORD, Server, options, picked, record, until};

async fn bodies(client: &Client) -> Vec<String> {
    let messages = client.messages(Target::to("bob")).await.unwrap();
    messages.iter().map(|one| one.body.clone()).collect()
}

async fn say(bob: &Client, body: &str) {
    let sent = bob.send(Target::to("alice"), body).await.unwrap();
    bob.saved(&sent).await.unwrap();
}

/// Heads are compared meanwhile; a missing message would be pulled.
async fn look(client: &Client) {
    client.refresh();
    tokio::time::sleep(Duration::from_millis(1_200)).await;
}

/// Another device of alice, which compares heads at this interval.
async fn device(server: &Server, heads_every_ms: u64) -> Client {
    let mut options = options(&server.url);
    options.timing.heads_every_ms = heads_every_ms;
    let client = Client::new(options).unwrap();
    client.login("alice", PASSWORD).await.unwrap();
    until("there, too", async || bodies(&client).await == ["before"]).await;
    client
}

#[tokio::test]
async fn a_blocked_conversation_brings_nothing_until_it_is_unblocked_then_everything_everywhere() {
    let server = Server::start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    say(&bob, "before").await;
    until("it is here", async || bodies(&alice).await == ["before"]).await;
    let (phone, tablet) = (device(&server, 60_000).await, device(&server, 300).await);
    alice.receive(Target::to("bob"), Receive::Blocked).await.unwrap();
    for device in [&phone, &tablet] {
        let is_blocked = async || {
            let line = device.conversation(Target::to("bob")).await.unwrap();
            line.is_some_and(|line| line.receive == Receive::Blocked)
        };
        until("the others know", is_blocked).await;
    }

    say(&bob, "one").await;
    // A new connection requests missed messages and the list with its last messages.
    tablet.disconnect();
    tablet.connect();
    look(&tablet).await;
    assert_eq!(bodies(&tablet).await, ["before"]);
    say(&bob, "two").await;
    tokio::join!(look(&alice), look(&phone), look(&tablet));
    for device in [&alice, &phone, &tablet] {
        assert_eq!(bodies(device).await, ["before"]);
    }
    let line = alice.conversation(Target::to("bob")).await.unwrap().unwrap();
    assert_eq!(line.last_message.map(|last| last.body.clone()).as_deref(), Some("before"));

    let heard = record(&alice);
    alice.receive(Target::to("bob"), Receive::Normal).await.unwrap();
    for device in [&alice, &phone, &tablet] {
        until("everything", async || bodies(device).await == ["before", "one", "two"]).await;
    }
    let said = |event: &Event| match event {
        Event::Message(message) => Some(message.body.clone()),
        _ => None,
    };
    until("received once", async || picked(&heard, said) == ["one", "two"]).await;
}

#[tokio::test]
async fn somebody_who_has_not_written_is_blocked_on_every_device_before_the_first_message() {
    let server = Server::start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let receive = async |client: &Client, user: &str| {
        let line = client.conversation(Target::to(user)).await.unwrap();
        line.map_or(Receive::Normal, |line| line.receive)
    };
    alice.receive(Target::to("bob"), Receive::Blocked).await.unwrap();
    assert_eq!(receive(&alice, "bob").await, Receive::Blocked);
    assert!(alice.receive(Target::to("nobody"), Receive::Blocked).await.is_err());
    // A device that signs in later knows it before it hears of him.
    let phone = Client::new(options(&server.url)).unwrap();
    phone.login("alice", PASSWORD).await.unwrap();
    until("the phone knows", async || receive(&phone, "bob").await == Receive::Blocked).await;
    for device in [&alice, &phone] {
        assert!(device.conversations().await.unwrap().is_empty(), "nothing was said");
    }
    say(&bob, "hello").await;
    tokio::join!(look(&alice), look(&phone));
    for device in [&alice, &phone] {
        assert!(bodies(device).await.is_empty());
        let list = device.conversations().await.unwrap();
        assert_eq!(list.iter().map(|line| line.receive).collect::<Vec<_>>(), [Receive::Blocked]);
    }
    alice.receive(Target::to("bob"), Receive::Normal).await.unwrap();
    for device in [&alice, &phone] {
        until("everything", async || bodies(device).await == ["hello"]).await;
    }
}
