//! A server process on a folder of its own, or several that share a database and Redis behind a
//! balancer: with `NEXO_TEST_NODES=2` in the environment every test has its people on two nodes.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::balancer::Balancer;
use crate::http::Http;
use crate::mariadb::MariaDb;
use crate::person::Person;
use crate::redis::Redis;
use crate::redis_cluster::RedisCluster;
use crate::socket::Socket;

const START_WITHIN: Duration = Duration::from_secs(30);

/// How to start a server.
#[derive(Clone, Debug)]
pub struct Setup {
    binary: PathBuf,
    variables: Vec<(String, String)>,
    shell: Option<String>,
    /// How many share a database; none has the embedded store.
    nodes: usize,
}

/// One Redis for all, or with `NEXO_TEST_REDIS=cluster` three that are one.
fn shared_redis() -> String {
    match std::env::var("NEXO_TEST_REDIS").as_deref() {
        Ok("cluster") => RedisCluster::shared().url(),
        _ => Redis::shared().url(),
    }
}

/// Copies what a server logs, until it ends.
type Logging = Option<JoinHandle<std::io::Result<u64>>>;

/// A process that has said where it listens.
struct Running {
    child: Child,
    logging: Logging,
    http: Http,
}

/// On how many nodes the environment wants every test; 0: on one server with a store of its own.
pub(crate) fn nodes() -> usize {
    std::env::var("NEXO_TEST_NODES").ok().and_then(|nodes| nodes.parse().ok()).unwrap_or(0)
}

/// A running server, or several nodes of one. It is killed when dropped.
pub struct Server {
    setup: Setup,
    nodes: Vec<Running>,
    balancer: Option<Balancer>,
    /// Where it answers.
    pub http: Http,
    folder: TempDir,
}

impl Setup {
    /// The binary with limits out of the way and cheap passwords: tests that want limits set them.
    pub fn new(binary: impl AsRef<Path>) -> Self {
        let setup = Self {
            binary: binary.as_ref().to_owned(),
            variables: Vec::new(),
            shell: None,
            nodes: nodes(),
        };
        setup
            .with("NEXO_LIMITS__USER_SENDS_PER_SECOND", "0")
            .with("NEXO_LIMITS__USER_REQUESTS_PER_SECOND", "0")
            .with("NEXO_LIMITS__CONNECTION_FRAMES_PER_SECOND", "0")
            .with("NEXO_LIMITS__REGISTRATIONS_PER_MINUTE", "1000000")
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

    /// As many nodes, on a database and a Redis they share.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// Whether several nodes are to be started.
    pub fn is_cluster(&self) -> bool {
        self.nodes > 0
    }

    /// Starts a server on a folder that may hold data.
    pub fn start_on(mut self, folder: TempDir) -> Server {
        if self.nodes == 0 {
            let node = self.spawn(folder.path());
            let http = node.http.clone();
            return Server { setup: self, nodes: vec![node], balancer: None, http, folder };
        }
        if !self.variables.iter().any(|(name, _)| name == "NEXO_STORE") {
            self = self.with_services(&MariaDb::shared().fresh_database(), &shared_redis());
        }
        // The first makes the secrets that all of them share.
        let nodes: Vec<Running> = (0..self.nodes).map(|_| self.spawn(folder.path())).collect();
        let balancer = Balancer::start(nodes.iter().map(Running::address).collect());
        let http = Http { authority: balancer.address().to_string() };
        Server { setup: self, nodes, balancer: Some(balancer), http, folder }
    }

    /// Names the database and the Redis that nodes share.
    #[must_use]
    pub fn with_services(self, database: &str, redis: &str) -> Self {
        let prefix = database.rsplit('/').next().unwrap_or_default().to_owned();
        self.with("NEXO_STORE", database)
            .with("NEXO_REDIS", redis)
            .with("NEXO_AUTH__JWT_SECRET", "every node of a test has this secret")
            .with("NEXO_CLUSTER__PREFIX", &prefix)
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

impl Running {
    fn address(&self) -> SocketAddr {
        self.http.authority.parse().expect("an address")
    }

    /// Kills it at once: no chance to write anything.
    fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process id"), signal).expect("a signal");
    }

    fn wait(&mut self) -> Option<i32> {
        let code = self.child.wait().expect("it ends").code();
        if let Some(logging) = self.logging.take() {
            logging.join().expect("no panic").expect("its log");
        }
        code
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

    /// The process id of its first node.
    pub fn pid(&self) -> u32 {
        self.nodes[0].child.id()
    }

    /// Bytes of memory its first node holds now.
    pub fn memory_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let status = status.expect("a running process");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its memory");
        let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok());
        kib.expect("a number") * 1024
    }

    /// Kills all nodes at once.
    pub fn kill(&mut self) {
        self.nodes.iter_mut().for_each(Running::kill);
    }

    /// Asks it to stop and waits; returns the exit code.
    pub fn stop(&mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Waits for it to end; returns the exit code, and of several the worst.
    pub fn wait(&mut self) -> Option<i32> {
        let codes: Vec<Option<i32>> = self.nodes.iter_mut().map(Running::wait).collect();
        codes.iter().copied().find(|code| *code != Some(0)).unwrap_or(Some(0))
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        self.nodes.iter().for_each(|node| node.signal(signal));
    }

    /// Starts it again on the same data, maybe set up differently; returns how long that took.
    pub fn start_again(&mut self, change: impl FnOnce(Setup) -> Setup) -> Duration {
        self.setup = change(self.setup.clone());
        let since = Instant::now();
        for node in &mut self.nodes {
            *node = self.setup.spawn(self.folder.path());
        }
        self.balance();
        since.elapsed()
    }

    /// Where a node answers.
    pub fn node(&self, which: usize) -> &Http {
        &self.nodes[which].http
    }

    /// Kills a node at once. The balancer knows, as it would in a moment.
    pub fn kill_node(&mut self, which: usize) {
        self.nodes[which].kill();
        self.balance();
    }

    /// Sends a signal to a node.
    pub fn signal_node(&self, which: usize, signal: Signal) {
        self.nodes[which].signal(signal);
    }

    /// Starts a node again.
    pub fn start_node(&mut self, which: usize) {
        self.nodes[which] = self.setup.spawn(self.folder.path());
        self.balance();
    }

    /// Lets the balancer know who is there.
    fn balance(&mut self) {
        let mut there = Vec::new();
        for node in &mut self.nodes {
            if node.child.try_wait().expect("its state").is_none() {
                there.push(node.address());
            }
        }
        match &self.balancer {
            Some(balancer) => balancer.send_to(there),
            None => self.http = self.nodes[0].http.clone(),
        }
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
        for node in &mut self.nodes {
            // It may have ended already, which is what is wanted.
            if node.child.kill().is_ok() && node.child.wait().is_err() {
                eprintln!("the server process {} could not be waited for", node.child.id());
            }
        }
    }
}
