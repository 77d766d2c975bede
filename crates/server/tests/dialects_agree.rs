//! One domain behind every dialect: the same scenarios in each, and between users of different ones.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use nexo_sim::dialect_client::{ClientEvent, Extra};
use nexo_sim::process::Setup;
use nexo_sim::{ClientDialect, DialectClient, ReceivedMessage, Recipient, Server, TestGroup};
use serde_json::json;

fn server() -> Server {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).start()
}

fn to(id: &str) -> Recipient {
    Recipient::User(id.to_owned())
}

/// Plays a scenario between every two dialects.
async fn between_all(scenario: impl AsyncFn(&Server, ClientDialect, ClientDialect)) {
    let server = server();
    for mine in ClientDialect::ALL {
        for theirs in ClientDialect::ALL {
            scenario(&server, mine, theirs).await;
        }
    }
}

/// Two fresh people for a pair of dialects.
async fn pair(
    server: &Server,
    mine: ClientDialect,
    theirs: ClientDialect,
) -> (nexo_sim::Person, nexo_sim::Person) {
    let name = format!("{mine:?}-{theirs:?}").to_lowercase();
    (server.person(&format!("a-{name}")).await, server.person(&format!("b-{name}")).await)
}

#[tokio::test]
async fn a_private_chat_is_the_same_for_both() {
    between_all(async |server, mine, theirs| {
        let (alice, bob) = pair(server, mine, theirs).await;
        let mut a = DialectClient::connect(&server.http, &alice, mine).await;
        let mut b = DialectClient::connect(&server.http, &bob, theirs).await;
        let first = a.say(&to(&bob.id), "c1", "hello").await.unwrap();
        assert_eq!(first.seq, 1);
        let heard = b.hear_message().await;
        let expect =
            ReceivedMessage { from: alice.id.clone(), text: "hello".into(), ..first.clone() };
        assert_eq!(heard, expect, "{mine:?} to {theirs:?}");
        // A retry is the same message.
        let again = a.say(&to(&bob.id), "c1", "hello").await.unwrap();
        assert_eq!((again.id, again.seq), (first.id.clone(), 1));
        let other = a.say(&to(&bob.id), "c1", "something else").await;
        assert_eq!(other, Err("client_msg_id_conflict".into()), "{mine:?}");
        let answer = b.say(&to(&alice.id), "c1", "hello you").await.unwrap();
        assert_eq!((answer.seq, &answer.conversation), (2, &first.conversation));
        assert_eq!(a.hear_message().await.id, answer.id);
        let seen = a.history(&first.conversation, &to(&bob.id)).await;
        assert_eq!(seen, b.history(&first.conversation, &to(&alice.id)).await);
        assert_eq!(seen.iter().map(|said| said.seq).collect::<Vec<_>>(), [1, 2]);
    })
    .await;
}

#[tokio::test]
async fn what_an_app_adds_to_a_message_is_carried_everywhere() {
    let extra: Extra =
        [("colour", "red"), ("", "\0 \u{1F600}")].map(|(k, v)| (k.into(), v.into())).into();
    between_all(async |server, mine, theirs| {
        let (alice, bob) = pair(server, mine, theirs).await;
        let mut a = DialectClient::connect(&server.http, &alice, mine).await;
        let mut b = DialectClient::connect(&server.http, &bob, theirs).await;
        let said = a.say_with(&to(&bob.id), "c1", "look", &extra).await.unwrap();
        assert_eq!(b.hear_message().await.extra, extra, "{mine:?} to {theirs:?}");
        for (client, peer) in [(&mut a, &bob), (&mut b, &alice)] {
            let seen = client.history(&said.conversation, &to(&peer.id)).await;
            assert_eq!(seen[0].extra, extra, "{mine:?} to {theirs:?}");
        }
        // It is part of what was said: a retry has the same.
        let again = a.say_with(&to(&bob.id), "c1", "look", &extra).await.unwrap();
        assert_eq!(again.id, said.id);
        let other = a.say(&to(&bob.id), "c1", "look").await;
        assert_eq!(other, Err("client_msg_id_conflict".into()), "{mine:?}");
        let many = (0..33).map(|i| (i.to_string(), String::new())).collect();
        let refused = a.say_with(&to(&bob.id), "c2", "look", &many).await;
        assert_eq!(refused, Err("body_too_long".into()), "{mine:?}");
    })
    .await;
}

