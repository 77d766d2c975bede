//! Groups with several members.
use std::path::Path;
use std::sync::{Arc, Mutex};

use nexo_sdk::{
    ChangeKind, Client, Content, ConversationSummary, Event, FileStore, Group, GroupProfile,
    MemberProfile, NewUser, Reason, Role, Target,
};

use crate::server::{PASSWORD, Server, options, person, picked, record, until};

type Heard = Arc<Mutex<Vec<Event>>>;

async fn line(client: &Client, group_id: &str) -> Option<ConversationSummary> {
    client.conversation(Target::group(group_id)).await.unwrap()
}

async fn bodies(client: &Client, group_id: &str) -> Vec<String> {
    let messages = client.messages(Target::group(group_id)).await.unwrap();
    messages.iter().map(|one| one.body.clone()).collect()
}

/// Sends a message, waits until it is saved and returns its id.
async fn say(client: &Client, group_id: &str, content: impl Into<Content>) -> String {
    let sent = client.send(Target::group(group_id), content).await.unwrap();
    client.saved(&sent).await.unwrap().server_msg_id.clone()
}

fn kind(event: &Event) -> Option<ChangeKind> {
    match event {
        Event::Change(change) => Some(change.kind),
        _ => None,
    }
}

#[tokio::test]
async fn messages_mentions_answers_and_a_newcomer() {
    let server = Server::start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let carol = server.person("carol").await;
    let group = alice.groups().create(&GroupProfile::named("Chess"), &["bob"]).await.unwrap();
    let id = group.group_id.as_str();
    until("its name", async || line(&bob, id).await.is_some_and(|line| line.name == "Chess")).await;
    let first = say(&alice, id, Content::text("Hello @bob").mentions(["bob"])).await;
    let speaks = async || line(&bob, id).await.is_some_and(|line| line.mention_unread == 1);
    until("it speaks to bob", speaks).await;
    say(&bob, id, Content::text("Yes?").reply_to(&first)).await;
    assert_eq!(line(&bob, id).await.map(|line| (line.unread, line.mention_unread)), Some((0, 0)));
    until("the answer", async || bodies(&alice, id).await.len() == 2).await;
    let answer = alice.messages(Target::group(id)).await.unwrap().pop().unwrap();
    assert!(answer.is_important);
    assert_eq!(answer.reply_to.as_deref(), Some(first.as_str()));
    let state = bob.groups().read_state(id).await.unwrap().expect("it is small");
    assert_eq!(state.iter().map(|one| one.user_id.as_str()).collect::<Vec<_>>(), ["alice", "bob"]);
    assert_eq!((state[1].from_seq, state[1].read_seq), (1, 2));
    assert_eq!(alice.groups().invite(id, &["carol", "bob"]).await.unwrap(), ["carol"]);
    until("carol is in", async || line(&carol, id).await.is_some()).await;
    say(&alice, id, "Welcome").await;
    until("welcome", async || bodies(&carol, id).await == ["Welcome"]).await;
    assert!(carol.load_older(Target::group(id), 50).await.unwrap().is_empty());
}

#[tokio::test]
async fn changes_come_in_order_each_once() {
    let server = Server::start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let heard = record(&bob);
    let members = ["bob", "carol"];
    server.person("carol").await;
    let groups = alice.groups();
    let group = groups.create(&GroupProfile::named("Chess"), &members).await.unwrap();
    let id = group.group_id.as_str();
    until("in", async || line(&bob, id).await.is_some()).await;
    groups.update(id, &GroupProfile::named("Go")).await.unwrap();
    groups.set_role(id, "carol", Role::Admin).await.unwrap();
    groups.mute_all(id, true).await.unwrap();
    groups.mute_all(id, false).await.unwrap();
    groups.mute(id, "bob", 60).await.unwrap();
    let sent = bob.send(Target::group(id), "?").await.unwrap();
    let refusal = bob.saved(&sent).await.unwrap_err();
    assert_eq!(refusal.reason(), Some(Reason::GroupSpeakMuted));
    groups.mute(id, "bob", 0).await.unwrap();
    let wanted = [
        ChangeKind::Joined,
        ChangeKind::Updated,
        ChangeKind::Role,
        ChangeKind::AllMuted,
        ChangeKind::AllMuted,
        ChangeKind::Muted,
        ChangeKind::Muted,
    ];
    until("all changes", async || picked(&heard, kind).len() == wanted.len()).await;
    assert_eq!(picked(&heard, kind), wanted);
    assert_eq!(line(&bob, id).await.unwrap().name, "Go");
    let page = bob.groups().members(id, None).await.unwrap();
    assert_eq!(page.total, Some(3));
    assert_eq!(bob.groups().member(id, "carol").await.unwrap().role, Role::Admin);
    groups.transfer(id, "carol").await.unwrap();
    let refusal = groups.kick(id, "carol").await.unwrap_err();
    assert_eq!(refusal.reason(), Some(Reason::NotGroupAdmin));
    assert_eq!(bob.groups().get(id).await.unwrap().owner_user_id, "carol");
    assert_eq!(bob.groups().joined(None).await.unwrap().list.len(), 1);
}

