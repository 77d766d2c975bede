//! `nexo migrate` and `nexo import` as an operator runs them: there and back with users who continue
//! where they were, and every refusal says what to do.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nexo_sim::person::PASSWORD;
use nexo_sim::process::Setup;
use nexo_sim::{History, Http, MariaDb, Person, Server};
use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;

const SECRETS: [&str; 3] = ["jwt.secret", "system.token", "metrics.token"];

fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(0)
}

fn nexo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nexo"));
    command.env_clear().args(arguments);
    command
}

/// Runs a command; returns whether it succeeded, and everything it said.
fn run(arguments: &[&str]) -> (bool, String) {
    let output = nexo(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
    (output.status.success(), said.concat())
}

fn migrate(from: &str, to: &str) -> (bool, String) {
    run(&["migrate", "--from", from, "--to", to])
}

/// Moves, and it works; returns what was said.
fn moved(from: &str, to: &str) -> String {
    let (is_done, said) = migrate(from, to);
    assert!(is_done, "{said}");
    said
}

/// Does not move, and says this.
fn refused(from: &str, to: &str, words: &str) -> String {
    let (is_done, said) = migrate(from, to);
    assert!(!is_done && said.contains(words), "{said}");
    said
}

/// A folder that a server can be started on, with the secrets of another.
fn folder_with_secrets(of: &Path) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    for name in SECRETS {
        std::fs::copy(of.join(name), data.join(name)).unwrap();
    }
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A conversation that has settings and no message.
const EARLY: &str = "si_alice_carol";

/// Two users with messages between them, of whom one has blocked a third.
struct Two {
    alice: Person,
    bob: Person,
    history: History,
}

impl Two {
    async fn new(server: &Server) -> Self {
        let (alice, bob) = (server.person("alice").await, server.person("bob").await);
        let mut two = Self { alice, bob, history: History::default() };
        two.talk(server, "before", 30).await;
        server.person("carol").await;
        let early = json!({ "conversation_id": EARLY, "recv_msg_opt": 2 });
        server.http.put("/conversation/update", &two.alice.token, early).await.data();
        two
    }

    async fn talk(&mut self, server: &Server, name: &str, count: usize) {
        let (mut socket, _) = server.connect(&self.alice).await;
        for n in 0..count {
            let (id, body) = (format!("{name}-{n}"), format!("{name} number {n}"));
            self.history.tried(&id, &body);
            self.history.acked(&socket.send("bob", &id, &body).await);
        }
    }

    /// Everything is there for who signed in before, retries are answered as before, and other
    /// content is refused.
    async fn check(&mut self, server: &Server, name: &str) {
        self.history.check(&server.http, &self.bob, "alice").await;
        let heads = "/conversation/heads?include_empty=true";
        let heads = server.http.get(heads, &self.alice.token).await.data()["heads"].clone();
        let early = heads.as_array().unwrap().iter().find(|it| it["conversation_id"] == EARLY);
        assert_eq!(early.unwrap()["recv_msg_opt"], 2, "chosen before the first message");
        let (mut socket, _) = server.connect(&self.alice).await;
        let again = socket.send("bob", "before-3", "before number 3").await;
        self.history.acked(&again);
        let other = socket.send("bob", "before-3", "something else").await;
        assert_eq!(other["reason"], "client_msg_id_conflict");
        self.bob = refreshed(&server.http, &self.bob).await;
        self.talk(server, name, 5).await;
        self.history.check(&server.http, &self.bob, "alice").await;
    }
}

/// A user after renewing their tokens.
async fn refreshed(http: &Http, person: &Person) -> Person {
    let body = json!({ "refresh_token": person.refresh });
    let answer = http.post("/auth/refresh", "", body).await;
    let text = |field: &str| answer.data()[field].as_str().unwrap().to_owned();
    Person { id: person.id.clone(), token: text("token"), refresh: text("refresh_token") }
}

#[tokio::test]
async fn people_go_on_in_a_database_and_back_in_a_folder() {
    let database = MariaDb::shared().fresh_database();
    let mut first = setup().start();
    let mut two = Two::new(&first).await;
    refused(text(&first.data()), &database, "is in use by another process");
    assert_eq!(first.stop(), Some(0));
    let said = moved(text(&first.data()), &database);
    for words in ["30  messages", "3  accounts", "is the same", "jwt.secret", "nexo serve --store"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }

    let on_database = setup().with("NEXO_STORE", &database);
    let mut second = on_database.start_on(folder_with_secrets(&first.data()));
    two.check(&second, "in the database").await;
    let back = folder_with_secrets(&second.data());
    let data = format!("embedded:{}", text(&back.path().join("data")));
    refused(&database, &data, "a server is using it");
    assert_eq!(second.stop(), Some(0));
    let said = moved(&database, &data);
    assert!(said.contains("35  messages") && said.contains("nexo serve --data"), "{said}");
    two.check(&setup().start_on(back), "in a folder").await;

    // A server that runs on the target of a migration is in the way too.
    let empty = MariaDb::shared().fresh_database();
    let server = setup().with("NEXO_STORE", &empty).start();
    refused(text(&first.data()), &empty, "a server is using it");
    drop(server);
}

#[tokio::test]
async fn what_is_not_empty_stays_as_it_is() {
    let database = MariaDb::shared().fresh_database();
    let mut server = setup().start();
    let two = Two::new(&server).await;
    server.stop();
    let data = server.data();
    moved(text(&data), &database);
    refused(text(&data), &database, "it is not empty, it has users");
    let other = tempfile::tempdir().unwrap();
    moved(text(&data), text(other.path()));
    refused(text(&data), text(other.path()), "it is not empty, it has users");
    refused(text(&data), &format!("embedded:{}", data.display()), "onto itself");
    refused("/nowhere/at/all", text(other.path()), "there is no data of Nexo in it");
    refused(&MariaDb::shared().fresh_database(), text(other.path()), "no data of Nexo");
    refused(
        "sqlite://a:secret@b",
        text(other.path()),
        "is not a store that data can be copied from",
    );
    std::fs::write(data.join("FORMAT"), "nexo store format 9\n").unwrap();
    refused(text(&data), "/nowhere", "written by a newer version");
    std::fs::write(data.join("FORMAT"), "nexo store format 1\n").unwrap();
    server.start_again(|setup| setup);
    two.history.check(&server.http, &two.bob, "alice").await;
}

/// Starts a migration and kills it in the middle.
fn killed(from: &str, to: &str, is_begun: impl Fn() -> bool) {
    let mut command = nexo(&["migrate", "--from", from, "--to", to]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let since = Instant::now();
    while !is_begun() {
        assert!(since.elapsed() < Duration::from_mins(1), "it never began");
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    assert!(!child.wait().unwrap().success(), "it ended before it was killed");
}

/// What a server says that must not start.
fn start_refused(setup: &Setup, data: &Path) -> String {
    let output = setup.command(data).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

/// Keeps everybody from reading the messages of a database until it is dropped, so that a migration
/// out of it stays in the middle for as long as a test wants.
struct Held(Child);

impl Held {
    fn new(database: &str) -> Self {
        let mut client = Command::new("mariadb");
        client.args([
            "--no-defaults",
            "--host=127.0.0.1",
            "--user=root",
            "--batch",
            "--unbuffered",
        ]);
        client.arg(format!("--port={}", MariaDb::shared().port())).arg(name_of(database));
        let mut client = client.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let hold = "LOCK TABLES messages WRITE; SELECT 'held';";
        writeln!(client.stdin.as_ref().unwrap(), "{hold}").unwrap();
        let mut line = String::new();
        BufReader::new(client.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "held");
        Self(client)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

fn name_of(database: &str) -> &str {
    database.rsplit('/').next().unwrap()
}

#[tokio::test]
async fn a_migration_that_was_killed_is_known() {
    let mariadb = MariaDb::shared();
    let mut server = setup().start();
    Two::new(&server).await;
    server.stop();
    let (data, source) = (server.data(), mariadb.fresh_database());
    moved(text(&data), &source);
    let held = Held::new(&source);

    let target = tempfile::tempdir().unwrap();
    let filled = target.path().join("data");
    killed(&source, text(&filled), || filled.join("FILLING").exists());
    let said = refused(text(&data), text(&filled), "a migration into it did not finish");
    assert!(said.contains("Delete it and run the migration again"), "{said}");
    refused(text(&filled), "/nowhere", "did not finish");
    let said = start_refused(&setup(), &filled);
    assert!(said.contains("did not finish"), "{said}");
    std::fs::remove_dir_all(&filled).unwrap();
    moved(text(&data), text(&filled));

    let url = mariadb.fresh_database();
    let name = name_of(&url);
    let there = "SELECT COUNT(*) FROM information_schema.tables \
         WHERE table_schema = DATABASE() AND table_name = 'migrations'";
    killed(&source, &url, || {
        mariadb.sql(name, there).trim() == "1"
            && mariadb.sql(name, "SELECT COUNT(*) FROM migrations").trim() == "1"
    });
    let on_database = setup().with("NEXO_STORE", &url);
    let said = start_refused(&on_database, &tempfile::tempdir().unwrap().path().join("data"));
    assert!(said.contains("a migration is using it"), "{said}");
    mariadb.sql(name, "UPDATE migrations SET at = at - INTERVAL 11 SECOND");
    let said = start_refused(&on_database, &tempfile::tempdir().unwrap().path().join("data"));
    assert!(said.contains("did not finish") && said.contains("DROP DATABASE"), "{said}");
    refused(text(&data), &url, "did not finish");
    drop(held);
    mariadb.sql("", &format!("DROP DATABASE {name}; CREATE DATABASE {name}"));
    // The source is none the worse for it.
    assert!(moved(&source, &url).contains("30  messages"));
}

#[tokio::test]
async fn passwords_are_never_shown() {
    let mariadb = MariaDb::shared();
    mariadb.create_user("mover", "s3cr3t");
    mariadb.create_database("moved");
    let (good, folder) = (mariadb.url_as("mover", "s3cr3t", "moved"), tempfile::tempdir().unwrap());
    let data = folder.path().join("data");
    let mut server = setup().start();
    server.stop();
    moved(text(&server.data()), &good);
    let wrong = good.replace("s3cr3t", "wr0ng");
    let absent = "mysql://mover:s3cr3t@127.0.0.1:1/moved";
    let odd = "mysql://mover:s3cr3t@127.0.0.1:port/moved";
    for from in [&*good, &wrong, absent, odd, "postgres://a:s3cr3t@b/c"] {
        let (_, said) = migrate(from, text(&data));
        assert!(!said.contains("s3cr3t") && !said.contains("wr0ng"), "{said}");
        let (_, said) = run(&["import", "mini-im", "--from", from, "--to", text(&data)]);
        assert!(!said.contains("s3cr3t") && !said.contains("wr0ng"), "{said}");
        drop(std::fs::remove_dir_all(&data)); // the first one works
    }
}

/// A password in the form in which a server keeps it.
async fn kept_password() -> String {
    let url = MariaDb::shared().fresh_database();
    let server = setup().with("NEXO_STORE", &url).start();
    server.person("somebody").await;
    MariaDb::shared().sql(name_of(&url), "SELECT password_hash FROM users").trim().to_owned()
}

#[tokio::test]
async fn mini_im_is_taken_over() {
    let tables = include_str!("../../store/tests/fixtures/mini_im/tables.sql");
    let rows = include_str!("../../store/tests/fixtures/mini_im/rows.sql");
    let rows = rows.replace("$argon2id$kept", &kept_password().await);
    let url = MariaDb::shared().fresh_database();
    MariaDb::shared().sql(name_of(&url), &format!("{tables}{rows}"));
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let import = |from: &str| {
        run(&["import", "mini-im", "--from", from, "--to", text(&data), "--time-zone", "+00:00"])
    };
    let (is_done, said) = import(&url);
    assert!(is_done, "{said}");
    for words in [
        "10  messages",
        "5  accounts",
        "Changed:",
        "2  accounts whose password is kept in a form that is not known here",
        "Left out:",
        "2  messages of no chat or group that is there",
        "2  rows of t_friend_relation: Nexo has no friend lists",
        "Everyone has to sign in again",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let codes = folder.path().join("data.reset-codes.csv");
    let mode = std::fs::metadata(&codes).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "only its owner can read it");
    let codes = std::fs::read_to_string(codes).unwrap();
    let (is_done, said) = import(&url);
    assert!(!is_done && said.contains("it is not empty"), "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "no empty file is left");
    let (is_done, said) = import(&MariaDb::shared().fresh_database());
    assert!(!is_done && said.contains("no table t_user"), "{said}");

    // Nobody knows the password of an account that has none, which is as if it were wrong.
    let server = setup().start_on(folder);
    let body = json!({ "user_id": "101", "password": "secret", "platform_id": 5 });
    let answer = server.http.post("/auth/login", "", body).await;
    assert_eq!(answer.status, 401, "{}", answer.text);
    // A code from the import lets its owner in, once.
    let lines: Vec<(&str, &str)> = codes.lines().filter_map(|it| it.split_once(',')).collect();
    assert_eq!(
        (lines.len(), lines[0]),
        (3, ("user_id", "code")),
        "one for each of the two: {codes}"
    );
    let code = lines.iter().find(|(id, _)| *id == "101").unwrap().1;
    let body = json!({ "user_id": "101", "code": code, "new_password": PASSWORD });
    server.http.post("/user/reset_password", "", body.clone()).await.data();
    let again = server.http.post("/user/reset_password", "", body).await;
    assert_eq!((again.status, again.reason()), (401, "reset_failed"));
    Person::sign_in(&server.http, "101", 5).await;
    // One in our own form goes on, and its owner finds what they had not read.
    let bob = Person::sign_in(&server.http, "102", 5).await;
    let (_, resent) = server.connect(&bob).await;
    let bodies: Vec<&str> = resent.iter().filter_map(|frame| frame["body"].as_str()).collect();
    assert!(bodies.contains(&"再见") && bodies.contains(&"everybody!"), "{resent:?}");
    // Somebody new writes to them, and finds the group by its code as before.
    let carol = server.person("carol").await;
    let (mut socket, _) = server.connect(&carol).await;
    assert_eq!(socket.send("101", "c1", "welcome").await["ackType"], "saved");
    let body = json!({ "group_code": "ABCD2345", "message": "hi" });
    let answer = server.http.post("/group/join", &carol.token, body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

#[test]
fn help_has_examples() {
    for arguments in [&["migrate", "--help"][..], &["import", "mini-im", "--help"]] {
        let (is_done, said) = run(arguments);
        assert!(is_done && said.contains("Examples:") && said.contains("mysql://"), "{said}");
    }
}
