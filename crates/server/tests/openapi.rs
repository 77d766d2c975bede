//! The `OpenAPI` document: generated, complete, and true.

use std::collections::BTreeSet;

use nexo_sim::identity_provider::{CLIENT_ID, CLIENT_SECRET};
use nexo_sim::process::Setup;
use nexo_sim::schema::SchemaDocument;
use nexo_sim::{IdentityProvider, Person, Server};
use serde_json::{Value, json};

const METHODS: [&str; 3] = ["get", "post", "put"];

fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo"))
}

fn root(file: &str) -> String {
    format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"))
}

/// All operations: method, path, and what is told of it.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().expect("paths");
    let all = paths.iter().flat_map(|(path, item)| {
        let operations = item.as_object().expect("operations").iter();
        operations.map(move |(method, operation)| (method.as_str(), path.as_str(), operation))
    });
    all.collect()
}

#[tokio::test]
async fn the_documentation_is_fresh() {
    let server = setup().start();
    for (path, file) in [
        ("/openapi.json", "docs/openapi.json"),
        ("/docs/typed.schema.json", "docs/protocol/typed.schema.json"),
    ] {
        let told = server.http.get(path, "").await;
        assert_eq!(told.status, 200, "{path}");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(root(file), &told.text).unwrap();
        }
        let committed = std::fs::read_to_string(root(file)).unwrap_or_default();
        assert!(committed == told.text, "{file} is stale: run `make gen`");
    }
}

#[tokio::test]
async fn the_overview_names_every_path_and_no_other() {
    let server = setup().start();
    let document = server.http.get("/openapi.json", "").await.body;
    let told: BTreeSet<&str> = operations(&document).iter().map(|(_, path, _)| *path).collect();
    let page = std::fs::read_to_string(root("docs/http.md")).unwrap();
    let quoted =
        page.split('`').skip(1).step_by(2).filter_map(|words| words.split(' ').next_back());
    let named: BTreeSet<&str> = quoted.filter(|word| word.starts_with('/')).collect();
    let pages = BTreeSet::from(["/", "/docs/{file}", "/ws"]);
    assert_eq!(named, &told - &pages);
}

#[tokio::test]
async fn every_path_is_told_of_once_and_well() {
    let server = setup().start();
    let document = server.http.get("/openapi.json", "").await.body;
    assert_eq!(document["openapi"], "3.1.0");
    let mut names = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let what = format!("{method} {path}");
        assert!(names.insert(operation["operationId"].to_string()), "{what} has another's name");
        let summary = operation["summary"].as_str().unwrap();
        assert!(summary.ends_with('.') && summary.len() > 10, "{what}: {summary}");
        let tag = &operation["tags"][0];
        let is_told = |it: &Value| it["name"] == *tag;
        assert!(document["tags"].as_array().unwrap().iter().any(is_told), "{what}");
    }
    follow_all(SchemaDocument(&document), &document);
}

/// Every reference leads somewhere.
fn follow_all<'a>(forms: SchemaDocument<'a>, value: &'a Value) {
    forms.resolve(value);
    value.as_object().into_iter().flatten().for_each(|(_, inner)| follow_all(forms, inner));
    value.as_array().into_iter().flatten().for_each(|inner| follow_all(forms, inner));
}

#[tokio::test]
async fn what_is_told_of_is_served_and_nothing_else() {
    let server = setup().start();
    let document = server.http.get("/openapi.json", "").await.body;
    for (path, item) in document["paths"].as_object().unwrap() {
        let asked = path.replace("{file}", "app.js");
        for method in METHODS {
            let request = format!(
                "{} {asked} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                method.to_uppercase()
            );
            let answer = server.http.raw(request.as_bytes()).await;
            let is_there = !["not_found", "method_not_allowed"].contains(&answer.reason());
            assert_eq!(is_there, item.get(method).is_some(), "{method} {path}: {}", answer.text);
        }
    }
    // Router and document are made from one table; a path could only hide by going around it.
    let folder = root("crates/gateway/src/http");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let routes = text.matches(".route(\"").count() + text.matches(".nest(").count();
        // `/healthz`, `/readyz` and `/metrics` twice more: on the address that the operator keeps private, and on
        // the places for health checks of a server that is full.
        let private = if path.ends_with("mod.rs") { 6 } else { 0 };
        assert_eq!(routes, private, "{} routes by itself", path.display());
    }
}

