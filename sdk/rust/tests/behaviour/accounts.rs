//! Signing in with tokens, devices, blocks and consent.
use nexo_sdk::{
    Audience, Client, ConsentChange, LoginTokens, NewUser, Options, Platform, Reason, Receive,
    State, Target,
};
use serde_json::{Value, json};

use crate::fake::{Fake, grant};
use crate::server::{PASSWORD, Server, online, options, until};

#[tokio::test]
async fn a_token_of_the_identity_provider_or_of_the_backend_signs_in() {
    let fake = Fake::start().await;
    fake.answer("/auth/token", |_| (200, grant("token-7")));
    let client = Client::new(options(&fake.url)).unwrap();
    client.login_with_token("eyJ", Some("Work laptop")).await.unwrap();
    online(&client).await;
    assert_eq!(fake.until_heard("AUTH", 1).await[0]["token"], "token-7");
    let tokens = LoginTokens {
        user_id: "me".to_owned(),
        token: "token-8".to_owned(),
        refresh_token: "token-8-refresh".to_owned(),
        expires_in: 1800,
    };
    assert!(!format!("{tokens:?}").contains("token-8"));
    client.login_with_tokens(tokens).await.unwrap();
    until("again", async || fake.connections() == 2).await;
    assert_eq!(fake.until_heard("AUTH", 1).await[0]["token"], "token-8");

    fake.answer("/auth/token", |_| (401, json!({ "reason": "token_refused" })));
    let nobody = Client::new(options(&fake.url)).unwrap();
    let refusal = nobody.login_with_token("eyJ", None).await.unwrap_err();
    assert_eq!((refusal.reason(), nobody.me()), (Some(Reason::TokenRefused), None));
}

#[tokio::test]
async fn all_pages_of_the_blocked_people_are_one_list() {
    let fake = Fake::start().await;
    fake.answer("/user/blocks", |path| {
        let page = if path.contains("cursor=ben") {
            json!({ "user_ids": ["cora"], "has_more": false })
        } else {
            json!({ "user_ids": ["ann", "ben"], "has_more": true, "next_cursor": "ben" })
        };
        (200, page)
    });
    let me = fake.person(|_| {}).await;
    assert_eq!(me.blocked().await.unwrap(), ["ann", "ben", "cora"]);
}

#[tokio::test]
async fn where_an_invitation_is_needed_its_code_makes_one_account() {
    let server = Server::with(&[("NEXO_AUTH__REGISTRATION", "invite")]);
    let made = server.operate("POST", "/admin/invites", json!({})).await;
    let client = server.client();
    let code = made["code"].as_str().unwrap().to_owned();
    let register = async |user_id: &str, invite: Option<&str>| {
        let user = NewUser::new(user_id, PASSWORD);
        let user = NewUser { invite: invite.map(str::to_owned), ..user };
        client.register(&user).await.map_err(|error| error.reason().unwrap())
    };
    for wrong in [None, Some("wrong")] {
        assert_eq!(register("alice", wrong).await.unwrap_err(), Reason::InviteInvalid);
    }
    assert_eq!(register("alice", Some(&code)).await.unwrap().user_id, "alice");
    assert_eq!(register("bob", Some(&code)).await.unwrap_err(), Reason::InviteInvalid);
}

#[tokio::test]
async fn the_backend_signs_a_user_in_and_the_operator_disables_the_account() {
    let server = Server::start();
    let body = json!({ "platform_id": 5, "create": true, "nickname": "Carol" });
    let granted = server.operate("POST", "/admin/users/carol/login", body).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let tokens = LoginTokens {
        user_id: text(&granted["user_info"]["user_id"]),
        token: text(&granted["token"]),
        refresh_token: text(&granted["refresh_token"]),
        expires_in: granted["expires_in"].as_u64().unwrap(),
    };
    let carol = server.client();
    carol.login_with_tokens(tokens).await.unwrap();
    carol.ready().await.unwrap();
    assert_eq!(carol.me().as_deref(), Some("carol"));
    server.operate("POST", "/admin/users/carol/disable", json!({ "reason": "test" })).await;
    let reason = Some(Reason::AccountDisabled);
    until("out", async || carol.state() == State::SignedOut { reason }).await;
    assert!(!carol.resume().await.unwrap());
}

