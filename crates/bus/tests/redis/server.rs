//! Redis servers for the tests. They are killed when dropped.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

const START_WITHIN: Duration = Duration::from_secs(20);

/// One server on a free port.
pub(crate) struct Server {
    child: Child,
    port: u16,
    arguments: Vec<String>,
    /// What `redis-cli` needs to log in.
    cli_arguments: Vec<String>,
    folder: TempDir,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(&[], &[])
    }

    pub(crate) fn start_with(arguments: &[&str], cli_arguments: &[&str]) -> Self {
        let owned = |words: &[&str]| words.iter().map(|&word| word.into()).collect::<Vec<String>>();
        // Another process may take the free port before the server does.
        for _ in 0..10 {
            let (port, folder) = (free_port(), tempfile::tempdir().expect("a folder"));
            let (arguments, cli_arguments) = (owned(arguments), owned(cli_arguments));
            let child = spawn(port, &arguments, folder.path());
            let mut server = Self { child, port, arguments, cli_arguments, folder };
            if server.is_up() {
                return server;
            }
        }
        panic!("redis-server does not start");
    }

    fn is_up(&mut self) -> bool {
        let until = Instant::now() + START_WITHIN;
        while Instant::now() < until && self.child.try_wait().expect("a child").is_none() {
            if self.cli(&["PING"]).trim() == "PONG" {
                return true;
            }
            sleep(Duration::from_millis(10));
        }
        false
    }

    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.host())
    }

    /// Runs `redis-cli` and returns its output.
    pub(crate) fn cli(&self, words: &[&str]) -> String {
        let port = self.port.to_string();
        let mut command = Command::new("redis-cli");
        let output = command.args(["-p", &port]).args(&self.cli_arguments).args(words).output();
        String::from_utf8_lossy(&output.expect("redis-cli").stdout).into_owned()
    }

    pub(crate) fn stop(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Starts it again on the same port, empty.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(self.port, &self.arguments, self.folder.path());
        assert!(self.is_up(), "redis-server does not come back");
    }

    /// Stops the process: sockets stay open and get no answer.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args([signal, &id]).status();
        assert!(status.expect("kill").success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been stopped.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A port low enough for the port of the cluster bus, which is 10,000 above.
fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        if port < 55_000 {
            return port;
        }
    }
}

fn spawn(port: u16, arguments: &[String], folder: &Path) -> Child {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
    command.args(["--appendonly", "no", "--dir"]).arg(folder).args(arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("redis-server is installed: `make tools`")
}

/// A Redis Cluster of three masters.
pub(crate) struct Cluster {
    pub(crate) servers: Vec<Server>,
}

impl Cluster {
    /// Starts the servers and waits until they form a cluster.
    pub(crate) fn start() -> Self {
        let settings = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
        let servers: Vec<Server> = (0..3).map(|_| Server::start_with(&settings, &[])).collect();
        let hosts: Vec<String> = servers.iter().map(Server::host).collect();
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create"]).args(&hosts).arg("--cluster-yes");
        let output = create.output().expect("redis-cli");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let until = Instant::now() + START_WITHIN;
        let is_ready = |server: &Server| {
            let info = server.cli(&["CLUSTER", "INFO"]);
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        };
        while !servers.iter().all(is_ready) {
            assert!(Instant::now() < until, "the cluster does not come together");
            sleep(Duration::from_millis(50));
        }
        Self { servers }
    }

    pub(crate) fn url(&self) -> String {
        let hosts: Vec<String> = self.servers.iter().map(Server::host).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }
}
