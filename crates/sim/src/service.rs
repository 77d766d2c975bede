//! A daemon such as a database, which never outlives the tests.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Long, because it only expires when something is broken, and the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Runs a daemon until it exits. Each line on its input names a signal to send to the daemon. At the end of the
/// input, which is also the end of the test process, it kills the daemon and removes the folder, so that
/// nothing stays behind however a test run ended.
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

/// A daemon with a folder of its own, which can be stopped and restarted. It is killed when dropped.
pub(crate) struct Service {
    /// The program and its arguments.
    command: Vec<OsString>,
    running: Option<DaemonProcess>,
    folder: TempDir,
}

/// The supervising shell and its input.
struct DaemonProcess {
    shell: Child,
    /// Taken out of `shell`: waiting for the child would close its input, which kills the daemon.
    signals: ChildStdin,
}

impl Service {
    pub(crate) fn new(folder: TempDir, command: Vec<OsString>) -> Self {
        Self { command, running: None, folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the daemon and waits until it is ready; returns how long that took.
    pub(crate) fn start(&mut self, ready: impl Fn() -> bool) -> Duration {
        assert!(self.running.is_none(), "it runs already: {:?}", self.command);
        let since = Instant::now();
        let mut shell = program("sh");
        shell.args(["-c", SUPERVISE, "supervise"]).arg(self.folder()).args(&self.command);
        // In a process group of its own, so that Ctrl-C does not kill the shell before it has killed the
        // daemon.
        shell.process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut shell = shell.spawn().expect("a shell");
        let orders = shell.stdin.take().expect("its input");
        let running = self.running.insert(DaemonProcess { shell, signals: orders });
        let up = poll(|| running.shell.try_wait().expect("its state").is_some() || ready());
        let ended = running.shell.try_wait().expect("its state").is_some();
        assert!(up && !ended, "it did not start: {:?}\n{}", self.command, self.log());
        since.elapsed()
    }

    /// Sends SIGTERM and waits for the exit.
    pub(crate) fn stop(&mut self) {
        self.end("TERM");
    }

    /// Sends SIGKILL, so that it cannot write anything.
    pub(crate) fn kill(&mut self) {
        self.end("KILL");
    }

    fn end(&mut self, signal: &str) {
        let Some(mut running) = self.running.take() else { return };
        if let Err(error) = writeln!(running.signals, "{signal}") {
            // The shell exits with the daemon, so a closed pipe means that it has exited.
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
            // A second panic would hide the first, so do not wait: closing the input makes the shell kill
            // the daemon.
            self.running = None;
        }
        self.kill();
    }
}

/// An installed command. Daemons are in `sbin`, which may be missing in `PATH`.
pub(crate) fn program(name: &str) -> Command {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    let mut command = Command::new(name);
    command.env("PATH", path).stdin(Stdio::null());
    command
}

/// Runs a command that must succeed; returns its output.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{stdout}{stderr}", output.status);
    stdout.trim_end().to_owned()
}

/// Whether a command succeeds; its output is discarded.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Polls a condition; `false` if it does not hold in time.
pub(crate) fn poll(mut condition: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    while !condition() {
        if since.elapsed() > TIMEOUT {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}
