//! Private conversations.
use nexo_sdk::{Client, Content, Event, MessageState, Presence, Profile, Reason, Receive, Target};

use crate::server::{PASSWORD, Server, online, picked, record, until};

async fn world() -> (Server, Client, Client) {
    let server = Server::start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    (server, alice, bob)
}

async fn bodies(client: &Client, with: &str) -> Vec<String> {
    client.messages(Target::to(with)).await.unwrap().iter().map(|one| one.body.clone()).collect()
}

async fn last_state(client: &Client, with: &str) -> Option<MessageState> {
    client.messages(Target::to(with)).await.unwrap().last().map(|one| one.state)
}

async fn unread(client: &Client, with: &str) -> Option<u64> {
    client.conversation(Target::to(with)).await.unwrap().map(|line| line.unread)
}

/// Sends a message, waits until it is saved and returns its id.
async fn say(client: &Client, to: &str, body: &str) -> String {
    let sent = client.send(Target::to(to), body).await.unwrap();
    client.saved(&sent).await.unwrap().server_msg_id.clone()
}

#[tokio::test]
async fn a_message_goes_from_sending_to_read() {
    let (_server, alice, bob) = world().await;
    let (news, heard) = (record(&alice), record(&bob));
    let sent = alice.send(Target::to("bob"), "Hello, <b>Bob</b>").await.unwrap();
    assert_eq!(sent.state, MessageState::Sending);
    assert_eq!(alice.saved(&sent).await.unwrap().seq, 1);
    let said = |event: &Event| match event {
        Event::Message(message) => Some(message.body.clone()),
        _ => None,
    };
    until("bob hears it", async || picked(&heard, said) == ["Hello, <b>Bob</b>"]).await;
    assert_eq!(unread(&bob, "alice").await, Some(1));
    until("there", async || last_state(&alice, "bob").await == Some(MessageState::Delivered)).await;
    bob.mark_read(Target::to("alice"), None).await.unwrap();
    assert_eq!(unread(&bob, "alice").await, Some(0));
    until("read", async || last_state(&alice, "bob").await == Some(MessageState::Read)).await;
    let states = |event: &Event| match event {
        Event::Update(message) => Some(message.state),
        _ => None,
    };
    let wanted = [MessageState::Saved, MessageState::Delivered, MessageState::Read];
    assert_eq!(picked(&news, states), wanted);
}

#[tokio::test]
async fn a_device_that_comes_later_sees_how_far_a_message_has_come() {
    let (server, alice, bob) = world().await;
    say(&alice, "bob", "are you there?").await;
    until("there", async || last_state(&alice, "bob").await == Some(MessageState::Delivered)).await;
    let tablet = server.client();
    tablet.login("alice", PASSWORD).await.unwrap();
    let is = async |state| last_state(&tablet, "bob").await == Some(state);
    until("the tablet knows", async || is(MessageState::Delivered).await).await;
    bob.mark_read(Target::to("alice"), None).await.unwrap();
    until("read", async || is(MessageState::Read).await).await;
}

#[tokio::test]
async fn an_answer_reads_what_came_before() {
    let (_server, alice, bob) = world().await;
    say(&alice, "bob", "one").await;
    until("unread", async || unread(&bob, "alice").await == Some(1)).await;
    say(&bob, "alice", "two").await;
    assert_eq!(unread(&bob, "alice").await, Some(0));
    until("the answer", async || bodies(&alice, "bob").await == ["one", "two"]).await;
    let messages = alice.messages(Target::to("bob")).await.unwrap();
    assert_eq!(messages[0].state, MessageState::Read);
    assert_eq!(bodies(&bob, "alice").await, ["one", "two"]);
}

#[tokio::test]
async fn a_refusal_is_final_and_can_be_tried_again_or_forgotten() {
    let (_server, alice, _) = world().await;
    let sent = alice.send(Target::to("nobody"), "Hello?").await.unwrap();
    let refusal = alice.saved(&sent).await.unwrap_err();
    assert_eq!(refusal.reason(), Some(Reason::UserNotFound));
    assert_eq!(last_state(&alice, "nobody").await, Some(MessageState::Refused));
    alice.retry(&sent.client_msg_id).await.unwrap();
    assert_eq!(last_state(&alice, "nobody").await, Some(MessageState::Sending));
    alice.saved(&sent).await.unwrap_err();
    alice.discard(&sent.client_msg_id).await.unwrap();
    assert_eq!(last_state(&alice, "nobody").await, None);
}

#[tokio::test]
async fn a_conversation_of_two_others_is_no_place_to_get_lost_in() {
    let (server, alice, _) = world().await;
    let carol = server.person("carol").await;
    let sent = carol.send("si_alice_bob", "Hello?").await.unwrap();
    assert_eq!(sent.conversation_id, "si_alice_carol");
    assert_eq!(carol.saved(&sent).await.unwrap().seq, 1);
    assert_eq!(bodies(&carol, "alice").await, ["Hello?"]);
    until("there", async || bodies(&alice, "carol").await == ["Hello?"]).await;
}

