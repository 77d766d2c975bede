//! Secrets have no default: the operator sets them, or the first start generates them in the data folder.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, bail};
use data_encoding::BASE64URL_NOPAD;
use nexo_chat::clock::Rng;

use crate::file_modes::check_own_secret;

/// Returns the given secret, or the one in the file `folder/name`, which is generated if it does not exist.
pub(crate) fn secret(
    given: &str,
    folder: &Path,
    name: &str,
    rng: &dyn Rng,
) -> anyhow::Result<String> {
    if !given.is_empty() {
        return Ok(given.to_owned());
    }
    let path = folder.join(name);
    let shown = path.display();
    let stored = fs::read_to_string(&path);
    if stored.is_ok() {
        check_own_secret(&path)?;
    }
    match stored {
        Ok(stored) if stored.trim().len() >= nexo_chat::token::SECRET_BYTES_MIN => {
            Ok(stored.trim().to_owned())
        }
        Ok(_) => {
            bail!("{shown} holds no usable secret: remove the file to have a new one generated")
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let mut bytes = [0; 32];
            rng.fill(&mut bytes);
            let generated = BASE64URL_NOPAD.encode(&bytes);
            write_new(&path, folder, &generated)
                .with_context(|| format!("cannot write {shown}"))?;
            Ok(generated)
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {shown}")),
    }
}

fn write_new(path: &Path, folder: &Path, secret: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{secret}")?;
    file.sync_all()?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::clock::SystemRng;

    #[test]
    fn a_secret_is_made_once_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let made = secret("", folder.path(), "jwt.secret", &SystemRng).unwrap();
        assert!(made.len() >= 32);
        assert_eq!(secret("", folder.path(), "jwt.secret", &SystemRng).unwrap(), made);
        let kept = fs::metadata(folder.path().join("jwt.secret")).unwrap();
        assert_eq!(kept.permissions().mode() & 0o777, 0o600);
        assert_eq!(secret("given", folder.path(), "jwt.secret", &SystemRng).unwrap(), "given");
    }

    #[test]
    fn an_empty_secret_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("jwt.secret");
        fs::write(&file, "\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let refused = secret("", folder.path(), "jwt.secret", &SystemRng).unwrap_err();
        assert!(refused.to_string().contains("no usable secret"), "{refused}");
    }
}