/// What answers with the envelope.
fn is_enveloped(operation: &Value) -> bool {
    let form = &operation["responses"]["200"]["content"]["application/json"]["schema"];
    form["$ref"].as_str().is_some_and(|name| name.ends_with("Answer"))
}

#[tokio::test]
async fn a_field_that_nobody_reads_is_refused_and_named() {
    let server = setup().with("NEXO_LIMITS__USER_REQUESTS_PER_SECOND", "0").start();
    let document = server.http.get("/openapi.json", "").await.body;
    let alice = server.person("alice").await;
    let system = std::fs::read_to_string(server.data().join("system.token")).unwrap();
    let (mut queries, mut bodies) = (0, 0);
    for (method, path, operation) in operations(&document) {
        if !is_enveloped(operation) {
            continue; // pages, probes, and the socket, whose clients may say more than we know
        }
        let security = operation["security"][0].as_object();
        let is_operators = security.is_some_and(|it| it.keys().any(|name| name.ends_with("_key")));
        let who = if is_operators { system.trim() } else { &alice.token };
        let path = &filled(path);
        let ask = async |path: &str, body: Value| {
            let body = Some(body).filter(|_| method != "get");
            server.http.ask(&method.to_uppercase(), path, who, body).await
        };
        let odd = json!({ "nobody_reads": 1 });
        let asked = ask(&format!("{path}?nobody_reads=1"), json!({})).await;
        let mut answers = vec![asked];
        queries += 1;
        let has_lines = operation["requestBody"]["content"]["application/octet-stream"].is_object();
        if method != "get" && !has_lines {
            answers.push(ask(path, odd).await);
            bodies += 1;
        }
        for answer in answers {
            let what = format!("{method} {path}: {}", answer.text);
            assert_eq!((answer.status, answer.reason()), (400, "invalid_param"), "{what}");
            let message = answer.body["message"].as_str().unwrap();
            assert!(message.contains("unknown field `nobody_reads`"), "{what}");
        }
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        if body.is_object() {
            let form = SchemaDocument(&document).resolve(body);
            assert_eq!(form["additionalProperties"], false, "{method} {path}");
        }
    }
    assert!(queries > 50 && bodies > 25, "{queries} {bodies}");
    // Where a body or a query is read, whichever is not read is not ignored either.
    let both = server.http.post("/conversation/list?limit=5", &alice.token, json!({})).await;
    assert_eq!(both.reason(), "invalid_param");
}

#[tokio::test]
async fn generators_of_clients_find_names_for_everything() {
    let server = setup().start();
    let document = server.http.get("/openapi.json", "").await.body;
    let text = document.to_string();
    assert!(!text.contains("\"allOf\""), "many generators cannot put forms together");
    for (method, path, operation) in operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let response = SchemaDocument(&document).resolve(response);
            let form = &response["content"]["application/json"]["schema"];
            let is_named = form.is_null() || form["$ref"].is_string() || !is_enveloped(operation);
            assert!(is_named, "{method} {path} {status}: {form}");
        }
    }
}

/// A path with ids instead of its parameters.
fn filled(path: &str) -> String {
    path.replace("{server_msg_id}", &"A".repeat(26))
        .replace("{user_id}", "alice")
        .split('/')
        .map(|part| if part.starts_with('{') { "x" } else { part })
        .collect::<Vec<_>>()
        .join("/")
}

/// The path of the document that a request goes to.
fn template<'a>(document: &'a Value, path: &str) -> &'a str {
    let fits = |template: &str| {
        let (parts, wanted) = (template.split('/'), path.split('/'));
        parts.clone().count() == wanted.clone().count()
            && parts.zip(wanted).all(|(part, wanted)| part.starts_with('{') || part == wanted)
    };
    let mut found: Vec<&str> = document["paths"]
        .as_object()
        .expect("paths")
        .keys()
        .map(String::as_str)
        .filter(|it| fits(it))
        .collect();
    found.sort_by_key(|template| template.matches('{').count()); // a name before a parameter
    found.first().copied().unwrap_or_else(|| panic!("the document has no {path}"))
}

