//! A MariaDB of one's own.

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

/// As one would be set up that must lose nothing, and small.
const OPTIONS: &[&str] = &[
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--skip-log-bin",
    "--innodb-flush-log-at-trx-commit=1",
    "--innodb-buffer-pool-size=256M",
    "--max-connections=500",
    // As Debian sets it up; the built-in default is older.
    "--character-set-server=utf8mb4",
    "--collation-server=utf8mb4_general_ci",
];

/// A running MariaDB with nothing in it. It is killed when dropped, and when the tests end.
pub struct MariaDb {
    service: Service,
    port: Port,
}

impl MariaDb {
    /// Starts one that is as durable as one in production.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts one with further options, such as `--innodb-buffer-pool-size=1G`.
    pub fn start_with(options: &[&str]) -> Self {
        let (folder, port) = (tempfile::tempdir().expect("a folder"), Port::free());
        let places = places(folder.path());
        install(&places);
        let mut command: Vec<OsString> = vec!["mariadbd".into(), "--no-defaults".into()];
        command.extend(places.map(Into::into));
        command.push(format!("--port={}", port.number()).into());
        command.push(format!("--socket={}", socket(folder.path()).display()).into());
        command.push(format!("--pid-file={}", folder.path().join("pid").display()).into());
        // It refuses to run as root unless told so, and only root may tell it.
        let user = rustix::process::geteuid().is_root().then_some("--user=root");
        command.extend(OPTIONS.iter().chain(&user).chain(options).map(Into::into));
        let mut database = Self { service: Service::new(folder, command), port };
        database.start_again();
        database
    }

    /// One for all tests of this process: they keep apart by [`MariaDb::fresh_database`].
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<MariaDb> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// Its port on 127.0.0.1, the same for good.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Where a database of it is, for its administrator.
    pub fn url(&self, database: &str) -> String {
        self.url_at(self.port(), database)
    }

    /// The same through another port, such as that of a proxy.
    pub fn url_at(&self, port: u16, database: &str) -> String {
        format!("mysql://root@127.0.0.1:{port}/{database}")
    }

    /// Where a database of it is, for a user of [`MariaDb::create_user`].
    pub fn url_as(&self, name: &str, password: &str, database: &str) -> String {
        format!("mysql://{name}:{password}@127.0.0.1:{}/{database}", self.port())
    }

    /// Makes an empty database.
    pub fn create_database(&self, name: &str) {
        self.sql("", &format!("CREATE DATABASE `{name}`"));
    }

    /// Makes an empty database that no other test has; returns its url.
    pub fn fresh_database(&self) -> String {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let name = format!("fresh_{}", MADE.fetch_add(1, Ordering::Relaxed));
        self.create_database(&name);
        self.url(&name)
    }

    /// Makes a user who may do everything, but has to know the password.
    pub fn create_user(&self, name: &str, password: &str) {
        let create = format!("CREATE USER '{name}'@'%' IDENTIFIED BY '{password}'");
        self.sql("", &format!("{create}; GRANT ALL ON *.* TO '{name}'@'%'"));
    }

    /// Runs statements in a database, or in none if its name is empty; returns the rows, one a line,
    /// values apart by tabs.
    pub fn sql(&self, database: &str, text: &str) -> String {
        // From a file: a pipe could fill up while nobody reads the answers.
        let mut file: File = tempfile::tempfile().expect("a file");
        file.write_all(text.as_bytes()).and_then(|()| file.rewind()).expect("a written file");
        let mut client = client("mariadb", self.service.folder());
        run(client.args(["--batch", "--skip-column-names", database]).stdin(file))
    }

    /// Reads rows and keeps them locked until the guard is dropped, as somebody would who died in the
    /// middle of a transaction.
    pub fn hold(&self, database: &str, select: &str) -> Holding {
        let mut client = client("mariadb", self.service.folder());
        client.args(["--batch", "--skip-column-names", "--unbuffered", database]);
        let mut child =
            client.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a client");
        let mut input = child.stdin.take().expect("its input");
        writeln!(input, "BEGIN; {select}; SELECT 'held';").expect("a client that listens");
        let mut answers = BufReader::new(child.stdout.take().expect("its output")).lines();
        let is_held = answers.any(|line| line.is_ok_and(|line| line == "held"));
        assert!(is_held, "{select}");
        Holding { child, _input: input }
    }

    /// Stops it in good order.
    pub fn stop(&mut self) {
        self.service.stop();
    }

    /// Kills it at once.
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

/// Locks that somebody holds, until this is dropped.
pub struct Holding {
    child: Child,
    _input: ChildStdin,
}

impl Drop for Holding {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Where it keeps its data, and what is temporary. The latter is its own as well: whichever MariaDB
/// starts removes the temporary tables it finds, also those of another that runs.
fn places(folder: &Path) -> [String; 2] {
    let temporary = folder.join("temporary");
    std::fs::create_dir(&temporary).expect("a folder");
    let data = folder.join("data");
    [format!("--datadir={}", data.display()), format!("--tmpdir={}", temporary.display())]
}

/// Makes the data of a MariaDB that has nothing in it.
fn install(places: &[String]) {
    let mut install = program("mariadb-install-db");
    // Told no user: for a user, it also changes owners among the files of the package.
    install.arg("--no-defaults").args(places).arg("--auth-root-authentication-method=normal");
    install.args(["--skip-name-resolve", "--skip-test-db"]);
    // Most of the time would go into waiting for the disk, and a power cut may have all this.
    install.args(["--debug-no-sync", "--innodb-flush-method=nosync"]);
    run(&mut install);
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("socket")
}

/// A client of the MariaDB that has this folder: a port might be somebody else's.
fn client(name: &str, folder: &Path) -> Command {
    let mut client = program(name);
    client.args(["--no-defaults", "--user=root", "--default-character-set=utf8mb4"]);
    client.arg(format!("--socket={}", socket(folder).display()));
    client
}