#[tokio::test]
async fn a_recall_takes_the_text_away_on_both_sides() {
    let (_server, alice, bob) = world().await;
    let id = say(&alice, "bob", "Oops").await;
    until("bob has it", async || bodies(&bob, "alice").await == ["Oops"]).await;
    alice.recall(&id).await.unwrap();
    assert_eq!(bodies(&alice, "bob").await, [""]);
    until("bob hears of it", async || bodies(&bob, "alice").await == [""]).await;
    assert!(bob.messages(Target::to("alice")).await.unwrap()[0].is_recalled);
}

#[tokio::test]
async fn another_device_of_mine_has_the_same_and_hears_what_i_read() {
    let (server, alice, bob) = world().await;
    for body in ["a", "b", "c", "d", "e"] {
        say(&bob, "alice", body).await;
    }
    until("here", async || unread(&alice, "bob").await == Some(5)).await;
    let other = server.client();
    other.login("alice", PASSWORD).await.unwrap();
    online(&other).await;
    until("unread there", async || unread(&other, "bob").await == Some(5)).await;
    alice.mark_read(Target::to("bob"), None).await.unwrap();
    until("read there", async || unread(&other, "bob").await == Some(0)).await;
    while !other.load_older(Target::to("bob"), 2).await.unwrap().is_empty() {}
    assert_eq!(bodies(&other, "bob").await, bodies(&alice, "bob").await);
    say(&other, "bob", "from the other one").await;
    until("here too", async || bodies(&alice, "bob").await.len() == 6).await;
}

#[tokio::test]
async fn somebody_is_writing_until_they_have_said_it() {
    let (_server, alice, bob) = world().await;
    say(&alice, "bob", "we talk").await;
    let heard = record(&bob);
    let typing = |event: &Event| match event {
        Event::Typing { is_typing, .. } => Some(*is_typing),
        _ => None,
    };
    alice.typing(Target::to("bob"));
    alice.typing(Target::to("bob"));
    until("writing", async || picked(&heard, typing) == [true]).await;
    say(&alice, "bob", "this").await;
    until("done", async || picked(&heard, typing) == [true, false]).await;
}

#[tokio::test]
async fn profiles_presence_readers_choices() {
    let (_server, alice, bob) = world().await;
    let profile = Profile { nickname: Some("Alice A.".to_owned()), ..Profile::default() };
    assert_eq!(alice.people().update(&profile).await.unwrap().nickname, "Alice A.");
    assert_eq!(bob.people().get("alice").await.unwrap().nickname, "Alice A.");
    let id = say(&alice, "bob", "read me").await;
    until("there", async || unread(&bob, "alice").await == Some(1)).await;
    let presence = alice.people().presence(&["bob"]).await.unwrap();
    assert!(matches!(&presence[..], [Presence { is_online: true, .. }]), "{presence:?}");
    bob.mark_read(Target::to("alice"), None).await.unwrap();
    until("read", async || last_state(&alice, "bob").await == Some(MessageState::Read)).await;
    let readers = alice.readers(&id).await.unwrap();
    assert!(readers.iter().any(|one| one.user_id == "bob" && one.has_read), "{readers:?}");
    alice.pin(Target::to("bob"), true).await.unwrap();
    alice.receive(Target::to("bob"), Receive::Silent).await.unwrap();
    let line = alice.conversation(Target::to("bob")).await.unwrap().unwrap();
    assert_eq!((line.is_pinned, line.receive), (true, Receive::Silent));
}

#[tokio::test]
async fn what_an_app_adds_to_a_message_is_carried() {
    let (_server, alice, bob) = world().await;
    let content = Content::text("look").extra([("colour".to_owned(), "red".to_owned())]);
    let sent = alice.send(Target::to("bob"), content.clone()).await.unwrap();
    assert_eq!(sent.extra, content.extra);
    alice.saved(&sent).await.unwrap();
    until("bob sees it", async || bodies(&bob, "alice").await == ["look"]).await;
    let seen = bob.messages(Target::to("alice")).await.unwrap();
    assert_eq!(seen[0].extra, content.extra);
}

#[tokio::test]
async fn a_new_name_or_picture_is_seen_at_once() {
    let (_server, alice, bob) = world().await;
    say(&alice, "bob", "hello").await;
    until("bob sees it", async || bodies(&bob, "alice").await == ["hello"]).await;
    let (own, heard) = (record(&alice), record(&bob));
    let (nickname, avatar) = (Some("Alice L.".to_owned()), Some("a.png".to_owned()));
    alice.people().update(&Profile { nickname, avatar, extra: None }).await.unwrap();
    let person = |event: &Event| match event {
        Event::Person { user_id, nickname, avatar } => {
            Some([user_id, nickname, avatar].map(String::clone))
        }
        _ => None,
    };
    let expect = [["alice", "Alice L.", "a.png"]];
    until("bob hears it", async || picked(&heard, person) == expect).await;
    until("so do her devices", async || picked(&own, person) == expect).await;
    let line = bob.conversation(Target::to("alice")).await.unwrap().unwrap();
    assert_eq!((line.name.as_str(), line.avatar.as_str()), ("Alice L.", "a.png"));
}
