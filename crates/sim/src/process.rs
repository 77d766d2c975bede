//! A server process on a folder of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::http::Http;
use crate::person::Person;
use crate::socket::Socket;

const START_WITHIN: Duration = Duration::from_secs(30);

/// How to start a server.
#[derive(Clone, Debug)]
pub struct Setup {
    binary: PathBuf,
    variables: Vec<(String, String)>,
    shell: Option<String>,
}

/// Copies what a server logs, until it ends.
type Logging = Option<JoinHandle<std::io::Result<u64>>>;

/// A process that has said where it listens.
struct Running {
    child: Child,
    logging: Logging,
    http: Http,
}

/// A running server. It is killed when dropped.
pub struct Server {
    setup: Setup,
    child: Child,
    logging: Logging,
    /// Where it answers.
    pub http: Http,
    folder: TempDir,
}

impl Setup {
    /// The binary with limits out of the way and cheap passwords: tests that want limits set them.
    pub fn new(binary: impl AsRef<Path>) -> Self {
        let setup = Self { binary: binary.as_ref().to_owned(), variables: Vec::new(), shell: None };
        setup
            .with("NEXO_LIMITS__USER_SENDS_PER_SECOND", "0")
            .with("NEXO_LIMITS__USER_REQUESTS_PER_SECOND", "0")
            .with("NEXO_LIMITS__CONNECTION_FRAMES_PER_SECOND", "0")
            .with("NEXO_LIMITS__REGISTRATIONS_PER_MINUTE", "0")
            .with("NEXO_AUTH__ARGON2_MEMORY_KIB", "8")
            .with("NEXO_AUTH__ARGON2_PASSES", "1")
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs some shell before the server takes the shell's place, such as `ulimit -f 100`.
    #[must_use]
    pub fn after(mut self, shell: &str) -> Self {
        self.shell = Some(shell.to_owned());
        self
    }

    /// The command that starts the server on a folder.
    pub fn command(&self, data: &Path) -> Command {
        let mut command = if let Some(shell) = &self.shell {
            let mut command = Command::new("sh");
            command.arg("-c").arg(format!("{shell}; exec \"$0\" \"$@\"")).arg(&self.binary);
            command
        } else {
            Command::new(&self.binary)
        };
        command.args(["serve", "--listen", "127.0.0.1:0", "--log", "json", "--data"]).arg(data);
        command.env_clear().envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts a server on a new folder.
    pub fn start(self) -> Server {
        let folder = tempfile::tempdir().expect("a folder");
        self.start_on(folder)
    }

    /// Starts a server on a folder that may hold data.
    pub fn start_on(self, folder: TempDir) -> Server {
        let Running { child, logging, http } = self.spawn(folder.path());
        Server { setup: self, child, logging, http, folder }
    }

    fn spawn(&self, folder: &Path) -> Running {
        let since = Instant::now();
        let mut child = self.command(&folder.join("data")).spawn().expect("the server starts");
        // Somebody has to read the log all the time, or the server would wait for it.
        let mut stderr = child.stderr.take().expect("its errors");
        let mut log = std::fs::OpenOptions::new();
        let log = log.create(true).append(true).open(folder.join("log"));
        let mut log = log.expect("a log file");
        let logging = std::thread::spawn(move || std::io::copy(&mut stderr, &mut log));
        let stdout = child.stdout.take().expect("its output");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("its first line");
        let Some((_, authority)) = line.trim().split_once("http://") else {
            child.wait().expect("it ends");
            logging.join().expect("no panic").expect("its log");
            let told = std::fs::read_to_string(folder.join("log")).expect("its log");
            panic!("the server did not start: {line}{told}");
        };
        assert!(since.elapsed() < START_WITHIN, "the server took {:?}", since.elapsed());
        Running { child, logging: Some(logging), http: Http { authority: authority.to_owned() } }
    }
}

impl Server {
    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Everything it has logged so far; all of it once it has ended.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Bytes of memory it holds now.
    pub fn memory_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let status = status.expect("a running process");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its memory");
        let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok());
        kib.expect("a number") * 1024
    }

    /// Kills it at once: no chance to write anything.
    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Asks it to stop and waits; returns its exit code.
    pub fn stop(&mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Waits for it to end; returns its exit code.
    pub fn wait(&mut self) -> Option<i32> {
        let code = self.child.wait().expect("it ends").code();
        if let Some(logging) = self.logging.take() {
            logging.join().expect("no panic").expect("its log");
        }
        code
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("a signal");
    }

    /// Starts it again on the same data, maybe set up differently; returns how long that took.
    pub fn start_again(&mut self, change: impl FnOnce(Setup) -> Setup) -> Duration {
        self.setup = change(self.setup.clone());
        let since = Instant::now();
        let Running { child, logging, http } = self.setup.spawn(self.folder.path());
        (self.child, self.logging, self.http) = (child, logging, http);
        since.elapsed()
    }

    /// Registers somebody and signs them in.
    pub async fn person(&self, id: &str) -> Person {
        Person::new(&self.http, id).await
    }

    /// Several people at once.
    pub async fn people<const N: usize>(&self, ids: [&str; N]) -> [Person; N] {
        let mut people = Vec::with_capacity(N);
        for id in ids {
            people.push(self.person(id).await);
        }
        people.try_into().expect("as many as ids")
    }

    /// Opens a socket that has said nothing yet.
    pub async fn socket(&self) -> Socket {
        Socket::open(&self.http.authority).await
    }

    /// Opens a socket for somebody and reads up to the end of the first resend page; returns what
    /// was resent.
    pub async fn connect(&self, person: &Person) -> (Socket, Vec<serde_json::Value>) {
        let mut socket = self.socket().await;
        socket.auth(&person.token).await;
        let resent = socket.until("RESEND_DONE").await;
        (socket, resent)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(20).collect();
            eprintln!("--- the end of the server's log");
            for line in tail.iter().rev() {
                eprintln!("{line}");
            }
        }
        // It may have ended already, which is what is wanted.
        if self.child.kill().is_ok() && self.child.wait().is_err() {
            eprintln!("the server process {} could not be waited for", self.child.id());
        }
    }
}
