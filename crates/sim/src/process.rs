//! A server process on a data folder of its own, or several that share a database and Redis behind a balancer:
//! with `NEXO_TEST_NODES=2` in the environment every test runs on two nodes.

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
use crate::redis::RedisServer;
use crate::redis_cluster::RedisCluster;
use crate::socket::Socket;

const START_WITHIN: Duration = Duration::from_secs(30);

/// How to start a server.
#[derive(Clone, Debug)]
pub struct Setup {
    binary: PathBuf,
    variables: Vec<(String, String)>,
    shell: Option<String>,
    /// Nodes that share a database; zero: one server with the embedded store.
    nodes: usize,
}

/// One Redis for all tests, or a cluster with `NEXO_TEST_REDIS=cluster`.
fn shared_redis() -> String {
    match std::env::var("NEXO_TEST_REDIS").as_deref() {
        Ok("cluster") => RedisCluster::shared().url(),
        _ => RedisServer::shared().url(),
    }
}

/// The thread that copies a server's log to a file until it exits.
type LogCopier = Option<JoinHandle<std::io::Result<u64>>>;

/// A process that has printed its address.
struct NodeProcess {
    child: Child,
    logging: LogCopier,
    http: Http,
}

/// The number of nodes that the environment wants for every test; zero: one server with the embedded store.
pub(crate) fn nodes() -> usize {
    std::env::var("NEXO_TEST_NODES").ok().and_then(|nodes| nodes.parse().ok()).unwrap_or(0)
}

/// A running server of one or several nodes. It is killed when dropped.
pub struct Server {
    setup: Setup,
    nodes: Vec<NodeProcess>,
    balancer: Option<Balancer>,
    /// Reaches the balancer, or the only node.
    pub http: Http,
    folder: TempDir,
}

impl Setup {
    /// The binary with rate limits off and cheap password hashing: tests that need limits set them.
    pub fn new(binary: impl AsRef<Path>) -> Self {
        let setup = Self {
            binary: binary.as_ref().to_owned(),
            variables: Vec::new(),
            shell: None,
            nodes: nodes(),
        };
        setup
            .with("NEXO_LIMITS__CONNECTIONS_PER_ADDRESS", "0")
            .with("NEXO_LIMITS__USER_SENDS_PER_SECOND", "0")
            .with("NEXO_LIMITS__USER_REQUESTS_PER_SECOND", "0")
            .with("NEXO_LIMITS__CONNECTION_FRAMES_PER_SECOND", "0")
            .with("NEXO_LIMITS__REGISTRATIONS_PER_MINUTE", "1000000")
            .with("NEXO_AUTH__ARGON2_MEMORY_KIB", "8")
            .with("NEXO_AUTH__ARGON2_PASSES", "1")
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs shell commands before the shell execs the server, such as `ulimit -f 100`.
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

    /// Starts this many nodes, which share a database and Redis.
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
        // The first node creates the secrets that all of them share.
        let nodes: Vec<NodeProcess> = (0..self.nodes).map(|_| self.spawn(folder.path())).collect();
        let balancer = Balancer::start(nodes.iter().map(NodeProcess::address).collect());
        let http = Http { authority: balancer.address().to_string() };
        Server { setup: self, nodes, balancer: Some(balancer), http, folder }
    }

    /// Sets the database and the Redis that the nodes share.
    #[must_use]
    pub fn with_services(self, database: &str, redis: &str) -> Self {
        let prefix = database.rsplit('/').next().unwrap_or_default().to_owned();
        self.with("NEXO_STORE", database)
            .with("NEXO_REDIS", redis)
            .with("NEXO_AUTH__JWT_SECRET", "every node of a test has this secret")
            .with("NEXO_CLUSTER__PREFIX", &prefix)
    }

    fn spawn(&self, folder: &Path) -> NodeProcess {
        let since = Instant::now();
        let mut child = self.command(&folder.join("data")).spawn().expect("the server starts");
        // A thread drains the log, or the server would block on a full pipe.
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
        NodeProcess {
            child,
            logging: Some(logging),
            http: Http { authority: authority.to_owned() },
        }
    }
}

impl NodeProcess {
    fn address(&self) -> SocketAddr {
        self.http.authority.parse().expect("an address")
    }

    /// Sends SIGKILL, so that it cannot write anything.
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
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Everything it has logged so far; complete once it has exited.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The process id of its first node.
    pub fn pid(&self) -> u32 {
        self.nodes[0].child.id()
    }

    /// The resident memory of its first node.
    pub fn memory_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let status = status.expect("a running process");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its memory");
        let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok());
        kib.expect("a number") * 1024
    }

    /// Sends SIGKILL to all nodes.
    pub fn kill(&mut self) {
        self.nodes.iter_mut().for_each(NodeProcess::kill);
    }

    /// Sends SIGTERM and waits; returns the exit code.
    pub fn stop(&mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Waits for it to exit; returns the exit code, or the first of several that is not zero.
    pub fn wait(&mut self) -> Option<i32> {
        let codes: Vec<Option<i32>> = self.nodes.iter_mut().map(NodeProcess::wait).collect();
        codes.iter().copied().find(|code| *code != Some(0)).unwrap_or(Some(0))
    }

    pub fn signal(&self, signal: Signal) {
        self.nodes.iter().for_each(|node| node.signal(signal));
    }

    /// Starts it again on the same data, optionally with another setup; returns how long that took.
    pub fn start_again(&mut self, change: impl FnOnce(Setup) -> Setup) -> Duration {
        self.setup = change(self.setup.clone());
        let since = Instant::now();
        for node in &mut self.nodes {
            *node = self.setup.spawn(self.folder.path());
        }
        self.update_balancer();
        since.elapsed()
    }

    pub fn node(&self, which: usize) -> &Http {
        &self.nodes[which].http
    }

    /// Sends SIGKILL to a node, and removes it from the balancer.
    pub fn kill_node(&mut self, which: usize) {
        self.nodes[which].kill();
        self.update_balancer();
    }

    pub fn signal_node(&self, which: usize, signal: Signal) {
        self.nodes[which].signal(signal);
    }

    pub fn start_node(&mut self, which: usize) {
        self.nodes[which] = self.setup.spawn(self.folder.path());
        self.update_balancer();
    }

    /// Points the balancer to the running nodes.
    fn update_balancer(&mut self) {
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

    /// Registers a user and signs in.
    pub async fn person(&self, id: &str) -> Person {
        Person::new(&self.http, id).await
    }

    pub async fn people<const N: usize>(&self, ids: [&str; N]) -> [Person; N] {
        let mut people = Vec::with_capacity(N);
        for id in ids {
            people.push(self.person(id).await);
        }
        people.try_into().expect("as many as ids")
    }

    /// Opens a socket without authenticating.
    pub async fn socket(&self) -> Socket {
        Socket::open(&self.http.authority).await
    }

    /// Opens an authenticated socket and reads up to the end of the first resend page; returns what was
    /// resent.
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
            // It may have exited already, which is fine.
            if node.child.kill().is_ok() && node.child.wait().is_err() {
                eprintln!("the server process {} could not be waited for", node.child.id());
            }
        }
    }
}