/// Signs in as dave on another device; returns its client and where its events are recorded.
async fn dave(server: &Server, store: Option<&Path>) -> (Client, Heard) {
    let mut options = options(&server.url);
    if let Some(store) = store {
        options = options.store(FileStore::open(store).unwrap());
    }
    let client = Client::new(options).unwrap();
    let heard = record(&client);
    client.login("dave", PASSWORD).await.unwrap();
    client.ready().await.unwrap();
    (client, heard)
}

/// A group with older messages that dave may read, and to which alice added him.
async fn archive_with_dave(alice: &Client) -> Group {
    let mut profile = GroupProfile::named("Archive");
    profile.history = Some("all".to_owned());
    let group = alice.groups().create(&profile, &[]).await.unwrap();
    for body in ["one", "two", "three"] {
        say(alice, &group.group_id, body).await;
    }
    alice.groups().invite(&group.group_id, &["dave"]).await.unwrap();
    group
}

#[tokio::test]
async fn being_added_while_away_is_told_once_on_each_device() {
    let server = Server::start();
    let alice = server.person("alice").await;
    alice.register(&NewUser::new("dave", PASSWORD)).await.unwrap();
    let joins = |heard: &Heard| {
        picked(heard, |event| match event {
            Event::Change(change) if change.kind == ChangeKind::Joined => {
                assert_eq!(
                    (change.by.as_str(), &change.user_ids[..]),
                    ("alice", &["dave".into()][..])
                );
                Some(change.conversation_id.clone())
            }
            _ => None,
        })
    };
    let first = archive_with_dave(&alice).await;
    for round in 0..205 {
        alice.groups().mute_all(&first.group_id, round % 2 == 0).await.unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("dave.store");
    let (client, heard) = dave(&server, Some(&store)).await;
    until("told", async || joins(&heard) == [first.conversation_id.clone()]).await;
    client.close();
    let is_online = async || alice.people().presence(&["dave"]).await.unwrap()[0].is_online;
    until("away", async || !is_online().await).await;
    let (client, heard) = dave(&server, Some(&store)).await;
    client.close();
    until("away", async || !is_online().await).await;
    assert_eq!(joins(&heard), Vec::<String>::new());
    let second = archive_with_dave(&alice).await;
    let (_other, heard) = dave(&server, None).await;
    until("another device", async || joins(&heard) == [second.conversation_id.clone()]).await;
    let (_again, heard) = dave(&server, Some(&store)).await;
    until("each device", async || joins(&heard) == [second.conversation_id.clone()]).await;
}

#[tokio::test]
async fn asking_to_join_and_being_let_in() {
    let server = Server::start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (asked, decided) = (record(&alice), record(&bob));
    let mut profile = GroupProfile::named("Club");
    profile.join_type = Some("approval".to_owned());
    let club = alice.groups().create(&profile, &[]).await.unwrap();
    let code = club.group_code.as_deref().unwrap();
    assert_eq!(bob.groups().get_by_code(code).await.unwrap().group_id, club.group_id);
    assert_eq!(bob.groups().join_by_code(code, "me too").await.unwrap().status, "pending");
    let request = |event: &Event| match event {
        Event::JoinRequest { request_id, message, .. } if message == "me too" => {
            Some(request_id.clone())
        }
        _ => None,
    };
    until("asked", async || picked(&asked, request).len() == 1).await;
    let waiting = alice.groups().requests(&club.group_id, None).await.unwrap();
    assert_eq!(waiting.list[0].message, "me too");
    alice.groups().decide(&picked(&asked, request)[0], true).await.unwrap();
    let decision = |event: &Event| match event {
        Event::JoinDecision { is_accepted, .. } => Some(*is_accepted),
        _ => None,
    };
    until("decided", async || picked(&decided, decision) == [true]).await;
    until("in", async || line(&bob, &club.group_id).await.is_some()).await;
}

#[tokio::test]
async fn who_leaves_keeps_what_was_said_and_who_comes_back_sees_what_is_new() {
    let server = Server::start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let group = alice.groups().create(&GroupProfile::named("Chess"), &["bob"]).await.unwrap();
    let id = group.group_id.as_str();
    say(&alice, id, "with bob").await;
    until("here", async || bodies(&bob, id).await == ["with bob"]).await;
    bob.groups().leave(id).await.unwrap();
    until("out", async || line(&bob, id).await.is_some_and(|line| !line.is_active)).await;
    say(&alice, id, "without bob").await;
    assert_eq!(bodies(&bob, id).await, ["with bob"]);
    alice.groups().invite(id, &["bob"]).await.unwrap();
    until("in again", async || line(&bob, id).await.is_some_and(|line| line.is_active)).await;
    say(&alice, id, "bob is back").await;
    until("new", async || bodies(&bob, id).await == ["bob is back"]).await;
    assert_eq!(line(&bob, id).await.unwrap().unread, 1);
    alice.groups().dissolve(id).await.unwrap();
    until("over", async || line(&bob, id).await.is_some_and(|line| !line.is_active)).await;
}

#[tokio::test]
async fn a_group_whose_messages_are_not_pushed_is_complete_all_the_same() {
    for strategy in ["notify", "none"] {
        let server = Server::with(&[("NEXO_GROUPS__STRATEGY", strategy)]);
        let dora = server.person("dora").await;
        let often = |options: &mut nexo_sdk::Options| options.timing.heads_every_ms = 500;
        let eve = person(&server.url, "eve", often).await;
        let group = dora.groups().create(&GroupProfile::named("Hall"), &["eve"]).await.unwrap();
        let id = group.group_id.as_str();
        for body in ["0", "1", "2"] {
            say(&dora, id, body).await;
        }
        until(strategy, async || bodies(&eve, id).await == ["0", "1", "2"]).await;
        assert_eq!(line(&eve, id).await.unwrap().unread, 3);
    }
}

#[tokio::test]
async fn what_is_hidden_or_over_is_not_in_the_list() {
    let server = Server::start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let group = alice.groups().create(&GroupProfile::named("Chess"), &["bob"]).await.unwrap();
    let id = group.group_id.as_str();
    let is_listed = async |client: &Client| {
        let lines = client.conversations().await.unwrap();
        lines.iter().any(|line| line.id == group.conversation_id)
    };
    say(&alice, id, "before").await;
    until("the message", async || bodies(&bob, id).await == ["before"]).await;
    bob.hide(Target::group(id), true).await.unwrap();
    assert!(!is_listed(&bob).await && is_listed(&alice).await);
    assert!(line(&bob, id).await.is_some_and(|line| line.is_hidden && !line.is_ended));
    say(&alice, id, "after").await;
    until("it is back", async || is_listed(&bob).await).await;
    bob.hide(Target::group(id), true).await.unwrap();
    bob.hide(Target::group(id), false).await.unwrap();
    assert!(is_listed(&bob).await, "one may change one's mind");
    let profile = MemberProfile { group_nickname: Some("Bobby".into()), ..Default::default() };
    let seen = bob.groups().set_member_info(id, &profile).await.unwrap();
    assert_eq!((seen.user_id.as_str(), seen.group_nickname.as_str()), ("bob", "Bobby"));
    alice.groups().dissolve(id).await.unwrap();
    until("it is over", async || !is_listed(&bob).await).await;
    assert!(line(&bob, id).await.is_some_and(|line| line.is_ended));
    assert_eq!(bodies(&bob, id).await, ["before", "after"], "what was said is still there");
}
