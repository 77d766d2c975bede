//! Every command of the dotted dialect, by its own name.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use nexo_sim::process::Setup;
use nexo_sim::{Person, Server, Socket};
use serde_json::{Value, json};

struct Talk {
    server: Server,
    sockets: Vec<Socket>,
}

/// Alice, Bob and Carol, connected.
async fn three() -> Talk {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    let people = server.people(["alice", "bob", "carol"]).await;
    let mut sockets = Vec::new();
    for person in &people {
        sockets.push(connect(&server, person).await);
    }
    Talk { server, sockets }
}

async fn connect(server: &Server, person: &Person) -> Socket {
    let mut socket = server.socket().await;
    let hello = json!({ "cmd": "auth.validate_token", "request_id": "hello",
        "payload": { "token": person.token } });
    socket.say(hello).await;
    socket.find(|frame| frame["request_id"] == "hello", "a welcome").await;
    socket
}

const ALICE: usize = 0;
const BOB: usize = 1;
const CAROL: usize = 2;

impl Talk {
    /// Asks, and the answer's code and payload.
    async fn try_ask(&mut self, who: usize, cmd: &str, payload: Value) -> (i64, Value) {
        let socket = &mut self.sockets[who];
        socket.say(json!({ "cmd": cmd, "request_id": "r", "payload": payload })).await;
        let answer = socket.find(|frame| frame["request_id"] == "r", cmd).await;
        assert_eq!(answer["cmd"], cmd);
        (answer["code"].as_i64().unwrap(), answer["payload"].clone())
    }

    async fn ask(&mut self, who: usize, cmd: &str, payload: Value) -> Value {
        let (code, payload) = self.try_ask(who, cmd, payload).await;
        assert_eq!(code, 0, "{cmd}: {payload}");
        payload
    }

    async fn push(&mut self, who: usize, cmd: &str) -> Value {
        let push = self.sockets[who].find(|frame| frame["cmd"] == cmd, cmd).await;
        assert_eq!((&push["request_id"], &push["code"]), (&json!(""), &json!(0)));
        push["payload"].clone()
    }

    async fn send(&mut self, who: usize, to: &str, chat_type: i32, id: &str) -> Value {
        let payload = json!({ "to_id": to, "chat_type": chat_type, "content": id,
            "client_msg_id": id, "from_user_id": "somebody-else" });
        self.ask(who, "chat.send_message", payload).await
    }

