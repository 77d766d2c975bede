//! The conversation list with groups in it: order, pins, counts, and what each user may see.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::time::Duration;

use nexo_sim::process::Setup;
use nexo_sim::{HttpResponse, Person, Server, TestGroup};
use serde_json::{Value, json};

fn server() -> Server {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).start()
}

fn ids(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap();
    list.iter().map(|line| line["conversation_id"].as_str().unwrap()).collect()
}

async fn list(server: &Server, by: &Person, query: &str) -> Value {
    server.http.get(&format!("/conversation/list{query}"), &by.token).await.data().clone()
}

#[tokio::test]
async fn groups_and_people_share_one_list_and_pins_come_first() {
    let server = server();
    let [olga, max, mia] = server.people(["olga", "max", "mia"]).await;
    let (mut a, _) = server.connect(&max).await;
    let first = TestGroup::with(&server.http, &max, &[&olga], json!({ "name": "First" })).await;
    a.send("olga", "p1", "private").await;
    let second = TestGroup::new(&server.http, &max, &[&olga, &mia]).await;
    second.say(&mut a, "g1", "in the second").await;
    // The list is ordered by the millisecond, and a send takes less.
    tokio::time::sleep(Duration::from_millis(2)).await;
    first.say(&mut a, "g2", "in the first").await;
    let (one, two) = (first.conversation(), second.conversation());
    let all = list(&server, &olga, "?with_last_message=true").await;
    assert_eq!(ids(&all["list"]), [one.as_str(), &two, "si_max_olga"], "the latest first");
    let line = &all["list"][0];
    assert_eq!((&line["conversation_type"], &line["group_name"]), (&json!(2), &json!("First")));
    assert_eq!(line["last_message"]["content"]["text"], "in the first");
    assert_eq!((&line["unread_count"], &line["group_id"]), (&json!(1), &json!(first.id)));

    for (id, change) in
        [("si_max_olga", json!({ "is_pinned": true })), (&two, json!({ "recv_msg_opt": 1 }))]
    {
        let path = format!("/conversation/update?conversation_id={id}");
        server.http.put(&path, &olga.token, change).await.data();
    }
    let all = list(&server, &olga, "").await;
    assert_eq!(ids(&all["list"]), ["si_max_olga", &one, &two]);
    assert_eq!(
        (&all["list"][0]["is_pinned"], &all["list"][2]["recv_msg_opt"]),
        (&json!(true), &json!(1))
    );
    // Page by page it is the same list, whether or not the cursor says that it was pinned.
    for with_pinned in [true, false] {
        let (mut query, mut found) = ("?limit=1".to_owned(), Vec::new());
        loop {
            let page = list(&server, &olga, &query).await;
            found.extend(ids(&page["list"]).into_iter().map(ToOwned::to_owned));
            let next = &page["next_cursor"];
            if page["has_more"] != true {
                break;
            }
            let (at, id) = (&next["updated_at"], next["conversation_id"].as_str().unwrap());
            query = format!("?limit=1&cursor_updated_at={at}&cursor_conversation_id={id}");
            if with_pinned {
                query = format!("{query}&cursor_pinned={}", next["pinned"]);
            }
        }
        assert_eq!(found, ids(&all["list"]));
    }
    let everything = server.http.post("/conversation/all", &olga.token, json!({})).await;
    assert_eq!(ids(&everything.data()["list"]), ids(&all["list"]));
    let groups = server.http.get("/group/conversation/cursor", &olga.token).await;
    assert_eq!(groups.data().as_array().unwrap().len(), 2);
    let private = server.http.get("/single-chat/conversation/cursor", &olga.token).await;
    assert_eq!(private.data().as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_total_is_the_sum_and_own_words_never_count() {
    let server = server();
    let [olga, max] = server.people(["olga", "max"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&max]).await;
    let (mut a, _) = server.connect(&max).await;
    for i in 0..3 {
        group.say(&mut a, &format!("g{i}"), "hi").await;
        a.send("olga", &format!("p{i}"), "hi").await;
    }
    let quiet = async |id: &str, to: Value| {
        let mut body =
            json!({ "client_msg_id": id, "msg_type": 1, "content": { "text": "quiet" } });
        for (field, value) in to.as_object().unwrap() {
            body[field] = value.clone();
        }
        server.http.post("/msg/send_without_mark_read", &olga.token, body).await.data().clone()
    };
    quiet("q1", json!({ "session_type": 2, "group_id": group.id })).await;
    quiet("q2", json!({ "session_type": 1, "recv_id": "max" })).await;
    group.say(&mut a, "g9", "after").await;
    let total = async || {
        let answer = server.http.get("/conversation/unread_total", &olga.token).await;
        answer.data()["unread_count"].as_u64().unwrap()
    };
    let info = group.info(&olga).await;
    assert_eq!((&info["unread_count"], &info["read_seq"]), (&json!(4), &json!(0)));
    assert_eq!(total().await, 7, "four in the group, three from max");
    let lines = list(&server, &olga, "").await;
    let counts =
        lines["list"].as_array().unwrap().iter().map(|it| it["unread_count"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), 7);
    let conversation = group.conversation();
    for (read, expect) in [(0, 4), (3, 1), (4, 1), (5, 0), (999, 0)] {
        let path =
            format!("/conversation/unread_count?conversation_id={conversation}&read_seq={read}");
        let answer = server.http.get(&path, &olga.token).await;
        assert_eq!(answer.data()["unread_count"], expect, "read up to {read}");
    }
    let mark = json!({ "conversation_id": conversation, "read_seq": 3 });
    server.http.post("/conversation/mark_read", &olga.token, mark).await.data();
    assert_eq!(total().await, 4);
    group.ask(&max, "quit", json!({})).await.data();
    assert_eq!(group.info(&max).await["unread_count"], 0);
}

#[tokio::test]
async fn who_shares_a_group_may_know_who_is_there() {
    let server = server();
    let [olga, max, zoe] = server.people(["olga", "max", "zoe"]).await;
    let status = async |by: &Person, of: &str| {
        let body = json!({ "user_ids": [of] });
        let path = "/user/get_users_online_status";
        server.http.post(path, &by.token, body).await.data()[0].clone()
    };
    let (socket, _) = server.connect(&max).await;
    assert_eq!(status(&olga, "max").await["status"], 0, "strangers are told nothing");
    let group = TestGroup::new(&server.http, &olga, &[&max]).await;
    assert_eq!(status(&olga, "max").await["status"], 1);
    assert_eq!(status(&zoe, "max").await["status"], 0);
    drop(socket);
    let mut seen = status(&olga, "max").await;
    while seen["status"] == 1 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        seen = status(&olga, "max").await;
    }
    let mut last_seen = seen["last_seen_at"].as_u64();
    while last_seen.is_none() {
        tokio::time::sleep(Duration::from_millis(20)).await;
        last_seen = status(&olga, "max").await["last_seen_at"].as_u64();
    }
    assert!(status(&zoe, "max").await.get("last_seen_at").is_none());
    group.ask(&olga, "kick", json!({ "user_id": "max" })).await.data();
    assert!(status(&olga, "max").await.get("last_seen_at").is_none(), "no more than a stranger");
}

#[tokio::test]
async fn a_former_member_learns_nothing_new_of_the_group() {
    let server = server();
    let [olga, max] = server.people(["olga", "max"]).await;
    let fields = json!({ "join_type": "invite", "name": "Before" });
    let group = TestGroup::with(&server.http, &olga, &[&max], fields).await;
    let (mut a, _) = server.connect(&olga).await;
    group.say(&mut a, "1", "seen").await;
    group.ask(&olga, "kick", json!({ "user_id": "max" })).await.data();
    let before = group.info(&max).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let rename = json!({ "group_id": group.id, "name": "Secret plan" });
    server.http.put("/group/update", &olga.token, rename).await.data();
    group.say(&mut a, "2", "unseen").await;
    assert_eq!(group.info(&max).await, before, "neither name, nor size, nor time, nor count");
    let heads = server.http.get("/conversation/heads", &max.token).await;
    assert_eq!(
        (&heads.data()["heads"][0]["max_seq"], &heads.data()["heads"][0]["change_seq"]),
        (&json!(1), &json!(2))
    );
    let joined = server.http.get("/group/joined", &max.token).await;
    assert_eq!(joined.data()["list"], json!([]));
}

/// The conversations in every list there is, which is the same everywhere, and the unread total.
async fn listed(server: &Server, by: &Person) -> (Vec<String>, u64) {
    let all = list(server, by, "").await;
    let found: Vec<String> = ids(&all["list"]).into_iter().map(ToOwned::to_owned).collect();
    let counts = all["list"].as_array().unwrap().iter().map(|it| it["unread_count"].as_u64());
    let unread: u64 = counts.map(Option::unwrap).sum();
    let everything = server.http.get("/conversation/all", &by.token).await;
    assert_eq!(ids(&everything.data()["list"]), found);
    let names = async |path: &str, field: &str| {
        let lines = server.http.get(path, &by.token).await.data().clone();
        let lines = lines.as_array().unwrap().clone();
        lines.iter().map(|line| line[field].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let mut both = names("/group/conversation/cursor", "conversationId").await;
    both.extend(names("/single-chat/conversation/cursor", "singleChatId").await);
    both.sort();
    let mut sorted = found.clone();
    sorted.sort();
    assert_eq!(both, sorted);
    let total = server.http.get("/conversation/unread_total", &by.token).await;
    assert_eq!(total.data()["unread_count"], unread, "the total is that of the list");
    (found, unread)
}

async fn head(server: &Server, by: &Person, conversation: &str) -> Value {
    let heads = server.http.get("/conversation/heads", &by.token).await.data()["heads"].clone();
    let heads = heads.as_array().unwrap();
    heads.iter().find(|head| head["conversation_id"] == conversation).unwrap().clone()
}

async fn hide(server: &Server, by: &Person, body: Value) -> HttpResponse {
    server.http.post("/conversation/hide", &by.token, body).await
}

#[tokio::test]
async fn a_group_that_ends_leaves_every_list_at_once() {
    let server = server();
    let [olga, max, mia] = server.people(["olga", "max", "mia"]).await;
    let (mut a, _) = server.connect(&olga).await;
    let everybody = [&olga, &max, &mia];
    for how in ["/group/dissolve", "/group/dismiss", "/conversation/delete"] {
        let group = TestGroup::new(&server.http, &olga, &[&max, &mia]).await;
        let conversation = group.conversation();
        group.say(&mut a, how, "said").await;
        group.ask(&mia, "leave", json!({})).await.data();
        for who in everybody {
            assert_eq!(listed(&server, who).await.0, [conversation.as_str()], "{how}");
        }
        let body = match how {
            "/conversation/delete" => json!({ "conversation_id": conversation }),
            _ => json!({ "group_id": group.id }),
        };
        server.http.post(how, &olga.token, body).await.data();
        for who in everybody {
            assert_eq!(listed(&server, who).await, (vec![], 0), "{how}");
            let head = head(&server, who, &conversation).await;
            assert_eq!((&head["is_ended"], &head["max_seq"]), (&json!(true), &json!(1)));
            // By its id it is still there to whoever had it.
            assert_eq!(group.info(who).await["is_ended"], true);
            assert_eq!(group.read_all(who).await.len(), 1, "{how}");
        }
    }
}

#[tokio::test]
async fn what_is_hidden_comes_back_with_the_next_message() {
    let mut server = server();
    let [olga, max, zoe] = server.people(["olga", "max", "zoe"]).await;
    let mut group = TestGroup::new(&server.http, &olga, &[&max]).await;
    let (mut a, _) = server.connect(&olga).await;
    group.say(&mut a, "g1", "one").await;
    a.send("max", "p1", "one").await;
    let (sg, si) = (group.conversation(), "si_max_olga");
    assert_eq!(listed(&server, &max).await, (vec![si.to_owned(), sg.clone()], 2));
    let strangers = hide(&server, &zoe, json!({ "conversation_id": sg })).await;
    assert_eq!(strangers.reason(), "conversation_not_found");
    for id in [si, &sg] {
        hide(&server, &max, json!({ "conversation_id": id })).await.data();
        assert_eq!(head(&server, &max, id).await["is_hidden"], true);
    }
    assert_eq!(listed(&server, &max).await, (vec![], 0));
    assert_eq!(group.info(&max).await["unread_count"], 1, "it is not read by that");
    server.kill();
    server.start_again(|setup| setup);
    group.http = server.http.clone();
    assert_eq!(listed(&server, &max).await, (vec![], 0));
    // A device that comes now misses nothing, and it stays hidden.
    let (mut b, missed) = server.connect(&max).await;
    assert_eq!(missed.len(), 2);
    assert_eq!(listed(&server, &max).await, (vec![], 0));
    // Something new, and something of one's own.
    let (mut a, _) = server.connect(&olga).await;
    group.say(&mut a, "g2", "two").await;
    assert_eq!(listed(&server, &max).await, (vec![sg.clone()], 2));
    b.send("olga", "p2", "two").await;
    assert_eq!(listed(&server, &max).await.0, [si, &sg]);
    // The other device is told, and one may change one's mind.
    let (mut b2, _) = server.connect(&max).await;
    hide(&server, &max, json!({ "conversation_id": sg })).await.data();
    for socket in [&mut b, &mut b2] {
        let frame = socket.find(|it| it["type"] == "CONVERSATION_SETTINGS", "the choice").await;
        assert_eq!((&frame["conversationId"], &frame["hiddenSeq"]), (&json!(sg), &json!("2")));
    }
    hide(&server, &max, json!({ "conversation_id": sg, "hidden": false })).await.data();
    let frame = b2.find(|it| it["type"] == "CONVERSATION_SETTINGS", "the choice").await;
    assert_eq!(frame.get("hiddenSeq"), None);
    assert_eq!(listed(&server, &max).await.0, [si, &sg]);
    // Whoever has not seen the second one does not hide it.
    hide(&server, &max, json!({ "conversation_id": sg, "seq": 1 })).await.data();
    assert_eq!(listed(&server, &max).await.0, [si, &sg]);
    hide(&server, &max, json!({ "conversation_id": sg, "seq": 99 })).await.data();
    assert_eq!(listed(&server, &max).await.0, [si]);
    group.say(&mut a, "g3", "three").await;
    assert_eq!(listed(&server, &max).await.0.len(), 2, "nobody hides what is to come");
}

#[tokio::test]
async fn a_group_one_left_stays_until_it_is_hidden() {
    let server = server();
    let [olga, max, mia] = server.people(["olga", "max", "mia"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&max, &mia]).await;
    let (mut a, _) = server.connect(&olga).await;
    group.say(&mut a, "1", "one").await;
    group.ask(&olga, "kick", json!({ "user_id": "max" })).await.data();
    group.ask(&mia, "quit", json!({})).await.data();
    let sg = group.conversation();
    for who in [&max, &mia] {
        assert_eq!(listed(&server, who).await.0, [sg.as_str()]);
        hide(&server, who, json!({ "conversation_id": sg })).await.data();
        group.say(&mut a, who.id.as_str(), "not for them").await;
        assert_eq!(listed(&server, who).await, (vec![], 0));
        assert_eq!(group.read_all(who).await.len(), 1, "it can be read");
        // Coming back brings it back, before anything is said.
        group.ask(who, "join", json!({})).await.data();
        assert_eq!(listed(&server, who).await.0, [sg.as_str()]);
        // Choosing something else does not hide it again.
        let pin = json!({ "conversation_id": sg, "is_pinned": true, "extra": "mine" });
        let chosen = server.http.put("/conversation/update", &who.token, pin).await;
        assert_eq!(chosen.data()["extra"], "mine");
        assert_eq!(listed(&server, who).await.0, [sg.as_str()]);
        assert_eq!(group.info(who).await["extra"], "mine");
    }
    let long = json!({ "conversation_id": sg, "extra": "x".repeat(4097) });
    let refused = server.http.put("/conversation/update", &max.token, long).await;
    assert_eq!(refused.reason(), "bad_profile");
}
