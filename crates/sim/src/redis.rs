//! A Redis server for tests.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

use crate::certificate;
use crate::port::Port;
use crate::service::{Service, program, run, succeeds};

/// A running, empty Redis. It is killed when dropped, and when the tests end.
pub struct RedisServer {
    service: Service,
    port: Port,
    password: Option<String>,
    is_tls: bool,
}

impl RedisServer {
    /// Starts a server without persistence.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with additional options, such as `--appendonly yes` or `--requirepass secret`.
    pub fn start_with(options: &[&str]) -> Self {
        let (folder, port) = (tempfile::tempdir().expect("a folder"), Port::free());
        let listen = ["--port".to_owned(), port.number().to_string()];
        Self::launch(folder, port, false, listen.into_iter(), options)
    }

    /// One server for all tests of this process; key prefixes keep them apart.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<RedisServer> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// Starts a server that only accepts TLS, with a certificate signed by [`RedisServer::ca_file`]. Clients
    /// need no certificate.
    pub fn start_tls() -> Self {
        Self::start_tls_with(&[])
    }

    /// The same with additional options.
    pub fn start_tls_with(options: &[&str]) -> Self {
        let (folder, port) = (tempfile::tempdir().expect("a folder"), Port::free());
        certificate::write(folder.path());
        let file = |name: &str| folder.path().join(name).display().to_string();
        let listen = [
            ("--port", "0".to_owned()),
            ("--tls-port", port.number().to_string()),
            ("--tls-cert-file", file("server.pem")),
            ("--tls-key-file", file("server.key")),
            ("--tls-ca-cert-file", file("ca.pem")),
            ("--tls-auth-clients", "no".to_owned()),
        ];
        let listen = listen.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
        Self::launch(folder, port, true, listen, options)
    }

    fn launch(
        folder: TempDir,
        port: Port,
        is_tls: bool,
        listen: impl Iterator<Item = String>,
        options: &[&str],
    ) -> Self {
        let mut command: Vec<OsString> = vec!["redis-server".into()];
        command.extend(listen.map(Into::into));
        command.extend(["--bind", "127.0.0.1", "--save", "", "--dir"].map(Into::into));
        command.extend([folder.path().into(), "--unixsocket".into(), socket(folder.path()).into()]);
        command.extend(options.iter().map(Into::into));
        let password = options.iter().position(|&option| option == "--requirepass");
        let password = password.map(|at| options[at + 1].to_owned());
        let mut redis = Self { service: Service::new(folder, command), port, password, is_tls };
        redis.start_again();
        redis
    }

    /// The port on 127.0.0.1, which survives restarts.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The URL, with the password if there is one.
    pub fn url(&self) -> String {
        self.url_at(self.port())
    }

    /// The URL through another port, such as that of a proxy.
    pub fn url_at(&self, port: u16) -> String {
        let scheme = if self.is_tls { "rediss" } else { "redis" };
        let secret = self.password.as_ref().map(|password| format!(":{password}@"));
        format!("{scheme}://{}127.0.0.1:{port}/", secret.unwrap_or_default())
    }

    /// The certificate of the authority that signed the server's certificate.
    pub fn ca_file(&self) -> PathBuf {
        assert!(self.is_tls, "it does not speak TLS");
        self.service.folder().join("ca.pem")
    }

    /// Runs a command; returns the reply, also an error.
    pub fn command(&self, words: &[&str]) -> String {
        run(client(self.service.folder(), self.password.as_deref()).args(words))
    }

    pub fn flush(&self) {
        assert_eq!(self.command(&["FLUSHALL"]), "OK");
    }

    /// Shuts it down gracefully.
    pub fn stop(&mut self) {
        self.service.stop();
    }

    /// Sends SIGKILL.
    pub fn kill(&mut self) {
        self.service.kill();
    }

    /// Starts it again in the same folder and on the same port; returns how long that took.
    pub fn start_again(&mut self) -> Duration {
        let (folder, password) = (self.service.folder().to_owned(), self.password.as_deref());
        // `-e`: without it, redis-cli succeeds even if the reply is an error such as LOADING.
        self.service.start(|| succeeds(client(&folder, password).args(["-e", "PING"])))
    }

    pub(crate) fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// Everything it has logged so far.
    pub fn log(&self) -> String {
        self.service.log()
    }
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("socket")
}

/// A client command that connects through the socket in this folder, which no other server can have.
fn client(folder: &Path, password: Option<&str>) -> Command {
    let mut client = program("redis-cli");
    client.arg("-s").arg(socket(folder));
    client.envs(password.map(|password| ("REDISCLI_AUTH", password)));
    client
}
