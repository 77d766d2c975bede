//! Writes reset codes to a file that only its owner can read, for the operator to hand out.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use nexo_chat::password_reset::IssuedCode;

use crate::copy::print_line;
use crate::store_location::StoreLocation;

/// A new file. It is created before any code, so that no code is generated that cannot be written.
pub(crate) struct ResetCodesFile {
    path: PathBuf,
    file: File,
}

impl ResetCodesFile {
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let file = File::options().write(true).create_new(true).mode(0o600).open(path);
        let file = file.with_context(|| {
            format!(
                "cannot create {} for reset codes: give a new file with --codes",
                path.display()
            )
        })?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Creates the file next to the store, or in the working folder for a database. Never overwrites a file.
    pub(crate) fn beside(store: &StoreLocation) -> anyhow::Result<Self> {
        let store = match store {
            StoreLocation::Folder(path) => path.components().collect(), // no slash at its end
            StoreLocation::Database(_) => PathBuf::from("nexo"),
        };
        let named = |end: String| {
            let mut name = store.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        };
        let mut others = (2..100).map(|n| named(format!(".reset-codes-{n}.csv")));
        let mut path = named(".reset-codes.csv".into());
        while path.exists()
            && let Some(next) = others.next()
        {
            path = next;
        }
        Self::create(&path)
    }

    /// Removes the file, which is still empty.
    pub(crate) fn remove(self) {
        drop(std::fs::remove_file(self.path)); // an empty file does no harm
    }

    /// Writes the codes and prints where they are. Removes the file if there are no codes.
    pub(crate) fn write(self, codes: &[IssuedCode]) -> anyhow::Result<()> {
        if codes.is_empty() {
            self.remove();
            return Ok(());
        }
        let written = self.try_write(codes).with_context(|| {
            format!(
                "cannot write the reset codes to {}: make them one by one with `nexo user reset-code`",
                self.path.display()
            )
        });
        written?;
        let (count, path) = (codes.len(), self.path.display());
        print_line(&format!(
            "{path} has {count} one-time codes, which only you can read: hand each to its person, who \
             sets a password with it (POST /user/reset_password) within 30 days. Then delete the file."
        ))
    }

    fn try_write(&self, codes: &[IssuedCode]) -> io::Result<()> {
        let mut to = io::BufWriter::new(&self.file);
        writeln!(to, "user_id,code")?;
        for issued in codes {
            writeln!(to, "{},{}", issued.user, issued.code)?;
        }
        to.flush()?;
        self.file.sync_all()
    }
}
