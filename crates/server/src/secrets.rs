//! Secrets have no default: they are given, or made at the first start and kept in the data folder.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, bail};
use data_encoding::BASE64URL_NOPAD;
use nexo_chat::clock::Dice;

/// The given secret, or the one in `folder/name`, which is made if it is not there.
pub(crate) fn secret(
    given: &str,
    folder: &Path,
    name: &str,
    dice: &dyn Dice,
) -> anyhow::Result<String> {
    if !given.is_empty() {
        return Ok(given.to_owned());
    }
    let path = folder.join(name);
    let shown = path.display();
    match fs::read_to_string(&path) {
        Ok(kept) if kept.trim().len() >= nexo_chat::token::SECRET_BYTES_MIN => {
            Ok(kept.trim().to_owned())
        }
        Ok(_) => bail!("{shown} holds no usable secret: remove it to have a new one made"),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let mut bytes = [0; 32];
            dice.fill(&mut bytes);
            let made = BASE64URL_NOPAD.encode(&bytes);
            keep(&path, folder, &made).with_context(|| format!("cannot write {shown}"))?;
            Ok(made)
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {shown}")),
    }
}

fn keep(path: &Path, folder: &Path, secret: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{secret}")?;
    file.sync_all()?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::clock::SystemDice;

    #[test]
    fn a_secret_is_made_once_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let made = secret("", folder.path(), "jwt.secret", &SystemDice).unwrap();
        assert!(made.len() >= 32);
        assert_eq!(secret("", folder.path(), "jwt.secret", &SystemDice).unwrap(), made);
        let kept = fs::metadata(folder.path().join("jwt.secret")).unwrap();
        assert_eq!(kept.permissions().mode() & 0o777, 0o600);
        assert_eq!(secret("given", folder.path(), "jwt.secret", &SystemDice).unwrap(), "given");
    }

    #[test]
    fn an_empty_secret_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("jwt.secret"), "\n").unwrap();
        assert!(secret("", folder.path(), "jwt.secret", &SystemDice).is_err());
    }
}
