//! The folders of the two stores, and whether an earlier run generated them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::meter;
use super::plan::DataPlan;

/// Written last, beside the stores: the plan they were generated from.
const MADE: &str = "made.json";

/// The folders of both stores, in one root folder.
pub(super) struct Folders {
    root: PathBuf,
    is_made: bool,
}

impl Folders {
    /// Accepts a root that is empty, or holds stores generated from this plan.
    pub(super) fn prepare(root: &Path, plan: &DataPlan) -> Result<Self> {
        fs::create_dir_all(root).with_context(|| format!("cannot make {}", root.display()))?;
        let made = fs::read(root.join(MADE)).ok();
        if let Some(made) = &made {
            let made: DataPlan = serde_json::from_slice(made)?;
            ensure!(made == *plan, "{} holds another store: {made:?}", root.display());
        } else {
            let is_empty = fs::read_dir(root)?.next().is_none();
            ensure!(is_empty, "{} is neither empty nor complete", root.display());
            meter::check_space(root, plan.messages)?;
        }
        Ok(Self { root: root.to_owned(), is_made: made.is_some() })
    }

    pub(super) fn is_made(&self) -> bool {
        self.is_made
    }

    /// Records that both stores are complete.
    pub(super) fn mark_made(&self, plan: &DataPlan) -> Result<()> {
        Ok(fs::write(self.root.join(MADE), serde_json::to_vec(plan)?)?)
    }

    pub(super) fn small(&self) -> PathBuf {
        self.root.join("small")
    }

    pub(super) fn large(&self) -> PathBuf {
        self.root.join("large")
    }

    /// A new, empty folder.
    pub(super) fn empty(&self) -> Result<TempDir> {
        Ok(tempfile::Builder::new().prefix("empty-").tempdir_in(&self.root)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_folder_is_used_again_for_the_same_plan_only() {
        let folder = tempfile::tempdir().unwrap();
        let plan = DataPlan { messages: 10_000, conversations: 300, members: 10 };
        let first = Folders::prepare(folder.path(), &plan).unwrap();
        assert!(!first.is_made());
        first.mark_made(&plan).unwrap();
        assert!(Folders::prepare(folder.path(), &plan).unwrap().is_made());
        let other = DataPlan { messages: 20_000, ..plan.clone() };
        assert!(Folders::prepare(folder.path(), &other).is_err());
        fs::rename(folder.path().join(MADE), folder.path().join("half")).unwrap();
        assert!(Folders::prepare(folder.path(), &plan).is_err(), "half of a store");
    }
}
