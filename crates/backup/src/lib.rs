//! Backups of the embedded store in a folder or in S3. In reading order:
//!
//! - [`Target`], `repository`: where backups are, and the layout there
//! - [`Manifest`]: what one backup consists of
//! - [`Transfer`]: the pace, progress and end of copying; `objects`: copying one file and reading it
//!   back; `folder_writer`: writing it in small steps
//! - [`create`]: a backup of an open store; `log_archive`: its log, copied continuously
//! - [`restore`]: a new data folder from a backup; `log_plan`: which part of the log it needs
//! - [`verify`], [`prune`]: reading everything back, and deleting what is old

mod create;
mod error;
mod folder_writer;
mod log_archive;
mod log_plan;
mod manifest;
mod objects;
mod prune;
mod repository;
mod restore;
mod target;
mod time;
mod transfer;
mod verify;

pub use create::{BackupOptions, create, history_id};
pub use error::BackupError;
pub use log_archive::LogArchive;
pub use manifest::{BackedUpFile, BackedUpSegment, Manifest};
pub use prune::{Keep, Pruned, prune};
pub use repository::{ListedBackups, Repository};
pub use restore::{RestoreRequest, Restored, restore};
pub use target::{S3Options, Target};
pub use time::{format_time, parse_time};
pub use transfer::Transfer;
pub use verify::{Verified, verify};