#[tokio::test]
async fn a_new_name_or_picture_reaches_those_who_see_it() {
    let server = server();
    let alice = server.person("alice").await;
    let stranger = server.person("stranger").await;
    let mut friends = Vec::new();
    for dialect in ClientDialect::ALL {
        let friend = server.person(&format!("{dialect:?}").to_lowercase()).await;
        friends.push((DialectClient::connect(&server.http, &friend, dialect).await, friend));
    }
    let mut own = DialectClient::connect(&server.http, &alice, ClientDialect::Typed).await;
    let mut other = DialectClient::connect(&server.http, &stranger, ClientDialect::Typed).await;
    // Half of them are written to, and all but the first are in a group with her.
    for (_, friend) in friends.iter().step_by(2) {
        own.say(&to(&friend.id), &friend.id, "hello").await.unwrap();
    }
    let members: Vec<_> = friends[1..].iter().map(|(_, friend)| friend).collect();
    let _group = TestGroup::new(&server.http, &alice, &members).await;
    let is_news = |heard: &ClientEvent| matches!(heard, ClientEvent::ProfileUpdated(..));
    let update = async |body| server.http.put("/user/update", &alice.token, body).await;
    update(json!({ "nickname": "Alice L.", "avatar": "a.png" })).await.data();
    let expect = ClientEvent::ProfileUpdated("alice".into(), "Alice L.".into(), "a.png".into());
    for (client, friend) in &mut friends {
        assert_eq!(client.find(is_news).await, expect, "{}", friend.id);
    }
    assert_eq!(own.find(is_news).await, expect);
    // What is not seen is told to nobody, nor is what stays as it was; each hears once.
    update(json!({ "nickname": "Alice L.", "extra": "{}" })).await.data();
    update(json!({ "avatar": "b.png" })).await.data();
    let expect = ClientEvent::ProfileUpdated("alice".into(), "Alice L.".into(), "b.png".into());
    for (client, friend) in &mut friends {
        assert_eq!(client.find(is_news).await, expect, "{}", friend.id);
    }
    own.find(is_news).await;
    own.say(&to("stranger"), "s", "hello").await.unwrap();
    other.hear_message().await;
    assert!(!other.has_received(is_news), "a stranger heard of it");
}

#[tokio::test]
async fn large_groups_and_former_members_do_not_hear_of_new_names() {
    let setup =
        Setup::new(env!("CARGO_BIN_EXE_nexo")).with("NEXO_RECEIPTS__GROUP_MEMBERS_MAX", "2");
    let server = setup.start();
    let [alice, bob, carol, dora] = server.people(["alice", "bob", "carol", "dora"]).await;
    let large = TestGroup::new(&server.http, &alice, &[&bob, &carol]).await;
    let left = TestGroup::new(&server.http, &alice, &[&dora]).await;
    left.ask(&dora, "leave", json!({})).await.data();
    let mut clients = Vec::new();
    for person in [&bob, &carol, &dora] {
        clients.push(DialectClient::connect(&server.http, person, ClientDialect::Typed).await);
    }
    let body = json!({ "nickname": "Alice L." });
    server.http.put("/user/update", &alice.token, body).await.data();
    let mut own = DialectClient::connect(&server.http, &alice, ClientDialect::Typed).await;
    own.say(&Recipient::Group(large.id.clone()), "g", "hello").await.unwrap();
    own.say(&to("dora"), "d", "hello").await.unwrap();
    for mut client in clients {
        client.hear_message().await;
        let has_heard =
            client.has_received(|heard| matches!(heard, ClientEvent::ProfileUpdated(..)));
        assert!(!has_heard, "{}", client.person.id);
    }
}

#[tokio::test]
async fn reading_and_recalling_reach_the_other() {
    between_all(async |server, mine, theirs| {
        let (alice, bob) = pair(server, mine, theirs).await;
        let mut a = DialectClient::connect(&server.http, &alice, mine).await;
        let mut b = DialectClient::connect(&server.http, &bob, theirs).await;
        let said = a.say(&to(&bob.id), "c1", "oops").await.unwrap();
        let heard = b.hear_message().await;
        b.read(&heard, &to(&alice.id)).await;
        let read = a.find(|heard| matches!(heard, ClientEvent::Read(..))).await;
        assert_eq!(
            read,
            ClientEvent::Read(bob.id.clone(), said.id.clone()),
            "{mine:?} of {theirs:?}"
        );
        assert_eq!(b.recall(&said.id).await, Err("not_message_sender".into()), "{theirs:?}");
        a.recall(&said.id).await.unwrap();
        let recalled = b.find(|heard| matches!(heard, ClientEvent::Recalled(_))).await;
        assert_eq!(recalled, ClientEvent::Recalled(said.id.clone()), "{mine:?} to {theirs:?}");
        let seen = b.history(&said.conversation, &to(&alice.id)).await;
        assert_eq!((seen.len(), seen[0].text.as_str()), (1, ""));
    })
    .await;
}