#[tokio::test]
async fn one_sign_in_is_ended_or_all_others() {
    let server = Server::start();
    let web = server.person("alice").await;
    let mut others = Vec::new();
    for platform in [1, 2, 3] {
        let client = Client::new(Options { platform, ..options(&server.url) }).unwrap();
        client.login("alice", PASSWORD).await.unwrap();
        online(&client).await;
        others.push(client);
    }
    let devices = web.devices().await.unwrap();
    let platforms: Vec<_> = devices.iter().map(|device| device.platform).collect();
    let newest_first = [Platform::Windows, Platform::Android, Platform::Ios, Platform::Unknown];
    assert_eq!(platforms, newest_first);
    assert!(devices.iter().all(|device| device.is_online && !device.address.is_empty()));
    let current: Vec<_> = devices.iter().map(|device| device.is_current).collect();
    assert_eq!(current, [false, false, false, true]);

    let is_out = |client: &Client| matches!(client.state(), State::SignedOut { .. });
    web.end_device(&devices[2].login_id).await.unwrap();
    until("the phone is out", async || is_out(&others[0])).await;
    assert_eq!(others[1].state(), State::Online);
    let again = web.end_device(&devices[2].login_id).await.unwrap_err();
    assert_eq!(again.reason(), Some(Reason::NotFound));
    assert_eq!(web.end_other_devices().await.unwrap(), 2);
    until("all others are out", async || others.iter().all(is_out)).await;
    assert_eq!((web.state(), web.devices().await.unwrap().len()), (State::Online, 1));
}

#[tokio::test]
async fn whoever_is_blocked_does_not_arrive_on_any_device_until_the_block_ends() {
    let server = Server::start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let tablet = server.client();
    tablet.login("alice", PASSWORD).await.unwrap();
    online(&tablet).await;
    alice.block("bob").await.unwrap();
    assert_eq!(tablet.blocked().await.unwrap(), ["bob"]);
    for device in [&alice, &tablet] {
        let is_blocked = async || {
            let line = device.conversation(Target::to("bob")).await.unwrap();
            line.is_some_and(|line| line.receive == Receive::Blocked)
        };
        until("both know", is_blocked).await;
    }
    let sent = bob.send(Target::to("alice"), "hello").await.unwrap();
    bob.saved(&sent).await.unwrap();
    assert!(alice.messages(Target::to("bob")).await.unwrap().is_empty());
    tablet.unblock("bob").await.unwrap();
    let has_it = async || alice.messages(Target::to("bob")).await.unwrap().len() == 1;
    until("it arrives", has_it).await;
    assert!(alice.blocked().await.unwrap().is_empty());
    let refusal = alice.block("nobody").await.unwrap_err();
    assert_eq!(refusal.reason(), Some(Reason::UserNotFound));
}

#[tokio::test]
async fn a_stranger_cannot_write_to_who_accepts_nobody() {
    let server = Server::start();
    let (carol, dave) = (server.person("carol").await, server.person("dave").await);
    assert_eq!(carol.consent().await.unwrap().write, Audience::Everybody);
    let write = Some(Audience::Nobody);
    let now = carol.set_consent(&ConsentChange { write, ..Default::default() }).await.unwrap();
    assert_eq!((now.write, now.last_seen), (Audience::Nobody, Audience::Everybody));
    let sent = dave.send(Target::to("carol"), "hello").await.unwrap();
    let refusal = dave.saved(&sent).await.unwrap_err();
    assert_eq!(refusal.reason(), Some(Reason::NotAccepting));
}
