//! A real server in its own folder.
use std::future::Future;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use nexo_sdk::{Client, Event, NewUser, Options, State, Timing};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const PASSWORD: &str = "test-password-1";

pub(crate) struct Server {
    pub(crate) url: String,
    folder: tempfile::TempDir,
    settings: Vec<(String, String)>,
    child: Child,
}

/// The server under test.
fn binary() -> PathBuf {
    if let Some(named) = std::env::var_os("NEXO_BIN") {
        return named.into();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built = ["target/release/nexo", "target/debug/nexo"].map(|path| root.join(path));
    let found = built.into_iter().find(|path| path.exists());
    found
        .expect("no server to test against: build it (cargo build -p nexo), or name it in NEXO_BIN")
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(settings: &[(&str, &str)]) -> Self {
        let usual = [
            ("NEXO_AUTH__ARGON2_MEMORY_KIB", "8"),
            ("NEXO_AUTH__ARGON2_PASSES", "1"),
            ("NEXO_LIMITS__CONNECTION_FRAMES_PER_SECOND", "0"),
            ("NEXO_LIMITS__USER_SENDS_PER_SECOND", "0"),
            ("NEXO_ACCOUNTS__STRANGERS_PER_HOUR", "0"),
            ("NEXO_GROUPS__BY_STRANGERS_PER_HOUR", "0"),
            ("NEXO_LIMITS__USER_REQUESTS_PER_SECOND", "0"),
        ];
        let all = usual.iter().chain(settings);
        let settings: Vec<_> = all.map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let folder = tempfile::tempdir().unwrap();
        let (child, url) = run(folder.path(), &settings, "127.0.0.1:0");
        Self { url, folder, settings, child }
    }

    /// Kills the process.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Creates a password reset code on the command line; the server must be stopped.
    pub(crate) fn reset_code(&self, user_id: &str) -> String {
        let mut command = Command::new(binary());
        command.args(["user", "reset-code", user_id, "--data"]).arg(self.folder.path());
        let output = command.env_clear().output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        said.lines().next().expect("a code").to_owned()
    }

    /// Sends a request as the operator; returns `data` of the answer.
    pub(crate) async fn operate(&self, method: &str, path: &str, body: Value) -> Value {
        let key = std::fs::read_to_string(self.folder.path().join("system.token")).unwrap();
        let host = self.url.trim_start_matches("http://").to_owned();
        let body = body.to_string();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\
             authorization: Bearer {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            key.trim(),
            body.len()
        );
        let mut stream = TcpStream::connect(&host).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, envelope) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        let mut envelope: Value = serde_json::from_str(envelope).unwrap();
        envelope["data"].take()
    }

    /// Restarts on the same data and address.
    pub(crate) fn restart(&mut self) {
        let listen = self.url.trim_start_matches("http://").to_owned();
        (self.child, self.url) = run(self.folder.path(), &self.settings, &listen);
    }

    pub(crate) async fn person(&self, user_id: &str) -> Client {
        person(&self.url, user_id, |_| {}).await
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(options(&self.url)).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn run(data: &Path, settings: &[(String, String)], listen: &str) -> (Child, String) {
    let mut command = Command::new(binary());
    command.args(["serve", "--listen", listen, "--data"]).arg(data);
    command.env_clear().envs(settings.iter().cloned());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (tell, hear) = mpsc::channel();
    listen_to(BufReader::new(child.stdout.take().unwrap()), tell.clone());
    listen_to(BufReader::new(child.stderr.take().unwrap()), tell);
    let mut said = String::new();
    for line in hear {
        if let Some((_, url)) = line.split_once("listening on http://") {
            let address = url.split_whitespace().next().unwrap().trim_end_matches('/');
            return (child, format!("http://{address}"));
        }
        said += &line;
    }
    child.wait().unwrap();
    panic!("the server did not start: {said}");
}

/// Keeps reading after the address line, so that the server's output does not block.
fn listen_to(lines: impl BufRead + Send + 'static, tell: mpsc::Sender<String>) {
    std::thread::spawn(move || {
        for line in lines.lines().map_while(Result::ok) {
            tell.send(line).ok();
        }
    });
}

/// Short timeouts, so that tests are fast.
pub(crate) fn options(url: &str) -> Options {
    let mut options = Options::new(url);
    options.timing = Timing {
        backoff_base_ms: 50,
        backoff_max_ms: 500,
        quiet_ms: 500,
        silence_ms: 500,
        ..Timing::default()
    };
    options
}

/// A client that is registered, signed in and online.
pub(crate) async fn person(url: &str, user_id: &str, change: impl FnOnce(&mut Options)) -> Client {
    let mut options = options(url);
    change(&mut options);
    let client = Client::new(options).unwrap();
    client.register(&NewUser::new(user_id, PASSWORD)).await.unwrap();
    client.login(user_id, PASSWORD).await.unwrap();
    online(&client).await;
    client
}

pub(crate) async fn online(client: &Client) {
    until("online", async || client.state() == State::Online).await;
}

/// Waits until a condition holds.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut is: impl FnMut() -> F) {
    let end = Instant::now() + Duration::from_secs(10);
    while !is().await {
        assert!(Instant::now() < end, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Records all events of a client.
pub(crate) fn record(client: &Client) -> Arc<Mutex<Vec<Event>>> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (mut events, book) = (client.events(), heard.clone());
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            book.lock().unwrap().push(event);
        }
    });
    heard
}

/// Selects from the recorded events.
pub(crate) fn picked<T>(
    heard: &Arc<Mutex<Vec<Event>>>,
    pick: impl Fn(&Event) -> Option<T>,
) -> Vec<T> {
    heard.lock().unwrap().iter().filter_map(pick).collect()
}
