//! Examines a data folder that no server uses, explains what is wrong, repairs what can be derived, and
//! copies what is readable into a new folder. In reading order:
//!
//! - `table_list`, `raw_table`: a tree's files, read without opening the tree
//! - `snapshot`: the folder as far as it can be read, without changing it
//! - `report`: problems in words
//! - `density`: which seqs are missing
//! - `check`: compares records with each other
//! - `repair`: writes what can be derived
//! - `salvage`: copies what is readable

mod check;
mod density;
mod raw_table;
mod repair;
mod report;
mod salvage;
mod snapshot;
mod table_list;
#[cfg(test)]
mod tests;

use std::path::Path;

use super::folder::OpenError;

pub(crate) use self::raw_table::KeyGap;
pub use self::repair::repair;
pub use self::report::{Problem, Report};
pub use self::salvage::{LostSeqs, SalvageReport, salvage};

/// Checks a folder without changing it. `progress` is called with the name of each part.
pub fn check(path: &Path, progress: &mut dyn FnMut(&str)) -> Result<Report, OpenError> {
    let mut snapshot = snapshot::Snapshot::open(path, progress)?;
    Ok(check::check(&mut snapshot, progress).0)
}
