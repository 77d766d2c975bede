//! A MariaDB server for tests.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::port::Port;
use crate::service::{Service, program, run, succeeds};

/// Durable as in production, and small.
const OPTIONS: &[&str] = &[
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--skip-log-bin",
    "--innodb-flush-log-at-trx-commit=1",
    "--innodb-buffer-pool-size=256M",
    "--max-connections=500",
    // As in Debian; the built-in default is an older character set.
    "--character-set-server=utf8mb4",
    "--collation-server=utf8mb4_general_ci",
];

/// A running, empty MariaDB. It is killed when dropped, and when the tests end.
pub struct MariaDb {
    service: Service,
    port: Port,
}

impl MariaDb {
    /// Starts a server that is as durable as one in production.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with additional options, such as `--innodb-buffer-pool-size=1G`.
    pub fn start_with(options: &[&str]) -> Self {
        let (folder, port) = (tempfile::tempdir().expect("a folder"), Port::free());
        let places = data_options(folder.path());
        install(&places);
        let mut command: Vec<OsString> = vec!["mariadbd".into(), "--no-defaults".into()];
        command.extend(places.map(Into::into));
        command.push(format!("--port={}", port.number()).into());
        command.push(format!("--socket={}", socket(folder.path()).display()).into());
        command.push(format!("--pid-file={}", folder.path().join("pid").display()).into());
        // As root it only runs with this option, which other users may not set.
        let user = rustix::process::geteuid().is_root().then_some("--user=root");
        command.extend(OPTIONS.iter().chain(&user).chain(options).map(Into::into));
        let mut database = Self { service: Service::new(folder, command), port };
        database.start_again();
        database
    }

    /// One server for all tests of this process; [`MariaDb::fresh_database`] keeps them apart.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<MariaDb> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// The port on 127.0.0.1, which survives restarts.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The URL of a database, for the administrator.
    pub fn url(&self, database: &str) -> String {
        self.url_at(self.port(), database)
    }

    /// The URL through another port, such as that of a proxy.
    pub fn url_at(&self, port: u16, database: &str) -> String {
        format!("mysql://root@127.0.0.1:{port}/{database}")
    }

    /// The URL of a database, for a user of [`MariaDb::create_user`].
    pub fn url_as(&self, name: &str, password: &str, database: &str) -> String {
        format!("mysql://{name}:{password}@127.0.0.1:{}/{database}", self.port())
    }

    pub fn create_database(&self, name: &str) {
        self.sql("", &format!("CREATE DATABASE `{name}`"));
    }

    /// Creates an empty database with a unique name; returns its URL.
    pub fn fresh_database(&self) -> String {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let name = format!("fresh_{}", MADE.fetch_add(1, Ordering::Relaxed));
        self.create_database(&name);
        self.url(&name)
    }

    /// Creates a user with all privileges and a password.
    pub fn create_user(&self, name: &str, password: &str) {
        let create = format!("CREATE USER '{name}'@'%' IDENTIFIED BY '{password}'");
        self.sql("", &format!("{create}; GRANT ALL ON *.* TO '{name}'@'%'"));
    }

    /// Runs statements in a database, or in none if its name is empty; returns one row per line, with values
    /// separated by tabs.
    pub fn sql(&self, database: &str, text: &str) -> String {
        // From a file: writing to a pipe could deadlock, because the output is read only afterwards.
        let mut file: File = tempfile::tempfile().expect("a file");
        file.write_all(text.as_bytes()).and_then(|()| file.rewind()).expect("a written file");
        let mut client = client("mariadb", self.service.folder());
        run(client.args(["--batch", "--skip-column-names", database]).stdin(file))
    }

    /// Dumps a database as docs/operating.md says; returns the statements that restore it.
    pub fn dump(&self, database: &str) -> String {
        let mut client = client("mariadb-dump", self.service.folder());
        run(client.args(["--single-transaction", "--hex-blob", database]))
    }

    /// Selects rows and keeps them locked until the guard is dropped, like a client that died in the middle of
    /// a transaction.
    pub fn lock_rows(&self, database: &str, select: &str) -> RowLocks {
        let mut client = client("mariadb", self.service.folder());
        client.args(["--batch", "--skip-column-names", "--unbuffered", database]);
        let mut child =
            client.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a client");
        let mut input = child.stdin.take().expect("its input");
        writeln!(input, "BEGIN; {select}; SELECT 'held';").expect("a client that listens");
        let mut answers = BufReader::new(child.stdout.take().expect("its output")).lines();
        let is_held = answers.any(|line| line.is_ok_and(|line| line == "held"));
        assert!(is_held, "{select}");
        RowLocks { child, _input: input }
    }

    /// Shuts it down gracefully.
    pub fn stop(&mut self) {
        self.service.stop();
    }

    /// Sends SIGKILL.
    pub fn kill(&mut self) {
        self.service.kill();
    }

    /// Starts it again on the same data and port; returns how long that took.
    pub fn start_again(&mut self) -> Duration {
        let folder = self.service.folder().to_owned();
        self.service.start(|| succeeds(client("mariadb-admin", &folder).arg("ping")))
    }

    /// Everything it has logged so far.
    pub fn log(&self) -> String {
        self.service.log()
    }
}

/// Row locks, held until this is dropped.
pub struct RowLocks {
    child: Child,
    _input: ChildStdin,
}

impl Drop for RowLocks {
    fn drop(&mut self) {
        // It may have exited by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The options for its data and temporary folders. The temporary folder must not be shared: a starting
/// MariaDB removes the temporary tables it finds, even those of another running one.
fn data_options(folder: &Path) -> [String; 2] {
    let temporary = folder.join("temporary");
    std::fs::create_dir(&temporary).expect("a folder");
    let data = folder.join("data");
    [format!("--datadir={}", data.display()), format!("--tmpdir={}", temporary.display())]
}

/// Creates the data folder of an empty MariaDB.
fn install(places: &[String]) {
    let mut install = program("mariadb-install-db");
    // Without `--user`: with it, the script also changes the owners of installed files.
    install.arg("--no-defaults").args(places).arg("--auth-root-authentication-method=normal");
    install.args(["--skip-name-resolve", "--skip-test-db"]);
    // Syncing would take most of the time, and this data need not survive a power cut.
    install.args(["--debug-no-sync", "--innodb-flush-method=nosync"]);
    run(&mut install);
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("socket")
}

/// A client command that connects through the socket in this folder, which no other server can have.
fn client(name: &str, folder: &Path) -> Command {
    let mut client = program(name);
    client.args(["--no-defaults", "--user=root", "--default-character-set=utf8mb4"]);
    client.arg(format!("--socket={}", socket(folder).display()));
    client
}
