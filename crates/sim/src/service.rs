//! A daemon of somebody else, such as a database, that lives no longer than the tests.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Long, because it only matters when something is broken, and the machine may be busy.
const WITHIN: Duration = Duration::from_secs(90);

/// Runs a daemon until it ends. Each line it is told is a signal for the daemon. Once nobody is left
/// who could tell it anything, it kills the daemon and removes the folder: so nothing stays behind
/// a test run, however that ended.
const SUPERVISE: &str = r#"
folder=$1
shift
exec 3<&0
"$@" 3<&- </dev/null >>"$folder/log" 2>&1 &
daemon=$!
{
    while read -r signal; do kill -s "$signal" "$daemon"; done
    touch "$folder/abandoned"
    kill -s KILL "$daemon"
} <&3 &
listener=$!
wait "$daemon"
kill -s KILL "$listener"
[ ! -e "$folder/abandoned" ] || rm -rf "$folder"
"#;

/// A daemon with a folder of its own, which can be ended and started again. It is killed when
/// dropped.
pub(crate) struct Service {
    /// The program and its arguments.
    command: Vec<OsString>,
    running: Option<Running>,
    folder: TempDir,
}

/// The shell that runs the daemon, and what it listens to.
struct Running {
    shell: Child,
    /// Apart from the shell, which would close it when waited for, and that means the end.
    orders: ChildStdin,
}

impl Service {
    /// A daemon that does not run yet.
    pub(crate) fn new(folder: TempDir, command: Vec<OsString>) -> Self {
        Self { command, running: None, folder }
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts it and waits until it is ready; returns how long that took.
    pub(crate) fn start(&mut self, ready: impl Fn() -> bool) -> Duration {
        assert!(self.running.is_none(), "it runs already: {:?}", self.command);
        let since = Instant::now();
        let mut shell = program("sh");
        shell.args(["-c", SUPERVISE, "supervise"]).arg(self.folder()).args(&self.command);
        // In a group of its own, so that whoever interrupts the tests does not end it before it
        // could do its work.
        shell.process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut shell = shell.spawn().expect("a shell");
        let orders = shell.stdin.take().expect("its input");
        let running = self.running.insert(Running { shell, orders });
        let up = poll(|| running.shell.try_wait().expect("its state").is_some() || ready());
        let ended = running.shell.try_wait().expect("its state").is_some();
        assert!(up && !ended, "it did not start: {:?}\n{}", self.command, self.log());
        since.elapsed()
    }

    /// Asks it to end and waits until it has.
    pub(crate) fn stop(&mut self) {
        self.end("TERM");
    }

    /// Ends it at once: no chance to write anything.
    pub(crate) fn kill(&mut self) {
        self.end("KILL");
    }

    fn end(&mut self, signal: &str) {
        let Some(mut running) = self.running.take() else { return };
        if let Err(error) = writeln!(running.orders, "{signal}") {
            // The shell ends when the daemon does, so that nobody listens is as good.
            assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe, "{signal} cannot be told");
        }
        let ended = poll(|| running.shell.try_wait().expect("its state").is_some());
        assert!(ended, "it did not end: {:?}\n{}", self.command, self.log());
    }

    /// Everything it has logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder().join("log")).unwrap_or_default()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let from = log.lines().count().saturating_sub(20);
            eprintln!("--- the end of the log of {}", self.command[0].display());
            log.lines().skip(from).for_each(|line| eprintln!("{line}"));
            // A second panic would hide the first. The shell kills the daemon now that it has lost
            // its input.
            self.running = None;
        }
        self.kill();
    }
}

/// A command of this machine. Daemons are in a folder that not everybody's search path has.
pub(crate) fn program(name: &str) -> Command {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    let mut command = Command::new(name);
    command.env("PATH", path).stdin(Stdio::null());
    command
}

/// Runs a command that has to succeed; returns what it said.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}{complained}", output.status);
    said.trim_end().to_owned()
}

/// Whether a command succeeds; what it says is nobody's business.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Asks again and again until it is so; false if that took too long.
pub(crate) fn poll(mut is_so: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    while !is_so() {
        if since.elapsed() > WITHIN {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}