/// Asks, and holds every answer against the document.
struct Asking<'a> {
    server: &'a Server,
    document: &'a Value,
    answered: BTreeSet<(String, String)>,
}

impl Asking<'_> {
    async fn ask(&mut self, who: &str, method: &str, path: &str, body: Value) -> Value {
        let body = Some(body).filter(|body| !body.is_null());
        let answer = self.server.http.ask(&method.to_uppercase(), path, who, body).await;
        let name = template(self.document, path.split('?').next().expect("a path"));
        let forms = SchemaDocument(self.document);
        let operation = &self.document["paths"][name][method];
        let response = forms.resolve(&operation["responses"][answer.status.to_string()]);
        let form = &response["content"]["application/json"]["schema"];
        assert!(form.is_object(), "{method} {name} does not tell of {}", answer.status);
        let misfits = forms.violations(form, &answer.body);
        assert!(misfits.is_empty(), "{method} {path}: {misfits:#?}\n{}", answer.text);
        if answer.status != 200 {
            let reasons = response["x-reasons"].as_array().expect("reasons");
            let reason = json!(answer.reason());
            assert!(reasons.contains(&reason), "{method} {name} does not tell of {reason}");
        }
        if answer.status == 200 {
            self.answered.insert((method.to_owned(), name.to_owned()));
        }
        answer.body["data"].clone()
    }

    async fn get(&mut self, who: &Person, path: &str) -> Value {
        self.ask(&who.token, "get", path, Value::Null).await
    }

    async fn post(&mut self, who: &Person, path: &str, body: Value) -> Value {
        self.ask(&who.token, "post", path, body).await
    }

    async fn put(&mut self, who: &Person, path: &str, body: Value) -> Value {
        self.ask(&who.token, "put", path, body).await
    }
}

/// Sets a password by a code, which an operator makes while no server uses the folder.
async fn with_a_code(document: &Value) -> BTreeSet<(String, String)> {
    let mut server = setup().nodes(0).start();
    server.person("erin").await;
    assert_eq!(server.stop(), Some(0));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nexo"));
    command.env_clear().args(["user", "reset-code", "erin", "--data"]).arg(server.data());
    let output = command.output().expect("the program runs");
    let said = String::from_utf8(output.stdout).expect("text");
    server.start_again(|setup| setup);
    let mut asking = Asking { server: &server, document, answered: BTreeSet::new() };
    let code = said.lines().next().unwrap_or_default();
    let body = json!({ "user_id": "erin", "code": code, "new_password": "a new password" });
    asking.ask("", "post", "/user/reset_password", body).await;
    asking.answered
}

/// Signs in with an identity provider, by a token and through a browser.
async fn with_a_provider(document: &Value) -> BTreeSet<(String, String)> {
    let provider = IdentityProvider::start().await;
    let server = setup()
        .nodes(0)
        .with("NEXO_AUTH__TOKEN__JWKS_URL", &provider.jwks_url())
        .with("NEXO_AUTH__TOKEN__ISSUER", &provider.issuer)
        .with("NEXO_AUTH__TOKEN__AUDIENCE", "nexo")
        .with("NEXO_AUTH__OIDC__ISSUER", &provider.issuer)
        .with("NEXO_AUTH__OIDC__CLIENT_ID", CLIENT_ID)
        .with("NEXO_AUTH__OIDC__CLIENT_SECRET", CLIENT_SECRET)
        .with("NEXO_AUTH__OIDC__REDIRECT_URL", "http://x/auth/oidc/callback")
        .start();
    let mut asking = Asking { server: &server, document, answered: BTreeSet::new() };
    asking.ask("", "get", "/server/info", Value::Null).await;
    for token in ["nonsense", &provider.token("first", "erin", &json!({}))] {
        asking.ask("", "post", "/auth/token", json!({ "token": token })).await;
    }
    asking.ask("", "post", "/auth/oidc/finish", json!({ "code": "a.b" })).await; // refused
    let started = server.http.get("/auth/oidc/start", "").await;
    let cookie = started.header("set-cookie").expect("a cookie");
    let cookie = cookie.split(';').next().expect("its value");
    let back = provider.sign_in(started.header("location").expect("a page"), "erin", &json!({}));
    let ask = async |line: &str, body: &str| {
        let (length, head) = (body.len(), "HTTP/1.1\r\nHost: x\r\nConnection: close\r\nCookie:");
        let request = format!("{line} {head} {cookie}\r\nContent-Length: {length}\r\n\r\n{body}");
        server.http.raw(request.as_bytes()).await
    };
    let back = back.strip_prefix("http://x").expect("this server");
    let end = ask(&format!("GET {back}"), "").await;
    let (_, code) = end.header("location").expect("a page").split_once("#oidc=").expect("a code");
    let signed = ask("POST /auth/oidc/finish", &json!({ "code": code }).to_string()).await;
    let form = json!({ "$ref": "#/components/schemas/SignedInAnswer" });
    assert!(SchemaDocument(document).violations(&form, &signed.body).is_empty(), "{}", signed.text);
    assert_eq!(signed.status, 200, "{}", signed.text);
    asking.answered.insert(("post".to_owned(), "/auth/oidc/finish".to_owned()));
    asking.answered
}

