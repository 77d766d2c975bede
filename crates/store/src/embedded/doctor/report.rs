//! What the doctor found, for people and for machines.

use serde::Serialize;

/// Something that is wrong with a data folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// What is wrong and where, as a sentence.
    pub what: String,
    /// Who notices, and how.
    pub affects: String,
    /// What to do about it.
    pub advice: &'static str,
    /// Whether `nexo doctor --repair` can put it right.
    pub can_repair: bool,
}

/// What to do about damage that nothing can be derived from.
pub(crate) const SALVAGE: &str =
    "restore a backup, or copy everything that is readable with `nexo doctor --salvage NEWDIR`";
pub(crate) const REPAIR: &str = "run `nexo doctor --repair`";

impl Problem {
    pub(crate) fn lost(what: impl Into<String>, affects: impl Into<String>) -> Self {
        let (what, affects) = (what.into(), affects.into());
        Self { what, affects, advice: SALVAGE, can_repair: false }
    }

    pub(crate) fn derivable(what: impl Into<String>, affects: impl Into<String>) -> Self {
        let (what, affects) = (what.into(), affects.into());
        Self { what, affects, advice: REPAIR, can_repair: true }
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Each kind of problem up to a limit; `more` counts the others.
    pub problems: Vec<Problem>,
    pub more: u64,
    pub tables: u64,
    pub records: u64,
    pub messages: u64,
    pub conversations: u64,
}

/// Problems that are listed; a disk may have millions.
const LISTED_MAX: usize = 200;

impl Report {
    pub(crate) fn add(&mut self, problem: Problem) {
        if self.problems.len() < LISTED_MAX {
            self.problems.push(problem);
        } else {
            self.more += 1;
        }
    }

    pub fn is_healthy(&self) -> bool {
        self.problems.is_empty()
    }
}

/// A range of seqs in words.
pub(crate) fn seqs(from: u64, to: u64) -> String {
    if from == to { format!("{from}") } else { format!("{from} to {to}") }
}
