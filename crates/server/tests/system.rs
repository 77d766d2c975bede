//! System messages: the operator can send to any user and any group, and no one else can.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use nexo_sim::TestGroup;
use nexo_sim::process::Setup;
use serde_json::json;

#[tokio::test]
async fn the_operator_speaks_to_people_and_groups() {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    let [olga, max] = server.people(["olga", "max"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&max]).await;
    let (mut b, _) = server.connect(&max).await;
    let token = std::fs::read_to_string(server.data().join("system.token")).unwrap();
    let say = async |token: &str, to: serde_json::Value| {
        let mut body = json!({ "client_msg_id": "s1", "msg_type": 1, "content": { "text": "hi" } });
        for (field, value) in to.as_object().unwrap() {
            body[field] = value.clone();
        }
        server.http.post("/system/send", token, body).await
    };
    let to_max = json!({ "session_type": 1, "recv_id": "max" });
    let first = say(token.trim(), to_max.clone()).await;
    let heard = b.expect("SINGLE_CHAT").await;
    assert_eq!((&heard["from"], &heard["body"]), (&json!("system"), &json!("hi")));
    assert_eq!(say(token.trim(), to_max.clone()).await.data(), first.data(), "once for ever");
    let to_all = json!({ "session_type": 2, "group_id": group.id, "client_msg_id": "s2",
        "mentions": ["@all"] });
    say(token.trim(), to_all).await.data();
    let heard = b.expect("GROUP_CHAT").await;
    assert_eq!((&heard["from"], &heard["important"]), (&json!("system"), &json!(true)));
    assert_eq!(group.info(&olga).await["unread_count"], 1);
    let nowhere = json!({ "session_type": 2, "group_id": "nowhere", "client_msg_id": "s3" });
    assert_eq!(say(token.trim(), nowhere).await.reason(), "group_not_found");

    for wrong in ["", "nonsense", &max.token] {
        assert_eq!(say(wrong, to_max.clone()).await.status, 401, "{wrong}");
    }
    let body = json!({ "user_id": "system", "nickname": "x", "password": "long enough" });
    assert_eq!(server.http.post("/user/register", "", body).await.reason(), "reserved_user_id");
    assert_eq!(b.send("system", "c1", "hello?").await["reason"], "user_not_found");
}

#[tokio::test]
async fn what_the_operator_said_in_a_group_survives() {
    let mut server = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    let [olga] = server.people(["olga"]).await;
    let mut group = TestGroup::new(&server.http, &olga, &[]).await;
    let token = std::fs::read_to_string(server.data().join("system.token")).unwrap();
    let body = json!({ "client_msg_id": "s1", "session_type": 2, "group_id": group.id,
        "msg_type": 1, "content": { "text": "hi" } });
    server.http.post("/system/send", token.trim(), body).await.data();
    server.kill();
    server.start_again(|setup| setup);
    group.http = server.http.clone();
    assert_eq!(group.read_all(&olga).await.len(), 1);
}