/// Backups are those of the embedded store.
async fn with_backups(document: &Value) -> BTreeSet<(String, String)> {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().to_str().expect("a path");
    let server = setup().nodes(0).with("NEXO_BACKUP__TARGET", target).start();
    let token = std::fs::read_to_string(server.data().join("system.token")).expect("a token");
    let mut asking = Asking { server: &server, document, answered: BTreeSet::new() };
    asking.ask("", "post", "/admin/backup", json!({})).await; // refused
    asking.ask(token.trim(), "post", "/admin/backup", json!({})).await;
    asking.ask(token.trim(), "get", "/admin/backup", Value::Null).await;
    asking.answered
}

#[tokio::test]
async fn every_answer_is_as_the_document_says() {
    let server = setup()
        .with("NEXO_GROUPS__CODE_COOLDOWN_SECONDS", "0")
        .with("NEXO_AUTH__INVITES_BY", "members")
        .start();
    let document = server.http.get("/openapi.json", "").await.body;
    let mut asking = Asking { server: &server, document: &document, answered: BTreeSet::new() };
    let [alice, bob, carol] = server.people(["alice", "bob", "carol"]).await;
    accounts(&mut asking, &alice).await;
    private(&mut asking, &alice, &bob).await;
    group(&mut asking, &alice, &bob, &carol).await;
    let system = std::fs::read_to_string(server.data().join("system.token")).unwrap();
    let body = json!({ "client_msg_id": "s", "session_type": 1, "recv_id": "bob", "msg_type": 1,
        "content": { "text": "hello" } });
    asking.ask(system.trim(), "post", "/system/send", body).await;
    privacy(&mut asking, &alice, system.trim()).await;
    administration(&mut asking, &alice, system.trim()).await;
    for path in ["/healthz", "/readyz", "/server/info"] {
        asking.ask("", "get", path, Value::Null).await;
    }
    asking.post(&bob, "/auth/logout", json!({})).await;
    asking.get(&bob, "/user/info").await; // refused
    let with_code = with_a_code(&document).await;
    asking.answered.extend(with_code);
    asking.answered.extend(with_backups(&document).await);
    asking.answered.extend(with_a_provider(&document).await);
    for (method, path, operation) in operations(&document) {
        let key = (method.to_owned(), path.to_owned());
        assert!(
            !is_enveloped(operation) || asking.answered.contains(&key),
            "{key:?} was not asked"
        );
    }
}

