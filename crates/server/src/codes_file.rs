//! Reset codes in a file that only its owner can read, to be handed out by the operator.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use nexo_chat::reset::Issued;

use crate::filling::say;
use crate::place::Place;

/// A new file. It is made first, so that no code is drawn that cannot be written down.
pub(crate) struct CodesFile {
    path: PathBuf,
    file: File,
}

impl CodesFile {
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let file = File::options().write(true).create_new(true).mode(0o600).open(path);
        let file = file.with_context(|| {
            format!("cannot make {} for reset codes: give a new file with --codes", path.display())
        })?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Next to a store, or in this folder for a database. What an earlier run left is not touched.
    pub(crate) fn beside(store: &Place) -> anyhow::Result<Self> {
        let store = match store {
            Place::Folder(path) => path.components().collect(), // no slash at its end
            Place::Database(_) => PathBuf::from("nexo"),
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

    /// Nothing will be in it.
    pub(crate) fn remove(self) {
        drop(std::fs::remove_file(self.path)); // an empty file does no harm
    }

    /// Writes the codes and says where; without any, there is no file.
    pub(crate) fn write(self, codes: &[Issued]) -> anyhow::Result<()> {
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
        say(&format!(
            "{path} has {count} one-time codes, which only you can read: hand each to its person, who \
             sets a password with it (POST /user/reset_password) within 30 days. Then delete the file."
        ))
    }

    fn try_write(&self, codes: &[Issued]) -> io::Result<()> {
        let mut to = io::BufWriter::new(&self.file);
        writeln!(to, "user_id,code")?;
        for issued in codes {
            writeln!(to, "{},{}", issued.user, issued.code)?;
        }
        to.flush()?;
        self.file.sync_all()
    }
}