#[tokio::test]
async fn whoever_was_away_gets_it_in_their_own_way() {
    between_all(async |server, mine, theirs| {
        let (alice, bob) = pair(server, mine, theirs).await;
        let mut a = DialectClient::connect(&server.http, &alice, mine).await;
        let mut conversation = String::new();
        for i in 1..=5 {
            let said = a.say(&to(&bob.id), &format!("c{i}"), &format!("text {i}")).await.unwrap();
            conversation = said.conversation;
        }
        let mut b = DialectClient::connect(&server.http, &bob, theirs).await;
        let missed = b.missed(&conversation).await;
        let texts: Vec<&str> = missed.iter().map(|said| said.text.as_str()).collect();
        assert_eq!(texts, ["text 1", "text 2", "text 3", "text 4", "text 5"], "{theirs:?}");
    })
    .await;
}

#[tokio::test]
async fn a_group_is_one_for_everybody() {
    let server = server();
    let mut people = Vec::new();
    for dialect in ClientDialect::ALL {
        people.push(server.person(&format!("{dialect:?}").to_lowercase()).await);
    }
    let members: Vec<_> = people[1..].iter().collect();
    let mut clients = Vec::new();
    for (person, dialect) in people.iter().zip(ClientDialect::ALL) {
        clients.push(DialectClient::connect(&server.http, person, dialect).await);
    }
    let group = TestGroup::new(&server.http, &people[0], &members).await;
    let to_all = Recipient::Group(group.id.clone());
    for client in &mut clients {
        let heard = client.find(|heard| matches!(heard, ClientEvent::GroupChanged(_))).await;
        assert_eq!(heard, ClientEvent::GroupChanged("joined".into()));
    }
    for speaker in 0..clients.len() {
        let name = format!("g{speaker}");
        let said = clients[speaker].say(&to_all, &name, &name).await.unwrap();
        assert_eq!(said.seq, speaker as u64 + 1);
        for (listener, client) in clients.iter_mut().enumerate() {
            if listener != speaker {
                let heard = client.hear_message().await;
                assert_eq!((&heard.id, heard.seq, &heard.text), (&said.id, said.seq, &name));
                assert_eq!(heard.from, people[speaker].id);
            }
        }
    }
    // Whoever is put out hears it, and says nothing more.
    for (person, client) in people.iter().zip(&mut clients).skip(1) {
        group.ask(&people[0], "kick", json!({ "user_id": person.id })).await.data();
        client.find(|heard| *heard == ClientEvent::GroupChanged("kicked".into())).await;
        let refused = client.say(&to_all, "late", "late").await;
        assert_eq!(refused, Err("member_not_active".into()), "{}", person.id);
        assert_eq!(client.history(&group.conversation(), &to_all).await.len(), 5);
    }
}

#[tokio::test]
async fn refusals_have_the_same_reason_everywhere() {
    let server = server();
    for dialect in ClientDialect::ALL {
        let person = server.person(&format!("{dialect:?}").to_lowercase()).await;
        let mut client = DialectClient::connect(&server.http, &person, dialect).await;
        for (to, text, reason) in [
            (to("nobody"), "hi", "user_not_found"),
            (to(&person.id), "hi", "cannot_send_to_self"),
            (to("nobody"), "  ", "missing_body"),
            (to("nobody"), &"x".repeat(4097), "body_too_long"),
            (Recipient::Group("nowhere".into()), "hi", "group_not_found"),
        ] {
            let refused = client.say(&to, "c1", text).await;
            assert_eq!(refused, Err(reason.into()), "{dialect:?}");
        }
        assert_eq!(client.say(&to(""), "c2", "hi").await.unwrap_err(), "missing_to", "{dialect:?}");
        assert_eq!(client.say(&to("a_b"), "c2", "hi").await.unwrap_err(), "user_not_found");
    }
}

#[tokio::test]
async fn who_is_kicked_is_told_in_their_own_words() {
    let server =
        Setup::new(env!("CARGO_BIN_EXE_nexo")).with("NEXO_SESSION__POLICY", "single").start();
    for dialect in ClientDialect::ALL {
        let person = server.person(&format!("{dialect:?}").to_lowercase()).await;
        let mut old = DialectClient::connect(&server.http, &person, dialect).await;
        let newer = nexo_sim::Person::sign_in(&server.http, &person.id, 5).await;
        let _new = DialectClient::connect(&server.http, &newer, dialect).await;
        let told = old.find(|heard| matches!(heard, ClientEvent::Kicked(_))).await;
        assert_eq!(told, ClientEvent::Kicked("kicked".into()), "{dialect:?}");
        let end = old.find(|heard| matches!(heard, ClientEvent::Closed(_))).await;
        assert_eq!(end, ClientEvent::Closed(Some(4403)), "{dialect:?}");
    }
}
