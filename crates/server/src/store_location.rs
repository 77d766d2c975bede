//! The store that a command reads or writes, as given on the command line.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use nexo_chat::store::Store;
use nexo_store::archive::{ArchiveError, Export, Import};
use nexo_store::{Embedded, MySql, MySqlOptions, Options};

use crate::redact_url::without_password;

#[derive(Clone, Debug)]
pub(crate) enum StoreLocation {
    Folder(PathBuf),
    Database(MySqlOptions),
}

impl StoreLocation {
    /// Parses `embedded:/path`, a path, or `mysql://…`. `@file` reads it from a file, since other users can
    /// see the arguments of a process.
    pub(crate) fn parse(text: &str, ca_file: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(file) = text.strip_prefix('@') {
            let text = std::fs::read_to_string(file);
            let text = text.with_context(|| format!("cannot read {file}"))?;
            return Self::parse(text.trim(), ca_file);
        }
        if text.starts_with("mysql://") {
            return Ok(Self::Database(bulk_database(text, ca_file)));
        }
        let path = text.strip_prefix("embedded:").unwrap_or(text);
        if path.is_empty() || path.contains("://") || ["embedded", "memory"].contains(&path) {
            let text = without_password(text);
            bail!(
                "{text:?} is not a store that data can be copied from or to: give a folder \
                 (embedded:/var/lib/nexo) or a database (mysql://user:password@host/database)"
            );
        }
        Ok(Self::Folder(PathBuf::from(path)))
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Folder(one), Self::Folder(other)) => {
                let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
                real(one) == real(other)
            }
            (Self::Database(one), Self::Database(other)) => one.url == other.url,
            _ => false,
        }
    }

    /// Opens the store to export from it.
    pub(crate) async fn open_to_read(&self) -> Result<OpenStore, ArchiveError> {
        match self {
            Self::Folder(path) => {
                Embedded::open_to_read(path, &Options::default()).map(OpenStore::Folder)
            }
            Self::Database(options) => MySql::open_to_read(options).await.map(OpenStore::Database),
        }
    }

    /// Opens the empty store to import into it.
    pub(crate) async fn open_to_fill(&self) -> Result<OpenStore, ArchiveError> {
        match self {
            Self::Folder(path) => {
                Embedded::open_to_fill(path, &Options::default()).map(OpenStore::Folder)
            }
            Self::Database(options) => MySql::open_to_fill(options).await.map(OpenStore::Database),
        }
    }

    /// How to empty the store after a copy that failed halfway.
    pub(crate) fn how_to_empty(&self) -> String {
        match self {
            Self::Folder(path) => format!("delete the folder {}", path.display()),
            Self::Database(options) => {
                let url = options.url.split('?').next().unwrap_or_default();
                let name = url.rsplit('/').next().unwrap_or_default();
                format!("empty the database (DROP DATABASE {name}; CREATE DATABASE {name})")
            }
        }
    }

    /// The command that starts a server on the store.
    pub(crate) fn how_to_serve(&self) -> String {
        match self {
            Self::Folder(path) => format!("nexo serve --data {}", path.display()),
            Self::Database(_) => format!("nexo serve --store {self}"),
        }
    }
}

/// Options for bulk work, which takes longer than a server's statements.
pub(crate) fn bulk_database(url: &str, ca_file: Option<&Path>) -> MySqlOptions {
    MySqlOptions {
        ca_file: ca_file.map(Path::to_owned),
        patience: Duration::from_secs(15),
        statement: Duration::from_mins(1),
        ..MySqlOptions::new(url)
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            Self::Database(options) => f.write_str(&without_password(&options.url)),
        }
    }
}

/// A store opened to export from or import into.
pub(crate) enum OpenStore {
    Folder(Arc<Embedded>),
    Database(Arc<MySql>),
}

impl OpenStore {
    pub(crate) fn export(&self) -> &dyn Export {
        match self {
            Self::Folder(store) => &**store,
            Self::Database(store) => &**store,
        }
    }

    pub(crate) fn import(&self) -> &dyn Import {
        match self {
            Self::Folder(store) => &**store,
            Self::Database(store) => &**store,
        }
    }

    /// Reopens a folder, so that the check reads what is on the disk.
    pub(crate) async fn reopen(self, location: &StoreLocation) -> anyhow::Result<Self> {
        match (self, location) {
            (Self::Folder(store), StoreLocation::Folder(path)) => {
                store.close().await?;
                drop(store);
                Ok(Self::Folder(Embedded::open_filled(path, &Options::default())?))
            }
            (opened, _) => Ok(opened),
        }
    }

    /// Whether a server uses the store now. Never true for a folder, which this process has locked.
    pub(crate) async fn is_served(&self) -> anyhow::Result<bool> {
        match self {
            Self::Folder(_) => Ok(false),
            Self::Database(store) => Ok(store.is_served().await?),
        }
    }

    pub(crate) async fn close(&self) -> anyhow::Result<()> {
        match self {
            Self::Folder(store) => store.close().await?,
            Self::Database(store) => store.close().await?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_folders_or_databases() {
        for (text, expect) in [
            ("/var/lib/nexo", "/var/lib/nexo"),
            ("embedded:data", "data"),
            ("mysql://nexo:secret@db/nexo", "mysql://nexo:…@db/nexo"),
        ] {
            assert_eq!(StoreLocation::parse(text, None).unwrap().to_string(), expect);
        }
        for bad in ["", "embedded", "embedded:", "memory", "postgres://nexo:secret@db/nexo"] {
            let said = StoreLocation::parse(bad, None).unwrap_err().to_string();
            assert!(said.contains("mysql://user") && !said.contains("secret"), "{said}");
        }
    }

    #[test]
    fn an_address_may_be_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("address");
        std::fs::write(&file, "mysql://nexo:secret@db/nexo\n").unwrap();
        let location = StoreLocation::parse(&format!("@{}", file.display()), None).unwrap();
        assert_eq!(location.to_string(), "mysql://nexo:…@db/nexo");
        assert_eq!(
            location.how_to_empty(),
            "empty the database (DROP DATABASE nexo; CREATE DATABASE nexo)"
        );
    }
}
