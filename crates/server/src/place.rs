//! Where a store is, as the commands that move data are told.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use nexo_chat::store::Store;
use nexo_store::archive::{ArchiveError, Export, Import};
use nexo_store::{Embedded, MySql, MySqlOptions, Options};

use crate::cluster_settings::shown;

/// A folder or a database.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Folder(PathBuf),
    Database(MySqlOptions),
}

impl Place {
    /// Reads `embedded:/path`, a path, or `mysql://…`; `@file` has it in a file, since others can
    /// see the arguments of a process.
    pub(crate) fn parse(text: &str, ca_file: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(file) = text.strip_prefix('@') {
            let kept = std::fs::read_to_string(file);
            let kept = kept.with_context(|| format!("cannot read {file}"))?;
            return Self::parse(kept.trim(), ca_file);
        }
        if text.starts_with("mysql://") {
            return Ok(Self::Database(database(text, ca_file)));
        }
        let path = text.strip_prefix("embedded:").unwrap_or(text);
        if path.is_empty() || path.contains("://") || ["embedded", "memory"].contains(&path) {
            let text = shown(text);
            bail!(
                "{text:?} is no store that data can be moved from or to: give a folder \
                 (embedded:/var/lib/nexo) or a database (mysql://user:password@host/database)"
            );
        }
        Ok(Self::Folder(PathBuf::from(path)))
    }

    /// Whether it is the same as another.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Folder(one), Self::Folder(other)) => {
                let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
                real(one) == real(other)
            }
            (Self::Database(one), Self::Database(other)) => one.url == other.url,
            _ => false,
        }
    }

    /// Opens it to take data out.
    pub(crate) async fn open_to_read(&self) -> Result<Opened, ArchiveError> {
        match self {
            Self::Folder(path) => {
                Embedded::open_to_read(path, &Options::default()).map(Opened::Folder)
            }
            Self::Database(options) => MySql::open_to_read(options).await.map(Opened::Database),
        }
    }

    /// Opens it to put data in.
    pub(crate) async fn open_to_fill(&self) -> Result<Opened, ArchiveError> {
        match self {
            Self::Folder(path) => {
                Embedded::open_to_fill(path, &Options::default()).map(Opened::Folder)
            }
            Self::Database(options) => MySql::open_to_fill(options).await.map(Opened::Database),
        }
    }

    /// What to do with it when it holds a part of the data.
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

    /// How a server is started on it.
    pub(crate) fn how_to_serve(&self) -> String {
        match self {
            Self::Folder(path) => format!("nexo serve --data {}", path.display()),
            Self::Database(_) => format!("nexo serve --store {self}"),
        }
    }
}

/// A database that is asked for much at a time.
pub(crate) fn database(url: &str, ca_file: Option<&Path>) -> MySqlOptions {
    MySqlOptions {
        ca_file: ca_file.map(Path::to_owned),
        patience: Duration::from_secs(15),
        statement: Duration::from_mins(1),
        ..MySqlOptions::new(url)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            Self::Database(options) => f.write_str(&shown(&options.url)),
        }
    }
}

/// A store that is open to be read or filled.
pub(crate) enum Opened {
    Folder(Arc<Embedded>),
    Database(Arc<MySql>),
}

impl Opened {
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

    /// A folder is opened anew, so that what is read is what the disk has.
    pub(crate) async fn anew(self, place: &Place) -> anyhow::Result<Self> {
        match (self, place) {
            (Self::Folder(store), Place::Folder(path)) => {
                store.close().await?;
                drop(store);
                Ok(Self::Folder(Embedded::open_filled(path, &Options::default())?))
            }
            (opened, _) => Ok(opened),
        }
    }

    /// Whether a server uses it now. Of a folder we are sure that none does.
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
            assert_eq!(Place::parse(text, None).unwrap().to_string(), expect);
        }
        for bad in ["", "embedded", "embedded:", "memory", "postgres://nexo:secret@db/nexo"] {
            let said = Place::parse(bad, None).unwrap_err().to_string();
            assert!(said.contains("mysql://user") && !said.contains("secret"), "{said}");
        }
    }

    #[test]
    fn an_address_may_be_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("address");
        std::fs::write(&file, "mysql://nexo:secret@db/nexo\n").unwrap();
        let place = Place::parse(&format!("@{}", file.display()), None).unwrap();
        assert_eq!(place.to_string(), "mysql://nexo:…@db/nexo");
        assert_eq!(
            place.how_to_empty(),
            "empty the database (DROP DATABASE nexo; CREATE DATABASE nexo)"
        );
    }
}
