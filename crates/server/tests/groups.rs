//! The life of a group: created, joined, managed, left and dissolved; members who are online get every
//! change, and the others pull it later.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use nexo_sim::process::Setup;
use nexo_sim::{Person, Server, Socket, TestGroup};
use serde_json::{Value, json};

fn server() -> Server {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).start()
}

/// One wrong id, and nobody is invited: the answer says which it was.
#[tokio::test]
async fn an_invitation_names_the_id_that_was_wrong() {
    let server = server();
    let [olga, max, _zoe] = server.people(["olga", "max", "zoe"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&max]).await;
    for wrong in ["nobody", "not an id!"] {
        let ids = json!({ "user_ids": ["zoe", wrong, "max"] });
        let refused = group.ask(&olga, "invite", ids.clone()).await;
        assert_eq!((refused.status, refused.reason()), (404, "user_not_found"));
        let message = refused.body["message"].as_str().unwrap();
        assert_eq!(message, format!("no such user: {wrong}"));
        let created = json!({ "name": "Us", "member_ids": ids["user_ids"] });
        let refused = server.http.post("/group/create", &olga.token, created).await;
        assert_eq!(refused.body["message"], message);
    }
    assert_eq!(members(&group, &olga).await, named(&[("max", 0), ("olga", 2)]));
}

async fn members(group: &TestGroup, by: &Person) -> Vec<(String, i64)> {
    let list = group.get(by, "members").await.data()["list"].clone();
    let member = |it: &Value| {
        (it["user_id"].as_str().unwrap().to_owned(), it["role_level"].as_i64().unwrap())
    };
    list.as_array().unwrap().iter().map(member).collect()
}

fn named(pairs: &[(&str, i64)]) -> Vec<(String, i64)> {
    pairs.iter().map(|(name, role)| ((*name).to_owned(), *role)).collect()
}

/// The next changes that a socket receives.
async fn hear(socket: &mut Socket, count: usize) -> Vec<String> {
    let mut events = Vec::new();
    for _ in 0..count {
        let frame = socket.expect("GROUP_CHANGED").await;
        events.push(frame["event"].as_str().unwrap().to_owned());
    }
    events
}

/// The changes a user pulls, by kind.
async fn pull(server: &Server, group: &TestGroup, by: &Person, since: u64) -> Vec<Value> {
    let conversation = group.conversation();
    let path = format!("/conversation/changes?conversation_id={conversation}&since={since}");
    server.http.get(&path, &by.token).await.data().as_array().unwrap().clone()
}

