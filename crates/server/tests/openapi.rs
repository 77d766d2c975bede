//! The `OpenAPI` document: generated, complete, and true.

mod openapi_calls;

use std::collections::BTreeSet;

use nexo_sim::identity_provider::{CLIENT_ID, CLIENT_SECRET};
use nexo_sim::process::Setup;
use nexo_sim::schema::SchemaDocument;
use nexo_sim::{IdentityProvider, Person, Server};
use serde_json::{Value, json};

const METHODS: [&str; 4] = ["get", "post", "put", "delete"];

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
pub(crate) struct Asking<'a> {
    server: &'a Server,
    document: &'a Value,
    answered: BTreeSet<(String, String)>,
}

impl Asking<'_> {
    pub(crate) async fn ask(&mut self, who: &str, method: &str, path: &str, body: Value) -> Value {
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

    pub(crate) async fn get(&mut self, who: &Person, path: &str) -> Value {
        self.ask(&who.token, "get", path, Value::Null).await
    }

    pub(crate) async fn post(&mut self, who: &Person, path: &str, body: Value) -> Value {
        self.ask(&who.token, "post", path, body).await
    }

    pub(crate) async fn put(&mut self, who: &Person, path: &str, body: Value) -> Value {
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
    openapi_calls::accounts(&mut asking, &alice).await;
    openapi_calls::private(&mut asking, &alice, &bob).await;
    openapi_calls::group(&mut asking, &alice, &bob, &carol).await;
    let system = std::fs::read_to_string(server.data().join("system.token")).unwrap();
    let body = json!({ "client_msg_id": "s", "session_type": 1, "recv_id": "bob", "msg_type": 1,
        "content": { "text": "hello" } });
    asking.ask(system.trim(), "post", "/system/send", body).await;
    openapi_calls::privacy(&mut asking, &alice, system.trim()).await;
    openapi_calls::administration(&mut asking, &alice, system.trim()).await;
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
