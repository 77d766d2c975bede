//! Checks who can read secrets and the data folder.
//!
//! A secret in the data folder is the server's own file, written with mode 0600: if everybody can read it, somebody
//! changed that, and the server does not start. A group is only warned about, since Kubernetes gives the group of
//! `fsGroup` access to volumes. Files that the operator names (`…_FILE`) are only warned about too, and not at all on a
//! read-only mount, which is how containers get them: 0444 is usual there, nobody else is in the container, and the mode
//! cannot be changed from inside.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::StatVfsMountFlags;

use crate::config::environment;

const GROUP: u32 = 0o070;
const OTHERS: u32 = 0o007;

fn mode(path: &Path) -> io::Result<u32> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o777)
}

/// Fails if everybody can read a secret in the data folder; warns if its group can.
pub(crate) fn check_own_secret(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    let mode = mode(path).with_context(|| format!("cannot read {shown}"))?;
    if mode & OTHERS != 0 {
        bail!("everybody can read the secret {shown} (mode {mode:04o}): run `chmod 600 {shown}`");
    }
    if mode & GROUP != 0 {
        tracing::warn!(file = %shown, mode = format!("{mode:04o}"), "its group can read a secret");
    }
    Ok(())
}

/// Warns if others can look into the data folder.
pub(crate) fn warn_if_folder_is_open(folder: &Path) {
    let shown = folder.display();
    match mode(folder) {
        Ok(mode) if mode & (GROUP | OTHERS) != 0 => tracing::warn!(
            folder = %shown,
            mode = format!("{mode:04o}"),
            "others can look into the data folder: run `chmod 700` on it"
        ),
        Ok(_) => {}
        Err(error) => tracing::warn!(folder = %shown, %error, "the data folder cannot be checked"),
    }
}

/// Warns of secrets in files that the operator named and everybody can read.
pub(crate) fn warn_of_open_secret_files() {
    for file in environment::secret_files(std::env::vars()).iter().filter(|file| is_open(file)) {
        tracing::warn!(
            file = %file.display(),
            "everybody on this machine can read a secret: run `chmod 600` on it, or 640 with the server's group"
        );
    }
}

/// Whether everybody can read a file whose mode is the operator's to change.
fn is_open(file: &PathBuf) -> bool {
    let is_read_only = rustix::fs::statvfs(file)
        .is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::RDONLY));
    !is_read_only && mode(file).is_ok_and(|mode| mode & OTHERS != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_everybody_reads_is_refused_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("jwt.secret");
        fs::write(&file, "secret").unwrap();
        for (mode, is_fine) in
            [(0o600, true), (0o400, true), (0o660, true), (0o644, false), (0o604, false)]
        {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let checked = check_own_secret(&file);
            assert_eq!(checked.is_ok(), is_fine, "{mode:o}");
            assert_eq!(is_open(&file), !is_fine, "{mode:o}");
            if let Err(error) = checked {
                let remedy = format!("chmod 600 {}", file.display());
                assert!(error.to_string().contains(&remedy), "{error}");
            }
        }
    }
}