fn kinds(changes: &[Value]) -> Vec<&str> {
    changes.iter().map(|change| change["kind"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn people_come_lead_and_go() {
    let server = server();
    let [olga, ada, max, zoe] = server.people(["olga", "ada", "max", "zoe"]).await;
    let (mut hears, _) = server.connect(&olga).await;
    let group = TestGroup::new(&server.http, &olga, &[&ada]).await;
    let joined = hears.expect("GROUP_CHANGED").await;
    assert_eq!((&joined["event"], &joined["changeSeq"]), (&json!("joined"), &json!("1")));
    assert_eq!(joined["userIds"], json!(["olga", "ada"]));

    assert_eq!(group.ask(&max, "join", json!({})).await.data()["status"], "joined");
    assert_eq!(group.ask(&max, "join", json!({})).await.reason(), "already_member");
    let invited = group.ask(&max, "invite", json!({ "user_ids": ["ada", "zoe"] })).await;
    assert_eq!(invited.data()["joined"], json!(["zoe"]), "who is in is skipped");
    assert_eq!(hear(&mut hears, 2).await, ["joined", "joined"]);
    group.ask(&olga, "set_role", json!({ "user_id": "ada", "role": 1 })).await.data();
    let role = hears.expect("GROUP_CHANGED").await;
    assert_eq!((&role["userId"], &role["role"]), (&json!("ada"), &json!("admin")));
    let expect = named(&[("ada", 1), ("max", 0), ("olga", 2), ("zoe", 0)]);
    assert_eq!(members(&group, &max).await, expect);

    group.ask(&ada, "kick", json!({ "user_id": "zoe" })).await.data();
    group.ask(&max, "quit", json!({})).await.data();
    assert_eq!(group.ask(&olga, "quit", json!({})).await.reason(), "owner_must_transfer");
    group.ask(&olga, "transfer", json!({ "user_id": "ada" })).await.data();
    assert_eq!(members(&group, &ada).await, named(&[("ada", 2), ("olga", 0)]));
    group.ask(&olga, "quit", json!({})).await.data();
    assert_eq!(hear(&mut hears, 4).await, ["kicked", "left", "owner", "left"]);
    group.ask(&ada, "invite", json!({ "user_ids": ["max"] })).await.data();
    hears.expect_silence().await; // she is out
    assert_eq!(group.get(&olga, "members").await.reason(), "member_not_active");
    // Whoever was away learns the same by pulling, as far as it was theirs to see.
    let all = pull(&server, &group, &olga, 0).await;
    let told = ["joined", "joined", "joined", "role", "kicked", "left", "owner", "left"];
    assert_eq!(kinds(&all), told);
    assert_eq!(kinds(&pull(&server, &group, &zoe, 0).await), ["joined", "role", "kicked"]);
    assert_eq!(kinds(&pull(&server, &group, &zoe, 3).await), ["role", "kicked"]);
    assert_eq!(kinds(&pull(&server, &group, &max, 0).await), ["joined"], "a new window");
}

#[tokio::test]
async fn approval_waits_for_an_answer() {
    let server = server();
    let [olga, max, mia, zoe] = server.people(["olga", "max", "mia", "zoe"]).await;
    let fields = json!({ "join_type": "approval" });
    let group = TestGroup::with(&server.http, &olga, &[&zoe], fields).await;
    let (mut owner, _) = server.connect(&olga).await;
    let (mut wants, _) = server.connect(&max).await;
    let code = group.get(&olga, "info").await.data()["group_code"].clone();
    // By the code, as people pass it on.
    let body = json!({ "group_code": code, "message": "please" });
    let asked = server.http.post("/group/join_request", &max.token, body).await;
    assert_eq!(asked.data()["status"], "pending");
    let request = owner.expect("GROUP_JOIN_REQUEST").await;
    assert_eq!((&request["from"], &request["body"]), (&json!("max"), &json!("please")));
    assert_eq!(request["serverMsgId"], asked.data()["request_id"]);
    group.ask(&mia, "join_request", json!({})).await.data();
    owner.expect("GROUP_JOIN_REQUEST").await;
    assert_eq!(group.get(&zoe, "join_requests").await.reason(), "not_group_admin");
    let waiting = group.get(&olga, "join_requests").await;
    assert_eq!(waiting.data()["list"].as_array().unwrap().len(), 2);

    let decide = json!({ "request_id": request["serverMsgId"], "accept": true });
    let by_member = server.http.post("/group/join_decide", &zoe.token, decide.clone()).await;
    assert_eq!(by_member.reason(), "not_group_admin");
    server.http.post("/group/join_decide", &olga.token, decide.clone()).await.data();
    let decision = wants.expect("GROUP_JOIN_DECISION").await;
    assert_eq!((&decision["body"], &decision["from"]), (&json!("ACCEPTED"), &json!("olga")));
    assert_eq!(wants.expect("GROUP_CHANGED").await["event"], "joined");
    let again = server.http.post("/group/join_decide", &olga.token, decide).await;
    assert_eq!(again.reason(), "join_request_not_found");
    let reject = json!({ "user_id": "mia", "accept": false });
    group.ask(&olga, "join_decide", reject).await.data();
    assert_eq!(members(&group, &olga).await, named(&[("max", 0), ("olga", 2), ("zoe", 0)]));
    let none = group.get(&olga, "join_requests").await;
    assert_eq!(none.data()["list"], json!([]));
}

#[tokio::test]
async fn a_closed_group_shows_itself_to_nobody_else() {
    let server = server();
    let [olga, max] = server.people(["olga", "max"]).await;
    let fields = json!({ "join_type": "invite", "name": "Secret" });
    let group = TestGroup::with(&server.http, &olga, &[], fields).await;
    assert_eq!(group.get(&max, "info").await.reason(), "group_not_found");
    assert_eq!(group.ask(&max, "join", json!({})).await.reason(), "join_not_allowed");
    let info = group.get(&olga, "info").await;
    assert_eq!((&info.data()["name"], &info.data()["my_role"]), (&json!("Secret"), &json!(2)));
    let code = info.data()["group_code"].as_str().unwrap();
    let by_code = server.http.get(&format!("/group/info?group_code={code}"), &max.token).await;
    assert_eq!(by_code.reason(), "group_not_found");
    // An open one shows what one needs to know before joining, and no more.
    let open = TestGroup::new(&server.http, &olga, &[]).await;
    let seen = open.get(&max, "info").await;
    assert_eq!(seen.data()["name"], "Test");
    for hidden in ["group_code", "my_role", "join_request_count"] {
        assert!(seen.data().get(hidden).is_none(), "{hidden}");
    }
    assert_eq!(open.get(&max, "members").await.reason(), "not_group_member");
}

#[tokio::test]
async fn a_former_member_is_told_so_and_a_stranger_nothing() {
    let server = server();
    let [olga, max, mia, zoe] = server.people(["olga", "max", "mia", "zoe"]).await;
    let closed = json!({ "join_type": "invite" });
    let group = TestGroup::with(&server.http, &olga, &[&max, &mia], closed).await;
    group.ask(&olga, "kick", json!({ "user_id": "max" })).await.data();
    group.ask(&mia, "quit", json!({})).await.data();
    let member = "member?user_id=olga";
    for who in [&max, &mia] {
        for what in ["info", "members", member, "read_state", "join_requests"] {
            let refused = group.get(who, what).await;
            assert_eq!((refused.status, refused.reason()), (403, "member_not_active"), "{what}");
            assert_eq!(refused.body["code"], 3004);
        }
        for what in ["quit", "invite", "mute_all", "reset_code", "dissolve"] {
            let fields = match what {
                "invite" => json!({ "user_ids": ["zoe"] }),
                "mute_all" => json!({ "on": true }),
                _ => json!({}),
            };
            assert_eq!(group.ask(who, what, fields).await.reason(), "member_not_active", "{what}");
        }
        let (mut socket, _) = server.connect(who).await;
        assert_eq!(group.say(&mut socket, "1", "one").await["reason"], "member_not_active");
        socket.say(json!({ "type": "TYPING", "groupId": group.id })).await;
        assert_eq!(socket.expect("ERROR").await["reason"], "member_not_active");
        assert_eq!(group.ask(who, "join", json!({})).await.reason(), "join_not_allowed");
    }
    assert_eq!(group.get(&zoe, "info").await.reason(), "group_not_found");
    assert_eq!(group.get(&zoe, "members").await.reason(), "group_not_found");
    let (mut stranger, _) = server.connect(&zoe).await;
    assert_eq!(group.say(&mut stranger, "1", "one").await["reason"], "not_group_member");
    // Whoever is brought back is a member again.
    group.ask(&olga, "invite", json!({ "user_ids": ["max"] })).await.data();
    assert_eq!(group.get(&max, "members").await.data()["total"], 2);
    group.ask(&olga, "dissolve", json!({})).await.data();
    assert_eq!(group.get(&mia, "members").await.reason(), "group_dissolved");
}

#[tokio::test]
async fn members_say_how_they_want_to_be_seen() {
    let server = server();
    let [olga, max, zoe] = server.people(["olga", "max", "zoe"]).await;
    let fields = json!({ "group_type": 3, "name": "é".repeat(128) });
    let group = TestGroup::with(&server.http, &olga, &[&max], fields).await;
    assert_eq!(group.get(&max, "info").await.data()["group_type"], 3);
    let (mut hears, _) = server.connect(&olga).await;
    let set = async |by: &Person, mut fields: Value| {
        fields["group_id"] = json!(group.id);
        server.http.put("/group/member_info", &by.token, fields).await
    };
    let seen = set(&max, json!({ "group_nickname": "Maximilian", "extra": "{}" })).await;
    assert_eq!(seen.data()["group_nickname"], "Maximilian");
    set(&max, json!({ "group_avatar": "a.png" })).await.data();
    set(&max, json!({ "group_avatar": "a.png" })).await.data(); // nothing changes by that
    let told = hears.expect("GROUP_CHANGED").await;
    let member = json!({ "group_nickname": "Maximilian", "extra": "{}" });
    assert_eq!((&told["event"], &told["userId"]), (&json!("member_updated"), &json!("max")));
    assert_eq!(told["member"], member);
    hears.expect("GROUP_CHANGED").await;
    hears.expect_silence().await;
    // Whoever was away learns of it, and lists show it.
    let pulled = pull(&server, &group, &olga, 1).await;
    assert_eq!((kinds(&pulled), &pulled[0]["member"]), (vec!["member_updated"; 2], &member));
    let list = group.get(&olga, "members").await.data()["list"].clone();
    let shown = (&list[0]["group_nickname"], &list[0]["group_avatar"], &list[0]["extra"]);
    assert_eq!(shown, (&json!("Maximilian"), &json!("a.png"), &json!("{}")));
    assert_eq!((&list[0]["nickname"], &list[1]["group_nickname"]), (&json!("max"), &json!("")));
    assert_eq!(set(&zoe, json!({ "group_nickname": "Zoe" })).await.reason(), "not_group_member");
    let long = json!({ "group_nickname": "x".repeat(129) });
    assert_eq!(set(&max, long).await.reason(), "bad_nickname");
}

#[tokio::test]
async fn a_profile_changes_and_everybody_follows() {
    let server = server();
    let [olga, max] = server.people(["olga", "max"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&max]).await;
    let (mut hears, _) = server.connect(&max).await;
    let body = json!({ "group_id": group.id, "name": "New name", "announcement": "Hi" });
    let by_max = server.http.put("/group/update", &max.token, body.clone()).await;
    assert_eq!(by_max.reason(), "not_group_admin");
    server.http.put("/group/update", &olga.token, body).await.data();
    let updated = hears.expect("GROUP_CHANGED").await;
    assert_eq!(updated["event"], "updated");
    assert_eq!(updated["group"], json!({ "name": "New name", "announcement": "Hi" }));
    let info = group.get(&max, "info").await;
    assert_eq!(
        (&info.data()["name"], &info.data()["announcement"]),
        (&json!("New name"), &json!("Hi"))
    );
    let pulled = pull(&server, &group, &max, 1).await;
    assert_eq!(pulled[0]["group"], updated["group"]);
    group.ask(&olga, "reset_code", json!({})).await.data();
    let reset = group.ask(&olga, "reset_code", json!({})).await;
    assert_eq!((reset.status, reset.reason()), (429, "cooldown_not_reached"));
}

#[tokio::test]
async fn the_end_of_a_group_keeps_what_was_said() {
    let server = server();
    let [olga, max, zoe] = server.people(["olga", "max", "zoe"]).await;
    for (how, event) in [("dissolve", "dissolved"), ("dismiss", "dismissed")] {
        let group = TestGroup::new(&server.http, &olga, &[&max]).await;
        let (mut a, _) = server.connect(&olga).await;
        let (mut b, _) = server.connect(&max).await;
        group.say(&mut a, &format!("{how}1"), "before").await;
        assert_eq!(group.ask(&max, how, json!({})).await.reason(), "not_group_owner");
        group.ask(&olga, how, json!({})).await.data();
        assert_eq!(hear(&mut b, 1).await, [event]);
        let refused = group.say(&mut a, &format!("{how}2"), "after").await;
        assert_eq!(refused["reason"], "group_dissolved");
        let read = group.read_all(&max).await;
        assert_eq!(read.len(), 1, "what was said stays");
        let info = group.info(&max).await;
        assert_eq!((&info["is_active"], &info["unread_count"]), (&json!(false), &json!(1)));
        for (by, what) in [(&zoe, "join"), (&olga, "quit"), (&olga, "dissolve")] {
            assert_eq!(group.ask(by, what, json!({})).await.reason(), "group_dissolved", "{what}");
        }
        let gone = group.get(&max, "info").await;
        assert_eq!((gone.status, gone.reason()), (410, "group_dissolved"));
        assert_eq!(group.get(&zoe, "info").await.reason(), "group_not_found");
        assert_eq!(kinds(&pull(&server, &group, &max, 0).await), ["joined", event]);
    }
    let joined = server.http.get("/group/joined", &olga.token).await;
    assert_eq!(joined.data()["list"], json!([]));
}

#[tokio::test]
async fn a_conversation_is_deleted_only_with_its_group_and_by_its_owner() {
    let server = server();
    let [olga, max] = server.people(["olga", "max"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&max]).await;
    let (mut a, _) = server.connect(&olga).await;
    a.send("max", "p1", "private").await;
    let delete = async |by: &Person, id: &str| {
        let body = json!({ "conversation_id": id });
        server.http.post("/conversation/delete", &by.token, body).await
    };
    assert_eq!(delete(&olga, "si_max_olga").await.reason(), "cannot_delete_private");
    assert_eq!(delete(&max, &group.conversation()).await.reason(), "not_group_owner");
    delete(&olga, &group.conversation()).await.data();
    assert_eq!(group.ask(&olga, "quit", json!({})).await.reason(), "group_dissolved");
}

#[tokio::test]
async fn bad_input_has_its_reason_and_changes_nothing() {
    let server = server();
    let [olga, max, zoe] = server.people(["olga", "max", "zoe"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&max]).await;
    let mut unknown = group.clone();
    unknown.id = "nowhere".into();
    let many: Vec<String> = (0..501).map(|n| format!("u{n}")).collect();
    for (by, what, fields, status, reason) in [
        (&olga, "create", json!({ "name": "" }), 400, "bad_group_name"),
        (&olga, "create", json!({ "name": "x".repeat(129) }), 400, "bad_group_name"),
        (
            &olga,
            "create",
            json!({ "name": "x", "extra": "x".repeat(5000) }),
            400,
            "bad_group_profile",
        ),
        (&olga, "create", json!({ "name": "x", "member_ids": ["nobody"] }), 404, "user_not_found"),
        (&olga, "create", json!({ "name": "x", "member_ids": ["a b"] }), 404, "user_not_found"),
        (&olga, "create", json!({ "name": "x", "member_ids": many }), 400, "too_many_users"),
        (&olga, "create", json!({ "name": "x", "join_type": "sometimes" }), 400, "invalid_param"),
        (&olga, "invite", json!({ "user_ids": many }), 400, "too_many_users"),
        (&olga, "invite", json!({ "user_ids": ["nobody"] }), 404, "user_not_found"),
        (&zoe, "invite", json!({ "user_ids": ["zoe"] }), 403, "not_group_member"),
        (&olga, "kick", json!({ "user_id": "zoe" }), 404, "target_not_member"),
        (&olga, "kick", json!({ "user_id": "olga" }), 400, "target_is_self"),
        (&max, "kick", json!({ "user_id": "olga" }), 403, "not_group_admin"),
        (&olga, "set_role", json!({ "user_id": "max", "role": 2 }), 400, "invalid_param"),
        (&olga, "set_role", json!({ "user_id": "max", "role": 7 }), 400, "invalid_param"),
        (&max, "set_role", json!({ "user_id": "max", "role": 1 }), 403, "not_group_owner"),
        (&max, "transfer", json!({ "user_id": "max" }), 403, "not_group_owner"),
        (&max, "mute", json!({ "user_id": "olga", "seconds": 60 }), 403, "not_group_admin"),
        (&olga, "mute", json!({ "user_id": "max", "seconds": -2 }), 400, "invalid_param"),
        (
            &olga,
            "mute",
            json!({ "user_id": "max", "seconds": 1_000_000_000_000_u64 }),
            400,
            "invalid_param",
        ),
        (&max, "mute_all", json!({ "on": true }), 403, "not_group_admin"),
        (&max, "dissolve", json!({}), 403, "not_group_owner"),
        (&max, "join", json!({}), 409, "already_member"),
        (&zoe, "quit", json!({}), 403, "not_group_member"),
        (
            &olga,
            "join_decide",
            json!({ "user_id": "zoe", "accept": true }),
            404,
            "join_request_not_found",
        ),
        (
            &olga,
            "join_decide",
            json!({ "request_id": "nonsense", "accept": true }),
            404,
            "join_request_not_found",
        ),
    ] {
        let refused = match what {
            // A new group has no id yet.
            "create" => server.http.post("/group/create", &by.token, fields.clone()).await,
            _ => group.ask(by, what, fields.clone()).await,
        };
        assert_eq!((refused.status, refused.reason()), (status, reason), "{what} {fields}");
    }
    // A million ids do not even have to be sent.
    let (token, http) = (&olga.token, &server.http);
    let head = "POST /group/invite HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n";
    let head = format!("{head}Authorization: Bearer {token}\r\nConnection: close\r\n\r\n");
    let too_large = http.raw(head.as_bytes()).await;
    assert_eq!((too_large.status, too_large.reason()), (413, "frame_too_large"));
    for what in ["quit", "dissolve", "dismiss", "mute_all", "reset_code", "kick", "transfer"] {
        let fields = match what {
            "kick" | "transfer" => json!({ "user_id": "max" }),
            "mute_all" => json!({ "on": true }),
            _ => json!({}),
        };
        assert_eq!(unknown.ask(&olga, what, fields).await.reason(), "group_not_found", "{what}");
    }
    for path in ["info", "members", "join_requests"] {
        assert_eq!(unknown.get(&olga, path).await.reason(), "group_not_found", "{path}");
    }
    for path in ["members?limit=-1", "members?limit=x", "members?cursor=a_b"] {
        assert_eq!(group.get(&olga, path).await.status, 400, "{path}");
    }
    for path in ["members?limit=0", "members?limit=1001"] {
        let list = group.get(&olga, path).await.data()["list"].as_array().unwrap().len();
        assert_eq!(list, 2, "{path}");
    }
    assert_eq!(members(&group, &olga).await, named(&[("max", 0), ("olga", 2)]));
    assert_eq!(kinds(&pull(&server, &group, &olga, 0).await), ["joined"]);
}
