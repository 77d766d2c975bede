//! Backups of a server, as an operator makes and restores them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::Http;
use crate::process::{Server, Setup};

const BACKUP_WITHIN: Duration = Duration::from_secs(120);
const POLL_EVERY: Duration = Duration::from_millis(20);

/// A repository of backups, and the program that reads and writes it.
pub struct BackupRepository {
    binary: PathBuf,
    /// A folder, or the address of a bucket.
    pub target: String,
    variables: Vec<(String, String)>,
    /// The folder of a repository that is one.
    folder: TempDir,
}

impl BackupRepository {
    /// A new folder.
    pub fn new(binary: impl AsRef<Path>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("backups").display().to_string();
        Self { binary: binary.as_ref().to_owned(), target, variables: Vec::new(), folder }
    }

    /// Somewhere else, reached with these variables.
    #[must_use]
    pub fn at(mut self, target: &str, variables: &[(&str, &str)]) -> Self {
        target.clone_into(&mut self.target);
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        self.variables = variables.iter().map(owned).collect();
        self
    }

    /// The folder of the repository.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("backups")
    }

    /// A server whose backups go here, with their secrets.
    pub fn setup(&self) -> Setup {
        let mut setup = Setup::new(&self.binary).nodes(0);
        for (name, value) in &self.variables {
            setup = setup.with(name, value);
        }
        setup.with("NEXO_BACKUP__TARGET", &self.target).with("NEXO_BACKUP__WITH_SECRETS", "true")
    }

    /// Runs `nexo` with these arguments; returns whether it succeeded, and everything it said.
    pub fn run(&self, arguments: &[&str]) -> (bool, String) {
        let mut command = Command::new(&self.binary);
        command.env_clear().envs(self.variables.iter().cloned()).args(arguments);
        let output = command.output().expect("it runs");
        let said = [output.stdout, output.stderr];
        (
            output.status.success(),
            said.map(|said| String::from_utf8_lossy(&said).into_owned()).concat(),
        )
    }

    /// Restores into a new folder that a server can be started on; returns what was said too.
    pub fn restore(&self, more: &[&str]) -> (TempDir, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data").display().to_string();
        let (is_done, said) =
            self.run(&[&["restore", "--from", &self.target, "--data", &data], more].concat());
        assert!(is_done, "{said}");
        (folder, said)
    }

    /// Is refused, and says this; returns all it said.
    pub fn refused(&self, arguments: &[&str], words: &str) -> String {
        let (is_done, said) = self.run(arguments);
        assert!(!is_done && said.contains(words), "wanted {words:?}: {said}");
        said
    }

    /// Sizes of all objects, by their paths.
    pub fn objects(&self) -> Vec<(PathBuf, u64)> {
        let mut found = Vec::new();
        let mut folders = vec![self.path().join("objects")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let meta = entry.metadata().expect("its metadata");
                match meta.is_dir() {
                    true => folders.push(entry.path()),
                    false => found.push((entry.path(), meta.len())),
                }
            }
        }
        found.sort();
        found
    }

    /// The manifest of a backup.
    pub fn manifest(&self, id: &str) -> Value {
        let path = self.path().join("backups").join(format!("{id}.json"));
        let text = std::fs::read_to_string(path).expect("a manifest");
        serde_json::from_str(&text).expect("JSON")
    }
}

/// The operator's token.
pub fn operator_token(server: &Server) -> String {
    let path = server.data().join("system.token");
    std::fs::read_to_string(path).expect("a token").trim().to_owned()
}

/// Has the server begin a backup; returns its status.
pub async fn begin(http: &Http, token: &str) -> Value {
    http.post("/admin/backup", token, json!({})).await.data().clone()
}

/// Waits for a status of the backups.
pub async fn wait_for(http: &Http, token: &str, what: impl Fn(&Value) -> bool) -> Value {
    let since = Instant::now();
    loop {
        let status = http.get("/admin/backup", token).await.data().clone();
        if what(&status) {
            return status;
        }
        assert!(since.elapsed() < BACKUP_WITHIN, "no such status: {status}");
        tokio::time::sleep(POLL_EVERY).await;
    }
}

/// Makes a backup; returns its status.
pub async fn make(server: &Server) -> Value {
    let token = operator_token(server);
    begin(&server.http, &token).await;
    let done = wait_for(&server.http, &token, |status| status["running"] == false).await;
    assert_eq!(done["error"], "", "{done}");
    done
}
