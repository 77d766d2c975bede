//! Where backups go: a folder, or a bucket of S3.

use std::fmt;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::prefix::PrefixStore;

use crate::error::BackupError;

/// The address of a repository of backups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Folder(PathBuf),
    S3 { bucket: String, prefix: String },
}

/// How S3 is reached. What is empty comes from the usual `AWS_…` variables.
#[derive(Clone, Debug, Default)]
pub struct S3Options {
    /// The address of a server that is not Amazon's.
    pub endpoint: String,
    pub region: String,
    pub access_key_id: String,
    pub secret_access_key: String,
}

impl Target {
    /// Reads a folder or `s3://bucket/prefix`.
    pub fn parse(text: &str) -> Result<Self, BackupError> {
        let wrong = |why: &str| Err(BackupError::Target(format!("{text:?}: {why}")));
        if let Some(rest) = text.strip_prefix("s3://") {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            if bucket.is_empty() {
                return wrong("give s3://bucket/prefix");
            }
            let prefix = prefix.trim_matches('/').to_owned();
            return Ok(Self::S3 { bucket: bucket.to_owned(), prefix });
        }
        if text.is_empty() || text.contains("://") {
            return wrong("give a folder or s3://bucket/prefix");
        }
        Ok(Self::Folder(text.into()))
    }

    /// Opens it to read; a folder must exist.
    pub(crate) fn open(&self, s3: &S3Options) -> Result<Arc<dyn ObjectStore>, BackupError> {
        match self {
            Self::Folder(path) => {
                if !path.is_dir() {
                    return Err(BackupError::NoRepository(self.to_string()));
                }
                let folder = LocalFileSystem::new_with_prefix(path)
                    .map_err(BackupError::repository(format!("open {self}")))?;
                Ok(Arc::new(folder.with_fsync(true)))
            }
            Self::S3 { bucket, prefix } => {
                let store = open_bucket(bucket, s3)
                    .map_err(BackupError::repository(format!("open {self}")))?;
                Ok(Arc::new(PrefixStore::new(store, prefix.as_str())))
            }
        }
    }

    /// Opens it to write; a folder is created if there is none.
    pub(crate) fn create(&self, s3: &S3Options) -> Result<Arc<dyn ObjectStore>, BackupError> {
        if let Self::Folder(path) = self {
            let created = DirBuilder::new().recursive(true).mode(0o700).create(path);
            created.map_err(BackupError::io(path))?;
        }
        self.open(s3)
    }
}

fn open_bucket(bucket: &str, s3: &S3Options) -> object_store::Result<impl ObjectStore + use<>> {
    // The rest of the program uses ring too; whoever comes second finds it installed.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    if !s3.endpoint.is_empty() {
        builder = builder.with_endpoint(&s3.endpoint);
        builder = builder.with_allow_http(s3.endpoint.starts_with("http://"));
    }
    if !s3.region.is_empty() {
        builder = builder.with_region(&s3.region);
    }
    if !s3.access_key_id.is_empty() {
        builder = builder.with_access_key_id(&s3.access_key_id);
        builder = builder.with_secret_access_key(&s3.secret_access_key);
    }
    builder.build()
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "{}", path.display()),
            Self::S3 { bucket, prefix } => write!(f, "s3://{bucket}/{prefix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_folder_or_a_bucket() {
        let s3 = |bucket: &str, prefix: &str| Target::S3 {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        };
        assert_eq!(Target::parse("/var/backups").unwrap(), Target::Folder("/var/backups".into()));
        assert_eq!(Target::parse("s3://b").unwrap(), s3("b", ""));
        assert_eq!(Target::parse("s3://b/a/c/").unwrap(), s3("b", "a/c"));
        for wrong in ["", "s3://", "s3:///a", "https://example.org/a"] {
            assert!(Target::parse(wrong).is_err(), "{wrong}");
        }
    }
}
