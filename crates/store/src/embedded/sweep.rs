//! The cursor sweep: writes moved cursors behind, a few at a time between the batches.

use super::batch::Batch;
use super::committer::Committer;
use super::fail_points::{FailPoint, reach};
use super::poison::EngineFault;
use crate::member_key::MemberKey;

/// The members whose cursors had moved when the log was `up_to` entries long. Their cursors are
/// written a few at a time, between the batches, so that no batch waits for all of them.
pub(crate) struct CursorSweep {
    members: Vec<MemberKey>,
    up_to: u64,
}

impl Committer {
    pub(super) fn begin_sweep(&mut self) {
        let (member_keys, up_to) = (self.core.members.take_dirty(), self.log.newest());
        self.sweep = Some(CursorSweep { members: member_keys, up_to });
    }

    /// Writes the next cursors of the sweep. The sync of the next batch makes them durable.
    pub(super) fn write_cursors(&mut self, count: usize) -> Result<(), EngineFault> {
        let Some(sweep) = &mut self.sweep else { return Ok(()) };
        let first = sweep.members.len().saturating_sub(count);
        let mut batch = Batch::default();
        let member_keys = sweep.members.split_off(first);
        let written = self.core.members.write_cursors(member_keys.iter().cloned(), &mut batch)?;
        if !batch.is_empty() {
            if let Err(fault) = self.log.append(&[], &batch) {
                // The next sweep writes them; until then the log still has the own sends.
                let rest = std::mem::take(&mut sweep.members);
                self.core.members.mark_dirty(rest.into_iter().chain(member_keys));
                self.sweep = None;
                return Err(fault);
            }
            self.core.engine.apply(batch);
            self.core.members.mark_clean(written);
            reach(FailPoint::CursorsWritten);
        }
        if first == 0 {
            self.log.cover(sweep.up_to);
            self.sweep = None;
        }
        Ok(())
    }

    /// Writes all cursors that moved.
    pub(super) fn write_all_cursors(&mut self) -> Result<(), EngineFault> {
        self.write_cursors(usize::MAX)?;
        self.begin_sweep();
        self.write_cursors(usize::MAX)
    }
}