async fn privacy(asking: &mut Asking<'_>, alice: &Person, system: &str) {
    let devices = asking.get(alice, "/user/devices").await;
    assert!(devices.as_array().is_some_and(|devices| !devices.is_empty()));
    asking.post(alice, "/user/devices/end", json!({ "others": true })).await;
    asking.post(alice, "/user/devices/end", json!({ "login_id": "x" })).await; // refused
    second_factor(asking, alice).await;
    asking.post(alice, "/user/block", json!({ "user_id": "carol" })).await;
    asking.get(alice, "/user/blocks").await;
    asking.post(alice, "/user/unblock", json!({ "user_id": "carol" })).await;
    asking.put(alice, "/user/consent", json!({ "write": "shared_group" })).await;
    asking.get(alice, "/user/consent").await;
    asking.post(alice, "/user/invites", json!({})).await;
    let mine = asking.get(alice, "/user/invites").await;
    let id = text(&mine[0]["invite_id"]);
    asking.ask(&alice.token, "delete", &format!("/user/invites/{id}"), Value::Null).await;
    let made = asking.ask(system, "post", "/admin/invites", json!({ "uses": 2 })).await;
    asking.ask(system, "get", "/admin/invites", Value::Null).await;
    let path = format!("/admin/invites/{}", text(&made["invite_id"]));
    asking.ask(system, "delete", &path, Value::Null).await;
}

async fn second_factor(asking: &mut Asking<'_>, alice: &Person) {
    let password = nexo_sim::person::PASSWORD;
    let begun = asking.post(alice, "/user/totp/begin", json!({ "password": password })).await;
    let secret =
        data_encoding::BASE32_NOPAD.decode(text(&begun["secret"]).as_bytes()).expect("base32");
    let now = nexo_sim::clock::wall_clock();
    let code = nexo_chat::totp::shown_at(&secret, now).expect("a code");
    asking.post(alice, "/user/totp/confirm", json!({ "code": "1" })).await; // refused
    let codes = asking.post(alice, "/user/totp/confirm", json!({ "code": code })).await;
    let body = json!({ "password": password, "code": codes["recovery_codes"][0] });
    asking.post(alice, "/user/totp/remove", body).await;
}