    async fn group(&mut self) -> String {
        let payload = json!({ "group_name": "Chess", "member_ids": ["bob", "carol"] });
        let made = self.ask(ALICE, "group.create", payload).await;
        made["group_id"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn chat_send_message() {
    let mut talk = three().await;
    let saved = talk.send(ALICE, "bob", 1, "m1").await;
    assert_eq!((&saved["success"], &saved["seq"]), (&json!(true), &json!(1)));
    let heard = talk.push(BOB, "chat.message").await;
    assert_eq!((&heard["from_user_id"], &heard["content"]), (&json!("alice"), &json!("m1")));
    let image = json!({ "to_id": "bob", "chat_type": 1, "content": "look", "client_msg_id": "i1",
        "media_url": "https://x/y.png", "media_type": "image", "file_size": 7 });
    talk.ask(ALICE, "chat.send_message", image).await;
    let heard = talk.push(BOB, "chat.message").await;
    assert_eq!(
        (&heard["media_url"], &heard["media_type"]),
        (&json!("https://x/y.png"), &json!("image"))
    );
    assert_eq!((&heard["content"], &heard["file_size"]), (&json!("look"), &json!(7)));
    let (code, _) = talk
        .try_ask(
            ALICE,
            "chat.send_message",
            json!({ "to_id": "bob", "chat_type": 3,
        "content": "x", "client_msg_id": "x" }),
        )
        .await;
    assert_eq!(code, 2);
}

#[tokio::test]
async fn chat_recall_message() {
    let mut talk = three().await;
    let saved = talk.send(ALICE, "bob", 1, "m1").await;
    let id = json!({ "msg_id": saved["msg_id"] });
    assert_eq!(talk.try_ask(BOB, "chat.recall_message", id.clone()).await.0, 302);
    talk.ask(ALICE, "chat.recall_message", id.clone()).await;
    talk.ask(ALICE, "chat.recall_message", id).await;
    let push = talk.push(BOB, "chat.recall").await;
    assert_eq!((&push["msg_id"], &push["chat_id"]), (&saved["msg_id"], &json!("alice")));
    // Whoever reads it later sees that, and when.
    let page = json!({ "chat_id": "alice", "chat_type": 1 });
    let message = talk.ask(BOB, "chat.get_history", page).await["messages"][0].clone();
    assert_eq!((&message["status"], &message["is_recalled"]), (&json!(1), &json!(true)));
    assert_eq!((&message["recall_at"], &message["content"]), (&push["timestamp"], &json!("")));
    let offline = talk.ask(BOB, "chat.pull_offline", json!({})).await["messages"][0].clone();
    assert_eq!((&offline["status"], &offline["recall_at"]), (&json!(1), &push["timestamp"]));
    let lines = talk.ask(BOB, "chat.sync_conversations", json!({})).await;
    let line = &lines["conversations"][0];
    assert_eq!((&line["last_status"], &line["last_recall_at"]), (&json!(1), &push["timestamp"]));
    let unknown = json!({ "msg_id": "A".repeat(26) });
    assert_eq!(talk.try_ask(ALICE, "chat.recall_message", unknown).await.0, 300);
}

#[tokio::test]
async fn chat_mark_read_and_chat_read_receipt() {
    let mut talk = three().await;
    let saved = talk.send(ALICE, "bob", 1, "m1").await;
    let read = json!({ "chat_id": "alice", "chat_type": 1, "last_msg_id": saved["msg_id"] });
    talk.ask(BOB, "chat.mark_read", read).await;
    let receipt = talk.push(ALICE, "chat.read_receipt").await;
    assert_eq!((&receipt["chat_id"], &receipt["user_id"]), (&json!("bob"), &json!("bob")));
    assert_eq!(receipt["last_read_msg_id"], saved["msg_id"]);
}

#[tokio::test]
async fn chat_get_history() {
    let mut talk = three().await;
    let mut ids = Vec::new();
    for i in 0..5 {
        ids.push(talk.send(ALICE, "bob", 1, &format!("m{i}")).await["msg_id"].clone());
    }
    let page = json!({ "chat_id": "alice", "chat_type": 1, "limit": 2 });
    let newest = talk.ask(BOB, "chat.get_history", page).await;
    let of = |page: &Value| -> Vec<Value> {
        page["messages"].as_array().unwrap().iter().map(|it| it["msg_id"].clone()).collect()
    };
    assert_eq!(
        (of(&newest), &newest["has_more"]),
        (vec![ids[4].clone(), ids[3].clone()], &json!(true))
    );
    let page = json!({ "chat_id": "alice", "chat_type": 1, "before_msg_id": ids[3] });
    let rest = talk.ask(BOB, "chat.get_history", page).await;
    assert_eq!(of(&rest), [ids[2].clone(), ids[1].clone(), ids[0].clone()]);
    let stranger = json!({ "chat_id": "bob", "chat_type": 1 });
    assert_eq!(talk.try_ask(CAROL, "chat.get_history", stranger).await.0, 306);
}

#[tokio::test]
async fn chat_pull_offline() {
    let mut talk = three().await;
    let dora = talk.server.person("dora").await;
    for i in 0..3 {
        talk.send(ALICE, "dora", 1, &format!("m{i}")).await;
        talk.send(BOB, "dora", 1, &format!("n{i}")).await;
    }
    talk.sockets.push(connect(&talk.server, &dora).await);
    let page = talk.ask(3, "chat.pull_offline", json!({ "limit": 100 })).await;
    assert_eq!((page["messages"].as_array().unwrap().len(), &page["has_more"]), (6, &json!(false)));
    // Page by page, and asking for the next one says that the one before has arrived.
    let first = talk.ask(3, "chat.pull_offline", json!({ "limit": 4 })).await;
    assert_eq!(
        (first["messages"].as_array().unwrap().len(), &first["has_more"]),
        (4, &json!(true))
    );
    let next = json!({ "limit": 4, "cursor": first["next_cursor"] });
    let second = talk.ask(3, "chat.pull_offline", next).await;
    assert_eq!(second["messages"].as_array().unwrap().len(), 2);
    let again = talk.ask(3, "chat.pull_offline", json!({})).await;
    assert_eq!(again["messages"], second["messages"]);
    // Reading one conversation leaves the other waiting.
    talk.ask(3, "chat.mark_read", json!({ "chat_id": "alice", "chat_type": 1 })).await;
    let page = talk.ask(3, "chat.pull_offline", json!({})).await;
    let from: Vec<&Value> =
        page["messages"].as_array().unwrap().iter().map(|it| &it["from_user_id"]).collect();
    assert_eq!(from, ["bob"]);
}

#[tokio::test]
async fn chat_sync_conversations_and_chat_delete_conversation() {
    let mut talk = three().await;
    let group = talk.group().await;
    talk.send(ALICE, "bob", 1, "m1").await;
    talk.send(ALICE, &group, 2, "g1").await;
    talk.send(ALICE, &group, 2, "g2").await;
    let list = talk.ask(BOB, "chat.sync_conversations", json!({})).await;
    let line = &list["conversations"][0];
    assert_eq!((&line["chat_id"], &line["unread_count"]), (&json!(group), &json!(2)), "{line}");
    assert_eq!((&line["last_content"], &line["peer_name"]), (&json!("g2"), &json!("Chess")));
    let private = &list["conversations"][1];
    assert_eq!((&private["chat_id"], &private["peer_name"]), (&json!("alice"), &json!("alice")));
    let of_group = json!({ "chat_id": group, "chat_type": 2 });
    assert_eq!(talk.try_ask(BOB, "chat.delete_conversation", of_group.clone()).await.0, 506);
    let of_bob = json!({ "chat_id": "bob", "chat_type": 1 });
    assert_eq!(talk.try_ask(ALICE, "chat.delete_conversation", of_bob).await.0, 313);
    talk.ask(ALICE, "chat.delete_conversation", of_group).await;
    talk.push(BOB, "group.dissolved").await;
    let lines = async |talk: &mut Talk| {
        let list = talk.ask(BOB, "chat.sync_conversations", json!({})).await;
        list["conversations"].as_array().unwrap().len()
    };
    assert_eq!(lines(&mut talk).await, 1, "it is gone from everybody's list");
    let of_alice = json!({ "chat_id": "alice", "chat_type": 1 });
    talk.ask(BOB, "chat.hide_conversation", of_alice).await;
    assert_eq!(lines(&mut talk).await, 0);
    talk.send(ALICE, "bob", 1, "m2").await;
    assert_eq!(lines(&mut talk).await, 1, "until something is said");
    let of_nobody = json!({ "chat_id": "nobody", "chat_type": 1 });
    assert_eq!(talk.try_ask(BOB, "chat.hide_conversation", of_nobody).await.0, 306);
}

#[tokio::test]
async fn group_create_wants_three_people() {
    let mut talk = three().await;
    let two = json!({ "group_name": "Two", "member_ids": ["bob", "bob", "alice"] });
    assert_eq!(talk.try_ask(ALICE, "group.create", two).await.0, 517);
    let group = talk.group().await;
    assert_eq!(talk.push(CAROL, "group.joined").await["group_id"], json!(group));
}

#[tokio::test]
async fn group_invite_members_remove_member_leave_and_dismiss() {
    let mut talk = three().await;
    let group = talk.group().await;
    let dora = talk.server.person("dora").await;
    talk.sockets.push(connect(&talk.server, &dora).await);
    let invite = json!({ "group_id": group, "member_ids": ["bob", "dora"] });
    talk.ask(BOB, "group.invite_members", invite).await;
    assert_eq!(talk.push(3, "group.joined").await["user_ids"], json!(["dora"]));
    let remove = |who: &str| json!({ "group_id": group, "member_id": who });
    assert_eq!(talk.try_ask(BOB, "group.remove_member", remove("dora")).await.0, 505);
    assert_eq!(talk.try_ask(BOB, "group.remove_member", remove("alice")).await.0, 505);
    talk.ask(ALICE, "group.remove_member", remove("dora")).await;
    talk.push(3, "group.kicked").await;
    let id = json!({ "group_id": group });
    assert_eq!(talk.try_ask(ALICE, "group.leave", id.clone()).await.0, 515);
    talk.ask(CAROL, "group.leave", id.clone()).await;
    assert_eq!(talk.try_ask(BOB, "group.dismiss", id.clone()).await.0, 506);
    talk.ask(ALICE, "group.dismiss", id.clone()).await;
    talk.push(BOB, "group.dismissed").await;
    assert_eq!(talk.try_ask(BOB, "group.get_info", id).await.0, 507);
}

#[tokio::test]
async fn group_get_info_get_members_get_user_groups_and_update() {
    let mut talk = three().await;
    let group = talk.group().await;
    let update = json!({ "group_id": group, "group_name": "Go", "announcement": "Hi" });
    assert_eq!(talk.try_ask(BOB, "group.update", update.clone()).await.0, 505);
    talk.ask(ALICE, "group.update", update).await;
    assert_eq!(talk.push(BOB, "group.updated").await["group_name"], "Go");
    let info = talk.ask(BOB, "group.get_info", json!({ "group_id": group })).await["group"].clone();
    assert_eq!((&info["group_name"], &info["owner_id"]), (&json!("Go"), &json!("alice")));
    assert_eq!((&info["member_count"], &info["announcement"]), (&json!(3), &json!("Hi")));
    let page = json!({ "group_id": group, "page": 2, "page_size": 2 });
    let members = talk.ask(BOB, "group.get_members", page).await;
    assert_eq!(
        (&members["total"], &members["members"][0]["user_id"]),
        (&json!(3), &json!("carol"))
    );
    let mine = talk.ask(CAROL, "group.get_user_groups", json!({})).await;
    assert_eq!(mine["groups"][0]["group_id"], json!(group));
}

#[tokio::test]
async fn group_transfer_owner_and_set_member_role() {
    let mut talk = three().await;
    let group = talk.group().await;
    let role = |who: &str, role: i32| json!({ "group_id": group, "member_id": who, "role": role });
    assert_eq!(talk.try_ask(BOB, "group.set_member_role", role("carol", 2)).await.0, 506);
    talk.ask(ALICE, "group.set_member_role", role("bob", 2)).await;
    talk.push(CAROL, "group.role").await;
    let to_bob = json!({ "group_id": group, "new_owner_id": "bob" });
    talk.ask(ALICE, "group.transfer_owner", to_bob).await;
    let members = talk.ask(ALICE, "group.get_members", json!({ "group_id": group })).await;
    let roles: Vec<&Value> =
        members["members"].as_array().unwrap().iter().map(|it| &it["role"]).collect();
    assert_eq!(roles, [&json!(1), &json!(0), &json!(1)], "0 owner, 1 member");
}

#[tokio::test]
async fn heartbeat() {
    let mut talk = three().await;
    assert!(talk.ask(ALICE, "heartbeat", json!({})).await["server_time"].as_u64() > Some(0));
}