async fn administration(asking: &mut Asking<'_>, alice: &Person, system: &str) {
    let key = asking
        .ask(system, "post", "/admin/keys", json!({ "name": "k", "scopes": ["backend"] }))
        .await;
    let (backend, id) = (text(&key["key"]), text(&key["key_id"]));
    asking.ask(&backend, "get", "/admin/keys", Value::Null).await; // refused
    asking.ask(system, "get", "/admin/keys", Value::Null).await;
    asking.ask(&backend, "put", "/admin/users/frank", json!({ "nickname": "Frank" })).await;
    asking.ask(&backend, "post", "/admin/users/frank/login", json!({})).await;
    asking.ask(&backend, "post", "/admin/users/import", json!({ "user_id": "gina" })).await;
    asking.ask(&backend, "get", "/admin/users?limit=2", Value::Null).await;
    asking.ask(&backend, "get", "/admin/users/frank", Value::Null).await;
    asking.ask(system, "delete", &format!("/admin/keys/{id}"), Value::Null).await;
    asking.ask(&backend, "get", "/admin/users", Value::Null).await; // refused
    let frank = "/admin/users/frank";
    asking.ask(system, "get", &format!("{frank}/sessions"), Value::Null).await;
    asking.ask(system, "post", &format!("{frank}/sessions/end"), json!({})).await;
    asking
        .ask(system, "post", &format!("{frank}/disable"), json!({ "reason": "r", "seconds": 60 }))
        .await;
    asking.ask(system, "get", "/admin/users?status=disabled", Value::Null).await;
    asking.ask(system, "post", &format!("{frank}/enable"), json!({})).await;
    asking.ask(system, "post", &format!("{frank}/reset_code"), json!({})).await;
    let body = json!({ "name": "Admins", "member_ids": ["carol"] });
    let group = text(&asking.post(alice, "/group/create", body).await["group_id"]);
    let path = format!("/admin/groups/{group}");
    asking.ask(system, "get", "/admin/groups?search=admins", Value::Null).await;
    asking.ask(system, "get", &path, Value::Null).await;
    asking.ask(system, "get", &format!("{path}/members?limit=1"), Value::Null).await;
    asking.ask(system, "post", &format!("{path}/add"), json!({ "user_ids": ["frank"] })).await;
    asking.ask(system, "post", &format!("{path}/remove"), json!({ "user_id": "frank" })).await;
    asking.ask(system, "post", &format!("{path}/transfer"), json!({ "user_id": "carol" })).await;
    asking.ask(system, "post", &format!("{path}/dissolve"), json!({})).await;
    asking.ask(system, "delete", &format!("{frank}?messages=remove"), Value::Null).await;
    let body = json!({ "client_msg_id": "m", "session_type": 1, "recv_id": "carol", "msg_type": 1,
        "content": { "text": "hello" } });
    let message = text(&asking.post(alice, "/msg/send", body).await["server_msg_id"]);
    let path = format!("/admin/messages/{message}");
    asking.ask(system, "get", &path, Value::Null).await;
    asking.ask(system, "get", &format!("{path}/around"), Value::Null).await;
    asking.ask(system, "post", &format!("{path}/recall"), json!({})).await;
    let body = json!({ "text": "hello", "user_ids": ["carol"] });
    let broadcast =
        text(&asking.ask(system, "post", "/admin/broadcast", body).await["broadcast_id"]);
    asking.ask(system, "get", &format!("/admin/broadcast/{broadcast}"), Value::Null).await;
    asking.ask(system, "get", "/admin/statistics", Value::Null).await;
    asking.ask(system, "get", "/admin/audit?limit=3", Value::Null).await;
    asking.ask(system, "get", "/admin/audit/verify", Value::Null).await;
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

async fn accounts(asking: &mut Asking<'_>, alice: &Person) {
    let password = nexo_sim::person::PASSWORD;
    let dora = json!({ "user_id": "dora", "nickname": "Dora", "password": password });
    asking.ask("", "post", "/user/register", dora.clone()).await;
    asking.ask("", "post", "/user/register", dora).await; // taken
    let dora = json!({ "user_id": "dora", "password": password, "platform_id": 5 });
    let signed = asking.ask("", "post", "/auth/login", dora).await;
    let body = json!({ "refresh_token": signed["refresh_token"] });
    let signed = asking.ask("", "post", "/auth/refresh", body).await;
    let body = json!({ "token": "a.b.c", "platform_id": 5 });
    asking.ask("", "post", "/auth/token", body).await; // there is no provider
    asking.ask("", "post", "/auth/oidc/finish", json!({ "code": "a.b" })).await;
    let body = json!({ "old_password": password, "new_password": "another password" });
    let token = text(&signed["token"]);
    asking.ask(&token, "post", "/user/change_password", body).await;
    let body = json!({ "user_id": "dora", "code": "A4DQ-OBYH", "new_password": "a new password" });
    asking.ask("", "post", "/user/reset_password", body).await; // refused
    asking.get(alice, "/user/info?user_id=dora").await;
    asking.put(alice, "/user/update", json!({ "nickname": "Alice" })).await;
    let body = json!({ "user_ids": ["dora", "alice"] });
    asking.post(alice, "/user/get_users_online_status", body).await;
}

async fn private(asking: &mut Asking<'_>, alice: &Person, bob: &Person) {
    let said = |id: &str| {
        json!({ "client_msg_id": id, "session_type": 1, "recv_id": "bob", "msg_type": 1,
            "content": { "text": "hello" } })
    };
    let first = asking.post(alice, "/msg/send", said("1")).await;
    asking.post(alice, "/msg/send_without_mark_read", said("2")).await;
    let conversation = text(&first["conversation_id"]);
    let message = text(&first["server_msg_id"]);
    asking.get(alice, &format!("/msg/readers?server_msg_id={message}")).await;
    asking.post(alice, "/msg/recall", json!({ "server_msg_id": message })).await;
    asking.post(alice, "/conversation/delete", json!({ "conversation_id": conversation })).await;
    for path in [
        "/single-chat/message/cursor?peerUserId=alice",
        "/single-chat/message/since?peerUserId=alice",
        "/single-chat/conversation/cursor",
        "/single-chat/member/state?peerUserId=alice",
        "/conversation/heads",
        "/conversation/unread_total",
        "/conversation/list?with_last_message=true&limit=1",
        "/conversation/all",
    ] {
        asking.get(bob, path).await;
    }
    for path in [
        "/msg/pull",
        "/msg/max_seq",
        "/msg/mentions",
        "/conversation/info",
        "/conversation/changes",
        "/conversation/max_read_seq",
        "/conversation/unread_count",
    ] {
        asking.get(bob, &format!("{path}?conversation_id={conversation}")).await;
    }
    asking.post(bob, "/conversation/list", json!({ "limit": 5 })).await;
    asking.post(bob, "/conversation/all", json!({ "with_last_message": true })).await;
    let body = json!({ "conversation_id": conversation, "is_pinned": true, "recv_msg_opt": 1 });
    asking.put(bob, "/conversation/update", body).await;
    let body = json!({ "conversation_id": conversation, "read_seq": 2 });
    asking.post(bob, "/conversation/mark_read", body).await;
    let body = json!({ "conversation_id": conversation, "seq": 2 });
    asking.post(bob, "/conversation/hide", body).await;
}

async fn group(asking: &mut Asking<'_>, alice: &Person, bob: &Person, carol: &Person) {
    let wanted = json!({ "name": "Friends", "member_ids": ["bob"], "join_type": "approval" });
    let made = asking.post(alice, "/group/create", wanted).await;
    let id = text(&made["group_id"]);
    let with = |more: Value| {
        let mut body = json!({ "group_id": id });
        for (name, value) in more.as_object().expect("fields") {
            body[name] = value.clone();
        }
        body
    };
    asking.post(carol, "/group/join", with(json!({ "message": "please" }))).await;
    asking.get(carol, &format!("/group/info?group_id={id}")).await;
    asking.get(alice, &format!("/group/info?group_id={id}")).await;
    asking.get(alice, &format!("/group/join_requests?group_id={id}")).await;
    let accept = with(json!({ "user_id": "carol", "accept": true }));
    asking.post(alice, "/group/join_decide", accept).await;
    asking.post(alice, "/group/invite", with(json!({ "user_ids": ["dora"] }))).await;
    let said = json!({ "client_msg_id": "g", "session_type": 2, "msg_type": 1,
        "content": { "text": "hello" }, "mentions": ["bob"] });
    asking.post(alice, "/msg/send", with(said)).await;
    asking.post(alice, "/group/set_role", with(json!({ "user_id": "bob", "role": 1 }))).await;
    asking.post(alice, "/group/mute", with(json!({ "user_id": "carol", "seconds": 60 }))).await;
    asking.post(alice, "/group/mute_all", with(json!({ "on": true }))).await;
    asking.put(alice, "/group/update", with(json!({ "name": "Old friends" }))).await;
    asking.post(alice, "/group/reset_code", with(json!({}))).await;
    for path in ["/group/message/cursor", "/group/message/since"] {
        asking.get(bob, &format!("{path}?groupId={id}")).await;
    }
    for path in ["/group/joined", "/group/conversation/cursor", "/conversation/list"] {
        asking.get(bob, path).await;
    }
    asking.get(bob, &format!("/group/members?group_id={id}&limit=1")).await;
    asking.get(bob, &format!("/group/member?group_id={id}&user_id=alice")).await;
    asking.get(bob, &format!("/group/read_state?group_id={id}")).await;
    asking.put(bob, "/group/member_info", with(json!({ "group_nickname": "Bobby" }))).await;
    asking.get(bob, &format!("/conversation/changes?conversation_id=sg_{id}")).await;
    asking.post(alice, "/group/kick", with(json!({ "user_id": "dora" }))).await;
    asking.post(carol, "/group/quit", with(json!({}))).await;
    asking.post(carol, "/group/join_request", with(json!({}))).await;
    asking.post(alice, "/group/transfer", with(json!({ "user_id": "bob" }))).await;
    asking.post(alice, "/group/leave", with(json!({}))).await;
    asking.post(bob, "/group/dissolve", with(json!({}))).await;
    asking.get(bob, "/conversation/list").await;
    let made = asking.post(bob, "/group/create", json!({ "name": "Another" })).await;
    asking.post(bob, "/group/dismiss", json!({ "group_id": made["group_id"] })).await;
    let made = asking.post(bob, "/group/create", json!({ "name": "A third" })).await;
    let body = json!({ "conversation_id": made["conversation_id"] });
    asking.post(bob, "/conversation/delete", body).await;
    asking.get(bob, "/group/conversation/cursor").await;
}
